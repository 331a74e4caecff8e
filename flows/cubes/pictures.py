"""A drawing as SVG in; a picture in a file, SVG or PNG, out."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from flows.cubes.outputs import check_output, write_output
from flows.errors import SweepError

ZOOM = 4
"""Pixels of a PNG for each unit of a drawing."""


def check_picture(path: Path | None) -> None:
    """Refuse a picture that could not be made, before the work is done.

    Raises
    ------
    SweepError
        If the name ends in neither .svg nor .png, PNG needs something that is not installed, or something other
        than a file is there.
    """
    if path is None:
        return
    kind = path.suffix.lower()
    if kind not in (".svg", ".png"):
        raise SweepError(f"--plot: '{path}' ends neither in .svg nor in .png", "Give the file such a name")
    check_output(path)
    if kind == ".png":
        _png(_PROBE.format(text=""))


def write_picture(path: Path, svg: str) -> None:
    """Write a drawing in the form that the file's name asks for.

    Raises
    ------
    SweepError
        As `check_picture`.
    StorageError
        If it cannot be written.
    """
    data = svg.encode("utf-8", "replace") if path.suffix.lower() == ".svg" else _png(svg)
    write_output(path, data, "write the picture")


_PROBE = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20" font-family="sans-serif">{text}</svg>'
_LETTER = '<text x="2" y="16">M</text>'


def _png(svg: str) -> bytes:
    try:
        render = import_module("resvg_py").svg_to_bytes
    except ImportError as error:
        raise SweepError(
            "a PNG needs the extra `plots`, which is not installed",
            "Run: pip install 'evalcube[plots]', or name the file .svg",
        ) from error
    blank, letter = (bytes(render(svg_string=_PROBE.format(text=text))) for text in ("", _LETTER))
    if blank == letter:  # text would be missing without a word
        raise SweepError(
            "a PNG needs a font, and this machine has none",
            "Install one, such as fonts-dejavu, or name the file .svg",
        )
    return bytes(render(svg_string=svg, zoom=ZOOM))
