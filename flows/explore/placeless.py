"""Answers as strangers may have them: with the names of cubes and without where they, caches and homes lie."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from evalcube.flows.explore.explored import Explored
from evalcube.storage.errors import UnsupportedUrlError
from evalcube.storage.urls import absolute, redacted, resolved

_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s\"'<>]*", re.IGNORECASE)
_NOTES = frozenset({"notes", "warnings", "warning", "causes", "remedy"})
"""Sentences of the program, which may name an endpoint."""

_TEXTS = frozenset({"prompt", "response", "reasoning", "content", "parsed", "answer", "reference"})
"""Of questions and replies, which stay as they are, but for the addresses of the cubes and caches at hand."""


class Placeless:
    """Takes places out of answers.

    Parameters
    ----------
    explored
        The cubes that the answers are of.
    caches
        Addresses of caches that their notes name.
    """

    def __init__(self, explored: Explored, caches: tuple[str, ...] = ()) -> None:
        names = cube_names(explored.cubes)
        self._names = dict(zip(explored.addresses, names, strict=True))
        spelled = {
            form: name for one, name in zip(explored.cubes, names, strict=True) for form in _spellings(one)
        }
        spelled |= {form: "the cache" for one in caches for form in _spellings(one)}
        # A whole path also where only its folder would be found, and no bare name, which may be any word.
        self._spelled = sorted(
            ((form, name) for form, name in spelled.items() if "/" in form), key=lambda one: -len(one[0])
        )

    def __call__(self, value: Any, key: str = "") -> Any:  # noqa: ANN401 - any JSON value
        """The same value without places.

        Parameters
        ----------
        value
            JSON values.
        key
            Under which it stands.
        """
        if isinstance(value, Mapping):
            return {name: self(item, str(name)) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self(item, key) for item in value]
        if not isinstance(value, str):
            return value
        if key == "running":  # which names the machine
            return "at work"
        if value in self._names:
            return self._names[value]
        for form, name in self._spelled:
            value = value.replace(form, name)
        home = str(Path.home())
        if key not in _TEXTS and len(home) > 1:
            value = re.sub(re.escape(home) + r"(?![\w.-])", "~", value)
        return _URL.sub("an address", value) if key in _NOTES else value


def cube_names(addresses: tuple[str, ...]) -> list[str]:
    """The last part of each address; with its number where two have the same.

    Examples
    --------
    >>> cube_names(("/data/one.zarr", "s3://bucket/a/one.zarr", "two.zarr/"))
    ['one.zarr (1)', 'one.zarr (2)', 'two.zarr']
    """
    found = [redacted(one).partition("?")[0].rstrip("/").rpartition("/")[2] or "cube" for one in addresses]
    return [name if found.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(found, 1)]


def _spellings(address: str) -> set[str]:
    found = {str(address), redacted(address)}
    with suppress(UnsupportedUrlError):
        found |= {absolute(address), resolved(address)}
    return {one.rstrip("/") for one in found}
