"""Logs become cubes that every command reads, and that no run mixes with its own."""

import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from evalcube.flows.read.reader import Reader
from evalcube.flows.read.status import cube_status
from evalcube.flows.share.imports.logs import import_logs
from evalcube.flows.state.records import read_notes
from evalcube.flows.state.verify import verify_cube
from evalcube.stages.reply.status import Status
from evalcube.storage.cube.cube import Cube
from evalcube.storage.errors import StorageError
from tests.flows.share.imports.logs import INSPECT, LM_EVAL, write_lines
from tests.flows.support import evalcube, sweep_config

pytestmark = pytest.mark.long

CLOSE = 0.5


def imported(folder, *logs, cube="cube.zarr", **options):
    return import_logs(logs, folder / cube, cache=folder / "cache", correct_from=CLOSE, **options)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a cube of all logs of Inspect."""
    folder = tmp_path_factory.mktemp("made")
    imported(folder, INSPECT)
    return folder


@pytest.fixture
def own(made, tmp_path):
    """A copy of it."""
    shutil.copytree(made, tmp_path / "own")
    return tmp_path / "own"


def statuses(cube, model, task):
    found = Counter(Cube.open(cube).dataset()["status"].to_numpy()[model, task].ravel().tolist())
    return {Status(code).name.lower(): count for code, count in found.items() if code != Status.MISSING}


def test_import_logs__counts_what_the_tool_counted(made):
    expected = json.loads((INSPECT / "expected.json").read_text(encoding="utf-8"))
    plan = Reader(made / "cube.zarr").plan

    for model, label in enumerate(("alfa", "bravo", "charlie")):
        assert plan.evaluations[model].model == f"mockllm/{label}"
        for task, name in enumerate(plan.task_names):
            listed = [
                one for file, rows in expected.items() if file.startswith(f"{label}-{name}") for one in rows
            ]
            right = sum(next(iter(one["scores"].values()), 0) in ("C", 1) or closeness(one) for one in listed)
            found = statuses(made / "cube.zarr", model, task)
            assert found.get("correct", 0) == right
            assert found.get("transport", 0) == sum(one["error"] for one in listed)
            assert sum(found.values()) == len(listed)


def closeness(one):
    """Whether an essay's score reaches the threshold."""
    return one["scores"].get("closeness", 0) >= 0.5


def test_import_logs__says_how_wrong_answers_ended(made):
    expected = json.loads((INSPECT / "expected.json").read_text(encoding="utf-8"))
    ends = Counter(one["stop"] for one in expected["alfa-sums.eval"] if one["scores"]["match"] == "I")
    plan = Reader(made / "cube.zarr").plan

    found = statuses(made / "cube.zarr", 0, plan.task_names.index("sums"))

    assert found.get("truncated", 0) == ends["max_tokens"]
    assert found.get("refused", 0) == ends["content_filter"]
    assert found.get("incorrect", 0) == ends["stop"]


def test_import_logs__keeps_shares_as_the_layer_of_facts(made):
    plan = Reader(made / "cube.zarr").plan
    expected = json.loads((INSPECT / "expected.json").read_text(encoding="utf-8"))["alfa-essays.eval"]
    shares = [one["scores"]["closeness"] for one in expected if not one["error"]]

    fact = Cube.open(made / "cube.zarr").dataset()["fact"].to_numpy()[0, plan.task_names.index("essays")]

    np.testing.assert_allclose(np.sort(fact[np.isfinite(fact)]), 1 + 4 * np.sort(shares), rtol=1e-6)


def test_import_logs__has_a_cube_as_a_run_has(made):
    assert verify_cube(made / "cube.zarr").damages == []
    status = cube_status(made / "cube.zarr")
    assert status["graders"] == ["imported"]
    assert status["trials"] - status["done"] == sum(row["transport"] for row in status["models"]) == 2
    assert status["models"][0]["causes"] == {"error in inspect_ai": 1}
    assert sum(row["missing"] for row in status["models"]) == 0


def test_import_logs__goes_nowhere_where_something_is(own):
    with pytest.raises(StorageError, match="something is already"):
        imported(own, INSPECT)


def test_import_logs__does_not_depend_on_the_order_of_logs(made, tmp_path):
    imported(tmp_path, *sorted((path for path in INSPECT.glob("*-*")), reverse=True))

    plan, other = Reader(tmp_path / "cube.zarr").plan, Reader(made / "cube.zarr").plan
    assert {one.eval_id for one in plan.evaluations} == {one.eval_id for one in other.evaluations}
    assert {task.label for task in plan.tasks} == {task.label for task in other.tasks}


def test_import_logs__shows_texts(made):
    reader = Reader(made / "cube.zarr", made / "cache")

    view = reader.view(1, reader.plan.task_names.index("sums"), 0, 0)

    assert view.messages[0]["content"] == "What is 0 + 0?"
    assert (view.reasoning, view.reference, view.row_id) == ("Let me add.", "0", "s0")
    assert view.response
    assert view.parsed == view.response or view.status != "correct"


def test_import_logs__is_healed_and_kept_by_what_reads_the_cache(own):
    next((own / "cube.zarr" / "status").glob("c.*")).unlink()

    assert verify_cube(own / "cube.zarr", heal=True, cache=own / "cache").damages[0].healed
    assert verify_cube(own / "cube.zarr").damages == []
    assert cube_status(own / "cube.zarr")["graders"] == ["imported"]


def test_import_logs__knows_a_question_under_other_prompts(tmp_path):
    imported(tmp_path, LM_EVAL)
    reader = Reader(tmp_path / "cube.zarr", tmp_path / "cache")
    sums = reader.plan.task_names.index("sums")
    models = [one.model for one in reader.plan.evaluations]

    ours, theirs = (reader.view(models.index(name), sums, 0, 0) for name in ("alfa", "bravo"))

    assert ours.row == theirs.row == 1
    assert ours.messages[0]["content"] == "Question: What is 0 + 0?\nAnswer:"
    assert theirs.messages[0]["content"].startswith("system: Be brief.")


def test_import_logs__knows_guess_chances(tmp_path):
    imported(tmp_path, LM_EVAL / "dummy")

    guesses = Cube.open(tmp_path / "cube.zarr").dataset()["guess_chance"].to_numpy()
    assert set(guesses[np.isfinite(guesses)].tolist()) == {0.25}


def test_import_logs__writes_nothing_if_a_log_is_wrong(tmp_path):
    good = write_lines(tmp_path / "a.jsonl", [{"id": 1, "ok": 1}])
    bad = write_lines(tmp_path / "b.jsonl", [{"id": 1, "ok": 0.5}])

    code, _, error = evalcube(
        "import", good, bad, "--into", "cube.zarr", "--cache", "cache", "--map", "id=id,correct=ok", "--model", "m",
        cwd=tmp_path,
    )  # fmt: skip

    assert code == 2
    assert "line 1, score 'ok': 0.5" in error
    assert "--correct-from" in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl"]


@pytest.mark.parametrize("score", [None, float("nan")])
def test_import__writes_nothing_if_no_answer_has_a_score(tmp_path, score):
    row = {"q": "a", "said": "42", "ok": score, "who": "base", "try": 1}
    path = write_lines(tmp_path / "mine.jsonl", [row])
    fields = "prompt=q,response=said,correct=ok,model=who,repeat=try"

    code, _, error = evalcube(
        "import", str(path), "--map", fields, "--into", "out/i.zarr", "--cache", "out/c", cwd=tmp_path
    )

    assert code == 2
    assert "nothing to import" in error
    assert [one.name for one in tmp_path.iterdir()] == ["mine.jsonl"]


def rows_of(tmp_path, name, models, **fields):
    rows = [
        {"q": f"{i}+1?", "out": f"{i + 1}{m}", "ok": i % 2, "m": m, **fields}
        for m in models
        for i in range(4)
    ]
    return write_lines(tmp_path / name, rows)


MAP = "prompt=q,response=out,correct=ok,model=m"


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """A folder with a cube of somebody's own lines about two models, which tests read."""
    folder = tmp_path_factory.mktemp("mine")
    rows_of(folder, "a.jsonl", "xy")
    evalcube("import", "a.jsonl", "--into", "c.zarr", "--cache", "cache", "--map", MAP, cwd=folder)
    return folder


def test_import__takes_repeats_from_several_logs(tmp_path):
    rows_of(tmp_path, "a.jsonl", "x", r=1)
    rows_of(tmp_path, "b.jsonl", "x", r=2)
    flags = ["--into", "c.zarr", "--cache", "cache", "--map", f"{MAP},repeat=r", "--task", "t"]

    code, text, error = evalcube("import", "a.jsonl", "b.jsonl", *flags, cwd=tmp_path)

    assert (code, error) == (0, "")
    assert "1 evaluations to 1 tasks" in text
    assert cube_status(tmp_path / "c.zarr")["done"] == 8
    assert verify_cube(tmp_path / "c.zarr").damages == []


def test_import__says_each_command_about_it(mine, tmp_path):
    for arguments in (["leaderboard"], ["table"], ["rank"], ["compare"], ["metrics", "--k", "1"], ["status"]):
        code, text, error = evalcube(arguments[0], "c.zarr", *arguments[1:], cwd=mine)
        assert (code, error) == (0, ""), arguments
        assert "tokens" not in text, arguments  # nobody has counted any
    assert evalcube("analyze", "cost", "c.zarr", cwd=mine)[1].split("\n")[2].split()[:3] == [
        "x",
        "–",
        "–",
    ]
    code, text, _ = evalcube("verdict", "c.zarr", "--control", "x", "--treatment", "y", cwd=mine)
    assert "too few pairs" in text
    code, text, _ = evalcube("report", "c.zarr", "-o", tmp_path / "r.html", "--cache", "cache", cwd=mine)
    assert code == 0
    code, text, _ = evalcube("show", "c.zarr", "--task", "a", "--cache", "cache", cwd=mine)
    assert "not known   latency" in text
    assert "1x" in text


def test_import__refuses_what_would_mix(mine, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    code, _, error = evalcube("upsample", "c.zarr", "--trials", "8", cwd=mine)
    assert (code, "no endpoint" in error) == (2, True)
    code, _, error = evalcube("rescore", "c.zarr", cwd=mine)
    assert (code, "graded by the tool" in error) == (2, True)


def test_import__refuses_other_replies_in_the_cache(mine, tmp_path):
    flags = ["--cache", mine / "cache", "--map", MAP]
    write_lines(tmp_path / "a.jsonl", [{"q": "0+1?", "out": "another", "ok": 1, "m": "x"}])

    code, _, error = evalcube("import", "a.jsonl", "--into", "d.zarr", *flags, cwd=tmp_path)

    assert code == 2
    assert "other replies" in error
    assert not (tmp_path / "d.zarr").exists()


def test_import__cannot_be_asked_by_a_config(mine, tmp_path):
    (data,) = (mine / "c.data").iterdir()
    point = {"file": str(data), "imported": "rows/a/ok", "order": "file"}
    config = sweep_config(mine, "http://127.0.0.1:1", cube="c.zarr")
    config["tasks"] = {"a": {"task": "dataset", "manifold": [{"points": [point], "tiers": ["easy"]}]}}
    (tmp_path / "config.yaml").write_text(json.dumps(config), encoding="utf-8")

    code, _, error = evalcube("run", "config.yaml", cwd=tmp_path)

    assert code == 2
    assert "`evalcube import` makes" in error


def test_import__prints_nothing_that_a_terminal_obeys(tmp_path):
    rows = [{"q": "\x1b[31mred", "out": "\x1b]0;x\x07", "ok": 1, "m": "\x1b[2J"}]
    write_lines(tmp_path / "a.jsonl", rows)
    evalcube("import", "a.jsonl", "--into", "c.zarr", "--cache", "cache", "--map", MAP, cwd=tmp_path)

    for arguments in (["status", "c.zarr"], ["show", "c.zarr", "--task", "a", "--cache", "cache"]):
        assert "\x1b" not in evalcube(*arguments, cwd=tmp_path)[1]


def test_import__prints_json(tmp_path):
    rows_of(tmp_path, "a.jsonl", "x")

    code, text, _ = evalcube(
        "import", "a.jsonl", "--into", "c.zarr", "--cache", "cache", "--map", MAP, "--json", cwd=tmp_path
    )

    document = json.loads(text)
    assert (code, document["schema"], document["replies"], document["models"]) == (
        0,
        "evalcube.import",
        4,
        ["x"],
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.jsonl"], "it cannot be read: No such file"),
        (["empty"], "there is no log in 'empty'"),
        (["own.txt"], "is no log of a known tool"),
        (["own.jsonl"], "own.jsonl, line 1: the log does not say the model"),
        (["own.jsonl", "--model", "m"], "line 1, prompt: nothing says which question it is about"),
        (["own.jsonl", "--map", "x=y"], "--map: 'x' cannot be mapped"),
        (["own.jsonl", "--correct-from", "2"], "--correct-from: 2 is not above 0"),
    ],
)
def test_import__says_what_to_do(tmp_path, arguments, message):
    (tmp_path / "empty").mkdir()
    write_lines(tmp_path / "own.jsonl", [{"a": 1}])
    write_lines(tmp_path / "own.txt", [{"a": 1}])

    code, _, error = evalcube("import", *arguments, "--into", "c.zarr", cwd=tmp_path)

    assert code == 2
    assert message in error


def test_import__of_a_folder_of_own_lines_is_titled_by_its_tasks(tmp_path):
    (tmp_path / "mine").mkdir()
    for model in ("a", "b"):
        rows = [{"q": f"{n}+1?", "said": str(n + 1), "ok": 1, "set": "sums"} for n in range(3)]
        write_lines(tmp_path / "mine" / f"{model}.jsonl", [row | {"who": model} for row in rows])
    names = ("--map", "prompt=q,response=said,correct=ok,model=who,task=set")

    assert evalcube("import", "mine", "--into", "c.zarr", *names, cwd=tmp_path)[0] == 0

    assert read_notes(Cube.open(tmp_path / "c.zarr").records)["name"] == "sums"
    code, shown, _ = evalcube("trials", "c.zarr", "--limit", "1", cwd=tmp_path)
    assert code == 0
    head, _, row = shown.splitlines()[:3]
    assert head.split()[-1] == "response"  # and no columns that all trials are without
    assert not {"answer", "reference", "tokens", "latency"} & set(head.split())
    assert row.split()[-1] == "1"


def test_import__passes_over_the_same_file_given_twice(tmp_path):
    rows_of(tmp_path, "a.jsonl", "x")
    shutil.copy(tmp_path / "a.jsonl", tmp_path / "b.jsonl")

    summary = import_logs(
        [tmp_path / "a.jsonl", tmp_path / "b.jsonl"],
        tmp_path / "c.zarr",
        cache=tmp_path / "cache",
        map=MAP,
    )

    assert (summary.logs, summary.replies) == (1, 4)
    assert [note.split(":")[0] for note in summary.notes] == ["b.jsonl"]
    assert Path(summary.cube).exists()
