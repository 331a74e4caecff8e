"""A second import into a cube adds what is missing there, and mixes nothing."""

import numpy as np

from evalcube.flows.cubes.reader import Reader
from evalcube.flows.cubes.status import cube_status
from evalcube.storage.cube.cube import Cube
from tests.flows.imports.logs import write_lines
from tests.flows.merge.generated import Recipe, make_cube
from tests.flows.support import arrays, evalcube

MAP = "prompt=q,response=out,correct=ok,model=m"


def rows_of(tmp_path, name, models, **fields):
    rows = [
        {"q": f"{i}+1?", "out": f"{i + 1}{m}", "ok": i % 2, "m": m, **fields}
        for m in models
        for i in range(4)
    ]
    return write_lines(tmp_path / name, rows)


def test_import__refuses_new_questions_of_a_task(tmp_path):
    rows_of(tmp_path, "a.jsonl", "x")
    write_lines(tmp_path / "b.jsonl", [{"q": "9+1?", "out": "10", "ok": 1, "m": "y"}])
    flags = ["--into", "c.zarr", "--cache", "cache", "--map", MAP, "--task", "a"]
    evalcube("import", "a.jsonl", *flags, cwd=tmp_path)

    code, _, error = evalcube("import", "b.jsonl", *flags, cwd=tmp_path)

    assert code == 2
    assert "the logs have 1 questions of task a that cube 'c.zarr' lacks" in error


def test_import__refuses_answers_that_contradict_the_cube(tmp_path):
    rows_of(tmp_path, "a.jsonl", "x")
    flags = ["--into", "c.zarr", "--map", MAP, "--task", "a"]
    evalcube("import", "a.jsonl", *flags, "--cache", "cache", cwd=tmp_path)
    write_lines(tmp_path / "b.jsonl", [{"q": "0+1?", "out": "another", "ok": 1, "m": "x"}])
    before = arrays(tmp_path / "c.zarr")

    code, _, error = evalcube("import", "b.jsonl", *flags, "--cache", "other", cwd=tmp_path)

    assert code == 2
    assert "cube 'c.zarr' has other answers of x to the same questions" in error
    for name, values in arrays(tmp_path / "c.zarr").items():
        np.testing.assert_array_equal(values, before[name])


def test_import__fills_in_what_had_failed(tmp_path):
    row = {"q": "0+1?", "out": "1", "ok": 1, "m": "x"}
    write_lines(tmp_path / "a.jsonl", [{**row, "ok": None}, {**row, "q": "1+1?"}])
    write_lines(tmp_path / "b.jsonl", [row])
    flags = ["--into", "c.zarr", "--cache", "cache", "--map", MAP, "--task", "a"]

    evalcube("import", "a.jsonl", *flags, cwd=tmp_path)
    assert cube_status(tmp_path / "c.zarr")["done"] == 1
    evalcube("import", "b.jsonl", *flags, cwd=tmp_path)

    status = cube_status(tmp_path / "c.zarr")
    assert (status["done"], status["models"][0]["transport"], status["complete"]) == (2, 0, True)
    evalcube("import", "a.jsonl", *flags, cwd=tmp_path)
    assert cube_status(tmp_path / "c.zarr")["done"] == 2


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


def test_import__adds_a_task_of_a_model_that_the_cube_has(tmp_path):
    rows_of(tmp_path, "a.jsonl", "x")
    rows_of(tmp_path, "b.jsonl", "x", also="more")
    write_lines(tmp_path / "c.jsonl", [{"q": f"{i}-1?", "out": "2", "ok": 1, "m": "x"} for i in range(40)])
    flags = ["--into", "c.zarr", "--cache", "cache", "--map", MAP]
    evalcube("import", "a.jsonl", *flags, cwd=tmp_path)
    before = arrays(tmp_path / "c.zarr")["status"]

    for name in ("b", "c"):
        code, _, error = evalcube("import", f"{name}.jsonl", *flags, cwd=tmp_path)
        assert (code, error) == (0, "")

    assert Reader(tmp_path / "c.zarr").plan.task_names == ("a", "b", "c")
    after = arrays(tmp_path / "c.zarr")["status"]
    np.testing.assert_array_equal(after[:, :1, :, :4], before)
    counts = cube_status(tmp_path / "c.zarr")
    assert (counts["done"], counts["trials"]) == (48, 48)


def test_rescore__says_what_it_leaves_to_the_other_tool(tmp_path):
    rows_of(tmp_path, "a.jsonl", "x")
    evalcube("import", "a.jsonl", "--into", "c.zarr", "--cache", "cache", "--map", MAP, cwd=tmp_path)
    make_cube(tmp_path / "own.zarr", Recipe(models=("alpha",), lengths=(3,), depths=(), trials=(0, 2)))
    evalcube("merge", "mixed.zarr", "c.zarr", "own.zarr", cwd=tmp_path)

    code, output, errors = evalcube("rescore", "mixed.zarr", "--cache", "cache", cwd=tmp_path)

    assert code == 0, errors
    assert "imported" not in output
    assert "1 imported regions are left as the tool graded them" in errors
