"""Data files are edited, renamed and deleted: what was measured stays readable, and only what is new is asked."""

import copy
import json
import shutil
from pathlib import Path

import pytest

from evalcube.flows.config.load import as_config
from evalcube.flows.errors import ConfigError
from evalcube.flows.keep.rescore import rescore_cube
from evalcube.flows.plan.build import build_plan
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.selection import Part, open_part
from evalcube.flows.read.statistics import leaderboard
from evalcube.flows.read.trials.read import trials
from evalcube.flows.run import sweep as sweep_module
from evalcube.flows.run.sweep import run
from evalcube.flows.run.worker.context import unmade
from evalcube.flows.share.merge import merge_cubes
from evalcube.flows.share.publish.check_secrets import SecretsError
from evalcube.flows.share.publish.publish import publish_cube
from evalcube.flows.share.publish.pull import pull_cube
from evalcube.flows.state.verify import verify_cube
from evalcube.stages.generate import TASKS, Cell
from evalcube.stages.generate.dataset import kept
from evalcube.stages.generate.dataset.books import Library
from evalcube.stages.generate.recent import Recent
from evalcube.storage.cube.cube import Cube
from tests.flows.shared_cluster import SHARED
from tests.flows.support import evalcube, reset, simulator_stats, sweep_config, write_config

ROWS = [
    {"q": f"Which is {n}?", "o": [str(n), f"{n}0", f"{n}1", f"{n}2"], "a": n % 4, "key": f"k{n}"}
    for n in range(12)
]
FIELDS = {"prompt": "q", "options": "o", "answer": "a", "answer_is": "index", "id": "key"}


@pytest.fixture
def file(tmp_path):
    return written(tmp_path / "rows.jsonl", ROWS)


def config_in(folder, simulator, file):
    tasks = {"own": {"task": "dataset", "params": {"file": str(file), **FIELDS}}}
    return sweep_config(folder, simulator.base_url, trials=100, tasks=tasks)


@pytest.fixture
def config(tmp_path, simulator, file):
    return config_in(tmp_path, simulator, file)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory, _served):
    """The config of a finished sweep, and a copy of the folder that has its cube, its cache and its file."""
    reset(_served)
    folder = tmp_path_factory.mktemp("edited")
    config = config_in(folder, _served, written(folder / "rows.jsonl", ROWS))
    run(config, cluster=SHARED)
    return config, shutil.copytree(folder, tmp_path_factory.mktemp("pristine") / "copy")


@pytest.fixture
def measured(pristine, simulator, monkeypatch):  # noqa: ARG001 - nothing has been asked yet
    """The config and the file of that sweep, as they were, whatever another test has made of them."""
    config, kept_folder = pristine
    file = Path(config["tasks"]["own"]["params"]["file"])
    shutil.rmtree(file.parent)
    shutil.copytree(kept_folder, file.parent)
    elsewhere(monkeypatch)
    return copy.deepcopy(config), file


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def elsewhere(monkeypatch):
    """As in another process: no file is open, and nothing is known of what any cube keeps."""
    monkeypatch.setattr(kept, "_offers", Recent(9))
    monkeypatch.setattr(kept, "_versions", {})
    monkeypatch.setattr(TASKS["dataset"], "_library", Library())


def requests_of(simulator, config):
    """Requests that a run sends."""
    before = simulator_stats(simulator)["requests"]
    summary = run(config, cluster=SHARED)
    assert summary.reason == "complete"
    return simulator_stats(simulator)["requests"] - before


def texts(cube, **options):
    """Questions, references and replies of a cube."""
    columns = ["row_id", "prompt", "reference", "answer", "status"]
    return sorted(json.dumps(row, default=str) for row in trials(cube, columns=columns, **options).rows())


def test_run__asks_only_what_a_model_has_not_seen(config, file, simulator, monkeypatch):
    assert requests_of(simulator, config) == len(ROWS)
    before = texts(config["cube"])
    nought, new = ({**ROWS[0], "q": f"Which is {what}?"} for what in ("nought", "new"))
    edits = [
        (list(reversed(ROWS[:4] + ROWS[5:])), 0),
        ([nought, *ROWS[1:], new], 2),
        ([{**ROWS[0], "a": 3}, *ROWS[1:]], 0),
        (ROWS, 0),
    ]

    for rows, wanted in edits:
        written(file, rows)
        elsewhere(monkeypatch)
        assert requests_of(simulator, config) == wanted

    assert texts(config["cube"], where=["params=0"]) == before
    assert verify_cube(config["cube"]).damages == []
    plan = Reader(config["cube"]).plan
    assert [planned.older for planned in plan.tasks[0].cells] == [False] + [True] * (len(edits) - 1)


def test_results__stay_readable_whatever_becomes_of_the_file(measured, tmp_path, monkeypatch):
    config, file = measured
    before = texts(config["cube"])

    for fate, change in (("edited", lambda: written(file, ROWS[2:])), ("deleted", file.unlink)):
        change()
        for command in (
            ("show", config["cube"], "--task", "own"),
            ("report", config["cube"], "--output", tmp_path / "r.html"),
            ("trials", config["cube"]),
            ("publish", config["cube"], tmp_path / f"{fate}-published.zarr"),
        ):
            elsewhere(monkeypatch)
            code, _, errors = evalcube(*command, cwd=tmp_path)
            assert code == 0, errors
        elsewhere(monkeypatch)
        assert texts(config["cube"]) == before
        elsewhere(monkeypatch)
        assert rescore_cube(config["cube"], output=tmp_path / f"{fate}.zarr").changed == 0


def test_run__goes_on_without_the_file(measured, tmp_path, monkeypatch):
    config, file = measured
    written(file, ROWS[2:])
    run(config, cluster=SHARED)
    before = {row["row_id"] for row in trials(config["cube"]).rows()}
    file.unlink()
    written(tmp_path / "c.yaml", [config])

    for command in (
        ("run", "c.yaml"),
        ("upsample", "c.yaml", "--repeats", 2),
        ("upsample", config["cube"], "--repeats", 3),
    ):
        elsewhere(monkeypatch)
        code, _, errors = evalcube(*command, cwd=tmp_path)
        assert code == 0, errors
        assert f"{file} is gone: " in " ".join(errors.split())
    assert {row["row_id"] for row in trials(config["cube"]).rows()} == before


def test_upsample__of_a_pulled_cube_needs_no_file(measured, tmp_path, simulator, monkeypatch):
    config, file = measured
    publish_cube(config["cube"], tmp_path / "published")
    file.unlink()
    shutil.rmtree(config["cube"])
    (there := tmp_path / "there").mkdir()
    pull_cube(tmp_path / "published", there / "pulled.zarr")
    elsewhere(monkeypatch)

    code, _, errors = evalcube(
        *("upsample", "pulled.zarr", "--repeats", 2, "--endpoint", simulator.base_url, "--cache", "own"),
        cwd=there,
    )

    assert code == 0, errors
    assert any(row["repeat"] == 1 for row in trials(there / "pulled.zarr").rows())


@pytest.mark.parametrize("known", [True, False])
def test_run__refuses_a_file_that_its_cube_never_asked(measured, known, tmp_path):
    config, _ = measured
    if not known:
        config["cube"] = str(tmp_path / "cube.zarr")
    config["tasks"]["own"]["params"]["file"] = str(tmp_path / "other.jsonl")

    with pytest.raises(ConfigError, match=r"other\.jsonl"):
        run(config, cluster=SHARED)


def test_leaderboard__takes_the_newest_version_and_says_so(measured, tmp_path):
    config, file = measured
    written(file, ROWS[2:])
    run(config, cluster=SHARED)
    first, second = [str(one.cell.params.sha256)[:8] for one in Reader(config["cube"]).plan.tasks[0].cells]

    parts = [Part(), Part([f"file_version={first}"]), Part([f"file_version={first},{second}"])]

    boards = [leaderboard(config["cube"], part=part) for part in parts]
    said = [[text for text in open_part(config["cube"], part).warnings if "edited" in text] for part in parts]

    assert [board.rows[0].trials for board in boards] == [10, 12, 22]
    assert [len(texts) for texts in said] == [1, 0, 0]
    assert "12 trials of" in said[0][0]
    assert f"file_version={first} shows them" in said[0][0]
    for command in ("leaderboard", "table"):
        _, document, _ = evalcube(command, config["cube"], "--json", cwd=tmp_path)
        _, table, _ = evalcube(command, config["cube"], "--markdown", cwd=tmp_path)
        assert "its newest version" in " ".join(json.loads(document)["warnings"])
        assert "its newest version" in table


def test_leaderboard__shows_the_old_version_until_the_new_one_is_measured(measured, monkeypatch):
    config, file = measured
    written(file, ROWS[2:])
    monkeypatch.setattr(sweep_module.Session, "run", _killed)
    with pytest.raises(KilledError):
        run(config, cluster=SHARED)

    board = leaderboard(config["cube"])

    assert board.rows[0].trials == 12


class KilledError(Exception):
    """Stands for a kill."""


def _killed(_):
    raise KilledError


def test_run__killed_before_its_first_request_has_kept_the_questions(config, simulator, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sweep_module.Session, "run", _killed)
        with pytest.raises(KilledError):
            run(config, cluster=SHARED)
    assert simulator_stats(simulator)["requests"] == 0
    (key,) = Cube.open(config["cube"]).records.list("questions/")

    with monkeypatch.context() as patch:  # and another one before it has kept them
        Cube.open(config["cube"], writable=True).records.delete(key)
        patch.setattr(sweep_module, "keep_questions", lambda *_: _killed(_))
        with pytest.raises(KilledError):
            run(config, cluster=SHARED)

    assert requests_of(simulator, config) == len(ROWS)
    assert list(Cube.open(config["cube"]).records.list("questions/")) == [key]


def test_questions__go_with_the_cube_to_others_and_back(measured, tmp_path, monkeypatch):
    config, file = measured
    before = texts(config["cube"])
    publish_cube(config["cube"], str(tmp_path / "out"), with_replies=True)
    file.unlink()
    away = tmp_path / "away"
    away.mkdir()
    shutil.move(tmp_path / "out", away / "out")
    shutil.move(config["cube"], away / "own.zarr")
    shutil.rmtree(config["cache"])
    monkeypatch.chdir(away)

    elsewhere(monkeypatch)
    pulled = pull_cube(str(away / "out"), str(away / "pulled.zarr")).cube

    assert texts(pulled) == before
    own = written(away / "rows.jsonl", ROWS[2:])
    more = {**config, "cube": str(away / "more.zarr"), "cache": str(away / "cache")}
    more["tasks"]["own"]["params"]["file"] = str(own)
    run(more, cluster=SHARED)
    own.unlink()
    elsewhere(monkeypatch)
    joint = merge_cubes(str(away / "joint.zarr"), [pulled, more["cube"]]).cube
    assert len(list(Cube.open(joint).records.list("questions/"))) == 2
    assert verify_cube(joint).damages == []
    elsewhere(monkeypatch)
    assert len(texts(joint)) == 12 + 10


def test_publish__looks_for_secrets_in_the_questions(config, file, tmp_path):
    written(file, [{**ROWS[0], "note": "key sk-" + "a1B2" * 8}, *ROWS[1:]])
    run(config, cluster=SHARED)

    with pytest.raises(SecretsError, match=r"questions of .*rows.jsonl"):
        publish_cube(config["cube"], str(tmp_path / "out"))


def test_verify__finds_and_heals_other_questions(measured, monkeypatch):
    config, file = measured
    records = Cube.open(config["cube"], writable=True).records
    (key,) = records.list("questions/")
    whole = records.get(key).data
    records.put(key, whole[:-9])

    (damage,) = verify_cube(config["cube"]).damages
    assert (damage.array, damage.healed) == (key, False)
    assert "the data file" in str(damage)

    (damage,) = verify_cube(config["cube"], heal=True).damages
    assert damage.healed
    assert records.get(key).data == whole

    records.put(key, b"")
    file.unlink()
    elsewhere(monkeypatch)
    assert not verify_cube(config["cube"], heal=True).damages[0].healed


def test_run__says_what_to_do_where_the_file_is_gone(config, file, tmp_path):
    file.unlink()

    code, _, errors = evalcube("run", write_config(tmp_path, config), cwd=tmp_path)

    assert code == 2
    assert "restore the file" in errors


def test_unmade__names_the_file_that_cannot_be_read(config, file, monkeypatch):
    plan = build_plan(as_config(config))

    def fails(*_):
        raise OSError("input/output error")

    monkeypatch.setattr(Cell, "trial", fails)

    assert unmade(plan) == f"cannot read {file}: input/output error"
