"""What a sweep becomes when a config is added to it, and which configs contradict it."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.growth import Recorded, grown
from evalcube.flows.plan.plan import Plan
from evalcube.flows.read.merged.inputs import Input
from evalcube.flows.state.beside_config import KEY, find_unnamed, noted_unnamed
from evalcube.flows.state.store import open_store, sweep_cube
from evalcube.stages.reply.status import COUNTERS
from tests.flows.judging import judged_config
from tests.flows.support import sweep_config

NOWHERE = "http://127.0.0.1:1/v1"


def plan_of(config):
    return build_plan(from_mapping(config))


def joined(old, new, recorded=100):
    """The growth of one config's plan by another's, of which so many trials are recorded everywhere."""
    before, after = plan_of(old), plan_of(new)
    return grown(
        before, after, Recorded([recorded] * len(before.evaluations), [recorded] * len(before.tasks))
    )


def points(plan):
    """Ids of the cells of a plan."""
    return [planned.cell.id for task in plan.tasks for planned in task.cells]


def told(growth):
    return "; ".join(one.what for one in growth.contradictions)


def test_grown__by_itself_is_the_same(tmp_path):
    config = judged_config(tmp_path, NOWHERE)
    growth = joined(config, config)

    assert growth.contradictions == ()
    assert growth.plan.spec() == plan_of(config).spec()
    assert growth.plan.named_cells.all()


def test_grown__appends_and_knows_what_the_config_names(tmp_path):
    old = sweep_config(tmp_path, NOWHERE, models=("a", "b"))
    new = sweep_config(tmp_path, NOWHERE, models=("c", "b"))
    new["tasks"] = {
        "letters": {"params": {}},
        "arithmetic": {"manifold": [{"points": [{"length": 9}, {"length": 4}], "tiers": ["hard"]}]},
    }

    growth = joined(old, new)

    assert growth.contradictions == ()
    plan = growth.plan
    assert plan.labels == ("a", "b", "c")
    assert plan.task_names == ("arithmetic", "boolean", "letters")
    lengths = [one.cell.plain_params["length"] for one in plan.tasks[0].cells]
    assert lengths == [3, 4, 5, 6, 9]
    assert [one.tiers for one in plan.tasks[0].cells][1:] == [
        ("easy", "hard"),
        ("easy",),
        ("easy",),
        ("hard",),
    ]
    assert plan.named_cells.tolist() == [
        [[False] * 5] * 3,
        *[[[False, True, False, False, True], [False] * 5, [True, *[False] * 4]]] * 2,
    ]
    assert Plan.from_spec(plan.spec(), 8, 1).spec() == plan.spec()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda config: config["judges"][0].update(repeats=5), ""),
        (
            lambda config: config["judges"].append(
                {"model": "grader", "name": "third", "sampler": {"seed": 3}}
            ),
            "",
        ),
        (lambda config: config["judges"].reverse(), ""),
        (
            lambda config: config["judges"].pop(),
            "judge loose is in the cube only, where it rated the answers of 100",
        ),
        (
            lambda config: config["judges"][0].update(sampler={"top_p": 0.5}),
            "judge strict has another sampler",
        ),
        (lambda config: config.update(tasks={"letters": {"params": {}}}, judges=[]), ""),
    ],
)
def test_grown__judges_may_come_and_not_go(tmp_path, change, what):
    config = judged_config(tmp_path, NOWHERE)
    other = copy.deepcopy(config)
    change(other)

    growth = joined(config, other)

    assert told(growth)[: len(what)] == what
    assert bool(growth.contradictions) == bool(what)
    assert [judge.name for judge in growth.plan.judges][:2] == ["strict", "loose"]


def test_grown__what_has_no_trial_becomes_what_was_meant(tmp_path):
    config = sweep_config(tmp_path, NOWHERE, models=("a", "b"))
    other = copy.deepcopy(config)
    other["models"][0]["revision"] = "Q4"
    other["tasks"]["boolean"]["assertions"] = [{"type": "json_valid"}]

    growth = joined(config, other, recorded=0)

    assert growth.contradictions == ()
    assert growth.plan.spec() == plan_of(other).spec()
    assert "model a is" in told(joined(config, other))
    assert "assertions of task boolean are in the config only" in told(joined(config, other))


def test_grown__a_name_is_not_given_to_two(tmp_path):
    config = sweep_config(tmp_path, NOWHERE)
    config["models"] = [{"name": name, "endpoint": NOWHERE, "model": f"the {name}"} for name in ("a", "b")]
    other = copy.deepcopy(config)
    other["models"] = [{"name": "b", "endpoint": NOWHERE, "model": "the a"}]
    swapped = copy.deepcopy(config)
    swapped["models"][0]["model"], swapped["models"][1]["model"] = "the b", "the a"

    assert told(joined(config, other)).startswith(
        'model b is {"model": "the b"} in the cube, with 100 trials'
    )
    assert (
        told(joined(config, other, recorded=0)) == "evaluation b / plain / greedy is another one in the cube"
    )
    assert joined(config, swapped).contradictions == ()
    assert joined(config, swapped).plan.labels == ("b", "a")


def test_grown__prices_that_assertions_look_at_may_not_change(tmp_path):
    config = sweep_config(tmp_path, NOWHERE, models=("a",))
    dear = copy.deepcopy(config)
    dear["models"][0]["prices"] = {"prompt": 1.0, "completion": 2.0}
    assert joined(config, dear).contradictions == ()
    assert joined(config, dear).plan.prices == ((1.0, 2.0),)
    more = copy.deepcopy(config)
    more["models"].append({**more["models"][0], "name": "b", "prices": {"prompt": 3.0, "completion": 4.0}})
    for one in (config, dear, more):
        one["tasks"]["boolean"]["assertions"] = [{"type": "cost_max", "value": 1}]

    assert told(joined(config, dear)) == "prices have changed, and an assertion (cost_max) depends on them"
    assert joined(config, dear, recorded=0).plan.asserted_prices == ((1.0, 2.0),)
    assert joined(config, more).plan.asserted_prices == ((0.0, 0.0), (3.0, 4.0))


def edited(tmp_path, file="rows.jsonl"):
    """A config with a data set, its plan, and its plan after the file was edited."""
    config = judged_config(tmp_path, NOWHERE)
    before = plan_of(config)
    rows = tmp_path / file
    rows.write_text(rows.read_text().replace("France", "Gaul"))
    return config, before, plan_of(config)


def test_grown__an_edited_data_file_is_a_point_beside_the_old_one(tmp_path):
    _, before, after = edited(tmp_path)

    growth = grown(before, after, Recorded([5, 5], [10]))

    assert growth.contradictions == ()
    assert points(growth.plan) == points(before) + points(after)
    assert [planned.older for planned in growth.plan.tasks[-1].cells] == [True, False]
    assert Plan.from_spec(growth.plan.spec(), 4, 1).spec() == growth.plan.spec()


def test_grown__a_file_that_is_put_back_is_the_newest_again(tmp_path):
    _, before, after = edited(tmp_path)
    both = grown(before, after, Recorded([5, 5], [10])).plan

    back = grown(both, before, Recorded([5, 5], [10])).plan

    assert [planned.older for planned in back.tasks[-1].cells] == [False, True]


def test_grown__a_published_point_is_known_by_the_name_of_its_file(tmp_path):
    _, before, after = edited(tmp_path)
    spec = before.spec()
    for point in spec["tasks"][-1]["points"]:
        point["params"]["file"] = Path(point["params"]["file"]).name

    growth = grown(Plan.from_spec(spec, 4, 1), after, Recorded([5, 5], [10]))

    assert [planned.older for planned in growth.plan.tasks[-1].cells] == [True, False]


def test_grown__prices_and_facets_of_what_the_config_does_not_name_stay(tmp_path):
    old = sweep_config(tmp_path, NOWHERE, models=("a", "b"))
    old["models"][0] |= {"facets": {"size": 7}, "prices": {"prompt": 1.0, "completion": 2.0}}
    new = sweep_config(tmp_path, NOWHERE, models=("b", "c"))
    new["models"][1] |= {"facets": {"size": 9}}

    plan = joined(old, new).plan

    assert plan.facets == ({"size": 7}, {}, {"size": 9})
    assert plan.prices == ((1.0, 2.0), (0.0, 0.0), (0.0, 0.0))


def test_grown__facets_that_nobody_could_have_written_are_none(tmp_path):
    models = [sweep_config(tmp_path, NOWHERE, models=names) for names in (("a", "b"), ("c",))]
    old, new = map(plan_of, models)
    url = str(tmp_path / "cube.zarr")
    cube = open_store(old, url).cube
    cube.write_label("facets", np.array(["[" * 100_000, '{"size": 7, "deep": {"a": 1}}'], dtype=object))

    assert Input(url).facets == [{}, {"size": 7}]
    assert sweep_cube(new, url)[1].facets == ({},)


def test_grown__knows_points_that_the_config_has_taken_out_of_a_tier(tmp_path):
    def config(easy, *more):
        points = [([{"length": n} for n in lengths], tier) for lengths, tier in ((easy, "easy"), *more)]
        manifold = [{"points": some, "tiers": [tier]} for some, tier in points]
        return {**sweep_config(tmp_path, NOWHERE), "tasks": {"boolean": {"manifold": manifold}}}

    old = config((3, 4), ((4, 6), "hard"))
    taken = joined(old, config((3,), ((4, 6), "hard"))).plan
    counters = np.zeros((1, 1, taken.slots, len(COUNTERS)))

    kept = find_unnamed(taken, counters)

    assert kept is not None
    assert str(kept) == "in the cube and not in the run's config: 1 point of boolean in tier easy"
    assert noted_unnamed({KEY: json.loads(json.dumps(kept.to_dict()))}) == kept
    assert taken.tasks[0].cells[1].tiers == ("easy", "hard")
    # A config for some tiers only takes nothing out of the others.
    part = find_unnamed(joined(old, config((3, 4))).plan, counters)
    assert part is not None
    assert str(part) == "not in the run's config: 1 point of boolean (0 trials)"
    assert find_unnamed(joined(old, old).plan, counters) is None
    assert noted_unnamed({KEY: {"models": [], "points": {}, "trials": 0, "tiers": {"boolean": 1}}}) is None
