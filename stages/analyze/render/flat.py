"""Rows of plain values as flat records, one for each line of a CSV file or a data frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_PREFIXES = {"facets": "facet", "counters": ""}
"""What stands before the names within a mapping, where that is not the mapping's own name."""
_LABEL = "tier"
"""The key by which rows within a row are told apart."""


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of JSON values without anything nested.

    An estimate under ``score`` becomes ``score``, ``score_lower`` and ``score_upper``; what is said of a tier has the
    tier's name before it; lists of plain values become one text.

    Parameters
    ----------
    row
        Plain values, mappings and lists of them.

    Examples
    --------
    >>> flat({"score": {"value": 2.0, "lower": 1.0}, "tiers": [{"tier": "easy", "tokens": 3}], "front": ["a", "b"]})
    {'score': 2.0, 'score_lower': 1.0, 'easy_tokens': 3, 'front': 'a, b'}
    """
    return dict(_leaves(row))


def records(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows made flat, each with the keys of all; None where it has no value.

    Parameters
    ----------
    rows
        As for `flat`.
    """
    found = [flat(row) for row in rows]
    names = dict.fromkeys(name for row in found for name in row)
    return [{name: row.get(name) for name in names} for row in found]


def data_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows made flat, as a data frame.

    Parameters
    ----------
    rows
        As for `flat`.
    """
    import pandas as pd

    return pd.DataFrame(records(rows))


def _leaves(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        whole = "_".join(filter(None, (prefix, "" if name == "value" and prefix else str(name))))
        if isinstance(value, Mapping):
            yield from _leaves(value, "_".join(filter(None, (prefix, _PREFIXES.get(name, str(name))))))
        elif isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):
            for place, item in enumerate(value):
                label = str(item.get(_LABEL, f"{whole}_{place}"))
                inner = {key: part for key, part in item.items() if key != _LABEL}
                yield from _leaves(inner, "_".join(filter(None, (prefix, label))))
        elif isinstance(value, list | tuple):
            yield whole, ", ".join(map(str, value))
        else:
            yield whole, value
