"""Keeps what belongs to this user and to no cube where nobody else reads it: folders of mode 700, files of mode 600."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from evalcube.storage.files import replace_synced

STATE_VARIABLE = "XDG_STATE_HOME"
_FOLDER, _FILE = 0o700, 0o600


def state_folder() -> Path:
    """Where evalcube keeps what belongs to this user and to no cube; it may not be there yet."""
    state = os.environ.get(STATE_VARIABLE, "")
    return Path(state if state.startswith("/") else "~/.local/state").expanduser() / "evalcube"


def make_own_folder(folder: Path) -> None:
    """Make a folder in the state folder that is closed to others, as all between them are.

    Parameters
    ----------
    folder
        The state folder, or one below it.

    Raises
    ------
    OSError
        If it cannot be made.
    """
    state = state_folder()
    state.parent.mkdir(parents=True, exist_ok=True)
    place = state
    place.mkdir(mode=_FOLDER, exist_ok=True)
    for part in folder.relative_to(state).parts:  # `mkdir` gives its mode to the last one only
        place /= part
        place.mkdir(mode=_FOLDER, exist_ok=True)


def write_own(path: Path, document: object) -> None:
    """Write a record of this user, whole and on disk.

    Parameters
    ----------
    path
        In the state folder, or below it.
    document
        JSON values.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    make_own_folder(path.parent)
    replace_synced(path, json.dumps(document).encode(), _FILE)


def own_record(path: Path, most: int) -> dict[str, Any] | None:
    """A mapping in a JSON file that nobody else could have written; None if there is none.

    Parameters
    ----------
    path
        The file.
    most
        Bytes that are read of it.
    """
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None  # a home directory that several users share
            document = json.loads(file.read(most))
    except (OSError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
