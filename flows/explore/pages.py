"""The files of the front end: our own scripts and styles, and plotly.js out of the installed plotly."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from evalcube.flows.errors import SweepError

_STATIC = Path(__file__).parent / "static"

PLOTLY = "plotly.min.js"
TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}

POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    # plotly.js adds rules of its own to the page; styles can run nothing.
    "style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)
"""Content security policy: scripts are files beside the page, and nothing is loaded from elsewhere."""


@cache
def own_files() -> dict[str, bytes]:
    """The front end's files by their path below the page."""
    return {
        path.relative_to(_STATIC).as_posix(): path.read_bytes()
        for path in sorted(_STATIC.rglob("*"))
        if path.suffix in TYPES
    }


def plotly_file() -> Path:
    """Where the installed plotly keeps plotly.js.

    Raises
    ------
    SweepError
        If it is not installed.
    """
    spec = find_spec("plotly")
    found = (
        None if spec is None or spec.origin is None else Path(spec.origin).parent / "package_data" / PLOTLY
    )
    if found is None or not found.is_file():
        raise SweepError(
            "the explorer's charts need the extra `explore`, which is not installed",
            "Run: pip install 'evalcube[explore]'",
        )
    return found
