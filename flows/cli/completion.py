"""What a shell offers at the Tab key: addresses of cubes, names of tasks, and names of models and tasks in a cube.

Whatever is in the way (no cube, a damaged one, a plugin that fails) there is just nothing to offer. Names come from
cubes and folders that anyone may have made, and shells evaluate some of what they are given: a name with another
character than `_PLAIN` has is not offered at all.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

_PLAIN = re.compile(r"[\w.@/+=:,%][\w.@/+=:,%-]*")
_ODD = re.compile(r"[^\w.@/+=,% -]")

_MOST_BYTES = 50_000_000
_MOST_CUBES = 100
_MOST_FOLDERS = 1000
_DEPTH = 3
_SECONDS = 0.5

Offer = tuple[str, str]
"""A value, and what a shell that shows help says of it."""


def cubes(incomplete: str) -> list[str]:
    """Addresses of cubes in the folder that was typed and below; those of other stores cannot be listed."""
    typed, begun = os.path.split(incomplete)
    folder = Path(typed or ".").expanduser()
    try:
        found = sorted(_cubes_below(folder, begun))
    except OSError:
        return []
    prefix = incomplete.removesuffix(begun) if begun else incomplete
    return [prefix + path for path in found if _PLAIN.fullmatch(path)][:_MOST_CUBES]


def _cubes_below(folder: Path, begun: str) -> Iterator[str]:
    """Paths, relative to the folder, of cubes whose first part begins like that: near ones first, not for long."""
    until = time.monotonic() + _SECONDS
    waiting = deque([("", folder)])
    for _ in range(_MOST_FOLDERS):
        if not waiting or time.monotonic() > until:
            return
        above, place = waiting.popleft()
        with os.scandir(place) as entries:
            for entry in entries:
                path = above + entry.name
                if entry.name.startswith(".") or not path.startswith(begun):
                    continue
                if entry.name.endswith(".zarr") and entry.is_dir():
                    yield path
                elif path.count("/") < _DEPTH and entry.is_dir(follow_symlinks=False) and _readable(entry):
                    waiting.append((f"{path}/", Path(entry.path)))


def _readable(entry: os.DirEntry[str]) -> bool:
    return os.access(entry.path, os.R_OK | os.X_OK)


def tasks(incomplete: str) -> list[Offer]:
    """Names of the tasks that are installed, with what they ask."""
    from evalcube.stages.generate import all_tasks

    known, _ = all_tasks().sound()
    return _offers([(task.name, task.summary) for task in known], incomplete)


def models_of_cube(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """Evaluations of the cube on the command line: models' names; numbers where a name stands for several."""
    rows = _items(_spec(ctx), "evaluations")
    names = [_text(row.get("model")) for row in rows]
    counts = Counter(names)
    offers = []
    for index, (row, name) in enumerate(zip(rows, names, strict=True)):
        if not name:
            continue
        parts = (name, _name(row, "template"), _name(row, "sampler"))
        offers.append((name if counts[name] == 1 else str(index), " / ".join(filter(None, parts))))
    return _offers(offers, incomplete)


def tasks_of_cube(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """Labels of the tasks of the cube on the command line."""
    rows = _items(_spec(ctx), "tasks")
    return _offers([(_text(row.get("label")), _text(row.get("name"))) for row in rows], incomplete)


def _offers(offers: Sequence[Offer], incomplete: str) -> list[Offer]:
    return [
        (value, _ODD.sub("", text))
        for value, text in offers
        if value.startswith(incomplete) and _PLAIN.fullmatch(value)
    ]


def _name(row: dict[str, Any], part: str) -> str:
    found = row.get(part)
    return _text(found.get("name")) if isinstance(found, dict) else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _items(spec: object, name: str) -> list[dict[str, Any]]:
    found = spec.get(name) if isinstance(spec, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _spec(ctx: typer.Context) -> object:
    """The description of the first cube on the command line, read from its metadata: nothing slow is imported."""
    # An option that lacks its value yet stops the parser before it comes to arguments: it leaves them as they are.
    for word in (ctx.params.get("cube"), ctx.params.get("source"), *ctx.args):
        path = Path(str(word or "")).expanduser() / "zarr.json"
        try:
            if word and path.is_file() and path.stat().st_size < _MOST_BYTES:
                return json.loads(path.read_bytes())["attributes"]["spec"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return None
