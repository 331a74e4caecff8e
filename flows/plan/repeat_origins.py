"""The record of repeats that were first ones in another cube: which cube, and which repeat they were there.

A repeat's number is part of its request, and so of the key of its reply. A merge that keeps two teams' answers to one
trial moves those of one team to other numbers; their replies stay under the keys that they have in that team's cache.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.records import read_record
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import guarded

ORIGINS = "repeats.json"
"""Its key among a cube's records."""

MERGED = "merged"
"""Attribute of a cube that was made of several."""

_BYTES = 100_000_000
_LONGEST = 120


class Origin(NamedTuple):
    """Where a repeat was measured."""

    cube: str
    """Last part of that cube's address."""
    repeat: int
    """Its number there."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Repeats of a cell that stand one after another here and there."""

    first: int
    """Number of the first one here."""
    count: int
    own: int
    """Its number in the cube that it was measured into."""
    cube: str
    """Last part of that cube's address."""


Cells = Mapping[tuple[str, str, str], Sequence[Moved]]
"""By eval_id, label of the task and cell_id."""


class RepeatOrigins:
    """Where the repeats of a cube were measured, as far as a merge gave them other numbers.

    Parameters
    ----------
    cells
        What was moved.
    """

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    def __bool__(self) -> bool:
        """Whether anything was moved."""
        return bool(self._cells)

    def of(self, plan: Plan, model: int, task: int, slot: int, repeat: int) -> list[Origin]:
        """Where a repeat may have been measured; nothing for one that was never moved.

        Parameters
        ----------
        plan
            Of the cube; cells are known by their identities, so that it may have grown since.
        model, task, slot
            Indices along ``model``, ``task`` and ``params``.
        repeat
            Its number.

        Returns
        -------
        list of Origin
            Several where cubes had trials of their own with the same numbers.
        """
        entry = plan.tasks[task]
        place = (plan.evaluations[model].eval_id, entry.label, entry.cells[slot].cell.id)
        return [
            Origin(moved.cube, moved.own + repeat - moved.first)
            for moved in self._cells.get(place, ())
            if moved.first <= repeat < moved.first + moved.count
        ]

    def shifted(self, place: tuple[str, str, str], offset: int) -> list[Moved]:
        """What is known of a cell, its repeats so much later."""
        return [replace(moved, first=moved.first + offset) for moved in self._cells.get(place, ())]


def read_origins(records: Space) -> RepeatOrigins:
    """What a cube says of its repeats; what no merge has written is passed over.

    Parameters
    ----------
    records
        Of the cube.
    """
    document = read_record(records, ORIGINS, _BYTES)
    listed = document.get("moved") if isinstance(document, dict) else None
    cells: dict[tuple[str, str, str], list[Moved]] = defaultdict(list)
    for item in listed if isinstance(listed, list) else ():
        match item:
            case {
                "cells": list(places),
                "cube": str(cube),
                "first": int(first),
                "count": int(count),
                "own": int(own),
            }:
                moved = Moved(first, count, own, named(cube))
            case _:
                continue
        for place in places:
            match place:
                case [str(model), str(task), str(cell)]:
                    cells[model, task, cell].append(moved)
    return RepeatOrigins(dict(cells))


def write_origins(records: Space, cells: Cells) -> None:
    """Note where repeats were measured.

    Parameters
    ----------
    records
        Of a cube that is being made.
    cells
        What was moved.
    """
    places: dict[Moved, list[tuple[str, str, str]]] = defaultdict(list)
    for place, found in cells.items():
        for moved in found:
            places[moved].append(place)
    listed = [
        {"cube": one.cube, "first": one.first, "count": one.count, "own": one.own, "cells": sorted(where)}
        for one, where in places.items()
    ]
    with guarded(records.address, "note where repeats were measured"):
        records.put(ORIGINS, json.dumps({"moved": listed}).encode())


def named(cube: str) -> str:
    """What a cube is called in the record: the last part of its address, which says nothing of machines and folders."""
    name = cube.rstrip("/\\").replace("\\", "/").rpartition("/")[2]
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
