"""Values of a wrong type in Python are refused with the name of the parameter and what was given."""

from pathlib import Path

import pytest

import evalcube as ec
from tests.flows.cli.made_up import make_cube

pytestmark = pytest.mark.long

SWEEP = {
    "name": "sweep",
    "models": [{"name": "simulated", "endpoint": "sim:"}],
    "tasks": {"sort": {"params": {}}},
}
WRONG = {
    "a number as a cube": (lambda _: ec.leaderboard(7), "`cube`: 7 is no cube"),
    "nothing as a cube": (lambda _: ec.trials(None), "`cube`: None is no cube"),
    "no cubes": (lambda _: ec.rank([]), "`cube`: no cube is named"),
    "no cubes to report on": (lambda _: ec.report([], "report.html"), "`cube`: no cube is named"),
    "none of several": (lambda _: ec.compare(item for item in ()), "`cube`: no cube is named"),
    "models as nothing": (lambda cube: ec.compare(cube, [None]), "`models`: None in the list is no text"),
    "models as one number": (lambda cube: ec.compare(cube, 1), "`models`: 1 is no list"),
    "a place too many": (lambda cube: ec.compare(cube, [0, 9]), "no evaluation is called '9'"),
    "less than a repeat": (lambda cube: ec.compare(cube, repeats=-1), "`repeats`: -1 is less than 1"),
    "half a repeat": (lambda cube: ec.compare(cube, repeats=1.5), "`repeats`: 1.5 is no whole number"),
    "how to take truncated": (lambda cube: ec.compare(cube, truncated=None), "`truncated`: None is no text"),
    "a mode": (lambda cube: ec.leaderboard(cube, mode=Path("C_P")), "`mode`: a PosixPath is no text"),
    "no seed": (lambda cube: ec.rank(cube, seed=None), "`seed`: None is no whole number"),
    "draws": (lambda cube: ec.leaderboard(cube, draws=2e3), "`draws`: 2000.0 is no whole number"),
    "a condition": (lambda cube: ec.trials(cube, where=[3]), "`where`: 3 is no text"),
    "a part's condition": (lambda cube: ec.table(cube, ec.Part(3)), "`where`: 3 is no list"),
    "an order": (lambda cube: ec.trials(cube, sort=["tokens"]), "`sort`: ['tokens'] is no text"),
    "a limit": (lambda cube: ec.trials(cube, limit="5"), "`limit`: '5' is no whole number"),
    "an outcome": (lambda cube: ec.trials(cube, status=[1]), "`status`: 1 is no text"),
    "a pattern": (lambda cube: ec.trials(cube, regex=5), "`regex`: 5 is no text"),
    "a date": (lambda cube: ec.report(cube, "r.html", date="today"), "`date`: 'today' is no date"),
    "a threshold": (lambda cube: ec.verdict(cube, threshold="3"), "`threshold`: '3' is no number"),
    "no threshold": (lambda cube: ec.verdict(cube, threshold=float("nan")), "`threshold`: nan is no number"),
    "seconds to wait": (lambda _: ec.run(SWEEP, wait=float("nan")), "`wait`: nan is no number"),
    "a part's trials": (lambda cube: ec.table(cube, ec.Part(trials="5")), "`trials`: '5' is no whole number"),
    "a level": (lambda cube: ec.table(cube, confidence="95"), "`confidence`: '95' is no number"),
    "more trials": (lambda cube: ec.upsample(cube, trials="many"), "`trials`: 'many' is no whole number"),
    "trials of a run": (lambda _: ec.run(SWEEP, trials=[5]), "`trials`: [5] is no text"),
    "a tag": (lambda cube: ec.publish(cube, "out", tag=1), "`tag`: 1 is no text"),
    "a tag to pull": (lambda _: ec.pull("out", "copy", tag=1), "`tag`: 1 is no text"),
    "a licence": (lambda cube: ec.publish(cube, "out", licence=5), "`licence`: 5 is no text"),
    "one cube to merge": (lambda cube: ec.merge("new.zarr", str(cube)), "is a text, not a list"),
    "where to merge": (lambda cube: ec.merge(5, [cube]), "`output`: 5 is no cube"),
    "a suite": (lambda _: ec.load_suite(None, []), "`name`: None is no text"),
    "a suite's models": (lambda _: ec.load_suite("quick", "sim:"), "`models`: 'sim:' is a text"),
}


@pytest.fixture(scope="module")
def cube(tmp_path_factory):
    return make_cube(tmp_path_factory.mktemp("wrong_types"))


@pytest.mark.parametrize(("call", "told"), WRONG.values(), ids=WRONG)
def test_public_functions__say_what_is_of_a_wrong_type(call, told, cube, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ec.EvalcubeError) as caught:
        call(cube)

    assert told in str(caught.value)


def test_compare__takes_places_and_what_several_iterables_have(cube):
    by_place, by_name = (ec.compare(cube, models).pairs for models in ([0, 2], ["strong", "weak"]))

    assert by_place == by_name
    assert len(ec.compare((one for one in [cube]), None).pairs) == 3


@pytest.mark.parametrize("function", [ec.stats.restrict, ec.stats.points, ec.stats.aggregate])
def test_labelled__conditions_are_a_mapping(function, cube):
    with pytest.raises(ValueError, match="no mapping"):
        function(ec.open_cube(cube), where=["task=sort"])


def test_labelled__what_is_no_dataset_or_leaderboard_is_told(cube):
    with pytest.raises(TypeError, match="`dataset`"):
        ec.stats.recount(cube)
    with pytest.raises(TypeError, match="`board`"):
        ec.stats.pareto_rows(cube)
