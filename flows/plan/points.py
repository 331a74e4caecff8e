"""Points of a task as people name them: a number, or some of their params."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from evalcube.flows.errors import SweepError
from evalcube.stages.generate.stream import canonical_params


def matching_points(points: Sequence[Mapping[str, object]], params: str | None) -> list[int]:
    """Indices of the points that a text stands for; all points if it is empty.

    Parameters
    ----------
    points
        Params of each point of a task.
    params
        A point's number, or some of its params as `read_params` takes them.
    """
    if params is None or not params.strip():
        return list(range(len(points)))
    text = params.strip()
    if text.isascii() and text.isdecimal():
        return [i for i in range(len(points)) if str(i) == text]
    wanted = read_params(text)
    return [i for i, point in enumerate(points) if _fits(canonical_params(point), wanted)]


def _fits(point: Mapping[str, object], wanted: Mapping[str, object]) -> bool:
    return all(key in point and point[key] == value for key, value in wanted.items())


def read_params(text: str) -> dict[str, object]:
    """Params as they are given on the command line: JSON, or ``name=value,...``.

    Raises
    ------
    SweepError
        If what begins like JSON is none.

    Examples
    --------
    >>> read_params("length=4.0,format=yes/no")
    {'format': 'yes/no', 'length': 4}
    """
    if text.startswith("{"):
        try:
            return canonical_params(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise SweepError(
                f"`params`: '{text}' is no JSON object", "Write it like length=4,max_depth=0"
            ) from error
    pairs = (part.partition("=") for part in text.split(","))
    return canonical_params({key.strip(): _value(value.strip()) for key, _, value in pairs})


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def differing(points: Sequence[Mapping[str, object]]) -> set[str]:
    """Names of the parameters in which points of one task differ.

    Parameters
    ----------
    points
        Parameters of each point, by name.

    Examples
    --------
    >>> differing([{"length": 2, "depth": 1}, {"length": 4, "depth": 1}])
    {'length'}
    """
    names = {name for point in points for name in point}
    return {name for name in names if any(point.get(name) != points[0].get(name) for point in points)}


def telling(params: Mapping[str, object], names: set[str] | None) -> Mapping[str, object]:
    """The parameters that tell a point from others of its task; if none do all, and of a data set its file's name.

    Parameters
    ----------
    params
        Of the point.
    names
        Those in which points of the task differ, if that is known.

    Examples
    --------
    >>> telling({"length": 3, "depth": 1}, {"length"})
    {'length': 3}
    >>> telling({"file": "data/a.jsonl", "kind": "text", "sha256": "0f3e"}, set())
    {'file': 'a.jsonl'}
    >>> telling({"file": "data/a.jsonl", "kind": "text", "sha256": "0f3e5a2015fe"}, {"sha256"})
    {'file_version': '0f3e5a20'}
    """
    found = {name: value for name, value in params.items() if names and name in names}
    if "sha256" in found:  # by the name and at the length that conditions take
        found["file_version"] = str(found.pop("sha256"))[:8]
    if found:
        return found
    if "file" in params and "sha256" in params:  # how it is read is the same for all of its questions
        return {"file": str(params["file"]).rpartition("/")[2]}
    return params
