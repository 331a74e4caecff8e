"""SVG drawings of forensic tables: curves over tokens, and scores against costs with the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

import numpy as np
import xarray as xr

from evalcube.stages.analyze.labelled.axes import plain
from evalcube.stages.analyze.labelled.forensics import FrontRow
from evalcube.stages.analyze.render.charts import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    axis_around,
    mark,
    short,
)
from evalcube.stages.analyze.render.text import shorten, significant

COLOURS = ("#2f6f9f", "#c8553d", "#4c8b48", "#8a5fa8", "#b07d12", "#52606d")
"""One for each mark of `stages.analyze.render.charts.mark`; told apart in the common forms of colour blindness."""

_KEY = 14.0
"""Height of a line of the legend."""
_MOST_KEY = 56
"""Characters of a name in the legend, whose line is as long as the drawing is wide."""


@dataclass(frozen=True)
class Series:
    """One line or cloud of marks in the units of the data; NaN breaks a line."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    lower: Sequence[float] = ()
    """Bounds drawn as a band; empty for none."""
    upper: Sequence[float] = ()
    marks: Sequence[bool] = ()
    """Points to mark: full where true, faint where false; empty for a line without marks."""
    shape: int | None = None
    """Number of the marks' shape, and of the colour; default: the place in the drawing."""
    colour: int | None = None


def hazard_figure(table: xr.Dataset, names: Sequence[str], *, cause: str = "right") -> str:
    """SVG of hazards over tokens: of the trials still at work, how many end in each bin; a line with its band each.

    A value stands in the middle of its bin; where no trial is at risk any more, the line ends.

    Parameters
    ----------
    table
        From `evalcube.stages.analyze.labelled.forensics.hazard_table`, without tasks.
    names
        A name for each evaluation.
    cause
        "right" or "wrong".
    """
    ends = table["tokens"].values
    middles = (np.concatenate([[0.0], ends[:-1]]) + ends) / 2
    hazards = table["hazard"].sel(cause=cause)
    series = [
        Series(name, middles.tolist(), *hazards.isel(model=index).transpose("bound", "bin").values.tolist())
        for index, name in enumerate(names)
    ]
    width = int(ends[0]) if ends.size else 0
    label = f"hazard of {cause} answers per {width:,} tokens"
    height = axis_around([0.0, *(value for one in series for value in one.upper)])
    return draw(series, x_label="tokens", y_label=label, y_axis=height)


def pareto_figure(rows: Sequence[FrontRow], *, against: str = "tokens") -> str:
    """SVG of score against tokens or cost: a mark for each evaluation, those on the front joined in steps.

    Parameters
    ----------
    rows
        From `evalcube.stages.analyze.labelled.forensics.pareto_rows`.
    against
        "tokens" (per trial) or "cost" (USD per 1 000 trials).

    Raises
    ------
    ValueError
        If `against` is neither.
    """
    if against not in ("tokens", "cost"):
        raise ValueError(f"`against` must be 'tokens' or 'cost', got {against!r}")
    spends = [row.tokens if against == "tokens" else row.cost for row in rows]
    on = [row.on_token_front if against == "tokens" else row.on_cost_front for row in rows]
    best = sorted((spend, row.score) for spend, row, here in zip(spends, rows, on, strict=True) if here)
    corners = [
        corner
        for place, (spend, score) in enumerate(best)
        for corner in ([(spend, best[place - 1][1])] if place else []) + [(spend, score)]
    ]
    front = Series("Pareto front", [x for x, _ in corners], [y for _, y in corners], colour=len(COLOURS) - 1)
    points = [
        Series(
            row.model_name + (" (not shown: no price)" if math.isnan(spend) else ""),
            [spend],
            [row.score],
            marks=[here],
            shape=kind,
            colour=kind + kind // len(COLOURS),  # after six another colour of the same shape
        )
        for kind, (row, spend, here) in enumerate(zip(rows, spends, on, strict=True))
    ]
    label = "tokens per trial" if against == "tokens" else "USD per 1 000 trials"
    return draw([front, *points], x_label=label, y_label="score")


def compression_figure(rows: Sequence[Mapping[str, Any]]) -> str:
    """SVG of compressibility against bytes per token: a mark for each evaluation (colour) and outcome (shape).

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
            marks=[True],
            shape=outcomes.index(row["outcome"]),
            colour=models.index(row["model"]),
        )
        for row in rows
    ]
    across = axis_around([x for item in series for x in item.x])
    return draw(
        series, x_label="bytes of the trace per token", y_label="compressed bytes per byte", x_axis=across
    )


def draw(
    series: Sequence[Series],
    *,
    x_label: str,
    y_label: str,
    x_axis: Axis | None = None,
    y_axis: Axis | None = None,
) -> str:
    """A drawing with axes, a legend below it, and a title on every mark; text of others is escaped.

    Axes default to the shortest that hold all points; that of x begins at 0.
    """
    across = x_axis or axis_around([0.0, *(x for item in series for x in item.x)])
    up = y_axis or axis_around([y for item in series for y in item.y])
    height = HEIGHT + _KEY * len(series)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {height:g}" role="img"',
        f' font-family="sans-serif" font-size="9" aria-label="{_text(y_label)} against {_text(x_label)}">',
        f'<rect width="{WIDTH:g}" height="{height:g}" fill="#fff"/>',
        *_axes(across, up, x_label, y_label),
    ]
    for kind, item in enumerate(series):
        parts += _series(kind, item, across, up)
        y = HEIGHT + _KEY * (kind + 0.5)
        parts.append(_key(kind, item, y))
        parts.append(f'<text x="{LEFT + 8:g}" y="{y + 3:.1f}">{_text(shorten(item.name, _MOST_KEY))}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _axes(across: Axis, up: Axis, x_label: str, y_label: str) -> list[str]:
    bottom = HEIGHT - BOTTOM
    parts = []
    for tick in up.ticks():
        y = _y(tick.at)
        parts.append(f'<path d="M{LEFT:g} {y:.1f}H{WIDTH - RIGHT:g}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 4:g}" y="{y + 3:.1f}" text-anchor="end">{tick.label}</text>')
    for tick in across.ticks():
        text = short(float(tick.label))
        x = min(_x(tick.at), WIDTH - 2.6 * len(text))
        parts.append(f'<text x="{x:.1f}" y="{bottom + 12:g}" text-anchor="middle">{text}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle:g}" y="{bottom + 26:g}" text-anchor="middle">{_text(x_label)}</text>')
    parts.append(f'<text x="{LEFT:g}" y="{TOP - 2:g}">{_text(y_label)}</text>')
    return parts


def _series(kind: int, item: Series, across: Axis, up: Axis) -> list[str]:
    colour = _colour(kind if item.colour is None else item.colour)
    x = [_x(across.at(value)) if math.isfinite(value) else math.nan for value in item.x]
    y, lower, upper = (
        [_height(up, value) for value in values] for values in (item.y, item.lower, item.upper)
    )
    parts = [
        f'<path d="{_outline(x[first:last], lower[first:last], upper[first:last])}" fill="{colour}" opacity="0.15"/>'
        for first, last in _runs(lower, upper)
    ]
    if not item.marks:
        lines = (_line(x[first:last], y[first:last]) for first, last in _runs(x, y))
        parts.append(f'<path d="{"".join(lines)}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    for place, full in enumerate(item.marks):
        if math.isnan(x[place]) or math.isnan(y[place]):
            continue
        title = f"{_text(item.name)}: {significant(item.y[place])} at {significant(item.x[place])}"
        path = mark(kind if item.shape is None else item.shape, x[place], y[place])
        opacity = 1 if full else 0.35
        parts.append(f'<path d="{path}" fill="{colour}" opacity="{opacity}"><title>{title}</title></path>')
    return parts


def _key(kind: int, item: Series, y: float) -> str:
    """What stands before a name in the legend: a mark as in the drawing, or a piece of line."""
    colour = _colour(kind if item.colour is None else item.colour)
    if not item.marks:
        return f'<path d="M{LEFT - 6:g} {y:.1f}h12" stroke="{colour}" stroke-width="2"/>'
    opacity = 1 if any(item.marks) else 0.35
    shape = mark(kind if item.shape is None else item.shape, LEFT, y)
    return f'<path d="{shape}" fill="{colour}" opacity="{opacity}"/>'


def _runs(*values: Sequence[float]) -> list[tuple[int, int]]:
    """Stretches without NaN, as (first, last + 1)."""
    runs, start = [], 0
    for fine, group in groupby(zip(*values, strict=True), lambda point: all(map(math.isfinite, point))):
        end = start + len(list(group))
        if fine:
            runs.append((start, end))
        start = end
    return runs


def _line(x: Sequence[float], y: Sequence[float]) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))


def _outline(x: Sequence[float], lower: Sequence[float], upper: Sequence[float]) -> str:
    return _line([*x, *reversed(x)], [*lower, *reversed(upper)]) + "z"


def _height(up: Axis, value: float) -> float:
    return _y(up.at(value)) if math.isfinite(value) else math.nan


def _x(at: float) -> float:
    return LEFT + at / 100.0 * (WIDTH - LEFT - RIGHT)


def _y(at: float) -> float:
    return TOP + (1.0 - at / 100.0) * (HEIGHT - TOP - BOTTOM)


def _colour(kind: int) -> str:
    return COLOURS[kind % len(COLOURS)]


def _text(text: str) -> str:
    return escape(plain(text))
