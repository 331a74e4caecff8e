"""Read conditions as a user writes them, by the names and labels that a cube's coordinates have."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evalcube._arrays import Dataset, PlainDataset
from evalcube.flows.config.near_names import close_name, suggestion
from evalcube.flows.errors import SweepError, need_text, no_bare_text, refused
from evalcube.stages.analyze.labelled import axes
from evalcube.stages.analyze.labelled.selection import Condition, Key, keys, list_values, select

if TYPE_CHECKING:
    from evalcube.flows.plan.plan import Plan

Where = Mapping[str, Condition] | Sequence[str]
"""Name -> value, list of values, (low, high) or a test; or texts ``NAME=VALUE``."""

Table = Mapping[str, Key]

_SHOWN = 12

_HINT = "Write it like task=sort,letters or param_length=4..16"


def checked_names(names: Sequence[str], table: Table, parameter: str) -> list[str]:
    """Names of coordinates, facets by their plain names too."""
    no_bare_text(**{parameter: names})
    aliases = [alias(name.strip(), table, parameter) for name in names if name.strip()]
    if not aliases:
        raise SweepError(f"`{parameter}`: nothing is named", "Give names such as model,task")
    if len(set(aliases)) < len(aliases):
        raise SweepError(f"`{parameter}`: '{','.join(names)}' names something twice", "Name each once")
    return aliases


def alias(name: str, table: Table, parameter: str) -> str:
    """The coordinate that a name stands for.

    Examples
    --------
    >>> alias("family", {"facet_family": Key(("model",), ["a"])}, "by")
    'facet_family'
    """
    if name == "tier" or name in table:
        return name
    for prefix in ("facet_", "param_"):
        if prefix + name in table:
            return prefix + name
    columns = sorted([*table, "tier"])
    short = [column.removeprefix("facet_").removeprefix("param_") for column in columns]
    near = close_name(name, list(dict.fromkeys([*columns, *short])))
    remedy = suggestion(near, columns, "There are")
    raise SweepError(f"`{parameter}`: the cube has no coordinate '{name}'", remedy)


def unknown_names(names: Iterable[str], table: Table) -> list[str]:
    """Those of some names that no coordinate has."""
    named = {short for name in table for short in (name, name.removeprefix("facet_").removeprefix("param_"))}
    return [name for name in names if name not in named and name != "tier"]


def conditions_of(where: Where) -> Mapping[str, Condition]:
    """Conditions by what they are about, as they were given."""
    return where if isinstance(where, Mapping) else dict(split_condition(text) for text in where)


def without(where: Where, names: Sequence[str]) -> Where:
    """Conditions but for those on some names."""
    if isinstance(where, Mapping):
        return {name: condition for name, condition in where.items() if name not in names}
    return [text for text in where if split_condition(text)[0] not in names]


def meets(texts: npt.NDArray[np.object_], condition: object) -> npt.NDArray[np.bool_]:
    """Which texts of questions fulfil a condition; empty ones never do."""
    if callable(condition):
        return np.array([bool(text) and bool(condition(text)) for text in texts.ravel()]).reshape(texts.shape)
    values = condition if isinstance(condition, list) else [condition, *str(condition).split(",")]
    fulfilling: npt.NDArray[np.bool_] = np.isin(texts, [str(value) for value in values if value])
    return fulfilling


def checked_where(where: Where, table: Table, ds: Dataset) -> dict[str, Condition]:
    """Conditions by the cube's own names."""
    pairs = where.items() if isinstance(where, Mapping) else (split_condition(text) for text in where)
    conditions: dict[str, Condition] = {}
    for name, condition in pairs:
        key = _model_coordinate(alias(name, table, "where"), condition, table)
        if key in conditions:
            raise SweepError(
                f"`where`: '{name}' is given twice", f"Give all of its values at once: {name}=one,two"
            )
        values = axes.names(ds, "tier") if key == "tier" else table[key].values
        read = condition if isinstance(where, Mapping) else read_condition(name, str(condition), values)
        _check_labels(name, read, values)
        _check_range(name, read, values)
        conditions[key] = read
    return conditions


def cells_of(plan: Plan, where: Where) -> npt.NDArray[np.bool_]:
    """Which cells of a plan, shape (model, task, params), fulfil all conditions."""
    from evalcube.flows.plan.coordinates import labels

    arrays = {label.name: (tuple(label.dims), np.asarray(label.values)) for label in labels(plan)}
    # Points without right answers count for no score of a tier; to be asked, they belong to it.
    arrays["in_tier"] = (arrays["in_tier"][0], plan.in_tier)
    ds = PlainDataset(coords={name: label for name, label in arrays.items() if name != "counter"})
    table = keys(ds)
    conditions = checked_where(where, table, ds)
    with refused():
        selection = select(ds, conditions, table)
    return selection.models[:, None, None] & selection.cells


def split_condition(text: str, parameter: str = "where") -> tuple[str, str]:
    """Return name and value of a condition ``NAME=VALUE``, without the spaces around them; refuse any other text."""
    name, sign, value = need_text(parameter, text).partition("=")
    if not sign or not name.strip() or not value.strip():
        raise SweepError(f"`{parameter}`: '{text}' is no NAME=VALUE", _HINT)
    return name.strip(), value.strip()


def _model_coordinate(key: str, condition: object, table: Table) -> str:
    """Return the coordinate that a condition on models is about: their names, or else labels or numbers."""
    if key != "model" or "model_name" not in table:
        return key
    texts = [text.strip() for text in condition.split(",")] if isinstance(condition, str) else []
    names, labels = ({str(value) for value in table[kind].values} for kind in ("model_name", "model"))
    by_label = texts and names.isdisjoint(texts) and all(text in labels or text.isdecimal() for text in texts)
    return "model" if by_label else "model_name"


def read_condition(name: str, text: str, values: Sequence[Any]) -> Condition:
    """A value, list or range as text, with the type that the coordinate has."""
    there = [value for value in values if value is not None]
    texts = [value for value in there if isinstance(value, str)]
    if text in texts:
        return text
    if ".." in text and not texts:
        low, _, high = text.partition("..")
        limits = (_number(name, low), _number(name, high))
        if limits == (None, None):
            raise SweepError(f"`where`: '{name}={text}' has neither a lowest nor a highest value", _HINT)
        return limits
    parts = [part.strip() for part in text.split(",")]
    read = parts if texts else [_parse_as(name, part, there) for part in parts]
    return read[0] if len(read) == 1 else read


def _parse_as(name: str, text: str, there: Sequence[Any]) -> object:
    if all(isinstance(value, bool) for value in there) and text.lower() in ("true", "false"):
        return text.lower() == "true"
    return _number(name, text)


def _number(name: str, text: str) -> float | None:
    if not text.strip():
        return None
    try:
        return float(text)
    except ValueError as error:
        raise SweepError(f"`where`: {name} is a number, but '{text}' is none", _HINT) from error


def _check_labels(name: str, condition: Condition, values: Sequence[Any]) -> None:
    """Refuse a text that is none of a coordinate's labels."""
    texts = list(dict.fromkeys(value for value in values if isinstance(value, str)))
    items = [condition] if isinstance(condition, str) else condition if isinstance(condition, list) else []
    for item in items:
        if item in values:
            continue
        near = close_name(str(item), texts)
        raise SweepError(
            f"`where`: there is no {name} '{item}'",
            f"Did you mean '{near}'?" if near else f"There are: {list_values(values)}",
        )


def _check_range(name: str, condition: Condition, values: Sequence[Any]) -> None:
    """Refuse a range, or a number, that holds none of a coordinate's numbers."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if isinstance(condition, str) or callable(condition) or not numbers or len(numbers) < _count(values):
        return
    if isinstance(condition, tuple):
        low, high = (
            edge if edge is not None else sign * math.inf
            for edge, sign in zip(condition, (-1, 1), strict=True)
        )
        fits = any(low <= value <= high for value in numbers)
    else:
        fits = any(value in numbers for value in (condition if isinstance(condition, list) else [condition]))
    if not fits:
        levels = ", ".join(f"{value:g}" for value in sorted(set(numbers))[:_SHOWN])
        more = ", ..." if len(set(numbers)) > _SHOWN else ""
        raise SweepError(f"`where`: there is no {name} '{_words(condition)}'", f"There are: {levels}{more}")


def _count(values: Sequence[Any]) -> int:
    return sum(value is not None for value in values)


def _words(condition: Condition) -> str:
    """A condition on numbers as it is written."""
    parts = condition if isinstance(condition, list | tuple) else [condition]
    texts = ["" if part is None else f"{part:g}" if isinstance(part, float) else str(part) for part in parts]
    return ("..".join if isinstance(condition, tuple) else " or ".join)(texts)


def matching_points(points: Sequence[Mapping[str, object]], params: str | None) -> list[int]:
    """Indices of the points that a text stands for; all points if it is empty."""
    if params is None or not params.strip():
        return list(range(len(points)))
    text = params.strip()
    if text.isascii() and text.isdecimal():
        return [i for i in range(len(points)) if str(i) == text]
    wanted = read_params(text)
    return [i for i, point in enumerate(points) if _fits(_canonical(point), wanted)]


def _canonical(params: Mapping[str, object]) -> dict[str, object]:
    from evalcube.stages.generate.stream import canonical_params  # tables of scores need no task

    return canonical_params(params)


def _fits(point: Mapping[str, object], wanted: Mapping[str, object]) -> bool:
    return all(key in point and point[key] == value for key, value in wanted.items())


def read_params(text: str) -> dict[str, object]:
    """Params as they are given on the command line: JSON, or ``name=value,...``.

    Examples
    --------
    >>> read_params("length=4.0,format=yes/no")
    {'format': 'yes/no', 'length': 4}
    """
    if text.startswith("{"):
        try:
            return _canonical(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise SweepError(
                f"`params`: '{text}' is no JSON object", "Write it like length=4,max_depth=0"
            ) from error
    pairs = (part.partition("=") for part in text.split(","))
    return _canonical({key.strip(): _value(value.strip()) for key, _, value in pairs})


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def differing(points: Sequence[Mapping[str, object]]) -> set[str]:
    """Names of the parameters in which points of one task differ.

    Examples
    --------
    >>> differing([{"length": 2, "depth": 1}, {"length": 4, "depth": 1}])
    {'length'}
    """
    names = {name for point in points for name in point}
    return {name for name in names if any(point.get(name) != points[0].get(name) for point in points)}


def telling(params: Mapping[str, object], names: set[str] | None) -> Mapping[str, object]:
    """The parameters that tell a point from others of its task; if none do all, and of a data set its file's name.

    Examples
    --------
    >>> telling({"length": 3, "depth": 1}, {"length"})
    {'length': 3}
    >>> telling({"file": "data/a.jsonl", "kind": "text", "sha256": "0f3e"}, set())
    {'file': 'a.jsonl'}
    >>> telling({"file": "data/a.jsonl", "kind": "text", "sha256": "0f3e5a2015fe"}, {"sha256"})
    {'file_version': '0f3e5a20'}
    """
    shown = {name: value for name, value in params.items() if names and name in names}
    if "sha256" in shown:  # by the name and at the length that conditions take
        shown["file_version"] = str(shown.pop("sha256"))[:8]
    if shown:
        return shown
    if "file" in params and "sha256" in params:  # how it is read is the same for all of its questions
        # Here, as it comes with all tasks, and most boards need none of them.
        from evalcube.stages.generate.dataset.hub.address import bare_name, is_hub, source_of

        file = str(params["file"])
        return {"file": source_of(file) if is_hub(file) else bare_name(file)}
    return params
