"""The variables of a cube: names, dims, dtypes, fills and units, by which arrays are made, checked and annotated.

It is the one contract between what stages compute and what is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

FORMAT = 1
"""Version of the cube's layout; a reader refuses a greater one."""

TRIAL_DIMS = ("model", "task", "params", "trial", "repeat")
DIMS = (*TRIAL_DIMS, "counter", "tier", "judge_name", "judge_repeat", "dataset")
COUNTER_DIMS = ("model", "task", "params", "counter")
REGION_DIMS = TRIAL_DIMS[1:]
"""Dims of the arrays of one region: the model is in the address."""

STATUS_CODES: Mapping[str, int] = MappingProxyType(
    {
        "incorrect": 0,
        "correct": 1,
        "truncated": 2,
        "invalid": 3,
        "refused": 4,
        "transport": 254,
        "missing": 255,
    }
)


@dataclass(frozen=True)
class Variable:
    """One array of the cube."""

    name: str
    dims: tuple[str, ...]
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


def _trial(
    name: str,
    dtype: str,
    fill: float,
    units: str,
    long_name: str,
    comment: str,
    attrs: Mapping[str, object] = MappingProxyType({}),
    allowed: tuple[int, ...] = (),
    *,
    sparse: bool = False,
) -> Variable:
    return Variable(name, TRIAL_DIMS, dtype, fill, units, long_name, comment, attrs, allowed, sparse)


_STATUS_ATTRS = {"flag_values": list(STATUS_CODES.values()), "flag_meanings": " ".join(STATUS_CODES)}

_VARIABLES = (
    _trial("tokens", "int32", -1, "1", "completion tokens", "Reasoning included; -1 is missing."),
    _trial("prompt_tokens", "int32", -1, "1", "prompt tokens", "As the endpoint counts them; -1 is missing."),
    _trial(
        "reasoning_bytes",
        "int32",
        -1,
        "byte",
        "length of the reasoning trace",
        "UTF-8 bytes before the final answer; -1 is missing.",
    ),
    _trial(
        "compressed_bytes",
        "int32",
        -1,
        "byte",
        "compressed length of the reasoning trace",
        "gzip at a fixed level with no time stamp; -1 is missing.",
    ),
    _trial(
        "latency",
        "float32",
        float("nan"),
        "s",
        "response time",
        "Wall time of the request that counted; it differs between equal runs; NaN is missing.",
    ),
    _trial(
        "guess_chance",
        "float32",
        float("nan"),
        "1",
        "chance of a right guess",
        "1/|options| where the answer is one of a listed set, 0 for write-in answers; NaN is missing.",
    ),
    _trial(
        "status",
        "uint8",
        STATUS_CODES["missing"],
        "1",
        "outcome of the trial",
        "Transport errors and missing trials are no trials; invalid and refused ones count as incorrect.",
        attrs=_STATUS_ATTRS,
        allowed=tuple(STATUS_CODES.values()),
    ),
)

VARIABLES: Mapping[str, Variable] = MappingProxyType({variable.name: variable for variable in _VARIABLES})
"""The trial arrays in the order in which a region writes them: status last, so that a status read from a
half-written region never speaks of values that are not there yet."""

_LAYER_COMMENT = "From 1 to 5; NaN where the layer is absent or the trial is not finished."

_LAYERS = (
    _trial("fact", "float32", float("nan"), "1", "score of the fact assertions", _LAYER_COMMENT),
    _trial("behavior", "float32", float("nan"), "1", "score of the behavior assertions", _LAYER_COMMENT),
    _trial(
        "judge",
        "float32",
        float("nan"),
        "1",
        "score of the judges",
        f"Mean over the judges of the mean over their readings. {_LAYER_COMMENT}",
    ),
    Variable(
        "judge_readings",
        (*TRIAL_DIMS, "judge_name", "judge_repeat"),
        "float32",
        float("nan"),
        "1",
        "readings of the judges",
        "A whole number from 1 to 5; NaN where a judge gave none that can be read, or was not asked.",
    ),
    _trial(
        "cluster",
        "int64",
        0,
        "1",
        "cluster of the question",
        "Equal within a task where questions share a passage, a template or the like, and drawn from its name by a"
        " digest; 0 where nothing says so.",
    ),
    _trial(
        "status_theirs",
        "uint8",
        STATUS_CODES["missing"],
        "1",
        "outcome of the trial by the second reader",
        "Of the same reply, as the reader that the spec names for the task reads it; a cut or refused reply is correct"
        " if it finds the right answer there. Missing also where no second reader has read the reply.",
        attrs=_STATUS_ATTRS,
        allowed=tuple(STATUS_CODES.values()),
    ),
)

_SAID = (
    _trial(
        "reasoning_tokens",
        "int32",
        -1,
        "1",
        "reasoning tokens",
        "Of the completion tokens those of reasoning, as the endpoint counts them; -1 where it does not say.",
        sparse=True,
    ),
    _trial(
        "cached_tokens",
        "int32",
        -1,
        "1",
        "cached prompt tokens",
        "Of the prompt tokens those that the endpoint read from its own cache; -1 where it does not say.",
        sparse=True,
    ),
    _trial(
        "first_token",
        "float32",
        float("nan"),
        "s",
        "time to the first token",
        "Until a streamed reply began; it differs between equal runs; NaN where it was not streamed.",
        sparse=True,
    ),
    _trial(
        "provider",
        "int32",
        0,
        "1",
        "system that answered",
        "A digest of the name that the reply gives of it, of which the ledger's receipts have the most frequent ones;"
        " 0 where it gives none.",
        sparse=True,
    ),
    _trial(
        "looping",
        "uint8",
        0,
        "1",
        "whether the reply loops",
        "1 where its end repeats itself, so that it compresses to almost nothing.",
        allowed=(0, 1),
        sparse=True,
    ),
)

SAID = tuple(variable.name for variable in _SAID)
"""What few replies have beside an answer, by their endpoints or for their text; earlier cubes are without it."""

LAYERS: Mapping[str, Variable] = MappingProxyType(
    {variable.name: variable for variable in (*_LAYERS, *_SAID)}
)
"""Further trial arrays, of cubes whose sweep declares assertions or a rubric; readings only where it has judges. The
clusters are there where a data set names its field of them, second outcomes where a task has a second reader; what
endpoints say, in all new cubes."""

COUNTERS = Variable(
    "counters",
    COUNTER_DIMS,
    "float64",
    0.0,
    "1",
    "sums over the trials of a cell",
    "Raw sums along trial and repeat, integers exact to 2^53; they add over cells, and every estimate is a"
    " function of them. A padded slot is 0.",
)

PLANNED: Mapping[str, Variable] = MappingProxyType(
    {
        f"planned_{dim}s": Variable(
            f"planned_{dim}s",
            COUNTER_DIMS[:3],
            "int32",
            0,
            "1",
            f"{dim}s planned",
            f"The cell is to be measured with the first so many {dim}s; cells of one cube may differ."
            " Beyond them nothing is missing. A padded slot is 0.",
        )
        for dim in ("trial", "repeat")
    }
)
"""How far each cell is to be measured; it only grows, and the driver alone writes it."""

DUPLICATE = Variable(
    "duplicate",
    ("task", "params", "trial"),
    "uint8",
    255,
    "1",
    "whether the prompt occurred before",
    "1 where an earlier trial of the cell has the same prompt, 0 where none has, 255 where nobody looked yet.",
    attrs={"flag_values": [0, 1, 255], "flag_meanings": "new repeated unknown"},
    allowed=(0, 1, 255),
)

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
