"""The unit of writing: one whole chunk of every trial array, its address and the digest of its content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_UNTIMED = ("latency",)  # differs between equal runs


@dataclass(frozen=True, order=True, slots=True)
class Region:
    """One whole chunk of every trial array: one model, all tasks and params, a run of trials and repeats."""

    model: int
    """Index along ``model`` (chunks of one)."""
    trial: int
    """Chunk index along ``trial``."""
    repeat: int
    """Chunk index along ``repeat``."""


def region_digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Digest of a region's content: BLAKE2b of names, shapes and little-endian bytes, ``latency`` left out.

    Parameters
    ----------
    arrays
        The arrays of one region, in any order.

    Returns
    -------
    str
        32 hex digits; equal for equal content, on any machine and in any memory layout.
    """
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(set(arrays) - set(_UNTIMED)):
        array = np.ascontiguousarray(arrays[name])
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(f"{name}:{little.dtype.str}:{array.shape};".encode())
        digest.update(little.tobytes())
    return digest.hexdigest()
