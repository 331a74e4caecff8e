"""One noun: what readers take for a cube, and what each says of a noun that cannot serve it."""

import json
import shutil
from functools import cache

import pytest
import xarray as xr

import evalcube as ec
from tests.flows.support import sweep_config

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("simulated")]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What runs returned: two cubes of two models each, one of which is in both."""
    runs = []
    for models in (["one", "two"], ["two", "three"]):
        config = sweep_config(tmp_path_factory.mktemp("nouns"), "", trials=4, cells=2, models=models)
        config["tasks"]["arithmetic"]["assertions"] = [{"type": "max_length", "value": 40}]
        runs.append(ec.run(config).raise_for_status())
    return runs


@pytest.fixture(scope="module")
def cubes(made):
    return ec.open_cube(made[0]), ec.open_cube(made[1])


@pytest.fixture(scope="module")
def zarr(made):
    """The first cube as xarray opens it."""
    return xr.open_zarr(made[0].cube)


def plain(found):
    """What a reader said, without the form in which the cube was named."""
    values = found if isinstance(found, dict) else found.to_dict()
    kept = {name: value for name, value in values.items() if name not in ("cube", "first", "second")}
    return json.loads(json.dumps(kept), parse_constant=str)


def _report(cube, folder):
    path = ec.report(cube, folder / "report.html")
    return {"text": path.read_text()}


def _exported(cube, folder):
    found = ec.export(cube, output=folder / "out", now=0.0)
    shutil.rmtree(folder / "out")
    return {"trials": found.trials}


def _published(cube, folder):
    found = ec.publish(cube, folder / "published")
    shutil.rmtree(folder / "published")
    return {"trials": found.publication.summary()["trials"]}


def _merged(cube, folder):
    found = ec.merge(folder / "merged.zarr", cube if isinstance(cube, list) else [cube])
    shutil.rmtree(folder / "merged.zarr")
    return {"sizes": dict(found.sizes)}


def _trials(cube, _):
    return {"rows": list(ec.trials(cube, columns=["model", "task", "trial", "status"]).rows())}


ARRAYS = {
    "leaderboard": lambda cube, _: plain(ec.leaderboard(cube)),
    "table": lambda cube, _: plain(ec.table(cube, by=["task"])),
    "rank": lambda cube, _: plain(ec.rank(cube)),
    "compare": lambda cube, _: plain(ec.compare(cube)),
    "metrics": lambda cube, _: plain(ec.metrics(cube, k=[1])),
    "report": _report,
    "trials": _trials,
}
"""These read several as one, and a part of one."""
WHOLE = {
    "open_cube": lambda cube, _: {"sizes": dict(ec.open_cube(cube).sizes)},
    "merge": _merged,
}
"""These take several, and whole cubes only."""
ONE = {
    "status": lambda cube, _: plain(ec.status(cube)),
    "diff": lambda cube, _: plain(ec.diff(cube, cube)),
    "export": _exported,
    "verify": lambda cube, _: plain(ec.verify(cube)),
    "publish": _published,
    "rescore": lambda cube, _: plain(ec.rescore(cube)),
    "upsample": lambda cube, _: {"trials": ec.upsample(cube, trials=4).trials},
}
"""These take one whole cube."""
VERDICT = {"verdict": lambda cube, _: plain(ec.verdict(cube, "two"))}
READERS = ARRAYS | WHOLE | ONE | VERDICT
CHEAP = {"table", "trials", "open_cube", "status"}
"""One of each kind of reader: what a noun means is one function for them all."""
COUNTED = {name: {"trials": 24} for name in ("export", "publish", "upsample")}
"""What readers that only count say of the first cube."""


@pytest.fixture(scope="module")
def of_first(made, tmp_path_factory):
    """A function that gives what a reader says of the first cube by its address."""

    @cache
    def say(name):
        return COUNTED.get(name) or READERS[name](made[0].cube, tmp_path_factory.mktemp("first"))

    return say


@pytest.mark.parametrize("name", ["table", "trials", *WHOLE, *ONE, *VERDICT])
def test_reader__says_the_same_of_every_noun(name, made, cubes, zarr, of_first, tmp_path):
    run, read = made[0], READERS[name]

    nouns = [zarr]
    if name in CHEAP:
        nouns += [[zarr, cubes[0], run.cube], run, cubes[0], [run]]

    assert [noun for noun in nouns if read(noun, tmp_path) != of_first(name)] == []


@pytest.mark.parametrize("name", ARRAYS | WHOLE)
def test_reader__reads_several_as_one(name, made, cubes, of_first, tmp_path):
    said = READERS[name]([made[0], cubes[1]], tmp_path)

    assert said != of_first(name)
    if name in CHEAP:
        assert READERS[name]([one.cube for one in made], tmp_path) == said


@pytest.mark.parametrize("name", ONE)
def test_reader__of_one_cube_refuses_several(name, made, tmp_path):
    with pytest.raises(ec.SweepError, match="2 cubes"):
        READERS[name](made, tmp_path)


@pytest.mark.parametrize("name", ["table", "report", "trials"])
def test_reader__of_a_part_reads_what_was_selected(name, cubes, of_first, tmp_path):
    part = cubes[0].sel(task=["boolean"]).isel(trial=[1, 3])

    assert READERS[name](part, tmp_path) != of_first(name)


@pytest.mark.parametrize("name", WHOLE | ONE)
def test_reader__of_a_whole_cube_refuses_a_part(name, cubes, tmp_path):
    with pytest.raises(ec.SweepError, match="not all of"):
        READERS[name](cubes[0].isel(trial=[1, 3]), tmp_path)


@pytest.mark.parametrize(
    "name", WHOLE | ONE | VERDICT | {name: ARRAYS[name] for name in ("trials", "report")}
)
def test_reader__that_needs_an_address_refuses_a_dataset_without_one(name, cubes, tmp_path):
    with pytest.raises(ec.SweepError, match="the address of"):
        READERS[name](cubes[0].where(cubes[0]["trial"] < 2), tmp_path)


@pytest.mark.parametrize("name", READERS)
def test_reader__names_what_is_no_cube(name, tmp_path):
    for cube in (7, None, b"cube", [], [7]):
        with pytest.raises(ec.SweepError, match=r"^`(cubes?|first|source)`: .*(is no cube|no cube is named)"):
            READERS[name](cube, tmp_path)


def test_trials__of_a_part_are_those_that_its_arrays_have(cubes):
    part = cubes[0].sel(model=["two"], trial=[0, 3]).isel(params=[0])
    correct = int((part["status"] == 1).sum())

    found = part.ec.trials(status=["correct"])

    assert len(found) == correct == part.ec.table().records()[0]["counters"]["correct"]
    assert {(row["model"], row["trial"] in (0, 3)) for row in found.rows()} == {("two", True)}
    assert (
        len(part.ec.trials(where=["trial=3"]))
        == len(part.ec.trials()) / 2
        == len(part.sel(model="two").ec.trials(limit=2))
    )


def test_verdict__of_a_part_knows_its_evaluations_and_questions(cubes):
    part = cubes[0].sel(model=["two"]).isel(trial=[1])

    found = part.ec.verdict()

    assert (found.units, found.tasks) == (2, ("arithmetic",))
    with pytest.raises(ec.SweepError, match="'one' is not in the part that was selected"):
        part.ec.verdict("one")


@pytest.mark.parametrize("change", [{"model": 0}, {"trial": 0}, {"task": []}])
def test_leaderboard__of_a_dataset_without_a_dimension_says_so(change, cubes):
    with pytest.raises(ec.SweepError, match=f"lacks {next(iter(change))}"):
        ec.leaderboard(cubes[0].isel(change))


def test_dataset__of_another_cube_than_it_says_is_refused(cubes):
    both = xr.concat(cubes, dim="model", data_vars="all")

    with pytest.raises(ec.SweepError, match="which part"):
        ec.trials(both)


def test_leaderboard__of_a_dataset_knows_what_was_noted_beside_its_cube(made, cubes):
    assert ec.leaderboard(cubes[0], ec.Part(view=None)).notes == ec.leaderboard(made[0]).notes
    assert "as selected with xarray" in str(cubes[0].isel(task=[0]).ec.leaderboard())
