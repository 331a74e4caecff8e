"""Readers agree with authors who had not seen them; the bounds may only fall."""

from __future__ import annotations

from collections import Counter

from tests.stages.generate.answers.blind import is_read, load_forms, states_a_value

MISSED = {"number": 84, "choice": 55, "date": 30, "text": 43, "json": 2}
"""Right forms that are not read, or read otherwise, by kind."""
LET_IN = {"number": 57, "choice": 26, "date": 10, "text": 9, "json": 5}
"""Forms without a value, or with a wrong one, in which one is read, by kind."""


def test_readers__agree_with_authors_who_had_not_seen_them():
    missed: Counter[str] = Counter()
    let_in: Counter[str] = Counter()
    forms = load_forms()

    for form in forms:
        agrees = is_read(form)
        if states_a_value(form):
            missed[form["kind"]] += agrees is not True and None not in form["want"][1:]
        else:
            let_in[form["kind"]] += agrees is False

    assert len(forms) > 2_000
    assert missed <= Counter(MISSED), missed
    assert let_in <= Counter(LET_IN), let_in
