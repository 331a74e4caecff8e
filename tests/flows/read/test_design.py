"""The weights of points, from the cube's description."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.growth import Recorded, grown
from evalcube.flows.plan.plan import Plan
from evalcube.flows.read import design
from evalcube.flows.read.design import _cached_shares, _with_data_sets, with_design, with_prices
from tests.flows.read.merged.generated import Recipe, make_cube
from tests.flows.support import sweep_config


@pytest.fixture
def plan(tmp_path):
    return build_plan(from_mapping(sweep_config(tmp_path, "", trials=16, repeats=2)))


def dataset(plan):
    """What a cube of the plan has, without counters."""
    spec = plan.spec()
    shape = (len(plan.evaluations), len(plan.tasks), plan.slots)
    cells = np.full(shape[1:], "", dtype=object)
    for row, task in enumerate(plan.tasks):
        for slot, planned in enumerate(task.cells):
            cells[row, slot] = planned.cell.id
    trials = np.where(plan.valid(), 16, 0) * np.ones(shape, int)
    trials[0, 0, 0] = 64
    return xr.Dataset(
        {
            "planned_trials": (("model", "task", "params"), trials),
            "planned_repeats": (("model", "task", "params"), np.full(shape, 2)),
        },
        coords={
            "task": list(plan.task_names),
            "cell_id": (("task", "params"), cells),
            "eval_id": ("model", [row.eval_id for row in plan.evaluations]),
        },
        attrs={"spec": spec},
    )


def test_with_design__says_which_tasks_ask_the_rows_of_data_sets(plan):
    names = zip(plan.task_names, ("dataset", "lm-eval:sums"), strict=True)
    spec = SimpleNamespace(tasks=[SimpleNamespace(label=label, name=name) for label, name in names])
    ds = dataset(plan)

    assert with_design(ds)["data_set"].values.tolist() == [False, False]
    assert _with_data_sets(spec, ds)["data_set"].values.tolist() == [True, True]
    del spec.tasks[0]
    assert _with_data_sets(spec, ds)["data_set"].values.tolist() == [False, True]
    bare = ds.drop_vars("task")
    assert _with_data_sets(spec, bare) is bare


def test_build_plan__writes_what_the_first_plan_gives_each_point(plan):
    found = Plan.from_spec(plan.spec(), 500, 9)

    assert (plan.base[plan.valid()] == 32).all()
    assert (found.base == plan.base).all()


def test_grown__a_later_plan_keeps_the_weights_of_the_cube_and_gives_new_points_as_much(plan, tmp_path):
    config = sweep_config(tmp_path, "", trials=400, repeats=2)
    config["tasks"]["letters"] = {"params": {}}
    later = build_plan(from_mapping(config))

    growth = grown(plan, later, Recorded([1] * len(plan.evaluations), [1] * len(plan.tasks)))

    assert (growth.plan.base[growth.plan.valid()] == 32).all()
    assert growth.plan.base[: len(plan.tasks), : plan.slots].tolist() == plan.base.tolist()


def test_with_design__takes_weights_and_limits_from_the_description(plan):
    found = with_design(dataset(plan))

    assert (found["base_trials"].values == plan.base).all()
    assert found["max_tokens"].shape == (len(plan.evaluations),)


@pytest.mark.parametrize(("written", "taken"), [(512, 512), (-512, 0), (2**80, 2**53), ("many", 0)])
def test_with_design__a_limit_of_tokens_that_anybody_may_have_written(plan, written, taken):
    found = dataset(plan)
    for row in found.attrs["spec"]["evaluations"]:
        row["sampler"]["params"] = {"max_tokens": written}

    assert set(with_design(found)["max_tokens"].values.tolist()) == {taken}


def test_with_design__a_dataset_of_anybody_stays_as_it_is():
    plain = xr.Dataset(
        attrs={"spec": {"format": "nonsense"}}, coords={"cell_id": (("task", "params"), [["x"]])}
    )

    assert with_design(plain) is plain


def test_cached_shares__are_those_of_a_models_prompts_and_lower_their_price(tmp_path, monkeypatch):
    cube = make_cube(tmp_path / "c.zarr", Recipe(models=("alpha", "beta"), trials=(0, 4)))
    dataset = cube.dataset()
    cached = dataset["cached_tokens"].clip(min=0).sum(["task", "params", "trial", "repeat"])
    prompts = dataset["counters"].sel(counter="prompt_tokens_sum").sum(["task", "params"])

    shares = _cached_shares(cube)

    assert list(shares) == ["alpha", "beta"]
    assert list(shares.values()) == pytest.approx((cached / prompts).clip(max=1.0).values)
    assert min(shares.values()) > 0

    declared = [
        {"name": "alpha", "prices": {"prompt": 1, "completion": 3, "cached": 0.5}},
        {"name": "beta", "prices": {"prompt": 1, "completion": 3}},
    ]
    notes = {"config": {"models": declared}}
    priced = with_prices(dataset, cube, notes)

    assert priced["price_prompt"].values.tolist() == pytest.approx([1 - 0.5 * shares["alpha"], 1])
    monkeypatch.setattr(design, "_cached_shares", lambda _: {"beta": 1.0})  # alpha was asked nothing yet
    assert with_prices(dataset, cube, notes)["price_prompt"].values.tolist() == [1, 1]
