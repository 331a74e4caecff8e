"""The columns of the table of trials: what each is called and holds, where that comes from, and values of some rows.

The one list from which options, help, pages and the Arrow schema are made. Types are the same for every cube.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from evalcube.flows.config.near_names import checked_option
from evalcube.flows.errors import SweepError, need_text
from evalcube.stages.reply.status import SECOND, Status

if TYPE_CHECKING:
    import pyarrow as pa

    from evalcube.flows.plan.plan import Plan

DISAGREE = "disagree"

Kind = Literal["text", "integer", "single", "number", "flag", "texts", "messages", "opinions"]
"""What a cell holds: a text, a whole number, a number in single or double precision, yes or no, a list of texts, of
messages (role, content), of opinions (judge, repeat, score, reason). Any may be absent."""

Source = Literal["plan", "cube", "question", "reply"]
"""Where it comes from, by what that costs: labels of the plan; arrays of the cube; a question that is made again;
a reply that is looked up in the cache."""


@dataclass(frozen=True, slots=True)
class TrialColumn:
    """One column."""

    name: str
    kind: Kind
    source: Source
    meaning: str
    brief: bool = False
    """Whether it is shown where columns are not named and space is short."""


_OUTCOMES = "correct, incorrect, truncated, invalid, refused; answered where there is no reference; transport, missing."
COLUMNS: Sequence[TrialColumn] = (
    TrialColumn("cube", "text", "plan", "Address of the cube, without credentials."),
    TrialColumn("model", "text", "plan", "Label of the model.", brief=True),
    TrialColumn("template", "text", "plan", "Name of the prompt template."),
    TrialColumn("sampler", "text", "plan", "Name of the sampler."),
    TrialColumn("eval_id", "text", "plan", "Digest of what was sent beside the question, in all cubes."),
    TrialColumn("revision", "text", "plan", "What is said of the model's weights and engine, if anything."),
    TrialColumn("facets", "text", "plan", "Free labels of the model, JSON."),
    TrialColumn("task", "text", "plan", "Label of the task.", brief=True),
    TrialColumn("params", "text", "plan", "Parameters of the point, JSON.", brief=True),
    TrialColumn("cell_id", "text", "plan", "Digest of task, generator version, parameters and seed."),
    TrialColumn("tiers", "texts", "plan", "Tiers that the point belongs to."),
    TrialColumn("difficulty", "number", "plan", "Declared difficulty of the point, elementary steps."),
    TrialColumn("trial", "integer", "cube", "Number of the trial in its cell, from 0.", brief=True),
    TrialColumn("repeat", "integer", "cube", "Number of the repeat, from 0.", brief=True),
    TrialColumn("status", "text", "cube", _OUTCOMES, brief=True),
    TrialColumn(SECOND, "text", "cube", "The outcome by the task's second reader, where that has read it."),
    TrialColumn(DISAGREE, "flag", "cube", "Whether only one of the two readers finds the reply right."),
    TrialColumn("tokens", "integer", "cube", "Completion tokens, reasoning included.", brief=True),
    TrialColumn("prompt_tokens", "integer", "cube", "Prompt tokens."),
    TrialColumn("reasoning_tokens", "integer", "cube", "Those of the completion that are reasoning."),
    TrialColumn("cached_tokens", "integer", "cube", "Those of the prompt that were in the endpoint's cache."),
    TrialColumn("reasoning_bytes", "integer", "cube", "Length of the reasoning trace, UTF-8 bytes."),
    TrialColumn("compressed_bytes", "integer", "cube", "Its length after gzip."),
    TrialColumn("latency", "single", "cube", "Seconds from the request to the end of the reply.", brief=True),
    TrialColumn("first_token", "single", "cube", "Seconds until a streamed reply began."),
    TrialColumn("provider", "text", "cube", "What the reply says of the system that gave it."),
    TrialColumn("looping", "flag", "cube", "Whether the end of the reply repeats itself."),
    TrialColumn("ending", "text", "cube", "The word for the reply's end, where nobody knows what it means."),
    TrialColumn("read_as", "text", "cube", "How the answer was read: its place, and what that gave."),
    TrialColumn("guess_chance", "single", "cube", "Chance of a right guess; 0 for write-in answers."),
    TrialColumn("cost", "number", "cube", "USD at the cube's prices; absent where none is known."),
    TrialColumn("fact", "single", "cube", "Score of the fact assertions, 1 to 5."),
    TrialColumn("behavior", "single", "cube", "Score of the behavior assertions, 1 to 5."),
    TrialColumn("judge", "single", "cube", "Score of the judges, 1 to 5."),
    TrialColumn("duplicate", "flag", "cube", "Whether an earlier trial of the cell has the same question."),
    TrialColumn("row", "integer", "question", "Number of the data set's row, from 1."),
    TrialColumn("row_id", "text", "question", "The row's own name, where the data set has a field with it."),
    TrialColumn("prompt", "text", "question", "The question.", brief=True),
    TrialColumn("messages", "messages", "question", "What was sent: the question as the template puts it."),
    TrialColumn("options", "texts", "question", "Answers to choose from; empty for write-in answers."),
    TrialColumn("reference", "text", "question", "The right answer; empty where there is none.", brief=True),
    TrialColumn("digest", "text", "question", "Digest of the request, which is the cache's key."),
    TrialColumn("answer", "text", "reply", "The answer that was read in the response.", brief=True),
    TrialColumn("fault", "text", "reply", "In what way the answer is wrong, where the task tells."),
    TrialColumn("response", "text", "reply", "The model's text after its reasoning."),
    TrialColumn("reasoning", "text", "reply", "Its reasoning trace; empty if it shows none."),
    TrialColumn("finish", "text", "reply", "Why it ended: stop, length, context, refused."),
    TrialColumn("tool_calls", "text", "reply", "Tools that the model asked for, JSON; absent if none."),
    TrialColumn("opinions", "opinions", "reply", "What each judge gave, 1 to 5, and its reason."),
)
"""All columns but the parameters' own, in order; see `columns_of`."""

PARAM = "param_"
"""What the column of one parameter begins with."""

TEXTS = ("prompt", "response", "reasoning", "answer", "reference")
"""Columns that can be searched."""


def columns_of(plans: Iterable[Plan]) -> dict[str, TrialColumn]:
    """All columns of some cubes by name: `COLUMNS`, and one for each parameter, behind ``params``.

    A parameter is a whole number, a number, yes or no, or a text by the values that it has in all points; a list, or
    values of several kinds, are JSON.
    """
    kinds: dict[str, set[type]] = {}
    for plan in plans:
        for task in plan.tasks:
            for planned in task.cells:
                for name, value in planned.cell.plain_params.items():
                    if value is not None:
                        kinds.setdefault(name, set()).add(type(value))
    by_name: dict[str, TrialColumn] = {}
    for column in COLUMNS:
        by_name[column.name] = column
        if column.name == "params":
            for name in sorted(kinds):
                own = TrialColumn(PARAM + name, _kind(kinds[name]), "plan", f"The point's parameter {name}.")
                by_name[own.name] = own
    return by_name


def _kind(types: set[type]) -> Kind:
    if types <= {int}:
        return "integer"
    if types <= {int, float}:
        return "number"
    return "flag" if types <= {bool} else "text"


def chosen(
    names: Sequence[str], by_name: Mapping[str, TrialColumn], parameter: str = "columns"
) -> list[TrialColumn]:
    """Columns by name, in the order in which they are named."""
    if not names:
        raise SweepError(f"`{parameter}`: it names no column", f"There are: {', '.join(by_name)}")
    chosen_columns: list[TrialColumn] = []
    for text in names:
        name = need_text(parameter, text).strip()
        if name not in by_name and PARAM + name in by_name:
            name = PARAM + name
        checked_option(parameter, name, list(by_name))
        column = by_name[name]
        if column in chosen_columns:
            raise SweepError(f"`{parameter}`: '{name}' is named twice", "Name each once")
        chosen_columns.append(column)
    return chosen_columns


def arrow_type(kind: Kind) -> pa.DataType:
    """The Arrow type of a column."""
    import pyarrow as pa

    text = pa.string()
    message = pa.struct([("role", text), ("content", text)])
    opinion = pa.struct([("judge", text), ("repeat", pa.int64()), ("score", pa.float32()), ("reason", text)])
    return {
        "text": text,
        "integer": pa.int64(),
        "single": pa.float32(),
        "number": pa.float64(),
        "flag": pa.bool_(),
        "texts": pa.list_(text),
        "messages": pa.list_(message),
        "opinions": pa.list_(opinion),
    }[kind]


def arrow_schema(columns: Sequence[TrialColumn]) -> pa.Schema:
    """The Arrow schema of some columns; each field's metadata say what it means."""
    import pyarrow as pa

    noted = [(column.name, column.kind, {"comment": column.meaning}) for column in columns]
    return pa.schema([pa.field(name, arrow_type(kind), metadata=comment) for name, kind, comment in noted])


def disagree(ours: npt.NDArray[np.uint8], theirs: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Whether one of two readers finds a reply right, and the other not, by their outcomes."""
    differ: npt.NDArray[np.bool_] = (ours == Status.CORRECT) != (theirs == Status.CORRECT)
    return differ


Values = npt.NDArray[Any]
"""The cells of a column: masked numbers and flags, or objects, of which None is absent."""


def objects(values: Iterable[Any]) -> Values:
    """Anything, such as texts and lists, as an array."""
    return np.fromiter(values, dtype=object)


def plain(values: Values) -> list[Any]:
    """Cells as Python has them, None where absent; those in single precision with as few digits as tell them."""
    if values.dtype == np.float32:
        numbers = [float(str(number)) for number in np.ma.getdata(values)]
        values = np.ma.array(numbers, mask=np.ma.getmask(values))
    return list(values.tolist())


Rows = Mapping[Any, npt.NDArray[Any]]
"""Equally long arrays: indices, ``cube``, ``model``, ``task``, ``slot``, ``trial`` and ``repeat``, and values of the
cube's arrays by their names; values that are made already by their columns."""


def count(rows: Rows) -> int:
    """How many there are."""
    return len(rows["cube"])


def take(rows: Rows, which: npt.NDArray[Any] | slice) -> Rows:
    """Some of the rows, by index, mask or slice."""
    return {name: values[which] for name, values in rows.items()}


def concatenate(parts: Sequence[Rows]) -> Rows:
    """Rows of several parts, one after another."""
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def cut(parts: Iterable[Rows], size: int) -> Iterator[Rows]:
    """The rows, at most so many at once."""
    for part in parts:
        for begin in range(0, count(part), size):
            yield take(part, slice(begin, begin + size))


def window(parts: Iterable[Rows], offset: int, limit: int | None) -> Iterator[Rows]:
    """The rows from `offset` on, at most `limit`; no part is asked for behind the last of them."""
    left = limit
    for part in parts if left != 0 else ():
        some = take(part, slice(offset, None if left is None else offset + left))
        offset = max(0, offset - count(part))
        if count(some):
            left = None if left is None else left - count(some)
            yield some
        if left == 0:
            return
