"""Counts of several workers together, and what is lent to them."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.infer.counts import Counts, lend, together

FIRST = Counts(2, 5, 3, 2, 1, 4.0, 0.5, 6, 9, 2, 3.0, 40.0, 50, 30, 20)
SECOND = Counts(2, 1, 1, 1, 0, 1.0, 2.5, 2, 4, 1, 1.0, 10.0, 5, 3, 2)


def test_together__adds_what_is_of_an_epoch_and_keeps_the_worst():
    assert together([FIRST, SECOND], 2) == Counts(2, 6, 4, 3, 1, 4.0, 2.5, 8, 4, 3, 4.0, 50.0, 55, 33, 22)


def test_together__of_another_epoch_takes_totals_alone():
    old = replace(SECOND, epoch=1)

    assert together([FIRST, old], 2) == replace(FIRST, all_sent=55, all_passed=33, all_refused=22)
    assert together([old], 2) == Counts(2, all_sent=5, all_passed=3, all_refused=2) == old.at(2)
    assert old.at(2) is not old


def test_let_through__are_all_that_were_not_refused():
    assert (FIRST.let_through, Counts().let_through) == (30, 0)


parts = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9))


@given(st.integers(0, 30), parts, parts)
def test_lend__never_lends_what_another_holds(whole, wanted, held):
    lent = lend(whole, wanted, held)

    assert lent.keys() == wanted.keys()
    assert all(0 <= lent[name] <= wanted[name] for name in wanted)
    gained = sum(max(lent[name] - held.get(name, 0), 0) for name in wanted)
    free = max(whole - sum(held.values()), 0)
    asked = sum(max(wanted[name] - held.get(name, 0), 0) for name in wanted)
    assert gained == min(free, asked)
    assert all(lent[name] >= min(wanted[name], held.get(name, 0)) for name in wanted)
