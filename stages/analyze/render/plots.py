"""Results as matplotlib figures, for notebooks and papers: a value and its interval on a line for each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalcube import EvalcubeError
from evalcube.stages.analyze.labelled.axes import plain
from evalcube.stages.analyze.labelled.pairing import Pair
from evalcube.stages.analyze.labelled.ranking import Ranking
from evalcube.stages.analyze.labelled.results import Estimate, Leaderboard, label_rows
from evalcube.stages.analyze.render.text import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NAME = 40
"""Characters of a label in a figure; longer ones are cut in the middle, so that the figure keeps its room."""
_INCH = 0.32
"""Height of a row."""
_COLOUR = "#0b5c94"


def plot_board(board: Leaderboard, ax: Axes | None = None) -> Axes:
    """What leads a leaderboard; open marks are not ranked.

    Parameters
    ----------
    board
        The leaderboard.
    ax
        Where to draw; default: a new figure.
    """
    scale = 1.0 if board.lead == "score" else 100.0
    rows = [
        (label, _scaled(board.leading(row), scale), row.rank is not None)
        for row, label in zip(board.rows, label_rows(board), strict=True)
    ]
    words = "ReasonScore" if board.lead == "score" else f"{board.mode}, per cent"
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
    pairs
        Comparisons.
    ax
        Where to draw; default: a new figure.
    """
    if len(pairs) == 1:
        words = f"{_short(pairs[0])}, points of 100"
        items = [(one.task or "all tasks", one) for one in (*pairs[0].tasks, pairs[0].overall)]
    else:
        words = "first − second, points of 100"
        items = [(_short(pair), pair.overall) for pair in pairs]
    rows = [(label, _scaled(one.difference, 100.0), one.p_holm < 0.05) for label, one in items]
    found = _forest(rows, f"{words} (95 % intervals)", ax)
    found.axvline(0.0, color="#565f6b", linewidth=1, zorder=0)
    return found


def _short(pair: Pair) -> str:
    """Both names of a pair, each with its half of the room."""
    first, second = (shorten(name, MOST_NAME // 2) for name in (pair.first, pair.second))
    return f"{first} − {second}"


def _scaled(estimate: Estimate, scale: float) -> Estimate:
    return Estimate(scale * estimate.value, scale * estimate.lower, scale * estimate.upper)


def _forest(rows: Sequence[tuple[str, Estimate, bool]], words: str, ax: Axes | None) -> Axes:
    """A line for each row, the first at the top: its label, its interval, and a full or an open mark."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise EvalcubeError(
            "figures need matplotlib, which is not installed", "Run: pip install 'evalcube[plots]'"
        ) from error
    if ax is None:
        size = (8.0, 1.0 + _INCH * len(rows))
        _, ax = pyplot.subplots(figsize=size, layout="constrained")
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
    # A dollar sign would begin a formula.
    ax.set_yticks(
        range(len(rows)), [shorten(label, MOST_NAME + len(" − ")).replace("$", r"\$") for label, _, _ in rows]
    )
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlabel(plain(words).replace("$", r"\$"))
    ax.grid(axis="x", color="#e1e5e9")
    ax.set_axisbelow(True)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    return ax
