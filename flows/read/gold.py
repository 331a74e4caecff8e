"""Read files of ratings by people, with which judges are compared."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from evalcube.flows.config.secrecy import show
from evalcube.flows.errors import SweepError

LARGEST_FILE = 50_000_000
"""Bytes."""
_FORM = (
    'Write a line for each rating, such as {"unit": "qa/0/3", "score": 4}; or a CSV with columns unit, score'
)


def read_gold(path: str | Path, ids: Mapping[str, list[str]]) -> dict[str, float]:
    """Ratings by unit.

    Parameters
    ----------
    path
        JSON lines, or a CSV file with a header (``.csv``). Each row has a ``score`` from 1 to 5, and the ``unit`` or
        the ``id`` that the data set gives it.
    ids
        Units that each id of a data set stands for.

    Returns
    -------
    dict
        Unit -> rating, from 1 to 5; ids that no unit has stay as ``id:...``.

    Raises
    ------
    SweepError
        If the file cannot be read, or a row is not a rating of one unit.
    """
    ratings: dict[str, float] = {}
    for line, row in _rows(Path(path)):
        place = f"{path}:{line}"
        unit = _unit(row, ids, place)
        if unit in ratings:
            raise SweepError(
                f"{place}: unit {show(unit)} is rated twice", "Keep one rating, such as the mean"
            )
        ratings[unit] = _score(row.get("score"), place)
    if not ratings:
        raise SweepError(f"{path}: holds no rating", _FORM)
    return ratings


def _unit(row: Mapping[str, object], ids: Mapping[str, list[str]], place: str) -> str:
    unit, name = row.get("unit"), row.get("id")
    if isinstance(unit, str) and unit:
        return unit
    if not isinstance(name, str) or not name:
        raise SweepError(f"{place}: has neither unit nor id", _FORM)
    found = ids.get(name, [])
    if len(found) > 1:
        raise SweepError(
            f"{place}: id {show(name)} stands for {len(found)} units, such as {found[0]} and {found[1]}",
            "Name the unit, or choose one task with `tasks`",
        )
    return found[0] if found else f"id:{name}"


def _score(value: object, place: str) -> float:
    try:
        score = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else 0.0
    except ValueError:
        score = 0.0
    if not (math.isfinite(score) and 1 <= score <= 5):
        raise SweepError(f"{place}: score must be a number from 1 to 5, got {show(value)}", "Correct the row")
    return score


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    """The rows of a file with their line numbers."""
    text = _read(path)
    if path.suffix.lower() == ".csv":
        reader = csv.DictReader(io.StringIO(text, newline=""))
        try:
            for row in reader:
                yield reader.line_num, row
        except csv.Error as error:
            raise SweepError(f"{path}:{reader.line_num}: is no CSV ({error})", _FORM) from None
        return
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise SweepError(f"{path}:{number}: is no JSON object", _FORM)
        yield number, document


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise SweepError(f"{path}: cannot be read: {error.strerror}", "Check the path") from None
    if len(data) > LARGEST_FILE:
        raise SweepError(f"{path}: is larger than {LARGEST_FILE:,} bytes", "Give ratings only")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SweepError(f"{path}: is no UTF-8 text", "Save it as UTF-8") from None
