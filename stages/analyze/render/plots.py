"""Results as matplotlib figures, for notebooks, papers and the option ``--plot``."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evalcube import EvalcubeError
from evalcube.stages.analyze.labelled.axes import plain
from evalcube.stages.analyze.labelled.forensics import FrontRow
from evalcube.stages.analyze.labelled.pairing import Pair
from evalcube.stages.analyze.labelled.ranking import Ranking
from evalcube.stages.analyze.labelled.remarks import label_rows
from evalcube.stages.analyze.labelled.results import Estimate, Leaderboard
from evalcube.stages.analyze.render.text import shorten

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NAME = 40
"""Characters of a label in a figure; longer ones are cut in the middle, so that the figure keeps its room."""
_WIDTH = 8.0
_INCH = 0.32
"""Height of a row."""
_COLOUR = "#0b5c94"

COLOURS = ("#2f6f9f", "#c8553d", "#4c8b48", "#8a5fa8", "#b07d12", "#52606d")
"""One for each of `SHAPES`; told apart in the common forms of colour blindness."""
SHAPES = "osD^vP"
_KEY = 0.2
"""Height of a line of the legend in inches."""
_MOST_KEY = 72
"""Characters of a name in the legend."""
_FAINT = 0.35
_FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Zen Hei", "Arial Unicode MS")
"""The first comes with matplotlib; of the others those that are installed draw what it lacks."""


def picture(figure: Figure, kind: str) -> bytes:
    """A figure as a file, the same for the same figure; nothing in its words is a formula."""
    import matplotlib
    from matplotlib.font_manager import get_font_names
    from matplotlib.text import Text

    there = {*get_font_names(), _FONTS[0]}
    for text in figure.findobj(Text):
        text.set(family=[name for name in _FONTS if name in there], parse_math=False)
    found = io.BytesIO()
    with (
        matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "evalcube"}),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(found, format=kind, dpi=200, metadata={"Date": None} if kind == "svg" else None)
    return found.getvalue()


def page(height: float) -> Figure:
    """An empty figure which no window belongs to.

    Parameters
    ----------
    height
        In inches.
    """
    from matplotlib.figure import Figure

    return Figure((_WIDTH, height), layout="constrained")


@dataclass(frozen=True)
class Series:
    """A line, or a mark, in the units of the data; NaN breaks a line."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    lower: Sequence[float] = ()
    """Bounds drawn as a band; empty for none."""
    upper: Sequence[float] = ()
    full: bool | None = None
    """Whether it is a full mark or a faint one; None for a line."""
    shape: int = 0
    colour: int | None = None
    """Number of the colour; default: the place in the drawing."""
    steps: bool = False
    """Whether nothing between two points is reached."""


def draw(
    series: Sequence[Series],
    *,
    x_label: str,
    y_label: str,
    x_from: float | None = 0.0,
    y_from: float | None = None,
) -> Figure:
    """Lines and marks with a legend below them.

    Parameters
    ----------
    x_from, y_from
        Where the axes begin; None: where the data do.
    """
    figure = page(4.5 + _KEY * len(series))
    ax = figure.subplots()
    handles = []
    for place, one in enumerate(series):
        colour = COLOURS[(place if one.colour is None else one.colour) % len(COLOURS)]
        style: dict[str, Any] = {"drawstyle": "steps-post" if one.steps else "default"}
        if one.full is not None:
            style = {
                "linestyle": "",
                "marker": SHAPES[one.shape % len(SHAPES)],
                "alpha": 1.0 if one.full else _FAINT,
            }
        handles += ax.plot(one.x, one.y, color=colour, **style)
        if one.lower:
            ax.fill_between(one.x, one.lower, one.upper, color=colour, alpha=0.15, linewidth=0)
    ax.set_xlim(left=x_from)
    ax.set_ylim(bottom=y_from)
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.grid(axis="y", color="#e1e5e9")
    legend = figure.legend(handles, [str(place) for place in range(len(series))], loc="outside lower left")
    for text, one in zip(
        legend.get_texts(), series, strict=True
    ):  # a label may begin with _ there, which hides it
        text.set_text(shorten(one.name, _MOST_KEY))
    return figure


def hazard_figure(table: xr.Dataset, names: Sequence[str]) -> Figure:
    """Hazards of right answers over tokens: of the trials still at work, how many end so in each bin, with a band.

    A value stands in the middle of its bin; where no trial is at risk any more, the line ends.

    Parameters
    ----------
    table
        From `evalcube.stages.analyze.labelled.forensics.hazard_table`, without tasks.
    """
    ends = table["tokens"].values
    middles = (np.concatenate([[0.0], ends[:-1]]) + ends) / 2
    hazards = table["hazard"].sel(cause="right")
    series = [
        Series(name, middles.tolist(), *hazards.isel(model=index).transpose("bound", "bin").values.tolist())
        for index, name in enumerate(names)
    ]
    label = f"hazard of right answers per {int(ends[0]) if ends.size else 0:,} tokens"
    return draw(series, x_label="tokens", y_label=label, y_from=0.0)


def pareto_figure(rows: Sequence[FrontRow], *, against: str = "tokens") -> Figure:
    """Score against tokens or cost: a mark for each evaluation, those on the front joined in steps.

    Parameters
    ----------
    rows
        From `evalcube.stages.analyze.labelled.forensics.pareto_rows`.
    against
        "tokens" (per trial) or "cost" (USD per 1 000 trials).
    """
    spends = [row.tokens if against == "tokens" else row.cost for row in rows]
    on = [row.on_token_front if against == "tokens" else row.on_cost_front for row in rows]
    best = sorted((spend, row.score) for spend, row, here in zip(spends, rows, on, strict=True) if here)
    front = Series(
        "Pareto front", [x for x, _ in best], [y for _, y in best], colour=len(COLOURS) - 1, steps=True
    )
    points = [
        Series(
            row.model_name + (" (not shown: no price)" if math.isnan(spend) else ""),
            [spend],
            [row.score],
            full=here,
            shape=kind,
            colour=kind + kind // len(COLOURS),  # after six another colour of the same shape
        )
        for kind, (row, spend, here) in enumerate(zip(rows, spends, on, strict=True))
    ]
    label = "tokens per trial" if against == "tokens" else "USD per 1 000 trials"
    return draw([front, *points], x_label=label, y_label="score")


def compression_figure(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Compressibility against bytes per token: a mark for each evaluation (colour) and outcome (shape).

    Parameters
    ----------
    rows
        With model, outcome, ratio and bytes_per_token.
    """
    models, outcomes = (list(dict.fromkeys(row[name] for row in rows)) for name in ("model", "outcome"))
    series = [
        Series(
            f"{row['model']} · {row['outcome']}",
            [row["bytes_per_token"]],
            [row["ratio"]],
            full=True,
            shape=outcomes.index(row["outcome"]),
            colour=models.index(row["model"]),
        )
        for row in rows
    ]
    return draw(
        series, x_label="bytes of the trace per token", y_label="compressed bytes per byte", x_from=None
    )


def board_figure(board: Leaderboard) -> Figure:
    """What leads a leaderboard, as `plot_board` draws it."""
    figure = page(_height(len(board.rows)))
    plot_board(board, figure.subplots())
    return figure


def plot_board(board: Leaderboard, ax: Axes | None = None) -> Axes:
    """What leads a leaderboard; open marks are not ranked.

    Parameters
    ----------
    ax
        Where to draw; default: a new figure.
    """
    scale = 1.0 if board.lead == "score" else 100.0
    rows = [
        (label, board.leading(row).scaled(scale), row.rank is not None)
        for row, label in zip(board.rows, label_rows(board.rows), strict=True)
    ]
    words = "ReasonScore" if board.lead == "score" else f"{board.rate_name}, per cent"
    return _forest(rows, f"{words} ({100 * board.confidence:g} % intervals)", ax)


def plot_ranks(ranking: Ranking, ax: Axes | None = None) -> Axes:
    """Places that each evaluation takes when the questions are drawn again.

    Parameters
    ----------
    ranking
        Of the rows of a leaderboard.
    ax
        Where to draw; default: a new figure.
    """
    rows = [(item.label, item.row.rank_interval, item.row.rank is not None) for item in ranking.rows]
    return _forest(rows, "rank: mean and interval over the draws", ax)


def plot_differences(pairs: Sequence[Pair], ax: Axes | None = None) -> Axes:
    """Differences of success rates: by task of one pair, overall of several; open marks may be chance.

    Parameters
    ----------
    ax
        Where to draw; default: a new figure.
    """
    if len(pairs) == 1:
        words = f"{_short(pairs[0])}, points of 100"
        items = [(one.task or "all tasks", one) for one in (*pairs[0].tasks, pairs[0].overall)]
    else:
        words = "first − second, points of 100"
        items = [(_short(pair), pair.overall) for pair in pairs]
    rows = [(label, one.difference.scaled(100.0), one.p_holm < 0.05) for label, one in items]
    found = _forest(rows, f"{words} (95 % intervals)", ax)
    found.axvline(0.0, color="#565f6b", linewidth=1, zorder=0)
    return found


def _height(rows: int) -> float:
    return 1.0 + _INCH * rows


def _short(pair: Pair) -> str:
    """Both names of a pair, each with its half of the room."""
    first, second = (shorten(name, MOST_NAME // 2) for name in (pair.first, pair.second))
    return f"{first} − {second}"


def _forest(rows: Sequence[tuple[str, Estimate, bool]], words: str, ax: Axes | None) -> Axes:
    """A line for each row, the first at the top: its label, its interval, and a full or an open mark."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise EvalcubeError(
            "figures need matplotlib, which is not installed", "Run: pip install 'evalcube[plots]'"
        ) from error
    if ax is None:
        _, ax = pyplot.subplots(figsize=(_WIDTH, _height(len(rows))), layout="constrained")
    for place, (_, one, full) in enumerate(rows):
        ax.plot([one.lower, one.upper], [place, place], color=_COLOUR, linewidth=1.6)
        ax.plot(
            [one.value],
            [place],
            "o",
            color=_COLOUR,
            markerfacecolor=_COLOUR if full else "white",
            markersize=6,
        )
    names = [shorten(label, MOST_NAME + len(" − ")) for label, _, _ in rows]
    ax.set_yticks(range(len(rows)), names, parse_math=False)  # a dollar sign would begin a formula
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlabel(plain(words), parse_math=False)
    ax.grid(axis="x", color="#e1e5e9")
    ax.set_axisbelow(True)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    return ax
