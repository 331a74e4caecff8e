"""Each row of the table in `docs/identity.md` is a test, and each test a row."""

import copy
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.growth import Recorded, grown
from evalcube.flows.plan.requests import trial_request
from evalcube.flows.state.growing import described

PAGE = Path(__file__).parents[3] / "docs" / "identity.md"
NOWHERE = "http://127.0.0.1:1/v1"


def rows():
    """The page's rows, by their first cell."""
    table = PAGE.read_text().split("| change |")[1].split("\n\n")[0]
    lines = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    return {line[0]: line[1:] for line in lines}


@pytest.fixture
def config(tmp_path):
    row = {"prompt": "Capital of Peru?", "answer": "Lima"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    return {
        "trials": 4,
        "models": [{"name": name, "endpoint": NOWHERE, "model": f"org/{name}"} for name in ("alpha", "beta")]
        + [{"name": "grader", "endpoint": NOWHERE, "measured": False}],
        "templates": {"plain": [{"role": "user", "content": "{{ prompt }}"}]},
        "samplers": {"cold": {"temperature": 0, "max_tokens": 100}},
        "judges": [
            {"model": "grader", "name": name, "sampler": {"top_p": p}} for name, p in (("x", 0.5), ("y", 0.9))
        ],
        "tasks": {
            "arithmetic": {
                "manifold": [{"points": [{"length": 3}, {"length": 4}], "tiers": ["easy", "hard"]}]
            },
            "boolean": {"params": {"length": 4}, "rubric": "Polite."},
            "rows": {"task": "dataset", "params": {"file": str(tmp_path / "rows.jsonl")}},
        },
    }


def edit(path, value):
    """A change of one place of a config."""

    def change(config):
        *parents, last = path
        for part in parents:
            config = config[part]
        config[last] = value

    return change


def both(*changes):
    def change(config):
        for one in changes:
            one(config)

    return change


def remove(path):
    def change(config):
        *parents, last = path
        for part in parents:
            config = config[part]
        del config[last]

    return change


def renamed(section, old, new):
    return lambda config: config[section].update({new: config[section].pop(old)})


def reorder(config):
    config["models"].reverse()
    config["tasks"] = dict(reversed(config["tasks"].items()))
    config["tasks"]["arithmetic"]["manifold"][0]["points"].reverse()


def another_way(config):
    config["models"][0] |= {
        "endpoint": "http://localhost:9/v1",
        "limits": {"connections": 9},
        "stream": True,
        "headers": {"x": "y"},
        "key_env": "KEY",
    }
    config["models"][1] |= {"batch": True}


def elsewhere(config):
    config |= {"cube": "other.zarr", "cache": "other", "name": "other", "spend": {"tokens": 3}}
    config["views"] = {"some": {"where": {"task": "boolean"}}}


def asserting(config):
    config["tasks"]["boolean"]["assertions"] = [{"type": "cost_max", "value": 1}]


def move_file(config):
    file = Path(config["tasks"]["rows"]["params"]["file"])
    (file.parent / "below").mkdir()
    config["tasks"]["rows"]["params"]["file"] = str(file.rename(file.parent / "below" / "moved.jsonl"))


def change_file(config):
    file = Path(config["tasks"]["rows"]["params"]["file"])
    file.write_text(file.read_text().replace("Peru", "Ecuador").replace("Lima", "Quito"))


def another_file(config):
    file = Path(config["tasks"]["rows"]["params"]["file"])
    row = {"prompt": "Capital of Chile?", "answer": "Santiago"}
    other = file.parent / "chile.jsonl"
    other.write_text(json.dumps(row) + "\n")
    config["tasks"]["rows"]["params"]["file"] = str(other)


NEW_MODEL = {"name": "gamma", "endpoint": NOWHERE, "model": "org/gamma"}
POINTS = ("tasks", "arithmetic", "manifold", 0, "points")

CHANGES = {
    "nothing": lambda config: None,  # noqa: ARG005
    "another order of models, tasks or points": reorder,
    "`cube`, `cache`, `name`, `spend`, `views`": elsewhere,
    "a model's `endpoint` or `serve`, `limits`, `stream`, `batch`, `headers`, keys": another_way,
    "a model's `name`, with its `model:` as before": edit(("models", 0, "name"), "first"),
    "a model's `model:`": edit(("models", 0, "model"), "org/new"),
    "a model's `revision`": edit(("models", 0, "revision"), "Q4"),
    "a model's `api`": edit(("models", 0, "api"), "messages"),
    "a model's `model:` and `name`": both(
        edit(("models", 0, "model"), "org/new"), edit(("models", 0, "name"), "new")
    ),
    "a model's `facets` or `prices`": both(
        edit(("models", 0, "facets"), {"size": 7}),
        edit(("models", 0, "prices"), {"prompt": 1, "completion": 0}),
    ),
    "prices, with an assertion about cost": edit(("models", 0, "prices"), {"prompt": 1, "completion": 0}),
    "one more model": lambda config: config["models"].append(NEW_MODEL),
    "one model less": remove(("models", 0)),
    "the text of a template": edit(("templates", "plain", 0, "content"), "Please: {{ prompt }}"),
    "the name of a template": renamed("templates", "plain", "bare"),
    "one more template": edit(("templates", "kind"), [{"role": "user", "content": "Please: {{ prompt }}"}]),
    "a parameter of a sampler": edit(("samplers", "cold", "temperature"), 1),
    "the name of a sampler": renamed("samplers", "cold", "greedy"),
    "one more sampler": edit(("samplers", "hot"), {"temperature": 1, "max_tokens": 100}),
    "`0` for `0.0` in a sampler": edit(("samplers", "cold", "temperature"), 0.0),
    "one more task": edit(("tasks", "letters"), {"params": {}}),
    "one task less": remove(("tasks", "arithmetic")),
    "the label of a task": edit(
        ("tasks", "logic"), {"task": "boolean", "params": {"length": 4}, "rubric": "Polite."}
    ),
    "one more point": lambda config: config["tasks"]["arithmetic"]["manifold"][0]["points"].append(
        {"length": 9}
    ),
    "one point less": remove((*POINTS, 0)),
    "a param of a task's only point": edit(("tasks", "boolean", "params", "length"), 5),
    "one more tier for a point": edit(
        ("tasks", "arithmetic", "manifold", 0, "tiers"), ["easy", "hard", "extreme"]
    ),
    "one tier less for a point": edit(("tasks", "arithmetic", "manifold", 0, "tiers"), ["easy"]),
    "another task under a label": edit(
        ("tasks", "boolean"), {"task": "arithmetic", "params": {"length": 7}, "rubric": "Polite."}
    ),
    "another version of a task's generator": lambda config: None,  # noqa: ARG005 - see `earlier`
    "a data file at another place": move_file,
    "a data file with other content": change_file,
    "a data file with other content, under another name": another_file,
    "`seed`": edit(("seed",), 7),
    "more `trials`": edit(("trials",), 9),
    "fewer `trials`": edit(("trials",), 2),
    "more `repeats`": edit(("repeats",), 2),
    "`precision` in the place of `trials`": both(
        remove(("trials",)), edit(("precision",), {"base": 4, "target": 0.1, "max": 8})
    ),
    "assertions of a task": edit(("tasks", "boolean", "assertions"), [{"type": "json_valid"}]),
    "the rubric of a task": edit(("tasks", "boolean", "rubric"), "Short."),
    "one more judge": lambda config: config["judges"].append(
        {"model": "grader", "name": "z", "sampler": {"top_p": 0.1}}
    ),
    "more `repeats` of a judge": edit(("judges", 0, "repeats"), 3),
    "the name of a judge": edit(("judges", 0, "name"), "strict"),
    "the sampler of a judge": edit(("judges", 0, "sampler"), {"top_p": 0.2}),
    "the revision of a judge": edit(("models", 2, "revision"), "Q4"),
    "one judge less": remove(("judges", 0)),
}
"""By the first cell of its row, what a row does to a config."""


def plan_of(config):
    return build_plan(from_mapping(config))


def earlier(plan):
    """The plan as an earlier version of one task's generator had it."""
    entry = plan.tasks[1]
    task = copy.copy(entry.task)
    object.__setattr__(task, "version", task.version - 1)
    cells = [replace(one, cell=replace(one.cell, task=task)) for one in entry.cells]
    return replace(
        plan, tasks=(plan.tasks[0], replace(entry, task=task, cells=tuple(cells)), *plan.tasks[2:])
    )


def points(plan):
    return {planned.cell.id for task in plan.tasks for planned in task.cells}


def keys(plan):
    """What the cache is asked for the first trials of all cells."""
    return {
        trial_request(row, planned.cell, planned.cell.trial(0), 0).digest
        for row in plan.evaluations
        for task in plan.tasks
        for planned in task.cells
    }


def same(found, before):
    return "same" if found <= before else "another"


def used(found, before):
    new = found - before
    return "used" if not new else "not used" if new == found else "used in part"


def becomes(old, new):
    """What a cube of one plan, with results everywhere, does with the other."""
    growth = grown(old, new, Recorded([5] * len(old.evaluations), [9] * len(old.tasks)))
    plan = growth.plan
    if growth.contradictions:
        for one in growth.contradictions:
            assert one.remedy
        assert len({one.what for one in growth.contradictions}) == len(growth.contradictions)
        return "refuses"
    sizes = {**old.sizes, "cells": old.cells}
    if any(size > sizes.get(dim, 0) for dim, size in {**plan.sizes, "cells": plan.cells}.items()):
        return "adds"
    cube = SimpleNamespace(attrs={"spec": old.spec()})
    labels = [(described(cube, one), one.prices, one.facets) for one in (old, plan)]
    return "as it is" if labels[0] == labels[1] else "records"


def test_identity__every_row_has_its_change():
    assert list(rows()) == list(CHANGES)


@pytest.mark.parametrize("change", CHANGES)
def test_identity__a_change_does_what_its_row_says(config, change):
    if "assertion about cost" in change:
        asserting(config)
    old = plan_of(config)
    if "generator" in change:
        old = earlier(old)
    known, there, ids = keys(old), points(old), {row.eval_id for row in old.evaluations}
    after = copy.deepcopy(config)
    CHANGES[change](after)
    new = plan_of(after)
    evaluation, point, replies, cube = rows()[change]

    asked = keys(new)
    if replies == "not used":
        # Of what has changed: what both have besides is answered in any case.
        assert asked - known
        assert asked & known <= unchanged_keys(old, new)
    else:
        assert used(asked, known) == replies
    assert same({row.eval_id for row in new.evaluations}, ids) == evaluation
    assert same(points(new), there) == point
    assert becomes(old, new) == cube


def unchanged_keys(old, new):
    """Keys of the cells that both plans have."""
    evaluations = {row.eval_id for row in old.evaluations}
    both_have = points(old) & points(new)
    return {
        trial_request(row, planned.cell, planned.cell.trial(0), 0).digest
        for row in new.evaluations
        if row.eval_id in evaluations
        for task in new.tasks
        for planned in task.cells
        if planned.cell.id in both_have
    }
