"""Imported cubes beside others: merged, and graded by their tool alone."""

import json
import shutil

import pytest

from evalcube.flows.read.reader import Reader
from evalcube.storage.cube.cube import Cube
from tests.flows.read.merged.generated import Recipe, make_cube
from tests.flows.share.imports.logs import INSPECT, LM_EVAL, write_lines
from tests.flows.support import evalcube

pytestmark = pytest.mark.long

MAP = "prompt=q,response=out,correct=ok,model=m"


def rows_of(tmp_path, name, models, **fields):
    rows = [
        {"q": f"{i}+1?", "out": f"{i + 1}{m}", "ok": i % 2, "m": m, **fields}
        for m in models
        for i in range(4)
    ]
    return write_lines(tmp_path / name, rows)


def test_imports__of_the_same_questions_are_merged(tmp_path):
    for name in "xy":
        rows_of(tmp_path, f"{name}.jsonl", name)
        flags = ["--into", f"{name}.zarr", "--cache", "cache", "--map", MAP, "--task", "a"]
        assert evalcube("import", f"{name}.jsonl", *flags, cwd=tmp_path)[0] == 0

    code, text, error = evalcube("merge", "both.zarr", "x.zarr", "y.zarr", cwd=tmp_path)

    assert (code, error) == (0, "")
    assert "2 evaluations, 1 tasks, 8 trials" in text


def test_import__keeps_replies_to_equal_prompts_apart(tmp_path):
    rows = [{"id": i, "q": "Go on.", "out": f"reply {i}", "ok": i % 2, "m": "x"} for i in range(4)]
    write_lines(tmp_path / "a.jsonl", rows)

    evalcube(
        "import", "a.jsonl", "--into", "c.zarr", "--cache", "cache", "--map", f"{MAP},id=id", cwd=tmp_path
    )

    reader = Reader(tmp_path / "c.zarr", tmp_path / "cache")
    views = [reader.view(0, 0, 0, trial) for trial in range(4)]
    assert [view.response for view in views] == [f"reply {i}" for i in range(4)]
    assert [view.status for view in views] == ["incorrect", "correct"] * 2
    assert Cube.open(tmp_path / "c.zarr").dataset()["duplicate"].to_numpy()[0, 0, :4].tolist() == [0, 1, 1, 1]


def test_rescore__says_what_it_leaves_to_the_other_tool(tmp_path):
    rows_of(tmp_path, "a.jsonl", "x")
    evalcube("import", "a.jsonl", "--into", "c.zarr", "--cache", "cache", "--map", MAP, cwd=tmp_path)
    make_cube(tmp_path / "own.zarr", Recipe(models=("alpha",), lengths=(3,), depths=(), trials=(0, 2)))
    evalcube("merge", "mixed.zarr", "c.zarr", "own.zarr", cwd=tmp_path)

    code, output, errors = evalcube("rescore", "mixed.zarr", "--cache", "cache", cwd=tmp_path)

    assert code == 0, errors
    assert "imported" not in output
    assert "1 imported regions" in errors


def test_import__of_two_logs_of_one_eval_needs_no_caches(tmp_path):
    for name in "xy":
        rows = [{"q": f"{i}?", "out": f"{name}{i}", "ok": i % 2, "m": "one"} for i in range(4)]
        write_lines(tmp_path / f"{name}.jsonl", rows)
        words = ("import", f"{name}.jsonl", "--into", f"{name}.zarr", "--map", MAP, "--task", "a")
        assert evalcube(*words, cwd=tmp_path)[0] == 0

    assert [Reader(tmp_path / f"{name}.zarr").view(0, 0, 0, 1).response for name in "xy"] == ["x1", "y1"]


def test_import__leaves_out_of_a_folder_what_is_wrong_and_names_it(tmp_path):
    logs = tmp_path / "logs"
    shutil.copytree(INSPECT, logs / "inspect", ignore=shutil.ignore_patterns("*essays*", "*.py", "expected*"))
    shutil.copytree(LM_EVAL / "dummy", logs / "dummy")
    (logs / "broken.eval").write_bytes(b"PK and no more")
    (logs / "samples_none_2026-11-22T10-08-59.jsonl").write_text('{"doc_id": 1}\n')
    document = json.loads((logs / "inspect" / "charlie-sums.json").read_text())
    document["samples"][1]["scores"]["match"]["value"] = "perhaps"
    (logs / "inspect" / "charlie-sums.json").write_text(json.dumps(document))
    log = next((logs / "dummy").glob("samples_*"))
    log.write_bytes(log.read_bytes() + b"{broken\n")

    code, output, errors = evalcube("import", "logs", "--into", "c.zarr", "--json", cwd=tmp_path)
    named = evalcube("import", "logs/inspect/charlie-sums.json", "--into", "d.zarr", cwd=tmp_path)

    summary = json.loads(output)
    assert (code, errors) == (1, "")
    parts = (
        "broken.eval: ",
        "9.234410.jsonl, line 5: ",
        "sums.json, sample 2, score 'match': ",
        "08-59.jsonl: ",
    )
    assert len(summary["left_out"]) == 4
    assert all(any(part in text for text in summary["left_out"]) for part in parts), summary["left_out"]
    assert len(summary["models"]) == 4
    assert not (tmp_path / "d.data").exists()
    assert named[0] == 2
