"""What this user ran, kept outside of every cube: whom a cube's notes may name is decided by this record alone.

A cube may be somebody else's, and its notes then say what they want. Where requests and keys go, and which cache is
opened, therefore follows from a config that the user gives, or from the one that the same user ran the cube with.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from evalcube.storage.cube.cube import Cube
from evalcube.storage.files import replace_synced
from evalcube.storage.urls import at_home, resolved

STATE_VARIABLE = "XDG_STATE_HOME"
_FOLDER, _FILE = 0o700, 0o600


def state_folder() -> Path:
    """Where evalcube keeps what belongs to this user and to no cube; it may not be there yet."""
    state = os.environ.get(STATE_VARIABLE, "")
    return at_home(state if state.startswith("/") else "~/.local/state") / "evalcube"


def make_own_folder(folder: Path) -> None:
    """Make a folder in the state folder that is closed to others, as all between them are."""
    state = state_folder()
    state.parent.mkdir(parents=True, exist_ok=True)
    directory = state
    directory.mkdir(mode=_FOLDER, exist_ok=True)
    for part in folder.relative_to(state).parts:  # `mkdir` gives its mode to the last one only
        directory /= part
        directory.mkdir(mode=_FOLDER, exist_ok=True)


def write_own(path: Path, document: object) -> None:
    """Write a record of this user, whole and on disk."""
    make_own_folder(path.parent)
    replace_synced(path, json.dumps(document).encode(), _FILE)


def own_record(path: Path, most: int) -> dict[str, Any] | None:
    """A mapping in a JSON file that nobody else could have written; None if there is none."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None  # a home directory that several users share
            document = json.loads(file.read(most))
    except (OSError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


_READ_BYTES = 20_000_000
_CACHES = ".caches"


def remember_run(cube: Cube, config: Mapping[str, Any]) -> None:
    """Keep the config of a run that this user starts; without a writable home directory nothing is kept."""
    with suppress(OSError):  # the run goes on; only going on from the cube alone will need the config file
        path = _record(cube)
        # Which one is newest is decided by no clock.
        number = 1 + max((number for number, _ in _records(path.parent)), default=0)
        write_own(path, {"cube": _place(cube), "config": config, "number": number})


def remembered_config(cube: Cube) -> dict[str, Any] | None:
    """The config that this user last ran a cube with; None if there is no such run.

    A cube that was moved since is known by its spec; what was run in the same place counts first.
    """
    here = _read_run(_record(cube))
    if here is not None:
        return here[1]
    elsewhere = _records(_folder(cube))
    return max(elsewhere, key=lambda record: record[0])[1] if elsewhere else None


def remembered_code() -> set[str]:
    """The graders and templates with code that any config of this user's named in a run."""
    from evalcube.flows.config.raw_config import named_code  # with the rules of all sections

    try:
        folders = list((state_folder() / "runs").iterdir())
    except OSError:
        return set()
    return {name for folder in folders for _, config in _records(folder) for name in named_code(config)}


def remember_caches(cube: Cube, addresses: Sequence[str]) -> None:
    """Keep where the replies of a cube are that this user merged; without a writable home directory nothing is kept."""
    with suppress(OSError):  # whoever looks at replies then names the caches
        write_own(_record(cube).with_suffix(_CACHES), {"cube": _place(cube), "caches": list(addresses)})


def remembered_caches(cube: Cube) -> list[str]:
    """Where the replies of a cube are that this user merged; a cube that was moved since is known by its spec."""
    here = _record(cube).with_suffix(_CACHES)
    try:
        paths = [here, *sorted(path for path in here.parent.iterdir() if path.suffix == _CACHES)]
    except OSError:
        return []
    for path in paths:
        document = own_record(path, _READ_BYTES)
        listed = document.get("caches") if document is not None else None
        if isinstance(listed, list):
            return [address for address in listed if isinstance(address, str)]
    return []


def _place(cube: Cube) -> str:
    return resolved(cube.url)


def _record(cube: Cube) -> Path:
    return _folder(cube) / f"{_digest(_place(cube))}.json"


def _records(folder: Path) -> list[tuple[int, dict[str, Any]]]:
    """Numbers and configs of the runs that are recorded in a folder; those of one sweep in other places, too."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except OSError:
        return []
    return [record for record in map(_read_run, paths) if record is not None]


def _folder(cube: Cube) -> Path:
    """Where the runs of the cube's sweep are recorded."""
    return state_folder() / "runs" / _digest(json.dumps(cube.attrs.get("spec"), sort_keys=True))


def _read_run(path: Path) -> tuple[int, dict[str, Any]] | None:
    """Number and config of a record of this user's."""
    document = own_record(path, _READ_BYTES)
    match document:
        case {"number": int(number), "config": dict(config)}:
            return number, config
    return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
