"""Labels of evaluations, by which plain xarray selects them."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.evaluations import (
    Evaluation,
    NamedSampler,
    NamedTemplate,
    evaluation_place,
    read_opinion,
    read_stored,
    score_in,
    token_limit,
)
from evalcube.flows.state.store import open_store
from evalcube.stages.generate import Trial
from evalcube.stages.reply.forms import Record
from tests.cases import with_cases
from tests.flows.support import sweep_config

MODELS = ("alpha", "beta")


@pytest.fixture
def config(tmp_path):
    return sweep_config(tmp_path, "http://127.0.0.1:1/v1", trials=4, models=MODELS)


def test_cube__is_selected_by_labels_in_plain_xarray(config):
    open_store(build_plan(from_mapping(config)), config["cube"])

    cube = xr.open_zarr(config["cube"])

    assert cube.indexes.keys() >= {"model", "task", "tier", "counter"}
    assert cube.sel(model="beta")["model_name"].values == "beta"
    assert cube["counters"].sel(model="alpha", task="boolean", counter="trials").shape == (4,)
    assert cube["in_tier"].sel(tier="hard", task="boolean").values.tolist() == [True, False, False, False]


def test_labels__are_different_though_names_are_the_same(config):
    plan = build_plan(from_mapping(config))
    first, last = plan.evaluations
    template = NamedTemplate(
        name=first.template.name, source=[{"role": "user", "content": "Say: {{ prompt }}"}]
    )
    other = Evaluation.of(template, first.sampler, model=first.model, request_model=first.request_model)
    assert (other.label, other.eval_id == first.eval_id) == (first.label, False)

    labels = replace(plan, evaluations=(first, other, last)).labels

    assert labels == (f"alpha / {first.eval_id[:8]}", f"alpha / {other.eval_id[:8]}", "beta")
    assert np.unique(labels).size == len(labels)


def place(name, labels=("a / cold", "a / hot", "b"), models=("a", "a", "b")):
    full = [f"{label} / whole" for label in labels]
    return evaluation_place(name, labels, models, full)


@with_cases(
    ("name", "index"),
    [
        ("a / cold", 0),
        ("a · hot", 1),
        ("b", 2),
        ("2", 2),
        (0, 0),
        ("a / hot / whole", 1),
        ("a · cold · whole", 0),
    ],
)
def test_evaluation_place__is_found_by_label_name_or_number(name, index):
    assert place(name) == index


@with_cases(
    ("name", "words"),
    [
        ("a", "several evaluations are called 'a'"),
        ("3", "no evaluation is called '3'"),
        ("-1", "no evaluation"),
        ("²", "no evaluation"),
        ("a / cald", "Did you mean 'a / cold'"),
        ("zzz", "0 = a · cold, 1 = a · hot, 2 = b"),
    ],
)
def test_evaluation_place__says_which_there_are(name, words):
    with pytest.raises(SweepError) as caught:
        place(name)

    assert words in str(caught.value)
    assert place("1", ("1", "0"), ("1", "0")) == 0  # a name before a number


@with_cases(
    ("sampler", "limit"),
    [
        ({}, 0),
        ({"max_tokens": 5}, 5),
        ({"max_tokens": 5, "max_output_tokens": 9}, 9),
        ({"max_completion_tokens": "9", "max_tokens": -3}, 0),
        ({"max_tokens": 10**400}, 2**53),
    ],
)
def test_token_limit__is_the_most_that_a_reply_can_have(sampler, limit):
    assert token_limit(sampler) == limit


def evaluation(**changes):
    template = NamedTemplate(name="plain", source=[{"role": "user", "content": "{{ prompt }}"}])
    sampler = NamedSampler(name="cold", params={"temperature": 0})
    known = {"template": template, "sampler": sampler, "model": "m", "request_model": "org/m"}
    return Evaluation.of(**{**known, **changes})


def test_eval_id__depends_on_what_is_sent_and_on_the_revision():
    base = evaluation()
    other = [
        evaluation(request_model="org/n"),
        evaluation(api="messages"),
        evaluation(revision="may"),
        evaluation(api="messages", revision="may"),
        evaluation(sampler=NamedSampler(name="cold", params={"temperature": 1})),
    ]

    assert len({row.eval_id for row in (base, *other)}) == 6
    assert evaluation(model="renamed").eval_id == base.eval_id == base.own_id
    assert (base.beside_name, other[3].beside_name) == ({}, {"api": "messages", "revision": "may"})
    assert (base.label, base.not_run, base.is_imported) == ("m / plain / cold", [], False)


@pytest.mark.parametrize(
    ("text", "score"), [('{"score": 4, "reasoning": "r", "reason": "fine"}', 4.0), ("no score", math.nan)]
)
def test_read_opinion__has_a_score_or_says_why_there_is_none(text, score):
    def stored(finish):
        choice = {"message": {"content": text}, "finish_reason": finish}
        return Record(200, 0.5, json.dumps({"choices": [choice]}).encode()).encode()

    opinion = read_opinion("j", 2, stored("stop"))
    assert (opinion.judge, opinion.repeat) == ("j", 2)
    assert opinion.score == pytest.approx(score, nan_ok=True)
    assert opinion.reason
    assert math.isnan(score_in(stored("length")))
    trial = Trial("p", "a")
    assert read_stored(stored("stop"), trial).answer == text
    assert read_stored(None, trial) is read_stored(b"odd", trial) is None
