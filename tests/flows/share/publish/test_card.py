"""Data cards: their code gives the accuracies of the table beside it, whatever was planned, added or edited."""

import contextlib
import io
import json
import math
import os
from ast import literal_eval
from pathlib import Path

import pytest

from evalcube.flows.read.statistics import leaderboard
from evalcube.flows.run.sweep import run
from evalcube.flows.share.merge import merge_cubes
from evalcube.flows.share.publish.publish import publish_cube
from evalcube.stages.analyze.labelled.remarks import label_rows
from tests.flows.read.merged.generated import Recipe, make_cube
from tests.flows.shared_cluster import SHARED
from tests.flows.support import sweep_config


def published(cube, folder):
    """The card of a cube, and what its code prints."""
    card = Path(publish_cube(str(cube), str(folder / "out")).cube, "README.md").read_text()
    code = card.partition("```python\n")[2].partition("```")[0]
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        exec(code, {"nan": math.nan})  # noqa: S102 - our own card
    return card, literal_eval(printed.getvalue().replace("nan", "None"))


def assert_as_on_the_board(cube, printed):
    """Each accuracy is the board's, in the digits that are printed."""
    board = leaderboard(str(cube))
    assert printed.keys() >= set(label_rows(board.rows))
    for label, row in zip(label_rows(board.rows), board.rows, strict=True):
        if math.isnan(row.accuracy.value):
            assert printed[label] is None
        else:
            assert printed[label] == pytest.approx(row.accuracy.value, abs=0.00051)


UNEVEN = [
    Recipe(models=("a",), lengths=(3, 4, 5), depths=(4,), trials=(0, 6), repeats=2, failed=0.2),
    Recipe(models=("b",), lengths=(4,), depths=(4, 6), failed=0.2),
    Recipe(models=("b",), lengths=(5,), depths=(), trials=(0, 3)),
]
APART = [Recipe(models=(name,), lengths=(length,), depths=()) for name, length in (("a", 3), ("b", 5))]


@pytest.mark.parametrize("recipes", [UNEVEN, APART], ids=["uneven", "nothing in common"])
def test_code__gives_the_table_of_whatever_was_merged(tmp_path, recipes):
    cubes = [make_cube(tmp_path / f"{number}.zarr", recipe).url for number, recipe in enumerate(recipes)]
    merged = merge_cubes(tmp_path / "all.zarr", cubes)

    _, printed = published(merged.cube, tmp_path)

    assert_as_on_the_board(merged.cube, printed)


def test_code__leaves_out_what_an_edited_file_had_before(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, models=("alpha", "beta"), trials=10)
    config["models"][0]["simulate"] |= {"ability": 0.2}
    file = tmp_path / "q.jsonl"
    config["tasks"] = {"dataset": {"manifold": [{"points": [{"file": str(file), "id": "id"}]}]}}
    for word, count in (("What", 4), ("How much", 10)):
        rows = [{"id": f"r{i}", "prompt": f"{word} is {i}+1?", "answer": str(i + 1)} for i in range(count)]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        run(config, cluster=SHARED)

    card, printed = published(config["cube"], tmp_path)

    assert_as_on_the_board(config["cube"], printed)
    assert "edited since" in card
    assert "language models" in card
    assert os.sep not in card.partition("```python")[2].partition("```")[0]
