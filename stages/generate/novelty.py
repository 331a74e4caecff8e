"""Find the problems of a cell that occurred before; small cells repeat them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt


def repeated(prompts: Iterable[str]) -> npt.NDArray[np.uint8]:
    """Which texts repeat an earlier one.

    Parameters
    ----------
    prompts
        What tells the problems of one cell apart, in the order of its trials.

    Returns
    -------
    ndarray of shape (prompt,)
        1 where the text occurred before, else 0.

    Examples
    --------
    >>> repeated(["a", "b", "a"]).tolist()
    [0, 0, 1]
    """
    # 64 bits each: a million prompts fit into 8 MB, and two different ones meet in one of 10^7 such cells
    digests = (hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8) for text in prompts)
    keys = np.frombuffer(b"".join(digest.digest() for digest in digests), dtype=np.uint64)
    flags = np.ones(len(keys), dtype=np.uint8)
    flags[np.unique(keys, return_index=True)[1]] = 0
    return flags
