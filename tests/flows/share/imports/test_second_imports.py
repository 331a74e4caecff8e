"""Imported cubes beside others: merged, and graded by their tool alone."""

import pytest

from evalcube.flows.read.reader import Reader
from evalcube.storage.cube.cube import Cube
from tests.flows.read.merged.generated import Recipe, make_cube
from tests.flows.share.imports.logs import write_lines
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
    assert "1 imported regions are left as the tool graded them" in errors
