"""Compare, gate, flips and verdict say the same of the same pair, whatever was lost, cut, clustered or repeated."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from evalcube.flows.config.views import Policy
from evalcube.flows.errors import SweepError
from evalcube.flows.read.gate import judge
from evalcube.flows.read.selection import open_part
from evalcube.flows.read.sides import Side, _align, _chosen, check_repeats, warn_of_joined
from evalcube.flows.read.trials.flips import Flips
from evalcube.flows.read.verdict import _Data
from evalcube.stages.analyze.labelled.pairing import compare_evaluations
from evalcube.stages.analyze.render.flips import totals
from evalcube.stages.analyze.verdict import verdict
from evalcube.stages.analyze.verdict.composite import LAYERS
from evalcube.stages.reply.status import COUNTERS, LAST_FINISHED, Status
from tests.flows.read.merged.generated import Recipe, make_cube
from tests.stages.analyze.synthetic import Profile, dataset

CELL = ("model", "task", "params")
TRIAL = (*CELL, "trial", "repeat")
MODELS, TASKS, POINTS, MOST, REPEATS = 2, 2, 3, 20, 2
EACH = settings(phases=[Phase.explicit, Phase.generate])


@st.composite
def pairs(draw):
    """Two evaluations of one cube, with uneven points and tiers, and what may happen to answers."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    shape = (MODELS, TASKS, POINTS)
    planned = rng.integers(2, MOST + 1, shape) if draw(st.booleans()) else np.full(shape, MOST)
    repeats = draw(st.integers(1, REPEATS))
    rates = rng.random((1, TASKS, POINTS, MOST, 1)) * 0.7 + rng.random((MODELS, 1, 1, 1, 1)) * 0.3
    status = (rng.random((*shape, MOST, REPEATS)) < rates).astype(np.uint8)
    for outcome, share in ((Status.TRUNCATED, 0.1), (Status.TRANSPORT, 0.15), (Status.MISSING, 0.1)):
        if draw(st.booleans()):
            status[rng.random(status.shape) < share] = int(outcome)
    asked = np.arange(MOST)[:, None] < planned[..., None, None]
    asked = asked & (np.arange(REPEATS) < repeats)
    status[~asked] = int(Status.MISSING)
    return made(status, planned, repeats, rng, tiered=draw(st.booleans()), clusters=draw(st.booleans()))


def made(status, planned, repeats, rng, *, tiered, clusters):
    """The dataset of such statuses, with counters as a run has them."""
    asked = (np.arange(MOST)[:, None] < planned[..., None, None]) & (np.arange(REPEATS) < repeats)
    counts = {
        "trials": status <= LAST_FINISHED,
        "completed": (status <= LAST_FINISHED) & (status != int(Status.TRUNCATED)),
        "correct": status == int(Status.CORRECT),
        "truncated": status == int(Status.TRUNCATED),
        "transport": status == int(Status.TRANSPORT),
        "missing": (status == int(Status.MISSING)) & asked,
    }
    cells = np.zeros((*planned.shape, len(COUNTERS)))
    for name, there in counts.items():
        cells[..., COUNTERS.index(name)] = there.sum(axis=(3, 4))
    tiers = np.ones((1, TASKS, POINTS), bool)
    if tiered:
        tiers[0, :, 0] = False
    ids = np.array([[f"{task}{slot}" for slot in range(POINTS)] for task in range(TASKS)])
    base = np.broadcast_to(rng.integers(1, 20, planned.shape[1:]), planned.shape)
    found = xr.Dataset(
        {
            "status": (TRIAL, status),
            "counters": ((*CELL, "counter"), cells),
            "planned_trials": (CELL, planned),
            "planned_repeats": (CELL, np.full(planned.shape, repeats)),
        },
        {
            **{name: ("model", ["old", "new"]) for name in ("model_name", "eval_id")},
            "task": ["sort", "letters"],
            "tier": ["easy"],
            "counter": list(COUNTERS),
            "in_tier": (("tier", "task", "params"), tiers),
            "cell_id": (("task", "params"), ids),
            "params_json": (("task", "params"), np.full(ids.shape, "{}")),
            "base_trials": (CELL, base),
        },
    )
    if clusters:
        numbers = np.broadcast_to(1 + np.arange(MOST)[:, None] // 4, status.shape)
        found["cluster"] = (TRIAL, numbers.astype(np.int64))
    return found


def sides_of(ds):
    return _align(
        *(Side("c.zarr", name, name, ds.isel(model=[place])) for place, name in enumerate(("old", "new"))),
        "",
        (),
        None,
    )


@given(pairs())
@EACH
def test_gate_and_compare__have_one_difference_and_one_interval(ds):
    pair = compare_evaluations(ds, [0, 1])[0]
    rules = [
        {"noninferior": 5},
        {"equivalent": 20},
        {"superior": 0},
        {"noninferior": 40},
        {"superior": 30},
        {"tasks": "each", "noninferior": 10},
    ]
    lines = judge(sides_of(ds), Policy.model_validate({"critical": rules}), "critical")

    by_task = {item.task: item for item in pair.tasks}
    for line in lines:
        total = by_task[line.task] if line.task else pair.overall
        assert line.questions == total.questions
        assert (line.control, line.treatment) == pytest.approx((total.first_rate, total.second_rate))
        assert (line.change, line.lower, line.upper) == pytest.approx(
            (-total.difference.value, -total.difference.upper, -total.difference.lower)
        )
        inside = {
            "noninferior": line.lower > -line.margin,
            "equivalent": -line.margin < line.lower <= line.upper < line.margin,
            "superior": line.lower > line.margin,
        }
        outside = {
            "noninferior": line.upper < -line.margin,
            "equivalent": line.upper < -line.margin or line.lower > line.margin,
            "superior": line.upper < line.margin,
        }
        assert inside[line.claim] or line.outcome != "shown"
        assert outside[line.claim] or line.outcome != "refuted"


@given(pairs())
@EACH
def test_flips_and_compare__count_the_same_questions_and_have_one_test(ds):
    pair = compare_evaluations(ds, [0, 1])[0]
    found = Flips(sides_of(ds), "wrong", None)

    assert found.pair.overall == pair.overall
    assert found.pair.bounds == pair.bounds
    told = totals(found.pair, [vars(one) for one in found.tasks], ("old", "new"))
    questions = sum(one.questions for one in found.tasks)
    assert questions >= pair.overall.questions
    assert any("in no tier" in text for text in told) == (questions > pair.overall.questions)


@given(pairs())
@EACH
def test_verdict_and_compare__have_one_difference_of_right_and_wrong_or_say_why_not(ds):
    plan = SimpleNamespace(base=ds["base_trials"].values[0], task_names=["sort", "letters"], evaluations=[])
    new = (("task", "params", "trial"), np.zeros((TASKS, POINTS, MOST)))
    data = _Data(ds.assign(duplicate=new), plan, [0, 1], [0, 1], None)
    layers = np.full((*ds["status"].shape, len(LAYERS)), np.nan)
    status = ds["status"].values
    layers[..., 0] = np.where(status <= LAST_FINISHED, 1.0 + 4.0 * (status == int(Status.CORRECT)), np.nan)
    pair = compare_evaluations(ds, [0, 1])[0]

    found = verdict(
        data.runs(layers),
        ["old", "new"],
        data.units,
        ok=data.runs(data.finished),
        entries=data.runs(data.planned),
        shares=data.shares(),
        clusters=data.clusters(),
        draws=100,
    )

    gain = found.pairs[0].layers["fact"].estimate
    told = " ".join(data.notes())
    differs = gain != pytest.approx(-4.0 * pair.overall.difference.value, abs=1e-6)
    assert not differs or "`compare` and `gate`" in told


@pytest.mark.parametrize(
    ("cubes", "models", "chosen"),
    [
        (["a b"], [], ["a", "b"]),
        (["a b c"], ["c", "a"], ["c", "a"]),
        (["a", "b"], [], ["a", "b"]),
        (["a", "a"], [], ["a (0)", "a (1)"]),
        (["a b", "b c"], [], ["b (0)", "b (1)"]),
        (["a b", "b a"], ["b"], ["b (0)", "b (1)"]),
        (["a b", "c d"], ["b", "c"], ["b", "c"]),
        (["a b c"], [], "this cube has: a, b, c"),
        (["a b", "a b"], [], "both cubes have: a, b$"),
        (["a b", "c d"], [], "both cubes have: none$"),
        (["a b"], ["a", "a"], "one is named twice"),
    ],
)
def test_chosen__are_those_named_or_the_only_two(cubes, models, chosen):
    opened = [
        SimpleNamespace(arrays=dataset([Profile(name) for name in names.split()], tasks=1)) for names in cubes
    ]
    addresses = [str(number) for number in range(len(cubes))]

    if isinstance(chosen, str):
        with pytest.raises(SweepError) as error:
            _chosen(addresses, opened, models)
        assert re.search(chosen, error.value.message)
    else:
        sides = _chosen(addresses, opened, models)
        assert [side.label for side in sides] == chosen
        assert [side.address for side in sides] == [addresses[0], addresses[-1]]


def test_check_repeats__takes_none_or_one_and_more():
    assert (check_repeats(None), check_repeats(1)) == (None, None)
    with pytest.raises(SweepError, match="0 is less than 1"):
        check_repeats(0)


def test_warn_of_joined__names_compared_models_that_are_in_several_cubes(tmp_path):
    recipes = [Recipe(models=("a", "b"), depths=()), Recipe(models=("b", "c"), lengths=())]
    cubes = [make_cube(tmp_path / f"{number}.zarr", recipe).url for number, recipe in enumerate(recipes)]
    opened = open_part(cubes)

    def added(cubes, *chosen):
        return [text[:3] for text in warn_of_joined(opened, cubes, chosen).warnings[len(opened.warnings) :]]

    assert [added(cubes, 0, 1), added(cubes, 0, 2), added(cubes[:1], 0, 1)] == [["b: "], [], []]
