"""What to write in the config where an endpoint does not take a parameter."""

import pytest
import yaml

from evalcube.flows.config.load import as_config
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.evaluations import Evaluation, NamedSampler, NamedTemplate
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.read.status import cube_status, refusal_lines
from evalcube.flows.state.store import SweepStore, open_store
from tests.cases import with_cases
from tests.flows.support import sweep_config

PLAIN = NamedTemplate(name="plain", source=[{"role": "user", "content": "{{ prompt }}"}])
PARAMS = {"temperature": 0, "max_tokens": 200}


def evaluation(model, api="chat", **params):
    sampler = NamedSampler(name="greedy", params=params or PARAMS)
    return Evaluation.of(PLAIN, sampler, model=model, request_model=model, api=api)


def advice(line):
    """The YAML between backticks after "Write"."""
    return [yaml.safe_load(text) for text in line.partition("Write")[2].split("`")[1::2]]


def test_refusal_lines__a_parameter_is_left_out():
    (line,) = refusal_lines([evaluation("o4")], {0: ["timeout", "http 400: temperature"]})

    assert line.startswith("o4: its endpoint refuses `temperature` (http 400). Write ")
    assert advice(line) == [{"samplers": {"greedy": {"max_tokens": 200}}}]


def test_refusal_lines__a_parameter_gets_its_other_name():
    causes = {0: ["http 400: max_tokens, max_completion_tokens wanted"]}

    (line,) = refusal_lines([evaluation("o4")], causes)

    assert advice(line) == [{"samplers": {"greedy": {"temperature": 0, "max_completion_tokens": 200}}}]


def test_refusal_lines__others_keep_their_sampler():
    models = [evaluation("a"), evaluation("o4"), evaluation("b")]

    (line,) = refusal_lines(models, {1: ["http 422: temperature"]})

    assert line.endswith("`evaluations` for o4 alone.")


def test_refusal_lines__a_parameter_that_is_wanted_is_added():
    (line,) = refusal_lines([evaluation("m", temperature=0)], {0: ["http 400: max_tokens wanted"]})

    assert "wants `max_tokens`" in line
    assert advice(line) == [{"samplers": {"greedy": {"temperature": 0, "max_tokens": 4096}}}]


def test_refusal_lines__what_the_api_requires_gets_another_value():
    (line,) = refusal_lines([evaluation("m", api="messages")], {0: ["http 400: max_tokens"]})

    assert line.endswith("Write another value of `max_tokens` under samplers, greedy.")


def test_refusal_lines__a_stream_is_no_parameter_of_the_sampler():
    (line,) = refusal_lines([evaluation("m")], {0: ["http 400: stream_options"]})

    assert line.endswith("Write `stream: false` at the model m.")


@with_cases("cause", ["http 400", "timeout", "http 400: <b>", "judge x: http 400: temperature", ""])
def test_refusal_lines__other_causes_have_none(cause):
    assert refusal_lines([evaluation("m")], {0: [cause]}) == []


@pytest.mark.parametrize(("api", "name"), [("chat", "reasoning_effort"), ("messages", "output_config")])
def test_refusal_lines__an_effort_has_the_name_that_the_config_gives_it(api, name):
    (line,) = refusal_lines([evaluation("m", api, effort="low", max_tokens=9)], {0: [f"http 400: {name}"]})

    assert advice(line)[-1] == {"samplers": {"greedy": {"max_tokens": 9}}}


@with_cases(("trials", "regions"), [(40, 1), (256, 1), (257, 2), (1200, 5)])
def test_cube_status__counts_regions_with_one_that_is_cut_short(tmp_path, trials, regions):
    cube = str(tmp_path / f"{trials}.zarr")
    plan = build_plan(as_config(sweep_config(tmp_path, "http://127.0.0.1:9", trials=trials, repeats=2)))
    store = open_store(plan, cube)
    SweepStore(store.cube, plan, SampleTargets.uniform(plan, trials, 2)).grow()

    (model,) = cube_status(cube)["models"]

    assert (model["trials"], model["regions"]) == (10 * trials, regions)
