"""Tables: sizes are as stated, answers occur, and usual ways to answer are read."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from pydantic import ValidationError

from evalcube.stages.generate import TASKS
from evalcube.stages.generate.tasks.tables import BYTES_PER_TOKEN
from tests.cases import with_cases
from tests.stages.generate.solvers_documents import read_table
from tests.stages.generate.tasks.trials import body, trials


@with_cases("form", ["markdown", "csv", "json"])
@with_cases(("rows", "columns"), [(4, 2), (12, 3), (40, 7), (500, 12)])
def test_tables__have_the_stated_size(form: str, rows: int, columns: int) -> None:
    for trial in trials("tables", 5, rows=rows, columns=columns, format=form, max_value=9):
        table = read_table(body(trial))

        assert len(table) == rows
        assert {len(row) for row in table} == {columns}
        assert len({row["id"] for row in table}) == rows
        assert all(int(cell) <= 9 for row in table for cell in row.values() if cell.isdigit())


@with_cases("conditions", range(5))
def test_tables__question_has_the_stated_conditions(conditions: int) -> None:
    for trial in trials("tables", conditions=conditions, operation="count"):
        question = trial.prompt.split("\n\n")[2].split("\n")[0]

        assert (
            len(re.findall(r"\w+ is (?:not |at |more |less )?", question.replace("What is", "")))
            == conditions
        )


@pytest.mark.parametrize("form", ["markdown", "csv", "json"])
@pytest.mark.parametrize(
    ("columns", "max_value", "conditions", "target"),
    [
        (2, 9, 0, 200),
        (2, 9, 0, 1000),
        (4, 99, 1, 300),
        (4, 99, 1, 8000),
        (12, 9999, 4, 2000),
        (12, 9999, 4, 16_000),
    ],
)
def test_tables__target_tokens_set_the_length_of_the_prompt(
    form: str, columns: int, max_value: int, conditions: int, target: int
) -> None:
    shape = {"columns": columns, "max_value": max_value, "format": form, "conditions": conditions}
    made = trials("tables", 20, target_tokens=target, **shape)
    table = sum(len(body(trial)) for trial in made) / 20 / BYTES_PER_TOKEN[form]
    around = sum(len(trial.prompt) - len(body(trial)) for trial in made) / 20 / 4.6

    assert table + around == pytest.approx(target, rel=0.08, abs=table / len(read_table(body(made[0]))) + 15)


def test_tables__target_tokens_stand_for_rows() -> None:
    params = TASKS["tables"].Params(target_tokens=1000)

    assert TASKS["tables"].Params(**params.canonical()) == params
    assert TASKS["tables"].difficulty(params) == TASKS["tables"].difficulty(
        TASKS["tables"].Params(rows=params.rows)
    )
    with pytest.raises(ValidationError, match=f"rows\n.*must be {params.rows} for target_tokens 1000"):
        TASKS["tables"].Params(target_tokens=1000, rows=params.rows + 1)
    for target in (20, 32_000):
        with pytest.raises(
            ValidationError, match=r"target_tokens\n.*must be from \d+ to \d+ for these columns"
        ):
            TASKS["tables"].Params(target_tokens=target)


@pytest.mark.parametrize(
    "bad", [{"format": "xml"}, {"columns": 1}, {"max_value": -1}, {"target_tokens": "x"}]
)
def test_tables__target_tokens_beside_a_wrong_value_leave_one_message(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        TASKS["tables"].Params(**{"target_tokens": 1000} | bad)

    assert [error["loc"] for error in caught.value.errors()] == [(next(iter(bad)),)]


def test_tables__lookup_has_no_conditions() -> None:
    assert TASKS["tables"].Params(operation="lookup").canonical()["conditions"] == 0
    with pytest.raises(ValidationError, match="must be 0 for operation lookup"):
        TASKS["tables"].Params(operation="lookup", conditions=1)


def test_tables__values_are_evenly_spread() -> None:
    made = trials("tables", 400, rows=50, columns=3, max_value=9)
    cells = [value for trial in made for row in read_table(body(trial)) for value in row.values()]
    digits = Counter(cell for cell in cells if cell.isdigit())

    assert set(digits) == set("0123456789")
    for count in digits.values():
        assert count / sum(digits.values()) == pytest.approx(0.1, abs=0.01)  # 4.7 standard errors


def test_tables__filter_leaves_different_shares_of_the_rows() -> None:
    counts = [int(trial.answer) for trial in trials("tables", 300, operation="count", rows=20)]

    assert min(counts) >= 1
    assert len(set(counts)) > 10


@with_cases(
    ("text", "answer"),
    [
        ("Answer: 1,234.50", "1234.5"),
        ("Answer: $12.50", "12.5"),
        ("The answer is 3 + 4 = 7", "7"),
        ("Answer: 12.00 (rounded from 11.998)", "12"),
        ("Answer: 5 or 6", None),
        ("**Answer:** k532", "K532"),
        ("so it is **Lima**.", "Lima"),
        ("Answer: .5", "0.5"),
        ("Answer: \u22120.0", "0"),
        ("Answer: " + "9" * 400, "9" * 400),
        ("Answer: " + "9" * 401, None),
    ],
)
def test_tables_parse__reads_usual_answers(text: str, answer: str | None) -> None:
    assert TASKS["tables"].parse(text) == answer
