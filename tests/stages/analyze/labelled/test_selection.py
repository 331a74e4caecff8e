import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcube.stages.analyze.labelled.aggregate import aggregate
from evalcube.stages.analyze.labelled.selection import group, keys, list_values, restrict, select
from tests.cases import with_cases
from tests.stages.analyze.synthetic import PROFILES, dataset

DS = dataset(PROFILES[:3], tasks=3, points=6, trials=16)

CONDITIONS = st.fixed_dictionaries(
    {},
    optional={
        "task": st.lists(st.sampled_from(["arithmetic", "boolean", "brackets"]), min_size=1),
        "tier": st.sampled_from(["easy", "medium", "hard"]),
        "model_name": st.sampled_from([profile.name for profile in PROFILES[:3]]),
        "params": st.tuples(st.integers(0, 2), st.integers(3, 6)),
    },
)


def outcome(function):
    try:
        return function()
    except ValueError as error:
        return str(error).partition("leaves no")[1]


@given(where=CONDITIONS, by=st.sampled_from([(), ("model_name",), ("task", "tier")]))
def test_restrict__then_aggregate_is_aggregate_of_the_selection(where, by):
    direct = outcome(lambda: aggregate(DS, where=where, by=by))
    restricted = outcome(lambda: aggregate(restrict(DS, where), by=by))

    if isinstance(direct, str):
        assert restricted == direct
    else:
        xr.testing.assert_equal(direct.drop_vars("counter"), restricted.drop_vars("counter"))


def test_restrict__blanks_trials_and_labels_and_leaves_the_dataset_alone():
    ds = DS.assign(
        status=(("model", "task", "params", "trial", "repeat"), np.ones((3, 3, 7, 2, 1), np.uint8))
    ).assign_coords(cell_id=(("task", "params"), np.full((3, 7), "x")))
    before = ds.copy(deep=True)

    part = restrict(ds, {"tier": "easy"})

    xr.testing.assert_identical(ds, before)
    inside = part["in_tier"].isel(tier=0).values
    assert part["status"].dtype == np.uint8
    assert ((part["status"].values == 1).all(axis=(0, 3, 4)) == inside).all()
    assert ((part["cell_id"].values == "x") == inside).all()
    assert restrict(ds, {}) is ds
    with pytest.raises(ValueError, match="there is no tier"):
        restrict(ds, {"tier": "none"})


@settings(derandomize=True, max_examples=30)
@given(where=CONDITIONS, lazy=st.booleans())
def test_restrict__masks_by_the_names_of_dims_in_whatever_order(where, lazy):
    plan = xr.DataArray(np.arange(63, dtype=np.int32).reshape(7, 3, 3), dims=("params", "model", "task"))
    ds = DS.assign(
        planned_trials=plan, counters=DS["counters"].transpose("counter", "task", "model", "params")
    )
    part = outcome(lambda: restrict(ds.chunk(model=1) if lazy else ds, where))
    if isinstance(part, str):
        return

    chosen = select(ds, where, keys(ds))
    inside = xr.DataArray(chosen.cells, dims=("task", "params"))
    kept = {"model": chosen.models, "task": inside.any("params"), "params": inside.any("task")}
    places = {dim: np.flatnonzero(there) for dim, there in kept.items()} | {"tier": list(chosen.tiers)}
    for name in ("planned_trials", "counters", "in_tier"):
        expected = ds[name].where(inside, ds[name].dtype.type(0))
        xr.testing.assert_identical(
            part[name].compute(),
            expected.isel({dim: at for dim, at in places.items() if dim in expected.dims}),
        )
    assert (part["counters"].chunks is not None) == lazy


MIXED = DS.assign_coords(
    param_length=(("task", "params"), np.arange(21.0).reshape(3, 7)),
    param_shape=(("params", "task"), np.array([["a", "b", ""]] * 7, dtype=object)),
    price=("model", [1.0, np.nan, 3.0]),
    open=("model", [True, False, True]),
    facets=("model", ['{"size": 7, "price": "own"}', "{}", '{"size": 1}']),
    other=("trial", [1]),
)


def test_keys__are_all_that_models_or_cells_can_be_told_by():
    table = keys(MIXED)

    assert table["param_length"].values[:8] == [float(number) for number in range(8)]
    assert table["param_shape"].values[:8] == ["a"] * 7 + ["b"]
    assert set(table["param_shape"].values[14:]) == {None}
    assert (table["price"].values, table["price"].dims) == ([1.0, None, 3.0], ("model",))
    assert (table["facet_size"].values, table["facet_price"].values) == ([7, None, 1], ["own", None, None])
    assert table["model"].values == [0, 1, 2]
    assert table["params"].values[:8] == [0, 1, 2, 3, 4, 5, 6, 0]
    assert table["task"].values[6:8] == ["arithmetic", "boolean"]
    assert table["open"].values == [True, False, True]
    assert {"facets", "other", "tier", "difficulty_of"}.isdisjoint(table)
    with pytest.raises(TypeError, match="a cube's dataset is needed"):
        keys("cube.zarr")


@with_cases(
    ("where", "models", "cells"),
    [
        ({}, 3, 21),
        ({"param_length": (3, 9)}, 3, 7),
        ({"param_length": (None, 3.0)}, 3, 4),
        ({"param_length": (19, None)}, 3, 2),
        ({"param_length": 4}, 3, 1),
        ({"param_length": [4, 5, 99]}, 3, 2),
        ({"param_length": range(4, 6)}, 3, 2),
        ({"param_length": lambda value: value > 18}, 3, 2),
        ({"param_shape": "a"}, 3, 7),
        ({"price": (None, None)}, 2, 21),
        ({"facet_size": 7}, 1, 21),
        ({"facet_size": [1, 7], "model": (1, 2)}, 1, 21),
        ({"tier": ["easy", "hard"]}, 3, 12),
        ({"tier": "easy", "task": "boolean"}, 3, 2),
        ({"open": True}, 2, 21),
    ],
)
def test_select__finds_what_fulfils_all_conditions(where, models, cells):
    chosen = select(MIXED, where, keys(MIXED))

    assert (chosen.models.sum(), chosen.cells.sum()) == (models, cells)
    tiers = {"easy": (0,), str(["easy", "hard"]): (0, 2)}
    assert chosen.tiers == tiers.get(str(where.get("tier")), (0, 1, 2))


@with_cases(
    ("where", "words"),
    [
        (["task=sort"], "no mapping of names to conditions"),
        ({"lenght": 3}, "`where` has no 'lenght'"),
        ({"param_length": (1, 2, 3)}, "takes a tuple as"),
        ({"param_length": ("a", None)}, "cannot test 'param_length'"),
        ({"param_length": 99}, "there is no param_length 99; there are 0.0, 1.0, "),
        ({"param_shape": "c"}, "there is no param_shape 'c'; there are 'a', 'b'"),
        ({"facet_size": 7, "price": 3.0}, "leaves no model"),
        ({"param_length": 1, "task": "boolean"}, "leaves no cell"),
    ],
)
def test_select__refuses_what_nothing_fulfils(where, words):
    with pytest.raises(ValueError, match="`where`") as caught:
        select(MIXED, where, keys(MIXED))

    assert words in str(caught.value)


@with_cases(
    ("values", "text"),
    [
        ([3, 1, None, 3], "1, 3"),
        (["b", "a", "b"], "'b', 'a'"),
        ([None], "never set"),
        (range(12), ", ".join(map(str, range(12)))),
        (range(13), ", ".join(map(str, range(12))) + ", ... (13 values)"),
    ],
)
def test_list_values__are_the_first_twelve(values, text):
    assert list_values(values) == text


def groups_of(by, dims, where=None):
    table = keys(MIXED)
    return group(MIXED, by, dims, select(MIXED, where, table), table)


def test_group__has_each_cell_in_each_of_its_tiers_and_none_without_a_value():
    both = MIXED.copy(deep=True)
    both["in_tier"][1] = both["in_tier"][0].values
    table = keys(both)
    made = group(both, ["tier", "task", "model"], ("task", "params"), select(both, None, table), table)

    assert (made.names, made.shape) == (("tier", "task"), (3, 3))
    assert made.levels[0] == ["easy", "medium", "hard"]
    members = {place: index.tolist() for place, index in made.members()}
    assert members[0, 1] == members[1, 1] == [7, 8]
    assert members[2, 0] == [4, 5]
    shapes = groups_of(["param_shape"], ("task", "params"))
    assert [len(index) for _, index in shapes.members()] == [7, 7]
    assert shapes.levels == (["a", "b"],)


def test_group__of_models_takes_those_that_are_selected():
    made = groups_of(["facet_size", "task"], ("model",), {"model": (0, 1)})
    weighed = made.weigh(np.array([0.5]))

    assert (made.names, made.levels, made.matrix.shape) == (("facet_size",), ([7],), (1, 3))
    assert [part.tolist() for part in made.pairs] == [[0], [0]]
    assert weighed.toarray().tolist() == [[0.5, 0.0, 0.0]]
    assert groups_of([], ("model",)).matrix.toarray().tolist() == [[1.0, 1.0, 1.0]]


def test_group__of_too_many_levels_is_refused(monkeypatch):
    monkeypatch.setattr("evalcube.stages.analyze.labelled.selection.MOST_GROUPS", 21)
    assert groups_of(["param_length"], ("task", "params")).shape == (21,)
    with pytest.raises(ValueError, match="spans 42 groups"):
        groups_of(["param_length", "param_shape"], ("task", "params"))
