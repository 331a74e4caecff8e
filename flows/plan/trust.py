"""What this user ran, kept outside of every cube: whom a cube's notes may name is decided by this record alone.

A cube may be somebody else's, and its notes then say what they want. Where requests and keys go, and which cache is
opened, therefore follows from a config that the user gives, or from the one that the same user ran the cube with.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from storage.cube.cube import Cube
from storage.files import replace_synced
from storage.urls import resolved

STATE_VARIABLE = "XDG_STATE_HOME"
_READ_BYTES = 20_000_000


def remember_run(cube: Cube, config: Mapping[str, Any]) -> None:
    """Keep the config of a run that this user starts; without a writable home directory nothing is kept.

    Parameters
    ----------
    cube
        The run's cube.
    config
        What the cube's notes hold as ``config``: JSON values, which name secrets' variables only.
    """
    document = json.dumps({"cube": _place(cube), "config": config})
    with suppress(OSError):  # the run goes on; only going on from the cube alone will need the config file
        path = _record(cube)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_synced(path, document.encode())


def remembered_config(cube: Cube) -> dict[str, Any] | None:
    """The config that this user last ran a cube with; None if there is no such run.

    A cube that was moved since is known by its spec; what was run in the same place counts first.
    """
    for path in (_record(cube), *_elsewhere(cube)):
        document = _read(path)
        if document is not None:
            return document
    return None


def _place(cube: Cube) -> str:
    return resolved(cube.url)


def _record(cube: Cube) -> Path:
    return _folder(cube) / f"{_digest(_place(cube))}.json"


def _elsewhere(cube: Cube) -> Iterator[Path]:
    """Records of the same sweep in other places, newest first."""
    try:
        found = [(entry.stat().st_mtime_ns, Path(entry)) for entry in os.scandir(_folder(cube))]
    except OSError:
        return
    yield from (path for _, path in sorted(found, reverse=True) if path.suffix == ".json")


def _folder(cube: Cube) -> Path:
    """Where the runs of the cube's sweep are recorded."""
    state = os.environ.get(STATE_VARIABLE, "")
    home = Path(state if state.startswith("/") else "~/.local/state").expanduser()
    return home / "evalcube" / "runs" / _digest(json.dumps(cube.attrs.get("spec"), sort_keys=True))


def _read(path: Path) -> dict[str, Any] | None:
    """The config of a record that nobody else could have written."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None  # a home directory that several users share
            document = json.loads(file.read(_READ_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    config = document.get("config") if isinstance(document, dict) else None
    return config if isinstance(config, dict) else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
