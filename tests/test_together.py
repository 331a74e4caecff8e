"""Work in several threads."""

import pytest

from evalcube._together import in_threads


def test_in_threads__keeps_the_order():
    assert list(in_threads(lambda number: number * 2, range(500))) == list(range(0, 1000, 2))


def test_in_threads__begins_little_after_a_failure():
    begun = []

    def act(number):
        begun.append(number)
        return 1 / (number - 3)

    with pytest.raises(ZeroDivisionError):
        list(in_threads(act, range(10_000)))
    assert len(begun) < 200
