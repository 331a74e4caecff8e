"""The variables of a cube: names, dims, dtypes, fills and units, by which arrays are made, checked and annotated.

It is the one contract between what stages compute and what is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMAT = 1
"""Version of the cube's layout; a reader refuses a greater one."""

TRIAL_DIMS = ("model", "task", "params", "trial", "repeat")
COUNTER_DIMS = ("model", "task", "params", "counter")
REGION_DIMS = TRIAL_DIMS[1:]
"""Dims of the arrays of one region: the model is in the address."""

_CODES = {
    "incorrect": 0,
    "correct": 1,
    "truncated": 2,
    "invalid": 3,
    "refused": 4,
    "transport": 254,
    "missing": 255,
}
STATUS_CODES: Mapping[str, int] = MappingProxyType(_CODES)


@dataclass(frozen=True)
class Variable:
    """One array of the cube."""

    name: str
    dtype: str
    """numpy name of the dtype."""
    fill: float
    """Value of cells that were never written."""
    units: str
    """UDUNITS spelling; "s", not "seconds", which xarray may decode to a timedelta."""
    long_name: str
    """A few words, for an axis label."""
    comment: str
    """How the value comes about and what is special about it."""
    dims: tuple[str, ...] = TRIAL_DIMS
    attrs: Mapping[str, object] = field(default_factory=dict)
    """More attributes (JSON values)."""
    allowed: tuple[int, ...] = ()
    """The only values that may be written; empty for any."""
    sparse: bool = False
    """Whether a chunk of nothing but the fill is no object: what few endpoints say costs nothing where none does."""

    @property
    def attributes(self) -> dict[str, object]:
        """Attributes of the stored array."""
        text = {"long_name": self.long_name, "units": self.units, "comment": self.comment}
        return {**text, **self.attrs}

    def problem(self, array: NDArray[np.generic], shape: Sequence[int]) -> str | None:
        """Why `array` may not be written where `shape` is expected; None if it may."""
        if array.dtype.newbyteorder("=") != np.dtype(self.dtype):
            return f"`{self.name}` must have dtype {self.dtype}, got {array.dtype}"
        if array.shape != tuple(shape):
            return f"`{self.name}` must have shape {tuple(shape)}, got {array.shape}"
        if self.allowed and not np.isin(array, self.allowed).all():
            wrong = np.setdiff1d(array, self.allowed)[:5].tolist()
            return f"`{self.name}` may hold {list(self.allowed)} only, got {wrong}"
        return None

    def as_read(self, array: NDArray[Any]) -> NDArray[Any]:
        """The values of an array as readers get them: what nobody writes, and a damaged cube may hold, is the fill."""
        if not self.allowed:
            return array
        table = np.full(256, self.fill, np.uint8)  # all that have such values are bytes, and isin takes long
        table[list(self.allowed)] = self.allowed
        return table.take(array)


_NAN = float("nan")
_LAYER = "From 1 to 5; NaN where the layer is absent or the trial is not finished."
_COMMENTS = {
    "tokens": "Reasoning included; -1 is missing.",
    "prompt_tokens": "As the endpoint counts them; -1 is missing.",
    "reasoning_bytes": "UTF-8 bytes before the final answer; -1 is missing.",
    "compressed_bytes": "gzip at a fixed level with no time stamp; -1 is missing.",
    "latency": "Wall time of the request that counted; it differs between equal runs; NaN is missing.",
    "guess_chance": "1/|options| where the answer is one of a listed set, 0 for write-in answers; NaN is missing.",
    "status": "Transport errors and missing trials are no trials; invalid and refused ones count as incorrect.",
    "fact": _LAYER,
    "behavior": _LAYER,
    "judge": f"Mean over the judges of the mean over their readings. {_LAYER}",
    "judge_readings": "A whole number from 1 to 5; NaN where a judge gave none that can be read, or was not asked.",
    "cluster": "Equal within a task where questions share a passage, a template or the like, and drawn from its name"
    " by a digest; 0 where nothing says so.",
    "status_theirs": "Of the same reply, as the reader that the spec names for the task reads it; a cut or refused"
    " reply is correct if it finds the right answer there. Missing also where no second reader has read the reply.",
    "reasoning_tokens": "Of the completion tokens those of reasoning, as the endpoint counts them; -1 where it does"
    " not say.",
    "cached_tokens": "Of the prompt tokens those that the endpoint read from its own cache; -1 where it does not say.",
    "first_token": "Until a streamed reply began; it differs between equal runs; NaN where it was not streamed.",
    "provider": "A digest of the name that the reply gives of it, of which the ledger's receipts have the most"
    " frequent ones; 0 where it gives none.",
    "looping": "1 where its end repeats itself, so that it compresses to almost nothing.",
    "ending": "A digest of the endpoint's word for why the reply ended, where nobody knows what it means, or it gave"
    " none; the ledger's receipts have the words. 0 where the end is known.",
    "read_as": "1 + 16 x the place of the answer + what the place gave, in the order of the lists in the documentation;"
    " 0 where nobody noted it.",
    "counters": "Raw sums along trial and repeat, integers exact to 2^53; they add over cells, and every estimate is a"
    " function of them. A padded slot is 0.",
    "duplicate": "1 where an earlier trial of the cell has the same prompt, 0 where none has, 255 where nobody looked"
    " yet.",
}
_FLAGS = {"flag_values": list(_CODES.values()), "flag_meanings": " ".join(_CODES)}
_LOOKED = {"flag_values": [0, 1, 255], "flag_meanings": "new repeated unknown"}
_MORE: dict[str, dict[str, Any]] = {
    "status": {"attrs": _FLAGS, "allowed": tuple(_CODES.values())},
    "status_theirs": {"attrs": _FLAGS, "allowed": tuple(_CODES.values())},
    "judge_readings": {"dims": (*TRIAL_DIMS, "judge_name", "judge_repeat")},
    "looping": {"allowed": (0, 1)},
    "counters": {"dims": COUNTER_DIMS},
    "duplicate": {"dims": ("task", "params", "trial"), "attrs": _LOOKED, "allowed": (0, 1, 255)},
}


def _from_rows(
    rows: Iterable[tuple[str, str, float, str, str]], *, sparse: bool = False
) -> dict[str, Variable]:
    """Variables of rows of name, dtype, fill, units and long name."""
    return {row[0]: Variable(*row, _COMMENTS[row[0]], **_MORE.get(row[0], {}), sparse=sparse) for row in rows}


VARIABLES: Mapping[str, Variable] = MappingProxyType(
    _from_rows(
        [
            ("tokens", "int32", -1, "1", "completion tokens"),
            ("prompt_tokens", "int32", -1, "1", "prompt tokens"),
            ("reasoning_bytes", "int32", -1, "byte", "length of the reasoning trace"),
            ("compressed_bytes", "int32", -1, "byte", "compressed length of the reasoning trace"),
            ("latency", "float32", _NAN, "s", "response time"),
            ("guess_chance", "float32", _NAN, "1", "chance of a right guess"),
            ("status", "uint8", _CODES["missing"], "1", "outcome of the trial"),
        ]
    )
)
"""The trial arrays. A region writes its status last, so that one read from a half-written region never speaks of
values that are not there yet."""

_LAYERS = [
    ("fact", "float32", _NAN, "1", "score of the fact assertions"),
    ("behavior", "float32", _NAN, "1", "score of the behavior assertions"),
    ("judge", "float32", _NAN, "1", "score of the judges"),
    ("judge_readings", "float32", _NAN, "1", "readings of the judges"),
    ("cluster", "int64", 0, "1", "cluster of the question"),
    ("status_theirs", "uint8", _CODES["missing"], "1", "outcome of the trial by the second reader"),
]
_SAID = [
    ("reasoning_tokens", "int32", -1, "1", "reasoning tokens"),
    ("cached_tokens", "int32", -1, "1", "cached prompt tokens"),
    ("first_token", "float32", _NAN, "s", "time to the first token"),
    ("provider", "int32", 0, "1", "system that answered"),
    ("looping", "uint8", 0, "1", "whether the reply loops"),
    ("ending", "uint8", 0, "1", "unknown end of the reply"),
    ("read_as", "uint8", 0, "1", "how the answer was read"),
]
SAID = tuple(row[0] for row in _SAID)
"""What few replies have beside an answer, by their endpoints or for their text; earlier cubes are without it."""

LAYERS: Mapping[str, Variable] = MappingProxyType(_from_rows(_LAYERS) | _from_rows(_SAID, sparse=True))
"""Further trial arrays, of cubes whose sweep declares assertions or a rubric; readings only where it has judges. The
clusters are there where a data set names its field of them, second outcomes where a task has a second reader; what
endpoints say, in all new cubes."""


def is_sparse(name: str) -> bool:
    """Whether the chunks of an array that hold its fill only are not written."""
    return name in LAYERS and LAYERS[name].sparse


_BESIDE = _from_rows(
    [
        ("counters", "float64", 0.0, "1", "sums over the trials of a cell"),
        ("duplicate", "uint8", 255, "1", "whether the prompt occurred before"),
    ]
)
COUNTERS, DUPLICATE = _BESIDE["counters"], _BESIDE["duplicate"]


def _planned_variable(dim: str) -> Variable:
    comment = (
        f"The cell is to be measured with the first so many {dim}s; cells of one cube may differ."
        " Beyond them nothing is missing. A padded slot is 0."
    )
    return Variable(f"planned_{dim}s", "int32", 0, "1", f"{dim}s planned", comment, COUNTER_DIMS[:3])


PLANNED: Mapping[str, Variable] = MappingProxyType(
    {f"planned_{dim}s": _planned_variable(dim) for dim in ("trial", "repeat")}
)
"""How far each cell is to be measured; it only grows, and the driver alone writes it."""

SHARED: Sequence[Variable] = (COUNTERS, *PLANNED.values(), DUPLICATE)
"""Arrays beside the trial arrays."""

COUNTER_LABELS: Mapping[str, str] = MappingProxyType(
    {
        "trials": "finished trials: completed or truncated",
        "completed": "trials that were not truncated",
        "correct": "completed trials that equal the reference answer",
        "invalid": "completed trials without a readable answer",
        "refused": "completed trials that were refused or filtered",
        "truncated": "trials cut by the token or context limit",
        "guess_sum": "sum of the guess chance over completed trials",
        "tokens_sum": "completion tokens, truncated trials included",
        "tokens_sumsq": "sum of squared completion tokens",
        "prompt_tokens_sum": "prompt tokens",
        "compressed_sum": "compressed bytes of the reasoning traces",
        "latency_sum": "response time in seconds",
        "cost_sum": "cost in USD",
        "duplicates": "finished trials whose prompt occurred before in the cell",
        "transport": "requests without a reply after the last retry: no trials",
        "missing": "trials that were not run yet",
        "questions": "questions with a finished trial",
        "correct_squares": "sum over the questions of the squared number of right answers",
        "correct_answers": "sum over the questions of right answers times finished trials",
        "answer_squares": "sum over the questions of the squared number of finished trials",
    }
)
"""Label along ``counter`` to its meaning, in the order of the array."""
