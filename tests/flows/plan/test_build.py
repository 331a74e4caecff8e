"""What tells two servers apart that answer to one name."""

import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import ConfigError, SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.coordinates import coordinates
from evalcube.flows.plan.evaluations import Judge
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.requests import trial_request
from evalcube.stages.analyze.labelled.axes import distinguishing
from tests.flows.support import sweep_config

NOWHERE = "http://127.0.0.1:1/v1"


def two_servers(tmp_path, **revisions):
    config = sweep_config(tmp_path, NOWHERE)
    config["models"] = [
        {"name": name, "endpoint": f"http://127.0.0.1:{port}/v1", "model": "same"}
        | ({"revision": revisions[name]} if name in revisions else {})
        for name, port in (("a", 1), ("b", 2))
    ]
    return config


def key(plan, model):
    cell = plan.tasks[0].cells[0].cell
    return trial_request(plan.evaluations[model], cell, cell.trial(0), 0).digest


def test_revision__makes_two_models_of_two_servers_with_one_name(tmp_path):
    with pytest.raises(SweepError, match="`revision:`"):
        build_plan(from_mapping(two_servers(tmp_path)))

    plan = build_plan(from_mapping(two_servers(tmp_path, a="fp16", b="Q4_K_M")))

    assert plan.evaluations[0].eval_id != plan.evaluations[1].eval_id
    assert key(plan, 0) != key(plan, 1)
    assert plan.labels == ("a / fp16", "b / Q4_K_M")


def test_revision__changes_nothing_where_there_is_none(tmp_path):
    plan = build_plan(from_mapping(two_servers(tmp_path, b="Q4_K_M")))
    plain = build_plan(from_mapping({**two_servers(tmp_path), "models": two_servers(tmp_path)["models"][:1]}))

    assert plan.evaluations[0] == plain.evaluations[0]
    # Golden: caches and cubes of years have these.
    assert plain.evaluations[0].eval_id == "5753b4af84e59250140bef1a59996290"
    assert key(plain, 0) == "9d7d470c07077b8f95ee98f2766411f4d57da6559f4f3e12912c6fa0e9777e56"
    assert "revision" not in plain.spec()["evaluations"][0]
    assert not [one for one in coordinates(plain) if one.name == "revision"]
    assert plan.labels == ("a", "b / Q4_K_M")


def test_revision__whoever_has_the_cube_makes_the_same_keys(tmp_path):
    plan = build_plan(from_mapping(two_servers(tmp_path, a="fp16", b="Q4_K_M")))
    again = Plan.from_spec(plan.spec(), plan.trials, plan.repeats)

    assert [key(again, model) for model in (0, 1)] == [key(plan, model) for model in (0, 1)]
    (column,) = [one.values.tolist() for one in coordinates(again) if one.name == "revision"]
    assert column == ["fp16", "Q4_K_M"]


def test_revision__of_a_judge_is_in_the_keys_of_what_it_is_asked(tmp_path):
    config = two_servers(tmp_path, a="fp16")
    config["tasks"] = {"arithmetic": {"params": {"length": 3}, "rubric": "Polite."}}
    both = [{"model": "a"}, {"model": "b"}]

    one, other = build_plan(from_mapping({**config, "judges": both})).judges

    keys = [judge.requests("Polite.", "hello", "hi")[0].digest for judge in (one, other)]
    assert keys[0] != keys[1]
    assert one.spec()["revision"] == "fp16"
    assert "revision" not in other.spec()


@pytest.mark.parametrize("value", [1.10, 7, ["Q4"], "two\nlines"])
def test_revision__is_one_line_of_text(tmp_path, value):
    with pytest.raises(ConfigError, match="revision"):
        from_mapping(two_servers(tmp_path, a=value))


def test_distinguishing__leaves_out_what_a_row_lacks():
    assert distinguishing([("a", "p", "s", ""), ("b", "p", "s", "Q4")]) == ["a", "b · Q4"]


def test_model_copy__with_other_values_keeps_nothing_that_followed_from_the_old_ones(tmp_path):
    (row, other) = build_plan(from_mapping(two_servers(tmp_path, a="fp16", b="Q4_K_M"))).evaluations
    judge = Judge(name="j", model="j", request_model="a", sampler={}, repeats=1, prompt="p")
    changed = row.model_copy(update={"revision": "Q4_K_M"})
    judged = judge.identity, judge.model_copy(update={"request_model": "b"}).identity

    assert changed.request([], {}, 0) == other.request([], {}, 0) != row.request([], {}, 0)
    assert changed.own_id == other.eval_id
    assert judged[0].replace('"a"', '"b"') == judged[1] != judged[0]
