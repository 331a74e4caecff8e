"""What several sweeps measure together: what does not fit is refused, and renamed models stand side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.read.merged.union import same_judges
from evalcube.flows.read.statistics import table
from evalcube.flows.share.merge import merge_cubes
from evalcube.storage.cube.cube import Cube
from tests.flows.read.merged.generated import make_cube
from tests.flows.read.merged.two_teams import OURS

pytestmark = pytest.mark.long


REFUSED = {
    "seed": ({"seed": 7}, "has seed 7"),
    "label": (
        {"samplers": {"greedy": {"temperature": 1}}},
        r"'alpha / .*temperature 0 / 1 in .*--rename .*theirs.zarr:alpha=alpha-theirs",
    ),
    "criteria": (
        {
            "tasks": {
                "arithmetic": {
                    "manifold": [{"points": [{"length": 3}]}],
                    "assertions": [{"type": "contains", "value": "Answer"}],
                }
            }
        },
        r"task 'arithmetic' has assertions .*--rename .*theirs.zarr:arithmetic=arithmetic-theirs",
    ),
}


def test_merge_cubes__refuses_all_contradictions_at_once_with_a_line_that_ends_them(
    ours: str, tmp_path: Path
) -> None:
    urls = [ours, *(str(tmp_path / f"{name}.zarr") for name in ("ann", "ben"))]
    for url, limit in zip(urls[1:], (100, 50), strict=True):
        make_cube(
            url, replace(OURS, changes={"samplers": {"greedy": {"temperature": 0, "max_tokens": limit}}})
        )

    with pytest.raises(SweepError) as caught:
        merge_cubes(str(tmp_path / "out.zarr"), urls)

    assert "max_tokens 200 / 100" in caught.value.message
    assert "max_tokens 200 / 50" in caught.value.message
    words = caught.value.remedy.split(" ")
    renames = [words[place + 1] for place, word in enumerate(words) if word == "--rename"]
    assert merge_cubes(str(tmp_path / "out.zarr"), urls, rename=renames).sizes["model"] == 3 * len(
        OURS.models
    )
    rows = table(str(tmp_path / "out.zarr"), by=["source"]).to_dataframe()
    assert sorted(rows["source"]) == ["ann", "ben", "ours"]


def test_merged__points_say_of_which_cubes_they_are_where_all_asked_one_model(tmp_path: Path) -> None:
    urls = [str(tmp_path / f"{name}.zarr") for name in ("ann", "ben")]
    for url, lengths in zip(urls, ((3, 4), (4, 5)), strict=True):
        make_cube(url, replace(OURS, lengths=lengths, depths=()))

    merge_cubes(str(tmp_path / "out.zarr"), urls)

    rows = table(str(tmp_path / "out.zarr"), by=["source"]).to_dataframe()
    assert sorted(rows["source"]) == ["ann", "ann, ben", "ben"]


@pytest.mark.parametrize(("changes", "message"), REFUSED.values(), ids=REFUSED)
def test_merge_cubes__what_does_not_fit_is_refused(
    ours: str, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    urls = [ours, str(tmp_path / "theirs.zarr")]
    make_cube(urls[1], replace(OURS, changes=changes))

    with pytest.raises(SweepError, match=message):
        merge_cubes(str(tmp_path / "out.zarr"), urls)

    assert not (tmp_path / "out.zarr").exists()


def test_merge_cubes__renamed_models_stand_side_by_side(ours: str, tmp_path: Path) -> None:
    urls = [ours, str(tmp_path / "theirs.zarr")]
    make_cube(urls[1], replace(OURS, changes={"samplers": {"greedy": {"temperature": 1}}}))
    output = str(tmp_path / "out.zarr")

    merge_cubes(output, urls, rename=[f"{urls[1]}:{name}={name}-warm" for name in ("alpha", "beta")])

    assert list(Cube.open(output).read_label("model_name")) == ["alpha", "alpha-warm", "beta", "beta-warm"]
    with pytest.raises(SweepError, match="nor a task 'gamma'"):
        merge_cubes(str(tmp_path / "x.zarr"), urls, rename=[f"{urls[1]}:gamma=delta"])
    for text in ("alpha=beta", f"{urls[1]}:alpha", f"{urls[1]}:alpha= ", f"{urls[1]}:alpha=\x1b[2J"):
        with pytest.raises(SweepError, match="no new name"):
            merge_cubes(str(tmp_path / "x.zarr"), urls, rename=[text])


@pytest.mark.parametrize(
    ("judges", "same"),
    [(["ab", "ba", ""], True), (["ab", "b"], False), (["", "a", "b"], False), (["", ""], True)],
)
def test_same_judges__are_the_same_in_any_order_where_there_are_any(judges: list[str], same: bool) -> None:
    specs: Any = [SimpleNamespace(judges=[SimpleNamespace(name=name) for name in names]) for names in judges]
    known = {judge.name: judge for spec in specs for judge in spec.judges}
    for spec in specs:
        spec.judges = [known[judge.name] for judge in spec.judges]

    assert same_judges(specs) == same
