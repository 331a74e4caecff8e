"""Merging is a union by identity: in whatever order, however often, and of whatever parts."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.share.merge import merge_cubes
from evalcube.flows.state.verify import verify_cube
from evalcube.storage.cube.cube import Cube
from tests.flows.read.merged.generated import Recipe, bytes_of, content, make_cube

pytestmark = pytest.mark.long

_NUMBERS = count()


def made(folder: Any, *recipes: Recipe) -> list[str]:
    """Addresses of new cubes."""
    urls = []
    for recipe in recipes:
        urls.append(str(folder / f"{next(_NUMBERS)}.zarr"))
        make_cube(urls[-1], recipe)
    return urls


def merged(folder: Any, *urls: str, **options: Any) -> str:
    output = str(folder / f"{next(_NUMBERS)}.zarr")
    merge_cubes(output, urls, **options)
    return output


UNEVEN = (
    Recipe(
        models=("alpha", "beta"),
        lengths=(3, 4),
        depths=(),
        trials=(0, 6),
        repeats=2,
        chunks=(3, 1),
        failed=0.3,
    ),
    Recipe(
        models=("gamma", "beta"),
        lengths=(5, 4),
        depths=(6,),
        tiers=("medium",),
        trials=(2, 7),
        chunks=(32, 8),
    ),
    Recipe(
        models=("gamma", "alpha"),
        lengths=(4, 3),
        tiers=("easy", "medium"),
        trials=(0, 4),
        chunks=(4, 1),
        failed=0.3,
        at=1,
    ),
)


def test_merge_cubes__in_any_order_together_or_one_by_one_and_any_number_of_times(tmp_path: Any) -> None:
    a, b, c = made(tmp_path, *UNEVEN)

    there, alone = merged(tmp_path, a, b, c), merged(tmp_path, a)

    assert bytes_of(merged(tmp_path, c, b, a)) == bytes_of(there)
    assert content(merged(tmp_path, merged(tmp_path, c, a), b)) == content(there)
    assert bytes_of(merged(tmp_path, there, b, a), provenance=False) == bytes_of(there, provenance=False)
    assert verify_cube(there).whole
    assert content(alone) == content(a)
    assert bytes_of(merged(tmp_path, a, a)) == bytes_of(alone)


JUDGED = Recipe(judges=("tom", "ann"), lengths=(3, 4), depths=(3,), trials=(0, 4), repeats=2)
WHOLE = Recipe(trials=(0, 8), repeats=2, chunks=(32, 2))
PARTS = {
    "models, chunks, tasks and points": [
        replace(WHOLE, chunks=(3, 1), models=("gamma",)),
        replace(WHOLE, models=("beta", "alpha"), lengths=(5, 3), depths=()),
        replace(WHOLE, models=("beta", "alpha"), lengths=(4,)),
    ],
    # The first knows no more than three trials, which is what its plan gave each point: the greater weight counts.
    "trials within one chunk, and repeats": [
        replace(WHOLE, trials=(0, 3)),
        replace(WHOLE, trials=(3, 8)),
        replace(WHOLE, repeats=1, chunks=(2, 1)),
    ],
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the whole cube holds."""
    return content(made(tmp_path_factory.mktemp("whole"), WHOLE)[0])


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_merge_cubes__parts_are_the_whole(tmp_path: Any, whole: Any, parts: list[Recipe]) -> None:
    assert content(merged(tmp_path, *made(tmp_path, *parts))) == whole


def test_merge_cubes__readings_of_judges_in_another_order_are_the_same(tmp_path: Any) -> None:
    (whole,) = made(tmp_path, JUDGED)
    halves = made(
        tmp_path,
        replace(JUDGED, judges=("ann", "tom"), models=("alpha", "beta")),
        replace(JUDGED, models=("beta", "gamma"), chunks=(3, 1)),
        replace(JUDGED, judges=(), lengths=()),
    )

    found = merged(tmp_path, *halves)

    assert content(found) == content(whole)
    assert verify_cube(found).whole
    with pytest.raises(SweepError, match=r"rated by other judges.*ann.*than in.*tom"):
        merged(tmp_path, whole, *made(tmp_path, replace(JUDGED, judges=("ann",))))


def test_merge_cubes__rows_keep_their_names_where_files_are_gone(tmp_path: Any) -> None:
    def named(*names: str) -> dict[str, Any]:
        points = [
            {"file": str(tmp_path / f"{name}.jsonl"), "prompt": "question", "answer": "answer", "id": "id"}
            for name in names
        ]
        return {"tasks": {"dataset": {"manifold": [{"points": points, "tiers": ["easy"]}]}}}

    for name in ("one", "two"):
        rows = [{"id": f"{name}-{i}", "question": f"{name}: {i}?", "answer": str(i)} for i in range(6)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    first = Recipe(models=("alpha",), trials=(0, 6), changes=named("two", "one"))
    second = Recipe(models=("alpha", "beta"), trials=(0, 4), changes=named("one"))
    urls = made(tmp_path, first, second)
    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonl").unlink()

    found = merged(tmp_path, *reversed(urls))

    rows = Cube.open(found).read_label("row_id")
    assert [sorted(row) for row in rows] == [[f"{name}-{i}" for i in range(6)] for name in ("one", "two")]
    stored = Cube.open(urls[0]).read_label("row_id")
    assert rows.tolist() == stored[::-1].tolist()
