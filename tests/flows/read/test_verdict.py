"""Verdicts on cubes that are written directly: what is compared, exit codes, refusals."""

import re

import numpy as np
import pytest
import xarray as xr

from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import ConfigError, SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.read import verdict as verdict_module
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.verdict import _Data, cube_verdict
from evalcube.flows.state.store import SweepStore, open_store
from evalcube.stages.analyze.verdict import verdict
from evalcube.stages.reply.status import BASE
from evalcube.storage.cube.cube import Cube
from tests.flows.judging import LANDS, judged_config
from tests.flows.support import sweep_config

pytestmark = pytest.mark.long

UNITS = len(LANDS)
NOWHERE = "http://127.0.0.1:9/v1"


def written_cube(folder, *, repeats=1, gain=0.8, change=None, **config):
    """A cube of two variants whose judge readings differ by about `gain`; returns its address and arrays."""
    plan = build_plan(from_mapping(judged_config(folder, NOWHERE, repeats=repeats, **config)))
    url = str(folder / "written.zarr")
    store = open_store(plan, url)
    SweepStore(store.cube, plan, SampleTargets.uniform(plan, plan.trials, repeats)).grow()
    cube = Cube.open(url, writable=True)
    rng = np.random.default_rng(7)
    arrays = {}
    for region in cube.regions():
        shape = cube.region_shape(region)
        made = {
            name: np.full((*shape, *plan.layers.get(name, ())), variable.fill, variable.dtype)
            for name, variable in cube.trial_arrays.items()
        }
        here = made["status"][0, 0]
        here[...] = 1
        for name in ("fact", "behavior"):
            made[name][0, 0] = rng.choice([4.0, 4.5, 5.0], here.shape) - (0.0 if region.model else gain)
        means = rng.choice([4, 5], here.shape) - (
            0 if region.model or not gain else rng.integers(0, 2, here.shape)
        )
        made["judge_readings"][0, 0, ..., 0, :] = means[..., None]
        made["judge_readings"][0, 0, ..., 1, 0] = np.clip(means + rng.integers(-1, 2, here.shape), 1, 5)
        made["judge"][0, 0] = (means + made["judge_readings"][0, 0, ..., 1, 0]) / 2
        if change is not None:
            change(region.model, made)
        cube.write_region(region, made)
        arrays[region.model] = made
    return url, arrays


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The address of such a cube, which tests only read."""
    return written_cube(tmp_path_factory.mktemp("written"))[0]


def test_cube_verdict__draws_the_clusters_of_questions(written):
    reader = Reader(written)
    ds = reader.cube.dataset()
    numbers = (1 + ds["trial"] % 3).broadcast_like(ds["status"]).transpose(*ds["status"].dims)

    plain, drawn = (
        _Data(one, reader.plan, [0, 1], [0], None).clusters()
        for one in (ds, ds.assign(cluster=numbers.astype("int64")))
    )

    assert plain is None
    assert drawn.tolist() == [1 + place % 3 for place in range(UNITS)]


def test_cube_verdict__compares_units_with_repeats_as_runs(tmp_path):
    url, arrays = written_cube(tmp_path, repeats=2)

    found = cube_verdict(url, "before", ["after"])

    # the arrays of one task and point, put together by hand: (run, variant, unit, layer)
    layers = np.stack(
        [np.stack([arrays[model][name][0, 0] for model in (0, 1)]) for name in ("fact", "behavior", "judge")],
        axis=-1,
    ).transpose(2, 0, 1, 3)
    readings = np.stack([arrays[model]["judge_readings"][0, 0] for model in (0, 1)]).transpose(2, 0, 1, 3, 4)
    names = [f"dataset/0/{index}" for index in range(UNITS)]
    expected = verdict(
        layers.astype(float),
        ["before", "after"],
        names,
        judges=readings.astype(float),
        judge_names=["judge strict", "judge loose"],
        method=None,
    )
    assert found.verdict == expected
    assert (found.units, found.tasks) == (UNITS, ("dataset",))
    assert (found.readings, found.readings_asked) == (2 * 2 * UNITS * 3, 2 * 2 * UNITS * 3)
    assert (found.verdict.verdict, found.exit_code) == ("PROGRESS", 0)
    assert found.verdict.arms[0].agreement.pairs == 1


def test_cube_verdict__the_other_way_round_is_a_regress(written):
    found = cube_verdict(written, "after", ["before"])

    assert (found.verdict.verdict, found.exit_code) == ("REGRESS", 1)


@pytest.mark.parametrize(("threshold", "code"), [(3.5, 0), (4.9, 1)])
def test_cube_verdict__alone_there_is_a_gate_only(written, threshold, code):
    found = cube_verdict(written, "after", threshold=threshold)

    assert (found.verdict.verdict, found.exit_code) == ("SOLO", code)


def test_cube_verdict__tells_of_missing_readings_and_unfinished_trials(tmp_path):
    def change(model, made):
        made["judge_readings"][0, 0, :3, 0, 1, 0] = np.nan
        if model:
            made["status"][0, 0, 5:7] = 254
            for name in ("fact", "behavior", "judge", "judge_readings"):
                made[name][0, 0, 5:7] = np.nan

    url, _ = written_cube(tmp_path, change=change)

    found = cube_verdict(url, "before", ["after"])

    assert (found.readings_asked, found.readings) == ((2 * UNITS - 2) * 3, (2 * UNITS - 2) * 3 - 6)
    assert found.verdict.pairs[0].complete_pairs == UNITS - 2
    text = " ".join(found.verdict.notes)
    assert "2 planned trials" in text
    assert re.search(rf"Judge loose .* 6 of {2 * UNITS - 2} .*\(3 of before, 3 of after\)", text)


def test_cube_verdict__readings_of_unfinished_trials_do_not_count(tmp_path):
    def change(model, made):
        if model:
            made["status"][0, 0, :12] = (
                254  # with readings left there, as a cube from elsewhere may have them
            )

    url, _ = written_cube(tmp_path, change=change)

    found = cube_verdict(url, "before", ["after"])

    assert (found.readings_asked, found.readings) == ((UNITS + 12) * 3, (UNITS + 12) * 3)
    assert not any("gave no score" in note for note in found.verdict.notes)


def test_cube_verdict__a_judge_that_always_failed_is_named(tmp_path):
    def change(_model, made):
        made["judge_readings"][0, 0, ..., 1, :] = np.nan

    url, _ = written_cube(tmp_path, change=change)

    text = " ".join(cube_verdict(url, "before", ["after"]).verdict.notes)
    assert re.search(f"Judge loose .* {2 * UNITS} of {2 * UNITS} ", text)


@pytest.mark.parametrize("name", ["fact", "judge_readings"])
def test_cube_verdict__scores_that_nobody_gives_are_refused(tmp_path, name):
    def change(_model, made):
        made[name][0, 0, 3] = 50.0

    url, _ = written_cube(tmp_path, change=change)

    with pytest.raises(SweepError, match="not from 1 to 5"):
        cube_verdict(url, "before", ["after"])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("none", ["after"]), {}, "`control`: no evaluation is called 'none'.*0 = before, 1 = after"),
        (("before", ["none"]), {}, "`treatments`: no evaluation is called 'none'"),
        (("before", ["before"]), {}, "'before' is given twice"),
        ((None, []), {}, "`control` is missing"),
        (("", ["after"]), {}, "`control`: no evaluation is called ''"),
        (("before", ["after"]), {"tasks": ["x"]}, "`tasks`: 'x' is not in this cube.*dataset"),
        (("before", ["after"]), {"method": "x"}, "`method`: there is no 'x'"),
        (
            ("before", ["after"]),
            {"weights": {"tone": 1}},
            "`weights`: tone: unknown field 'tone'.*fact, behavior, judge",
        ),
        (
            ("before", ["after"]),
            {"weights": {"fact": -1}},
            "`weights`: fact: must be at least 0, got -1",
        ),
        (("before", ["after"]), {"weights": {"fact": 0}}, "`weights`: gives no layer any weight"),
        (
            ("before", ["after"]),
            {"threshold": 5.5},
            "`threshold`: must be a number from 1 to 5, got 5.5",
        ),
        (("before", ["after"]), {"trivial": 4.5}, r"`trivial`: .* 4, got 4\.5"),
        (("before", []), {"gold_variant": "after"}, "`gold_variant`: 'after' is not compared"),
        (("before", ["after"]), {"missing": 2.0}, "`missing`: must be a share from 0 to 1, got 2"),
        (("before", ["after"]), {"holdout": 1.0}, "`holdout`: must be a share above 0 and below 1"),
        (
            ("before", ["after"]),
            {"holdout": 0.05},
            "`holdout`: 0.05 of 24 questions leaves one part fewer than 3",
        ),
    ],
)
def test_cube_verdict__what_cannot_be_compared_is_refused(written, arguments, options, message):
    with pytest.raises((SweepError, ConfigError), match=message):
        cube_verdict(written, *arguments, **options)


def test_cube_verdict__needs_layers_and_results(tmp_path):
    config = from_mapping(sweep_config(tmp_path, NOWHERE))
    store = open_store(build_plan(config), config.cube)
    with pytest.raises(SweepError, match="evalcube gate"):
        cube_verdict(store.cube.url, "alpha")

    judged = from_mapping(judged_config(tmp_path, NOWHERE, cube=str(tmp_path / "empty.zarr")))
    open_store(build_plan(judged), judged.cube)
    with pytest.raises(SweepError, match="no question"):
        cube_verdict(judged.cube, "before", ["after"])


def test_cube_verdict__compares_what_all_variants_were_to_answer(tmp_path):
    url, _ = written_cube(tmp_path)
    cube = Cube.open(url, writable=True)
    planned = cube.read_planned("trial").copy()
    planned[0] = UNITS - 3  # the other one was measured further
    cube.drop_chunks("planned_trials")
    cube.write_planned("trial", planned)

    found = cube_verdict(url, "before", ["after"])

    assert (found.units, found.verdict.pairs[0].missing) == (UNITS - 3, None)
    assert any(note.startswith("3 questions") for note in found.verdict.notes)


def test_shares__are_those_of_the_first_plan_however_points_grew():
    def shares(asked):
        data = verdict_module._Data.__new__(verdict_module._Data)
        base = (("model", "task", "params"), np.array([[[8, 24], [8, 0]]] * 2))
        empty = np.zeros((2, 2, 2, 96, 1), np.uint8)
        data._part = xr.Dataset({"status": ((*base[0], "trial", "repeat"), empty)}, {BASE: base})
        data._mask = np.arange(96) < np.array(asked)[..., None]
        places = np.argwhere(data._mask)
        weights = data.shares()
        return [weights[(places[:, :2] == point).all(axis=1)].sum() for point in ((0, 0), (0, 1), (1, 0))]

    for asked in ([[8, 24], [8, 0]], [[64, 24], [8, 0]], [[8, 25], [96, 0]]):
        assert shares(asked) == pytest.approx([0.25, 0.75, 1.0])


def test_cube_verdict__a_cube_that_grew_is_judged_by_bounds_that_hold_at_all_looks(written, tmp_path):
    url, _ = written_cube(tmp_path)
    notes = tmp_path / "written.zarr" / "zarr.json"
    notes.write_text(notes.read_text().replace(f'"base": {UNITS}', f'"base": {UNITS // 2}'))

    grown, new = cube_verdict(url, "before", ["after"]), cube_verdict(written, "before", ["after"])

    methods = [found.verdict.pairs[0].composite.method for found in (grown, new)]
    assert methods == ["anytime", "sign-flip"]
    assert any("looked at before" in note for note in grown.verdict.notes)
    assert grown.verdict.pairs[0].composite.low < new.verdict.pairs[0].composite.low
