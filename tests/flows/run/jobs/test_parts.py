"""The parts into which a sweep is cut."""

import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.run.jobs.prepare import cut

PLAN = {
    "cube": "/data/all.zarr",
    "cache": "cache",
    "models": [{"name": name, "endpoint": "sim:"} for name in ("a", "b", "c d")],
    "tasks": {"boolean": {"params": {"length": 4}}},
    "cluster": {"slurm": {"prologue": ["module load x"]}},
}


def sweep(**changes):
    return from_mapping({**PLAN, **changes})


def test_cut__one_part_for_each_model():
    parts = cut(sweep())
    assert [part.name for part in parts] == ["a", "b", "c-d"]
    assert [part.cube for part in parts] == [f"/data/all.parts/{name}.zarr" for name in ("a", "b", "c-d")]

    [only] = cut(sweep(models=[{"name": "a", "endpoint": "sim:"}]))
    assert (only.cube, only.model) == ("/data/all.zarr", "a")


def test_cut__a_part_asks_what_the_sweep_asks_of_its_models():
    settings = sweep(
        templates={name: [{"role": "user", "content": "{{ prompt }}" + name}] for name in "xy"},
        evaluations=[{"models": ["a", "b"], "templates": ["x"]}, {"templates": ["y"]}],
    )

    plans = [build_plan(from_mapping(part.config)) for part in cut(settings)]

    found = [(one.model, one.template.name) for plan in plans for one in plan.evaluations]
    assert sorted(found) == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("c d", "y")]
    assert len(build_plan(settings).evaluations) == len(found)


def test_cut__a_judge_goes_along_and_is_not_measured_there():
    settings = sweep(
        tasks={"boolean": {"params": {"length": 4}, "rubric": "It is short."}}, judges=[{"model": "b"}]
    )

    first, second, _ = cut(settings)

    assert {model["name"]: model["measured"] for model in first.config["models"]} == {"a": True, "b": False}
    assert {model["name"]: model["measured"] for model in second.config["models"]} == {"b": True}
    assert [one.model for one in build_plan(from_mapping(first.config)).evaluations] == ["a"]


def test_cut__a_part_does_not_say_where_it_works():
    assert all("cluster" not in part.config for part in cut(sweep()))


@pytest.mark.parametrize("names", [("x:y", "x/y"), ("x!", "x?", "x-1")])
def test_cut__names_that_look_alike_stay_apart(names):
    parts = cut(sweep(models=[{"name": name, "endpoint": "sim:"} for name in names]))

    assert len({part.cube for part in parts}) == len(names)
    assert all(part.name.endswith(f"-{number}") for number, part in enumerate(parts, 1))


def test_cut__refuses_a_bound_that_would_hold_for_each_part():
    with pytest.raises(SweepError, match="each of several jobs would spend as much"):
        cut(sweep(spend={"tokens": 100}))
