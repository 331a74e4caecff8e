"""A drawing of words, lines and dots, and how it becomes SVG or a page of PDF."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from evalcube.stages.analyze.labelled.axes import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLES: Mapping[str, Mapping[str, str | float]] = {
    "h": {"font-size": 26, "font-weight": "bold"},
    "s": {"font-size": 12, "fill": "#565f6b"},
    "b": {"font-weight": "bold"},
    "e": {"text-anchor": "end"},
    "m": {"text-anchor": "middle"},
    "d": {"fill": "#a8420b"},
    "f": {"opacity": 0.55},
}
"""What the kinds of words look like, as properties of SVG: headings, small ones, doubts, faint ones ..."""
_PLAIN: Mapping[str, str | float] = {"font-size": 13, "fill": "#1a1e24"}
_FAMILY = "'Helvetica Neue',Arial,'Liberation Sans','DejaVu Sans',sans-serif"

_POINT = 0.75
"""Points of a page of PDF in a pixel."""
_PDF_FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Zen Hei", "Arial Unicode MS")
"""The first comes with matplotlib; of the others those that are installed draw what it lacks."""
_PDF_SIZE = 0.88
"""Its letters are wider than those that a drawing is laid out for."""
_ALIGNMENTS = {"end": "right", "middle": "center"}


@dataclass(frozen=True)
class Words:
    """A line of text, shown as it is."""

    x: float
    """Where it begins; in kinds `e` and `m` where it ends, and its middle."""
    y: float
    """Of the line that it stands on."""
    text: str
    kind: str = ""
    """Names in `STYLES`, separated by spaces."""
    room: float = math.inf
    """Width that it must keep to, where it can be measured."""

    @property
    def style(self) -> dict[str, str | float]:
        """Its properties."""
        found = dict(_PLAIN)
        for name in self.kind.split():
            found |= STYLES[name]
        return found


@dataclass(frozen=True)
class Lines:
    """Straight lines of one pen."""

    ends: tuple[tuple[float, float, float, float], ...]
    """Of each line x and y of one end, then of the other."""
    colour: str
    width: float = 1.0


@dataclass(frozen=True)
class Dot:
    """A circle."""

    x: float
    y: float
    radius: float
    fill: str
    colour: str
    width: float


@dataclass(frozen=True)
class Drawing:
    """A page; positions are pixels from its upper left corner, and later marks lie on earlier ones."""

    marks: Sequence[Words | Lines | Dot]
    width: float
    height: float
    title: str = ""

    def svg(self) -> str:
        """The drawing as SVG.

        Returns
        -------
        str
            One element; all text is only text in it.
        """
        size = f'width="{self.width:.0f}" height="{self.height:.0f}"'
        box = f'viewBox="0 0 {self.width:.0f} {self.height:.0f}"'
        family = f"text{{font-family:{_FAMILY};{_css(_PLAIN)}}}"
        style = family + "".join(f".{name}{{{_css(one)}}}" for name, one in STYLES.items())
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box}><style>{style}</style>'
            f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(map(_element, self.marks))}</svg>\n'
        )

    def pdf(self) -> bytes:
        """The drawing as a document of one page, its text to be searched and copied; needs matplotlib.

        Returns
        -------
        bytes
            The same for the same drawing, with the same matplotlib and fonts.
        """
        import matplotlib
        from matplotlib.backends.backend_pdf import FigureCanvasPdf
        from matplotlib.figure import Figure
        from matplotlib.font_manager import get_font_names

        there = {*get_font_names(), _PDF_FONTS[0]}
        # Letters as those of a font and not as shapes; nothing in a name is a formula.
        options = matplotlib.rc_context(
            {
                "pdf.fonttype": 42,
                "font.family": [name for name in _PDF_FONTS if name in there],
                "text.usetex": False,
            }
        )
        with options, warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message="Glyph .* missing"
            )  # it can be searched for all the same
            figure = Figure((self.width / 96, self.height / 96))
            FigureCanvasPdf(figure)
            for depth, mark in enumerate(self.marks):
                _draw(figure, mark, self, depth)
            found = io.BytesIO()
            metadata = {"Title": plain(self.title), "Creator": "evalcube", "CreationDate": None}
            figure.savefig(found, format="pdf", metadata=metadata)
        return found.getvalue()


def _css(style: Mapping[str, str | float]) -> str:
    return ";".join(f"{name}:{value}{'px' if name == 'font-size' else ''}" for name, value in style.items())


def _element(mark: Words | Lines | Dot) -> str:
    if isinstance(mark, Words):
        kind = f' class="{mark.kind}"' if mark.kind else ""
        return f'<text x="{mark.x:.1f}" y="{mark.y:.1f}"{kind}>{escape(plain(mark.text))}</text>'
    pen = f'stroke="{mark.colour}" stroke-width="{mark.width:g}"'
    if isinstance(mark, Dot):
        return f'<circle cx="{mark.x:.1f}" cy="{mark.y:.1f}" r="{mark.radius:g}" fill="{mark.fill}" {pen}/>'
    path = "".join(f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" for a, b, c, d in mark.ends)
    return f'<path d="{path}" {pen}/>'


def _draw(figure: Figure, mark: Words | Lines | Dot, page: Drawing, depth: int) -> None:
    """Put a mark on a figure of matplotlib, whose positions are shares of it from the lower left corner."""
    from matplotlib.lines import Line2D

    def across(x: float) -> float:
        return x / page.width

    def up(y: float) -> float:
        return 1 - y / page.height

    if isinstance(mark, Words):
        style = mark.style
        drawn = figure.text(
            across(mark.x),
            up(mark.y),
            plain(mark.text),
            fontsize=float(style["font-size"]) * _POINT * _PDF_SIZE,
            fontweight=str(style.get("font-weight", "normal")),
            color=str(style["fill"]),
            alpha=float(style.get("opacity", 1)),
            ha=_ALIGNMENTS.get(str(style.get("text-anchor", "")), "left"),
            va="baseline",
            zorder=depth,
            parse_math=False,
        )
        if math.isfinite(mark.room):
            wide = drawn.get_window_extent().width / figure.dpi * 96
            drawn.set_fontsize(float(drawn.get_fontsize()) * min(1.0, mark.room / max(wide, 1.0)))
        return
    wide = mark.width * _POINT
    if isinstance(mark, Dot):
        dot = Line2D(
            [across(mark.x)],
            [up(mark.y)],
            marker="o",
            markersize=2 * mark.radius * _POINT,
            markerfacecolor=mark.fill,
            markeredgecolor=mark.colour,
            markeredgewidth=wide,
            zorder=depth,
        )
        figure.add_artist(dot)
        return
    for a, b, c, d in mark.ends:
        ends = [across(a), across(c)], [up(b), up(d)]
        figure.add_artist(Line2D(*ends, color=mark.colour, linewidth=wide, zorder=depth))
