"""Labels, facets and the base design along a cube's axes.

Names of models come from anyone, so nothing of them reaches a terminal or a page before `plain` has cleaned it.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evalcube._arrays import Dataset
from evalcube.stages.errors import ArgumentError
from evalcube.stages.reply.status import BASE

if TYPE_CHECKING:
    from evalcube.stages.analyze.formulas.intervals import Floats  # with scipy, which no table needs

Facet = str | int | float | bool

CELL_DIMS = ("model", "task", "params", "counter")

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories of characters that nobody sees, or that turn others round."""
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Letters and signs that nobody sees, either."""


def names(ds: Dataset, coordinate: str) -> list[str]:
    """A coordinate of texts as a list; empty texts if the dataset lacks it and it belongs to models."""
    if coordinate not in ds.coords:
        return [""] * ds.sizes["model"]
    return [str(item) for item in ds.variables[coordinate].values.tolist()]


def evaluation_labels(ds: Dataset) -> list[str]:
    """A label per model: its name, with template, sampler and revision where the dataset has several of them."""
    parts = (names(ds, name) for name in ("model_name", "template", "sampler", "revision"))
    return distinguishing(list(zip(*parts, strict=True)))


def need_status(ds: Dataset) -> None:
    """Refuse a dataset without the outcomes of single trials."""
    if "status" not in getattr(ds, "variables", ()):
        raise ArgumentError("the dataset has no array `status`; open it with `Cube.dataset()`")


def most_repeats(ds: Dataset) -> int:
    """How often questions were to be asked, at most."""
    if "planned_repeats" in ds:
        return int(ds["planned_repeats"].values.max(initial=1))
    return int(ds.sizes.get("repeat", 1))


def json_object(text: str) -> dict[str, Any]:
    """The JSON object of a text; empty if it is none, as anyone may have written the cube."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def facets(text: str) -> dict[str, Facet]:
    """A model's facets from their JSON text; empty if it is no object, lists and objects left out."""
    return {key: value for key, value in json_object(text).items() if isinstance(value, Facet)}


def plain(text: str) -> str:
    r"""One line with control, direction-changing, unassigned and other unseen characters by their numbers.

    Examples
    --------
    >>> plain("a\x1b[31mb\nc")
    'a⟨U+001B⟩[31mb c'
    """
    return reveal_unseen(" ".join(text.split()))


def count_text(count: int, noun: str) -> str:
    """A number of things, such as "1 point" or "1,280 trials"."""
    return f"{count:,} {noun if count == 1 else f'{noun}s'}"


def reveal_unseen(text: str, allowed: str = "") -> str:
    r"""The text with unseen characters by their numbers: they do nothing, and it differs from one without them.

    Examples
    --------
    >>> reveal_unseen("evil"), reveal_unseen("\u202eevil")
    ('evil', '⟨U+202E⟩evil')
    """
    if text.isprintable() and _BLANK.isdisjoint(text):
        return text
    return "".join(
        f"⟨U+{ord(char):04X}⟩"
        if char not in allowed and (char in _BLANK or unicodedata.category(char) in _UNSEEN)
        else char
        for char in text
    )


def distinguishing(parts: Sequence[tuple[str, ...]]) -> list[str]:
    """A label for each tuple of names: the first name, and those of the others that differ between tuples.

    Examples
    --------
    >>> distinguishing([("a", "plain", "cold"), ("a", "plain", "hot")])
    ['a · cold', 'a · hot']
    """
    several = [index == 0 or len(set(names)) > 1 for index, names in enumerate(zip(*parts, strict=True))]
    return [
        " · ".join(
            plain(name)
            for index, (name, shown) in enumerate(zip(names, several, strict=True))
            if shown and (name or not index)
        )
        for names in parts
    ]


def base_design(ds: Dataset) -> Floats:
    """Answers that the first plan gave each point, shape (model, task, params); 0 if the dataset does not say it."""
    shape = tuple(ds.sizes[dim] for dim in CELL_DIMS[:-1])
    if BASE not in ds.variables:
        return np.zeros(shape)
    base = ds.variables[BASE]
    values = base.transpose(*(dim for dim in CELL_DIMS if dim in base.dims)).values
    return np.array(np.broadcast_to(values, shape), dtype=float)
