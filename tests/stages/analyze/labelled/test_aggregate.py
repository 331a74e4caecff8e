import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcube.stages.analyze.formulas.estimators import MODES, estimate
from evalcube.stages.analyze.formulas.stratified import exact_estimate, stratified
from evalcube.stages.analyze.labelled.aggregate import aggregate, points
from evalcube.stages.reply.status import COUNTERS
from tests.stages.analyze.synthetic import Profile, dataset


@pytest.fixture(scope="module")
def ds():
    made = dataset(gaps=True)
    shape = (made.sizes["task"], made.sizes["params"])
    length = np.full(shape, np.nan)
    length[:2, :9] = np.arange(9) // 3 * 4 + 4
    made["in_tier"][1, :, 0] = True  # the easiest points are in two tiers
    cell_id = np.full(shape, "", dtype=object)
    cell_id[:, :9] = [[f"{task}-{point}" for point in range(9)] for task in range(shape[0])]
    facets = [f'{{"family": "{name.split("-")[0]}", "size": {size}}}' for name, size in sizes(made)]
    return made.assign_coords(
        facets=("model", [*facets[:-1], "{}"]),
        param_length=(("task", "params"), length),
        cell_id=(("task", "params"), cell_id),
    )


def sizes(made):
    return zip(made["model_name"].values.tolist(), [70, 8, 32, 3, 0], strict=True)


def by_hand(ds, models, cells):
    """Counters of the models and cells (task, params) chosen, summed."""
    return ds["counters"].values[models][:, cells].sum(axis=(0, 1))


@pytest.mark.parametrize("mode", MODES)
def test_aggregate__by_trials_is_the_formula_on_summed_counters(ds, mode):
    found = aggregate(ds, by=["model_name", "tier"], mode=mode, weigh="trials", interval="wilson")

    member = ds["in_tier"].values
    for model in range(5):
        for tier in range(3):
            sums = by_hand(ds, [model], member[tier])
            cell = found.isel(model_name=model, tier=tier)
            assert cell["counters"].values == pytest.approx(sums)
            assert [float(cell[part]) for part in ("point", "lower", "upper")] == pytest.approx(
                [float(part) for part in estimate(sums, mode=mode)], nan_ok=True
            )


@pytest.mark.parametrize("mode", MODES)
def test_aggregate__by_points_is_the_formula_on_points(ds, mode):
    found = aggregate(ds, by=["model", "task"], mode=mode, weigh="points", interval="wilson")

    weights = (ds["cell_id"].values != "").astype(float)
    for task in range(4):
        expected = stratified(ds["counters"].values[:, task], weights[task], mode=mode)
        for name, part in zip(("point", "lower", "upper"), expected, strict=True):
            assert found[name].values[:, task] == pytest.approx(part, nan_ok=True)


def test_aggregate__reads_lazy_counters(ds):
    lazy = aggregate(ds.chunk({"model": 2, "task": 1, "params": 3}), by=["model", "tier"])

    xr.testing.assert_identical(lazy, aggregate(ds, by=["model", "tier"]))


@pytest.mark.long
@settings(max_examples=10)
@given(st.permutations(range(5)), st.permutations(range(10)), st.integers(1, 5), st.integers(1, 10))
def test_aggregate__sums_do_not_depend_on_order_or_chunks(models, slots, chunk, width):
    made = dataset(tasks=2)
    turned = made.isel(model=list(models), params=list(slots)).chunk({"model": chunk, "params": width})

    one, other = (aggregate(item, by=["task", "tier"]) for item in (made, turned))

    exact = [label for label in COUNTERS if label not in ("guess_sum", "latency_sum")]
    assert np.array_equal(one["counters"].sel(counter=exact), other["counters"].sel(counter=exact))
    np.testing.assert_array_max_ulp(one["counters"].values, other["counters"].values, 8)
    assert one["point"].values == pytest.approx(other["point"].values, nan_ok=True)


def test_aggregate__overlapping_tiers_count_a_point_in_each(ds):
    found = aggregate(ds, by="tier")["counters"].sel(counter="trials")
    every = aggregate(ds)["counters"].sel(counter="trials")

    twice = by_hand(ds, slice(None), ds["in_tier"].values.sum(axis=0) == 2)[0]
    assert twice > 0
    assert float(found.sum()) == float(every) + twice


def test_aggregate__facets_are_names_and_models_without_one_are_in_no_group(ds):
    found = aggregate(ds, by=["facet_family"])
    by_size = aggregate(ds, by=["facet_size"], where={"facet_size": (8, None)})

    assert found["facet_family"].values.tolist() == ["orchid", "heron"]
    assert by_size["facet_size"].values.tolist() == [8, 32, 70]
    assert found["counters"].sel(facet_family="orchid").values == pytest.approx(
        by_hand(ds, [0, 1], np.ones((4, 10), dtype=bool))
    )


def test_aggregate__params_group_across_tasks_and_leave_others_out(ds):
    found = aggregate(ds, by=["param_length"])

    assert found["param_length"].values.tolist() == [4, 8, 12]
    assert found["points_planned"].values.tolist() == [30, 30, 30]
    assert found["points"].values.tolist() == [30, 30, 28]  # one model lacks the two hardest points


def test_aggregate__models_keep_what_is_known_of_them(ds):
    found = aggregate(
        ds, by=["model", "task"], where={"model_name": ["heron-mini-3b", "orchid-70b-instruct"]}
    )

    assert found["model_name"].values.tolist() == ["orchid-70b-instruct", "heron-mini-3b"]
    assert found["price_completion"].dims == ("model",)
    assert found["point"].dims == ("model", "task")


def test_aggregate__padding_is_no_group(ds):
    assert len(aggregate(ds, by="cell_id")["cell_id"]) == 36


@pytest.mark.parametrize(
    ("where", "trials"),
    [
        ({"task": "boolean"}, 9),
        ({"task": ["boolean", "cars"]}, 18),
        ({"param_length": (5, 8)}, 6),
        ({"param_length": (None, 8)}, 12),
        ({"param_length": 8}, 6),
        pytest.param({"param_length": lambda value: value > 4}, 12, id="function"),
        ({"tier": "hard"}, 12),
        ({"tier": ["easy", "hard"], "task": "boolean"}, 6),
        ({"params": [0, 1]}, 8),
    ],
    ids=str,
)
def test_aggregate__where_selects(ds, where, trials):
    found = aggregate(ds, where={**where, "model_name": "orchid-8b-instruct"})

    assert float(found["counters"].sel(counter="trials")) == 64 * trials
    assert int(found["points"]) == trials


def test_aggregate__where_of_tiers_limits_the_groups(ds):
    found = aggregate(ds, by=["tier"], where={"tier": ["hard", "easy"]})

    assert found["tier"].values.tolist() == ["easy", "hard"]
    assert found["counters"].values == pytest.approx(aggregate(ds, by=["tier"])["counters"].values[[0, 2]])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"by": ["tasks"]}, "`by` has no 'tasks'; known names are cell_id, difficulty.*facet_size.*tier"),
        ({"where": {"model": 0, "lenght": 3}}, "`where` has no 'lenght'; known names are"),
        ({"by": ["task", "task"]}, "names something twice"),
        ({"where": {"task": "dates"}}, "there is no task 'dates'; there are 'arithmetic', 'boolean'"),
        ({"where": {"param_length": (20, None)}}, r"no param_length \(20, None\); there are 4.0, 8.0, 12.0"),
        ({"where": {"tier": "easy", "difficulty": (200, None)}}, "leaves no cell.*drop or widen one"),
        ({"where": {"facet_family": "heron", "facet_size": 8}}, "leaves no model.*drop or widen one"),
        ({"where": {"model_name": (1, 2)}}, "cannot test 'model_name' with"),
        ({"where": {"param_length": (4, 8, 12)}}, "use a list for values"),
        ({"mode": "C"}, "E_I, E_P, E_O, C_I, C_P, C_O, got 'C'"),
        ({"weigh": "mean"}, "must be one of tasks, points, trials, got 'mean'"),
        ({"confidence": 95}, r"inside \(0, 1\)"),
    ],
    ids=str,
)
def test_aggregate__refuses_what_it_does_not_know(ds, options, match):
    with pytest.raises(ValueError, match=match):
        aggregate(ds, **options)


def test_aggregate__contradictory_counters_are_one_clear_error(ds):
    broken = ds.copy(deep=True)
    broken["counters"][2, 1, 3, COUNTERS.index("correct")] = 1000

    with pytest.raises(
        ValueError, match=r"at index \(2, 1, 3\).*correct must not exceed completed.*correct 1000"
    ):
        aggregate(broken, by="tier")
    assert aggregate(broken, where={"task": "cars"})["points"] == 36


def test_aggregate__a_group_without_trials_is_undefined_and_says_so(ds):
    found = aggregate(ds, by=["model_name", "task"])
    gap = found.sel(model_name="smollm2-135m-instruct", task="cars")

    assert np.isnan([gap["point"], gap["lower"], gap["upper"]]).all()
    assert (int(gap["points"]), int(gap["points_planned"])) == (0, 9)


def test_aggregate__says_how_it_was_computed(ds):
    one = aggregate(ds, mode="E_P", confidence=0.9)
    two = aggregate(ds, weigh="points", interval="wilson")

    assert one.attrs == {
        "mode": "E_P",
        "weigh": "tasks",
        "interval": "exact at the effective number of trials",
        "confidence": 0.9,
        "base_design": "",
        "left_out": "",
        "lacking": [],
    }
    assert aggregate(ds, weigh="trials", interval="wilson").attrs["interval"] == "wilson"
    assert (two.attrs["weigh"], two.attrs["interval"]) == (
        "points",
        "wilson at the effective number of trials",
    )


def test_aggregate__adaptive_sampling_biases_the_sum_of_trials_only():
    made = dataset([Profile("a")], tasks=1, points=2, trials=100)
    for slot, (n, correct) in enumerate([(100, 95), (460, 230)]):
        made["counters"][0, 0, slot] = 0.0
        made["counters"][0, 0, slot, :3] = [n, n, correct]

    assert float(aggregate(made, weigh="trials")["point"]) == pytest.approx(0.58, abs=0.001)
    for weigh in ("tasks", "points"):
        assert float(aggregate(made, weigh=weigh)["point"]) == pytest.approx(0.725)


def test_points__estimates_every_cell_with_its_coordinates(ds):
    cells = points(ds, where={"task": ["boolean", "cars"], "tier": "hard"})

    assert dict(cells.sizes) == {"model": 5, "task": 2, "params": 3, "counter": len(COUNTERS), "tier": 3}
    assert cells["param_length"].values[0].tolist() == [12, 12, 12]
    cell = cells.isel(model=1, task=0, params=2)
    sums = ds["counters"].values[1, 1, 8]
    assert [float(cell[part]) for part in ("point", "lower", "upper")] == pytest.approx(
        [float(part) for part in exact_estimate(sums, mode="C_I")]
    )
    assert cells.attrs["mode"] == "C_I"


def test_points__not_selected_is_undefined(ds):
    cells = points(ds, where={"difficulty": (100, None)}, mode="C_P", interval="wilson")

    assert np.isnan(cells["point"].values[:, cells["difficulty"].values < 100]).all()
    expected = [float(part) for part in estimate(cells["counters"].values[0, 0, -1], mode="C_P")]
    assert [float(cells[part][0, 0, -1]) for part in ("point", "lower", "upper")] == pytest.approx(expected)


def test_points__refuses_as_aggregate_does(ds):
    with pytest.raises(ValueError, match="E_I, E_P"):
        points(ds, mode="E")
    with pytest.raises(ValueError, match="known names are"):
        points(ds, where={"x": 1})
    with pytest.raises(ValueError, match="`interval` must be one of exact, wilson"):
        points(ds, interval="wald")


@pytest.mark.parametrize("weigh", ["tasks", "points"])
def test_aggregate__shares_per_trial_weigh_points_as_its_estimate_does(weigh):
    ds = dataset([Profile("a", limit=300.0)], tasks=1, trials=20)
    counters = ds["counters"].values.copy()
    counters[:, :, 0] *= 4  # asked four times as often
    grown = ds.assign(counters=(ds["counters"].dims, counters))
    place = COUNTERS.index("truncated")
    trials = counters[0, 0, :, 0]
    there = trials > 0
    weighed = grown.assign_coords(base_trials=(("task", "params"), ds["counters"].values[0, ..., 0]))

    found = aggregate(weighed, by="model", weigh=weigh)["per_trial"].sel(counter="truncated")

    assert found.item() == pytest.approx((counters[0, 0, there, place] / trials[there]).mean())
    assert 0 < found.item() < 1
    assert aggregate(weighed, by="model", weigh=weigh)["per_trial"].sel(counter="trials").item() == 1
