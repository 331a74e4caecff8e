"""Trial arrays in, counters out. Counters add, so that any group is a sum and absent trials need no mask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from stages.outcome import COMPLETED, COUNTERS, Status

FloatArray = npt.NDArray[np.float64]


def count_trials(
    arrays: Mapping[str, npt.NDArray[np.generic]], *, price_prompt: float = 0.0, price_completion: float = 0.0
) -> FloatArray:
    """Counters of every cell.

    Parameters
    ----------
    arrays
        The trial arrays ``status``, ``tokens``, ``prompt_tokens``, ``compressed_bytes``, ``latency`` and
        ``guess_chance``, each of shape (task, params, trial, repeat).
    price_prompt, price_completion
        USD per million tokens.

    Returns
    -------
    ndarray of shape (task, params, counter)
        In the order of `COUNTERS`. Integers are exact to 2^53.

    Raises
    ------
    ValueError
        If the arrays differ in shape, or have no trial and repeat axes.
    """
    status = np.asarray(arrays["status"])
    if status.ndim < 2:
        raise ValueError(f"`status` has shape {status.shape}; its last axes must be (trial, repeat)")
    for name in ("tokens", "prompt_tokens", "compressed_bytes", "latency", "guess_chance"):
        if np.shape(arrays[name]) != status.shape:
            raise ValueError(f"`{name}` has shape {np.shape(arrays[name])}, `status` has {status.shape}")
    truncated = status == Status.TRUNCATED
    completed = np.isin(status, COMPLETED)
    finished = completed | truncated
    tokens = _known(arrays["tokens"], finished)
    prompt_tokens = _known(arrays["prompt_tokens"], finished)
    columns = {
        "trials": finished,
        "completed": completed,
        "correct": status == Status.CORRECT,
        "invalid": status == Status.INVALID,
        "refused": status == Status.REFUSED,
        "truncated": truncated,
        "guess_sum": _known(arrays["guess_chance"], completed),
        "tokens_sum": tokens,
        "tokens_sumsq": tokens * tokens,
        "prompt_tokens_sum": prompt_tokens,
        "compressed_sum": _known(arrays["compressed_bytes"], finished),
        "latency_sum": _known(arrays["latency"], finished),
        "transport": status == Status.TRANSPORT,
        "missing": status == Status.MISSING,
    }
    sums = {name: column.sum(axis=(-2, -1), dtype=np.float64) for name, column in columns.items()}
    sums["cost_sum"] = (
        sums["prompt_tokens_sum"] * price_prompt + sums["tokens_sum"] * price_completion
    ) / 1e6
    return np.stack([sums[name] for name in COUNTERS], axis=-1)


def _known(values: npt.NDArray[np.generic], where: npt.NDArray[np.bool_]) -> FloatArray:
    """Values as floats, zero outside `where` and where the value is missing (negative or NaN)."""
    floats = np.asarray(values, dtype=np.float64)
    return np.where(where & (floats >= 0), floats, 0.0)


def add_counters(parts: Sequence[FloatArray]) -> FloatArray:
    """The sum of counters of the same cells, in the order given (float sums keep the order they are added in).

    Raises
    ------
    ValueError
        If there is nothing to add, or the parts differ in shape.
    """
    if not parts:
        raise ValueError("`parts` is empty; there is nothing to add")
    total = np.array(parts[0], dtype=np.float64)
    for index, part in enumerate(parts[1:], start=1):
        if part.shape != total.shape:
            raise ValueError(f"`parts[{index}]` has shape {part.shape}, `parts[0]` has {total.shape}")
        total += part
    return total
