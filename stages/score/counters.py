"""Count the trials of every cell; counters add, so that any group is a sum and absent trials need no mask."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.stages.errors import ArgumentError
from evalcube.stages.reply.status import COUNTED, COUNTERS, LAST_FINISHED, Status

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]

VALUES = ("tokens", "prompt_tokens", "compressed_bytes", "latency", "guess_chance")
"""Trial arrays that must be there beside ``status``."""

OPTIONAL = ("duplicate", "planned")
"""Trial arrays that may be there; they need only broadcast to the shape of ``status``."""

_LEFT_OUT = 253
"""A status that no counter counts."""

_BLOCK = 131_072
"""Trials counted at a time: their floats stay in the processor's cache, and threads seldom wait for another."""

# Plain integers: compared with an enumeration's member, an array of bytes becomes one of eight times the size.
_CORRECT = int(Status.CORRECT)
_TRUNCATED = int(Status.TRUNCATED)
_MISSING = int(Status.MISSING)


def count_trials(
    arrays: Mapping[str, npt.ArrayLike],
    *,
    price_prompt: float = 0.0,
    price_completion: float = 0.0,
    unique_only: bool = False,
    trials: int | None = None,
    clip_tokens: int | None = None,
) -> FloatArray:
    """Counters of every cell, of all of its trials or as they were if less had been measured."""
    check_options(arrays, unique_only=unique_only, trials=trials, clip_tokens=clip_tokens)
    shape = _checked_shape(arrays)
    flat = _by_cell(arrays, shape, trials)
    cells = math.prod(shape[:-2])
    step = max(1, _BLOCK // max(1, math.prod(flat["status"].shape[1:])))
    sums = np.zeros((cells, len(COUNTERS)))
    for start in range(0, cells, step):
        block = {name: _rows(array[start : start + step]) for name, array in flat.items()}
        block["status"] = _relabel(block, unique_only=unique_only, clip_tokens=clip_tokens)
        for name, column in _count(block, clip_tokens).items():
            sums[start : start + step, COUNTERS.index(name)] = column
    set_cost(sums, price_prompt, price_completion)
    return sums.reshape(*shape[:-2], len(COUNTERS))


def count_questions(status: Array) -> FloatArray:
    """Counters of the questions of every cell, of what their repeats came to.

    Examples
    --------
    >>> count_questions(np.array([[1, 1], [0, 1], [255, 255]], np.uint8)).tolist()
    [2.0, 5.0, 6.0, 8.0]
    """
    right = (status == _CORRECT).sum(axis=-1, dtype=np.float64)
    asked = (status <= LAST_FINISHED).sum(axis=-1, dtype=np.float64)
    parts = (
        (asked > 0).sum(axis=-1),
        *(np.vecdot(*pair) for pair in ((right, right), (right, asked), (asked, asked))),
    )
    return np.stack([np.asarray(part, dtype=np.float64) for part in parts], axis=-1)


def over_limit(status: Array, tokens: Array, limit: int) -> npt.NDArray[np.bool_]:
    """Which finished trials a lower limit of completion tokens would have cut."""
    # As int64: a limit beyond the range of int32 is one that nothing exceeds, not an error.
    over: npt.NDArray[np.bool_] = (tokens > np.int64(limit)) & (status <= LAST_FINISHED)
    return over


def set_cost(
    counters: FloatArray, price_prompt: float | FloatArray, price_completion: float | FloatArray
) -> None:
    """Set ``cost_sum`` in place from the token sums."""
    prompt, completion = (counters[..., COUNTERS.index(name)] for name in ("prompt_tokens_sum", "tokens_sum"))
    counters[..., COUNTERS.index("cost_sum")] = (prompt * price_prompt + completion * price_completion) / 1e6


def add_counters(parts: Sequence[FloatArray]) -> FloatArray:
    """The sum of counters of the same cells."""
    if not parts:
        raise ArgumentError("`parts` is empty; there is nothing to add")
    total = np.array(parts[0], dtype=np.float64)
    for index, part in enumerate(parts[1:], start=1):
        if part.shape != total.shape:
            raise ArgumentError(f"`parts[{index}]` has shape {part.shape}, `parts[0]` has {total.shape}")
        total += part
    return total


def check_options(
    names: Iterable[str], *, unique_only: bool, trials: int | None, clip_tokens: int | None
) -> None:
    """Refuse options of `count_trials` that cannot be met with the arrays of these names."""
    for name, value in (("trials", trials), ("clip_tokens", clip_tokens)):
        if value is not None and not 1 <= value < 2**63:
            bound = "at least 1" if value < 1 else "less than 2**63"  # numpy's integers end there
            raise ArgumentError(f"`{name}` must be {bound}, got {value}; None takes everything")
    if unique_only and "duplicate" not in names:
        raise ArgumentError(
            "`unique_only` needs the array `duplicate`, which says whose prompt occurred before in its cell"
        )


def _checked_shape(arrays: Mapping[str, npt.ArrayLike]) -> tuple[int, ...]:
    shape = np.shape(arrays["status"])
    if len(shape) < 2:
        raise ArgumentError(f"`status` has shape {shape}; its last axes must be (trial, repeat)")
    for name in VALUES:
        if np.shape(arrays[name]) != shape:
            raise ArgumentError(f"`{name}` has shape {np.shape(arrays[name])}, `status` has {shape}")
    return shape


def _by_cell(
    arrays: Mapping[str, npt.ArrayLike], shape: tuple[int, ...], trials: int | None
) -> dict[str, Array]:
    """Views of shape (cell, trial, repeat), of the first `trials`."""
    names = ("status", *VALUES, *(name for name in OPTIONAL if name in arrays))
    size = (math.prod(shape[:-2]), *shape[-2:])
    return {
        name: np.broadcast_to(np.asarray(arrays[name]), shape).reshape(size)[:, :trials] for name in names
    }


def _rows(array: Array) -> Array:
    return array.reshape(len(array), math.prod(array.shape[1:]))


def _relabel(block: Mapping[str, Array], *, unique_only: bool, clip_tokens: int | None) -> Array:
    """Status as it would have been."""
    changes: list[tuple[npt.NDArray[np.bool_], int]] = []
    status = block["status"]
    if clip_tokens is not None:
        changes.append((over_limit(status, block["tokens"], clip_tokens), _TRUNCATED))
    if "planned" in block:
        changes.append(((status == _MISSING) & (block["planned"] == 0), _LEFT_OUT))
    if unique_only:
        changes.append((block["duplicate"] == 1, _LEFT_OUT))
    if changes:
        status = status.copy()
    for where, code in changes:
        np.copyto(status, np.uint8(code), where=where)
    return status


def _count(block: Mapping[str, Array], clip_tokens: int | None) -> dict[str, Array]:
    """All counters but the cost, each of shape (cell,)."""
    status = block["status"]
    truncated = status == _TRUNCATED
    finished = status <= LAST_FINISHED
    completed = finished & ~truncated
    flags = {"trials": finished, "completed": completed}
    flags |= {name: status == code for name, code in COUNTED.items()}
    if "duplicate" in block:
        flags["duplicates"] = finished & (block["duplicate"] == 1)
    columns: dict[str, Array] = {name: flag.sum(axis=-1) for name, flag in flags.items()}
    done = finished.astype(np.float64)
    columns["guess_sum"] = np.vecdot(_cleaned_values(block["guess_chance"]), completed.astype(np.float64))
    for name, values in (
        ("prompt_tokens", "prompt_tokens"),
        ("compressed", "compressed_bytes"),
        ("latency", "latency"),
    ):
        columns[f"{name}_sum"] = np.vecdot(_cleaned_values(block[values]), done)
    tokens = _cleaned_values(block["tokens"], clip_tokens)
    columns["tokens_sum"] = np.vecdot(tokens, done)
    columns["tokens_sumsq"] = np.vecdot(tokens * done, tokens)
    return columns


def _cleaned_values(values: Array, most: float | None = None) -> FloatArray:
    """Values as floats of `most` at most, zero where one is missing: negative or not finite."""
    cleaned = values.astype(np.float64)
    cleaned = np.where((cleaned >= 0) & (cleaned < np.inf), cleaned, 0.0)
    return cleaned if most is None else np.minimum(cleaned, most)
