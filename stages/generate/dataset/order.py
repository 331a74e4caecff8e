"""Shuffle any number of rows repeatably, one place at a time and without a list."""

from __future__ import annotations

import hashlib
from math import isqrt

_ROUNDS = 5
"""Pairs of rounds; each hides one half of the place behind a hash of the other."""
_MASK = (1 << 64) - 1


class Shuffle:
    """A pseudo-random permutation of ``range(size)``, computed place by place.

    A Feistel network over a grid of two digits that is hardly larger than `size`; places outside are walked
    through until one is inside (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002,
    doi:10.1007/3-540-45760-7_9, cycle walking on a generalised Feistel network).

    Parameters
    ----------
    key
        Whatever names the permutation.
    size
        Number of places, at least 1.

    Examples
    --------
    >>> shuffle = Shuffle(b"key", 5)
    >>> sorted(shuffle[i] for i in range(5))
    [0, 1, 2, 3, 4]
    """

    __slots__ = ("_high", "_keys", "_low", "size")

    def __init__(self, key: bytes, size: int) -> None:
        self.size = size
        self._low = isqrt(max(size - 1, 0)) + 1
        self._high = -(-size // self._low)
        material = hashlib.shake_256(key).digest(16 * _ROUNDS)
        self._keys = [int.from_bytes(material[i : i + 8], "big") for i in range(0, len(material), 8)]

    def __getitem__(self, place: int) -> int:
        """What comes at `place`, which must be in ``range(size)``."""
        if not 0 <= place < self.size:
            raise IndexError(f"place {place} of {self.size}")
        found = self._once(place)
        while found >= self.size:
            found = self._once(found)
        return found

    def _once(self, place: int) -> int:
        high, low = divmod(place, self._low)
        for turn in range(0, 2 * _ROUNDS, 2):
            high = (high + _mixed(low ^ self._keys[turn])) % self._high
            low = (low + _mixed(high ^ self._keys[turn + 1])) % self._low
        return high * self._low + low


def _mixed(value: int) -> int:
    """64 well-mixed bits (the finaliser of SplitMix64)."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)
