"""Sequences: continuations are unique, sizes are as stated."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction

import pytest

from evalcube.stages.generate.tasks.sequence import PERIODS, shown_terms
from tests.cases import with_cases
from tests.stages.generate.solvers_lists import KINDS, every
from tests.stages.generate.tasks.trials import body, trials


def rank(rows: list[list[int]]) -> int:
    matrix = [[Fraction(value) for value in row] for row in rows]
    done = 0
    for column in range(len(matrix[0])):
        pivot = next((i for i in range(done, len(matrix)) if matrix[i][column]), None)
        if pivot is None:
            continue
        matrix[done], matrix[pivot] = matrix[pivot], matrix[done]
        for i in range(done + 1, len(matrix)):
            factor = matrix[i][column] / matrix[done][column]
            matrix[i] = [a - factor * b for a, b in zip(matrix[i], matrix[done], strict=True)]
        done += 1
    return done


@pytest.mark.parametrize("rules", [1, 2, 3, 4])
def test_sequence__continuation_is_unique_whatever_the_kinds(rules: int) -> None:
    """All sequences of all kinds lie in one space; the shown terms fix each member of it."""
    one, linear, square = KINDS["the steps themselves grow by the same number each time"]
    power = KINDS["each term is twice the term before plus a fixed number"][1]
    common = [one, linear, square, power, *KINDS["each term is the sum of the two terms before it"]]
    for periods in itertools.combinations(PERIODS, rules - 1):
        basis = [*common, *map(every, periods)]
        shown = [[f(n) for f in basis] for n in range(1, shown_terms(rules) + 1)]

        assert rank(shown) == len(basis), periods


@with_cases("rules", [1, 2, 3, 4])
@with_cases("terms", [1, 8])
def test_sequence__has_the_stated_rules_and_terms(rules: int, terms: int) -> None:
    periods = set()
    for trial in trials("sequence", 200, rules=rules, terms=terms):
        told = re.findall(r"every (\d)\w\w term", trial.prompt)
        periods |= set(told)

        assert len(told) == rules - 1
        assert len(body(trial).split(", ")) - 1 == shown_terms(rules)
        assert len(trial.answer.split(", ")) == terms
    assert len(periods) == (len(PERIODS) if rules > 1 else 0)


def test_sequence__larger_constants_make_larger_terms() -> None:
    def size(limit: int) -> int:
        return sum(len(body(t)) for t in trials("sequence", 400, max_constant=limit))

    assert size(3) < size(9) < size(30) < size(99)
