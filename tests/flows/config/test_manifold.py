"""Tasks in a config: their second readers."""

import pytest

from evalcube.flows.config.manifold import AxisRange, AxisWindow, Manifold, ReaderConfig, TaskConfig
from evalcube.flows.errors import ConfigError
from evalcube.stages.generate import Axis, Entry, RangeWindow
from tests.cases import with_cases


def test_reader_config__takes_expressions_that_compile_and_refuses_others():
    assert ReaderConfig(pattern=r"(\d+)$", ignore=[r"\s"]).ignore == (r"\s",)

    with pytest.raises(ConfigError, match=r"pattern.*regular expression"):
        ReaderConfig(pattern="(")
    with pytest.raises(ConfigError, match=r"ignore.*regular expression"):
        ReaderConfig(pattern="x", ignore=[r"\s", "("])


def refused(make, *words):
    with pytest.raises(ConfigError) as caught:
        make()
    assert all(word in str(caught.value) for word in words), caught.value


@with_cases("group", [0, 1, 2, "year", None])
def test_reader_config__takes_groups_that_the_pattern_has(group):
    assert ReaderConfig(pattern=r"(\d)(?P<year>\d+)", group=group).group == group


@pytest.mark.parametrize("group", [3, -1, "month"])
def test_reader_config__refuses_groups_that_there_are_not(group):
    refused(
        lambda: ReaderConfig(pattern=r"(\d)(?P<year>\d+)", group=group), f"no group {group}", "0, 1, 2, year"
    )


def test_reader_config__is_a_pattern_or_a_grader_and_called_by_it():
    refused(ReaderConfig, "either pattern or grader")
    refused(lambda: ReaderConfig(pattern="a", grader="b"), "either pattern or grader")
    refused(lambda: ReaderConfig(pattern="a" * 1001), "pattern")
    refused(lambda: ReaderConfig(pattern=""), "pattern")
    assert ReaderConfig(grader="b").name == "b"
    assert ReaderConfig(pattern="a").name == "theirs"
    assert ReaderConfig(pattern="a", take="last").described() == {
        "pattern": "a",
        "take": "last",
        "name": "theirs",
    }


@with_cases(
    ("skip", "window"),
    [
        ({}, RangeWindow(4, step=1)),
        ({"skip": "degree"}, RangeWindow(4, step=1)),
        ({"skip": 3}, RangeWindow(4, skip=3, step=0)),
        ({"skip": 0}, RangeWindow(4, skip=0, step=0)),
        ({"skip": {"degree": 2}}, RangeWindow(4, step=2)),
    ],
)
def test_axis__has_the_window_that_is_meant(skip, window):
    axis = AxisRange(range=[1, 2], window=AxisWindow(body=4, **skip))

    assert axis.axis() == Axis((1, 2), window)
    assert AxisRange(range=[1, 2]).axis() == Axis((1, 2), None)


def test_entries__have_the_nearest_degree_density_and_tiers():
    grid = Manifold(grid={"a": [1, 2], "b": AxisRange(range=[3])})
    (plain,) = grid.entries({"c": 5}, degree=2, density="corner")

    assert plain == Entry({"a": [1, 2], "b": Axis((3,), None)}, None, ("default",), {"c": 5}, 2, "corner")
    own = Manifold(points=[{"a": 1}], tiers=["easy", "hard"], degree=0, density="lowdef")
    (entry,) = own.entries({}, degree=2, density="corner")
    assert (entry.tiers, entry.degree, entry.density, entry.points) == (
        ("easy", "hard"),
        0,
        "lowdef",
        [{"a": 1}],
    )
    several = Manifold(points=[{"a": 1}], tiers={"easy": 0, "hard": 3}).entries({}, degree=2)
    assert [(entry.tiers, entry.degree) for entry in several] == [(("easy",), 0), (("hard",), 3)]


def test_manifold__has_a_grid_or_points_and_one_kind_of_degree():
    refused(Manifold, "either grid or points")
    refused(lambda: Manifold(grid={"a": 1}, points=[{}]), "either grid or points")
    refused(lambda: Manifold(points=[{}], tiers={"easy": 0}, degree=1), "degree has no use")
    refused(lambda: Manifold(grid={}), "grid")
    refused(lambda: Manifold(points=[{}], tiers=[]), "tiers")


def test_task_config__without_a_manifold_is_the_point_of_its_params():
    ((index, (entry,)),) = TaskConfig(params={"a": 1}).parts(degree=0, density="normal")

    assert (index, entry) == (None, Entry(points=[{}], tiers=("default",), fixed={"a": 1}))
    two = TaskConfig(
        params={"a": 1}, manifold=[{"points": [{}]}, {"points": [{"b": 2}], "tiers": {"x": 0, "y": 1}}]
    )
    assert [(index, len(entries)) for index, entries in two.parts(degree=0, density="normal")] == [
        (0, 1),
        (1, 2),
    ]
    assert [entry.fixed for entry in two.entries()] == [{"a": 1}] * 3
    assert TaskConfig(suite="gsm8k").manifold is None
    refused(TaskConfig, "manifold", "is missing")
    assert TaskConfig(params={}, reader="mine").reader.grader == "mine"
