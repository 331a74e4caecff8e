"""One reader for all tasks: right answers in natural forms are read, denied and hedged ones are not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcube.stages.generate import Cell, Trial
from tests.stages.generate.answers.formats import INVALID, JSON_FORMATS, NATURAL
from tests.stages.generate.family import FAMILY, LARGE
from tests.strategies import hostile_text, params_with

KINDS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in FAMILY),
    *((name, LARGE[name]) for name in FAMILY if name != "boolean"),
    *(("boolean", {"format": words}) for words in ("T/F", "on/off", "1/0", "yes/no")),
    *(("tables", {"operation": operation}) for operation in ("lookup", "top", "mean")),
    ("cars", {"question": "car"}),
    ("jsonpath", {"depth": 2, "wildcards": 1}),
    ("sequence", {"terms": 1}),
]


def written(cell: Cell, answer: str) -> str:
    """An answer in the words that the prompt asks for."""
    if cell.task.name != "boolean":
        return answer
    true, false = str(cell.plain_params["format"]).split("/")
    return true if answer == "true" else false


def trials(name: str, params: dict[str, Any]) -> Iterator[tuple[Cell, Trial, str, str]]:
    """Some trials of a point, each with its answer and a wrong one of the same kind."""
    cell = Cell(FAMILY[name], params_with(FAMILY[name], **params), 7)
    for index in range(4):
        trial = cell.trial(index)
        others = trial.options or [cell.trial(i).answer for i in range(index + 1, index + 50)]
        wrong = next(answer for answer in others if answer != trial.answer)
        yield cell, trial, written(cell, trial.answer), written(cell, wrong)


@pytest.mark.parametrize(("name", "params"), KINDS, ids=[f"{name}-{params}" for name, params in KINDS])
def test_parse__reads_natural_forms(name: str, params: dict[str, Any]) -> None:
    """At least 98 % of them; what is missing is ambiguous, as a JSON text in two kinds of quotes."""
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


@pytest.mark.parametrize("name", list(FAMILY))
@settings(deadline=None, max_examples=40, derandomize=True)
@given(text=hostile_text(), form=st.sampled_from(["Answer: {}", "**Answer:** {}", "Final answer: {}"]))
def test_parse__last_asked_line_beats_whatever_stands_before(name: str, text: str, form: str) -> None:
    cell, trial, answer, _ = next(trials(name, {}))
    parsed = cell.parse(f"{text}\n{form.format(answer)}\nThe answer follows from steps 1 and 2.", trial)

    assert parsed is not None
    assert cell.grade(parsed, trial)
