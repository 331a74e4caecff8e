"""One reader for all tasks: right answers in natural forms are read, denied and hedged ones are not."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcube.stages.generate.answers.choices import read_choice
from evalcube.stages.generate.dataset.kinds import READERS, is_right
from evalcube.stages.generate.dataset.params import Comparison
from tests.stages.generate.answers.formats import (
    ASIDE,
    INVALID,
    JSON_FORMATS,
    NATURAL,
    OPEN,
    RETRACTED,
    STRUCK,
    UNCUED,
)
from tests.stages.generate.answers.trials import KINDS, trials
from tests.stages.generate.family import FAMILY
from tests.strategies import hostile_text


@pytest.mark.parametrize(("name", "params"), KINDS, ids=[f"{name}-{params}" for name, params in KINDS])
def test_parse__reads_natural_forms(name: str, params: dict[str, Any]) -> None:
    """At least 98% of them; what is missing is ambiguous, as a JSON text in two kinds of quotes."""
    refused = []
    for cell, trial, answer, _ in trials(name, params):
        as_json = answer if name == "jsonpath" else json.dumps(answer)
        texts = [form.format(answer) for form in NATURAL] + [form.format(as_json) for form in JSON_FORMATS]
        for text in texts:
            parsed = cell.parse(text, trial)
            if parsed is None or not cell.grade(parsed, trial):
                refused.append((text, parsed))

    assert len(NATURAL) >= 90
    assert len(refused) <= 0.01 * 4 * len(NATURAL), refused


@pytest.mark.parametrize(("name", "params"), KINDS, ids=[f"{name}-{params}" for name, params in KINDS])
def test_parse__refuses_denied_and_hedged_answers(name: str, params: dict[str, Any]) -> None:
    for cell, trial, answer, other in trials(name, params):
        for form in INVALID:
            text = form.format(answer, other=other)
            parsed = cell.parse(text, trial)

            assert parsed is None or not cell.grade(parsed, trial), text


@pytest.mark.long
@pytest.mark.parametrize(("name", "params"), KINDS, ids=[f"{name}-{params}" for name, params in KINDS])
def test_parse__lets_no_retracted_answer_stand(name: str, params: dict[str, Any]) -> None:
    """The rates of a task: at least 98% of right ones are read, and at most 1% of wrong ones are right."""
    missed, passed, shown = [], [], 0
    # other words, brackets and JSON after an answer are as likely a part of its reasons
    retracted = RETRACTED if name in ("brackets", "jsonpath", "sort") else RETRACTED + UNCUED
    for number, (cell, trial, answer, other) in enumerate(islice(trials(name, params), 2)):
        cases = [(form, answer, other, True) for form in (*STRUCK, *ASIDE)]
        cases += [(form, other, answer, False) for form in (*retracted, *STRUCK)]
        cases += [(form, answer, other, False) for form in OPEN]
        # a quarter for each trial: every form meets every second kind
        first = (2 * KINDS.index((name, params)) + number) % 4
        for form, said, instead, right in cases[first::4]:
            text = form.format(said, said, other=instead)
            parsed = cell.parse(text, trial)
            shown += 1
            if (parsed is not None and cell.grade(parsed, trial)) != right:
                (missed if right else passed).append((text, parsed))

    assert len(missed) <= 0.01 * shown, missed
    assert len(passed) <= 0.005 * shown, passed


OPTIONS = ["red", "42", "a lamp", "apple"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "answer", "other"),
    [
        ("number", "24", "31"),
        ("number", "-3.5", "7/2"),
        ("text", "Paris", "Rome"),
        ("text", "the Treaty of Utrecht", "Peace of Westphalia"),
        ("json", '{"a": [1]}', '{"a": [2]}'),
        ("choice", "B", "C"),
        ("choice", "(A)", "(D)"),
        ("choice", "red", "a lamp"),
    ],
)
def test_data_set_readers__have_the_rates_of_tasks(kind: str, answer: str, other: str) -> None:
    def is_read(text: str) -> bool:
        if kind == "choice":
            return read_choice(text, "ABCD", OPTIONS) == read_choice(f"Answer: {answer}", "ABCD", OPTIONS)
        found = READERS[kind](text)
        return found is not None and is_right(kind, found, answer, Comparison())

    missed = [
        text
        for form in (*NATURAL, *STRUCK, *ASIDE)
        if not is_read(text := form.format(answer, answer, other=other))
    ]
    cases = [(form, answer, other) for form in (*INVALID, *OPEN)]
    cases += [(form, other, answer) for form in (*RETRACTED, *STRUCK)]
    passed = [
        text for form, said, instead in cases if is_read(text := form.format(said, said, other=instead))
    ]

    assert len(missed) <= 0.015 * len(NATURAL + STRUCK + ASIDE), missed
    assert len(passed) <= 0.01 * len(cases), passed


@pytest.mark.parametrize("name", list(FAMILY))
@settings(deadline=None, max_examples=10, derandomize=True)
@given(text=hostile_text(), form=st.sampled_from(["Answer: {}", "**Answer:** {}", "Final answer: {}"]))
def test_parse__last_asked_line_beats_whatever_stands_before(name: str, text: str, form: str) -> None:
    cell, trial, answer, _ = next(trials(name, {}))
    text = text.replace("boxed", "")  # another final form would contradict the line
    parsed = cell.parse(f"{text}\n{form.format(answer)}\nThe answer follows from steps 1 and 2.", trial)

    assert parsed is not None
    assert cell.grade(parsed, trial)
