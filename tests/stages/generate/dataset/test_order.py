"""The keyed shuffle of rows."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcube.stages.generate.dataset import Permutation


@given(key=st.binary(max_size=40), size=st.integers(1, 400))
def test_shuffle__is_a_permutation(key: bytes, size: int) -> None:
    shuffle = Permutation(key, size)

    assert sorted(shuffle[place] for place in range(size)) == list(range(size))


@pytest.mark.parametrize("size", [2, 3, 5, 7, 10])
def test_shuffle__every_row_comes_first_equally_often(size: int) -> None:
    keys = 4000
    first = Counter(Permutation(str(key).encode(), size)[0] for key in range(keys))

    expected = keys / size
    chi_square = sum((first[row] - expected) ** 2 / expected for row in range(size))
    assert chi_square < 2 * size + 12  # far in the tail for size - 1 degrees of freedom


def test_shuffle__all_orders_of_four_rows_are_equally_likely() -> None:
    keys = 12_000
    orders = Counter(
        tuple(shuffle[i] for i in range(4))
        for shuffle in (Permutation(str(key).encode(), 4) for key in range(keys))
    )

    assert len(orders) == 24
    assert sum((count - keys / 24) ** 2 / (keys / 24) for count in orders.values()) < 60


def test_shuffle__far_places_cost_no_more() -> None:
    shuffle = Permutation(b"key", 10**12)

    assert len({shuffle[place] for place in (0, 1, 10**6, 10**12 - 1)}) == 4
    assert shuffle[7] == Permutation(b"key", 10**12)[7] != Permutation(b"kez", 10**12)[7]


@pytest.mark.parametrize("place", [-1, 5])
def test_shuffle__refuses_places_outside(place: int) -> None:
    with pytest.raises(IndexError):
        Permutation(b"", 5)[place]
