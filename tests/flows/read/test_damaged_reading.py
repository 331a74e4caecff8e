"""Reading damaged cubes: one clear line, and remedies that work when they are followed to the letter."""

import json
import shutil
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
import zarr

import evalcube as ec
from evalcube.flows.read.sides import refuse_altered
from evalcube.flows.share.imports.logs import import_logs
from evalcube.flows.state.verify import verify_cube
from evalcube.stages.reply.status import COUNTERS
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger
from tests.flows.share.imports.logs import write_lines
from tests.flows.support import arrays, assert_same_cube, evalcube

pytestmark = pytest.mark.long

NUMBERS = count()
READING = {
    "metrics": ("metrics", "cube.zarr"),
    "table": ("table", "cube.zarr", "--trials", 1),
    "leaderboard": ("leaderboard", "cube.zarr", "--trials", 1),
    "analyze": ("analyze", "cost", "cube.zarr", "--trials", 1),
    "report": ("report", "cube.zarr"),
    "trials": ("trials", "cube.zarr"),
    "show": ("show", "cube.zarr", "--task", "boolean"),
}


@pytest.fixture
def sweep(tmp_path, small_sweep):
    """A folder with a finished sweep of its own."""
    folder = tmp_path / str(next(NUMBERS))
    shutil.copytree(small_sweep, folder)
    config = folder / "sweep.yaml"
    config.write_text(config.read_text().replace(str(small_sweep), str(folder)))
    return folder


def one_line(errors):
    """The message, without ``evalcube: ``."""
    assert "Traceback" not in errors
    (line,) = errors.strip().splitlines()
    return line.removeprefix("evalcube: ")


def unconsolidate(cube):
    """Take the arrays' metadata out of the group's, as other programs leave them."""
    path = Path(cube) / "zarr.json"
    document = json.loads(path.read_text())
    del document["consolidated_metadata"]
    path.write_text(json.dumps(document))


DAMAGES = [("status", False), ("counters", False), ("status", True), ("task", False)]


@pytest.mark.parametrize(
    ("how", "array", "gone"),
    [(how, *DAMAGES[(number + more) % 4]) for number, how in enumerate(READING) for more in (0, 1)],
)
def test_reading__a_damaged_chunk_is_named_in_one_line(sweep, how, array, gone):
    for chunk in (sweep / "cube.zarr" / array).glob("c.*"):
        if gone:
            chunk.unlink()
        else:
            chunk.write_bytes(chunk.read_bytes()[:-5])

    code, _, errors = evalcube(*READING[how], cwd=sweep)

    if code == 2:
        assert f"array '{array}' " in one_line(errors)
        assert "cube verify --heal" in errors
    else:  # it needs other arrays only
        assert (code, array) in {(0, "status"), (0, "counters"), (0, "task")}
        assert (how, array) not in {
            ("metrics", "status"), ("leaderboard", "status"), ("trials", "status"), ("report", "counters"),
        }  # fmt: skip


def test_reading__what_needs_no_damaged_array_goes_on(sweep):
    for chunk in (sweep / "cube.zarr" / "latency").glob("c.*"):
        chunk.write_bytes(chunk.read_bytes()[:-5])

    code, _, errors = evalcube("metrics", "cube.zarr", cwd=sweep)

    assert code == 0, errors


@pytest.mark.parametrize("array", ["status", "counters", "fact"])
def test_deciding__arrays_that_contradict_what_was_recorded_are_refused(judged, tmp_path, array):
    """Nobody can tell which of them is right: 59 other outcomes made a regression GO."""
    shutil.copytree(judged, tmp_path, dirs_exist_ok=True)
    (url,) = tmp_path.glob("*.zarr")
    (tmp_path / "policy.yaml").write_text("policy: {critical: [{noninferior: 99}]}")
    commands = ("gate policy.yaml", url.name, "before after"), ("verdict", url.name, "--control before after")
    assert [evalcube(*" ".join(one).split(), cwd=tmp_path)[0] for one in commands] == [0, 0]
    stored = zarr.open_group(url, mode="r+")[array]
    values = stored[...]
    if array == "counters":
        values[1, 0, 0, COUNTERS.index("correct")] -= 3
    else:
        values[1, 0, 0, :3] = {"status": 0, "fact": 2.0}[array]
    stored[...] = values

    for command in commands:
        code, _, errors = evalcube(*" ".join(command).split(), cwd=tmp_path)
        assert code == 2
        message = one_line(errors)
        assert "decided on 'after'" in message
        assert ("differ by 3 trials" in message) == (array != "fact")
        assert ("what was recorded" in message) == (array != "counters")
        assert "cube verify" in message


def test_deciding__what_a_run_has_just_written_is_read_again(judged, monkeypatch):
    cube = Cube.open(judged / "cube.zarr")
    newest = Ledger(cube.records).newest()
    before = {region: replace(receipt, digest="0" * 32) for region, receipt in newest.items()}
    answers = iter([before, newest, newest])
    monkeypatch.setattr(Ledger, "newest", lambda _: next(answers))

    refuse_altered(judged / "cube.zarr", cube.whole_label("eval_id").tolist())

    assert next(answers, None) is None


@pytest.fixture(scope="module")
def clustered(tmp_path_factory):
    """A folder with imported cubes, whose questions are drawn in clusters: of one model, and of two merged."""
    folder = tmp_path_factory.mktemp("clustered")
    for model in "ab":
        rows = [
            {"id": i, "prompt": f"Q{i}", "response": "x", "correct": i % 2, "model": model, "task": "t"}
            | {"cluster": i // 5}
            for i in range(20)
        ]
        log = write_lines(folder / f"{model}.jsonl", rows)
        import_logs([log], folder / f"{model}.zarr", cache=folder / "cache")
    ec.merge(folder / "m.zarr", [folder / "a.zarr", folder / "b.zarr"])
    return folder


@pytest.mark.parametrize("array", ["cluster", "base_trials"])
def test_reading__clusters_and_weights_that_are_gone_are_told_by_every_reader(clustered, tmp_path, array):
    """They would read as no clusters, and as the weights of the cube's description."""
    shutil.copytree(clustered, tmp_path, dirs_exist_ok=True)
    min((tmp_path / "m.zarr" / array).glob("c.*")).unlink()

    for command in (
        "leaderboard m.zarr", "leaderboard m.zarr a.zarr", "table m.zarr", "compare m.zarr", "metrics m.zarr",
        "analyze cost m.zarr", "report m.zarr", "verdict m.zarr --control a", "merge new.zarr m.zarr a.zarr",
    ):  # fmt: skip
        code, _, errors = evalcube(*command.split(), cwd=tmp_path)
        assert code == 2, command
        assert array in one_line(errors)
        assert "is gone" in errors
        assert "cube verify" in errors


@pytest.mark.parametrize("how", ["metrics", "leaderboard", "show"])
@pytest.mark.filterwarnings("error")
def test_reading__without_consolidated_metadata_is_the_same(sweep, how):
    _, expected, _ = evalcube(*READING[how], cwd=sweep)
    unconsolidate(sweep / "cube.zarr")

    code, output, errors = evalcube(*READING[how], cwd=sweep)

    assert (code, output, errors) == (0, expected, "")


def test_run__mends_metadata_that_are_not_consolidated(sweep):
    before = arrays(sweep / "cube.zarr")
    unconsolidate(sweep / "cube.zarr")

    code, _, errors = evalcube("run", "sweep.yaml", "--quiet", cwd=sweep)

    assert (code, errors) == (0, "")
    assert Cube.open(sweep / "cube.zarr").group.consolidated
    assert arrays(sweep / "cube.zarr").keys() == before.keys()


def test_open__a_cube_without_zarr_json_is_moved_away_and_run_again(sweep):
    shutil.copytree(sweep / "cube.zarr", sweep / "whole.zarr")
    (sweep / "cube.zarr" / "zarr.json").unlink()

    for command in (("status", "cube.zarr"), ("run", "sweep.yaml", "--quiet")):
        code, _, errors = evalcube(*command, cwd=sweep)
        assert code == 2
        message = one_line(errors)
        assert "zarr.json" in message
        assert "move it away" in message

    (sweep / "cube.zarr").rename(sweep / "away.zarr")
    code, output, errors = evalcube("run", "sweep.yaml", "--quiet", cwd=sweep)
    assert (code, errors) == (0, "")
    assert "0 requests sent" in output
    assert_same_cube(sweep / "cube.zarr", sweep / "whole.zarr")


def test_open__a_folder_that_is_no_cube_is_not_to_be_made_one_by_a_run(sweep):
    shutil.rmtree(sweep / "cube.zarr")
    (sweep / "cube.zarr").mkdir()

    code, _, errors = evalcube("run", "sweep.yaml", "--quiet", cwd=sweep)

    assert code == 2
    assert "the sweep" not in one_line(errors)


def write_all(files):
    for path, data in files.items():
        path.write_bytes(data)


def test_planning__counts_what_a_damaged_array_said_of_all_models(sweep):
    plan, budget = (
        ("plan", "sweep.yaml", "--json"),
        ("upsample", "sweep.yaml", "--budget", "2000 tokens", "--goal", "intervals"),
    )
    whole = evalcube(*plan, cwd=sweep)

    broken = {}
    for array in ("counters", "planned_trials", "planned_repeats"):
        chunks = {path: path.read_bytes() for path in (sweep / "cube.zarr" / array).glob("c.*")}
        broken |= {path: data[:-5] for path, data in chunks.items()}
        write_all({path: broken[path] for path in chunks})
        assert evalcube(*plan, cwd=sweep) == whole, array
        write_all(chunks)
    write_all(broken)

    code, _, errors = evalcube(*budget, "--quiet", "--workers", 1, cwd=sweep)
    assert (code, errors) == (0, "")
    assert evalcube("cube", "verify", "cube.zarr", cwd=sweep)[0] == 0


def remove_chunks(sweep, array):
    for chunk in (sweep / "cube.zarr" / array).glob("c.*"):
        chunk.unlink()


@pytest.mark.parametrize("label", ["counter", "task", "model_name", "cell_id", "in_tier"])
def test_leaderboard__a_label_that_is_gone_is_no_empty_one(sweep, label):
    remove_chunks(sweep, label)

    code, _, errors = evalcube("leaderboard", "cube.zarr", cwd=sweep)

    assert code == 2
    assert f"its label `{label}` is gone" in one_line(errors)


def test_leaderboard__counters_that_are_gone_are_said_to_lack_what_is_recorded(sweep):
    remove_chunks(sweep, "counters")

    code, _, errors = evalcube("leaderboard", "cube.zarr", cwd=sweep)

    assert code == 0
    assert "not counted yet" in errors


def test_metrics__is_not_said_to_lack_what_is_not_counted_yet(sweep):
    whole = evalcube("metrics", "cube.zarr", "--json", cwd=sweep)[1]
    remove_chunks(sweep, "counters")

    code, output, errors = evalcube("metrics", "cube.zarr", "--json", cwd=sweep)

    assert code == 0
    assert json.loads(output)["rows"] == json.loads(whole)["rows"]
    assert "not counted yet" in errors


def test_counters__under_other_names_are_refused_until_they_are_healed(sweep):
    before = ec.leaderboard(sweep / "cube.zarr").records()
    labels = zarr.open_group(sweep / "cube.zarr", mode="r+")["counter"]
    names = labels[...]
    labels[...] = [names[1], names[0], *names[2:]]

    with pytest.raises(ec.StorageError, match=r"verify --heal"):
        ec.leaderboard(sweep / "cube.zarr")
    verify_cube(sweep / "cube.zarr", heal=True)

    assert ec.leaderboard(sweep / "cube.zarr").records() == before
