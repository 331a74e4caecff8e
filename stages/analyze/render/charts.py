"""Charts: positions and shapes for the report's template, and pictures of results as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rich.cells import cell_len

from evalcube import known_as
from evalcube.stages.analyze.labelled.axes import plain
from evalcube.stages.analyze.labelled.columns import sorted_estimate
from evalcube.stages.analyze.labelled.pairing import Pair
from evalcube.stages.analyze.labelled.ranking import Ranking
from evalcube.stages.analyze.labelled.remarks import label_rows
from evalcube.stages.analyze.labelled.results import Estimate, Leaderboard
from evalcube.stages.analyze.render.text import percent, shorten, significant

WIDTH, HEIGHT = 320.0, 208.0
LEFT, RIGHT, TOP, BOTTOM = 36.0, 10.0, 12.0, 34.0
DODGE = 1.6
"""Units between the marks of neighbouring models at one difficulty, so that their bars can be told apart."""


@dataclass(frozen=True)
class Tick:
    """A labelled position on an axis."""

    at: float
    """Per cent of the axis, or SVG units in a chart."""
    label: str


@dataclass(frozen=True)
class Pin:
    """A small labelled mark on a track; positions in per cent."""

    at: float
    label: str
    label_at: float
    """Where the label stands, moved aside where labels would collide."""


_GAP = 2.6
"""Per cent of the axis between labels of pins, at least."""


def pins(marks: Sequence[tuple[float, str]]) -> tuple[Pin, ...]:
    """Marks from left to right, their labels some way apart.

    Examples
    --------
    >>> [pin.label_at for pin in pins([(4.0, "B"), (3.0, "A")])]
    [3.0, 5.6]
    """
    placed: list[Pin] = []
    for at, label in sorted(marks):
        least = placed[-1].label_at + _GAP if placed else at
        placed.append(Pin(at, label, round(max(at, least), 2)))
    return tuple(placed)


@dataclass(frozen=True)
class ChartAxis:
    """A linear axis; `at` gives per cent of its length."""

    low: float
    high: float
    step: float
    """Distance of ticks; divides the axis."""

    def at(self, value: float) -> float:
        """Position of a value in per cent, rounded to 0.01; values outside lie on the edge."""
        share = (value - self.low) / (self.high - self.low)
        return round(100.0 * min(1.0, max(0.0, share)), 2)

    def ticks(self) -> list[Tick]:
        """Multiples of the step from end to end."""
        number = round((self.high - self.low) / self.step)
        values = [self.low + index * self.step for index in range(number + 1)]
        return [Tick(self.at(value), f"{value:g}") for value in values]


def axis_around(values: Sequence[float]) -> ChartAxis:
    """The shortest axis of whole round steps that holds all finite values; 0 to 1 without any.

    Examples
    --------
    >>> axis_around([212.0, 871.5])
    ChartAxis(low=200.0, high=900.0, step=100.0)
    """
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ChartAxis(0.0, 1.0, 0.2)
    low, high = min(finite), max(finite)
    step = _step(high - low if high > low else max(abs(high), 1.0))
    start = math.floor(low / step) * step
    return ChartAxis(start, max(math.ceil(high / step) * step, start + step), step)


def _step(span: float) -> float:
    """A step of 1, 2 or 5 times a power of ten that divides a span into about 5 parts."""
    rough = span / 5
    power = 10.0 ** math.floor(math.log10(rough))
    return float(power * min((1, 2, 5, 10), key=lambda factor: abs(factor * power - rough)))


def log2_ticks(low: float, high: float) -> list[float]:
    """Powers of two inside [low, high], at most six, evenly thinned; the ends if there are fewer than two.

    Examples
    --------
    >>> log2_ticks(3, 70)
    [4.0, 8.0, 16.0, 32.0, 64.0]
    """
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    every = max(1, math.ceil((last - first + 1) / 6))
    powers = [2.0**exponent for exponent in range(first, last + 1, every)]
    return powers if len(powers) > 1 else sorted({low, high})


def mark(kind: int, x: float, y: float, size: float = 3.4) -> str:
    """SVG path of a series' mark, centred at (x, y): six shapes, then again from the first."""
    s = size
    corners = [
        [(-s, -s), (s, -s), (s, s), (-s, s)],
        [(0, -1.25 * s), (1.15 * s, 0.85 * s), (-1.15 * s, 0.85 * s)],
        [(0, -1.35 * s), (1.35 * s, 0), (0, 1.35 * s), (-1.35 * s, 0)],
        [(0, 1.25 * s), (1.15 * s, -0.85 * s), (-1.15 * s, -0.85 * s)],
        [(-s, -s), (s, -s), (-s, s), (s, s)],
    ]
    shape = kind % (len(corners) + 1)
    if shape == 0:
        return f"M{x - s:.1f} {y:.1f}a{s} {s} 0 1 0 {2 * s} 0a{s} {s} 0 1 0 {-2 * s} 0z"
    return "M" + "L".join(f"{x + dx:.1f} {y + dy:.1f}" for dx, dy in corners[shape - 1]) + "z"


def short(value: float) -> str:
    """A tick's label.

    Examples
    --------
    >>> short(16.0), short(0.25), short(4096.0), short(2.0**20)
    ('16', '0.25', '4096', '1.05M')
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= max(size, 1e4):
            return f"{value / size:.3g}{unit}"
    return f"{value:.4g}"


@dataclass(frozen=True)
class CurveMark:
    """One measured point with its bar, in SVG units."""

    path: str
    x: float
    y: float
    top: float
    bottom: float
    title: str
    cut: bool = False
    """True if many of the point's trials were truncated."""


@dataclass(frozen=True)
class CurveLine:
    """One model's curve."""

    kind: int
    """Index of colour and mark."""
    name: str
    path: str
    marks: tuple[CurveMark, ...]


@dataclass(frozen=True)
class Chart:
    """Accuracy against difficulty of one task, in SVG units of a WIDTH × HEIGHT box."""

    title: str
    lines: tuple[CurveLine, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def curve_chart(
    title: str,
    difficulty: Sequence[float],
    series: Sequence[tuple[int, str, Sequence[Estimate], Sequence[bool]]],
) -> Chart:
    """Lay out the curves of one task."""
    low, high = math.log2(difficulty[0]), math.log2(difficulty[-1])
    pad = 0.06 * (high - low) if high > low else 1.0

    def x_of(value: float) -> float:
        share = (math.log2(value) - low + pad) / (high - low + 2 * pad)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    lines = []
    for line, (kind, name, estimates, cuts) in enumerate(series):
        shift = DODGE * (line - (len(series) - 1) / 2)
        marks = [
            _mark(kind, name, x_of(value) + shift, value, estimate, cut=cut)
            for value, estimate, cut in zip(difficulty, estimates, cuts, strict=True)
        ]
        lines.append(CurveLine(kind, name, _path(marks), tuple(item for item in marks if item is not None)))
    return Chart(
        title=title,
        lines=tuple(lines),
        x_ticks=tuple(
            Tick(round(x_of(value), 1), short(value)) for value in log2_ticks(difficulty[0], difficulty[-1])
        ),
        y_ticks=tuple(Tick(round(y_of(share), 1), percent(share, 0)) for share in (0, 0.25, 0.5, 0.75, 1)),
    )


def y_of(share: float) -> float:
    """SVG height of a share in [0, 1]."""
    return TOP + (1.0 - share) * (HEIGHT - TOP - BOTTOM)


def _mark(
    kind: int, name: str, x: float, difficulty: float, estimate: Estimate, *, cut: bool
) -> CurveMark | None:
    if math.isnan(estimate.value):
        return None
    title = (
        f"{name}, difficulty {significant(difficulty)}: {percent(estimate.value)} "
        f"({percent(estimate.lower)} to {percent(estimate.upper)})"
        f"{', many trials truncated' if cut else ''}"
    )
    path = mark(kind, x, y_of(estimate.value))
    value, top, bottom = (round(y_of(end), 1) for end in (estimate.value, estimate.upper, estimate.lower))
    return CurveMark(path, round(x, 1), value, top, bottom, title, cut)


def _path(marks: Sequence[CurveMark | None]) -> str:
    """SVG path through marks; None breaks it."""
    return "".join(
        f"{'M' if last is None else 'L'}{mark.x} {mark.y}"
        for last, mark in zip([None, *marks], marks, strict=False)
        if mark
    )


@dataclass(frozen=True)
class Track:
    """One row of the ranking figure; positions in per cent."""

    dot: float | None
    """None without a value."""
    left: float
    """Where the interval begins."""
    width: float
    pins: tuple[Pin, ...]
    """Of the tiers."""


def tracks(board: Leaderboard) -> tuple[ChartAxis, list[Track]]:
    """The axis, and a track for each row of the board."""
    by_score = board.lead == "score"
    scale = 1.0 if by_score else 100.0  # rates in per cent
    rows = [
        [board.leading(row).scaled(scale)]
        + [(tier.score if by_score else tier.rate).scaled(scale) for tier in row.tiers]
        for row in board.rows
    ]
    every = [value for row in rows for bar in row for value in (bar.value, bar.lower, bar.upper)]
    axis = axis_around([0.0, *every])
    return axis, [_track(lead, tiers, axis, initials(board.tiers)) for lead, *tiers in rows]


def _track(lead: Estimate, tiers: Sequence[Estimate], axis: ChartAxis, names: Sequence[str]) -> Track:
    if math.isnan(lead.value):
        return Track(None, 0.0, 0.0, ())
    left, right = axis.at(lead.lower), axis.at(lead.upper)
    marks = [
        (axis.at(tier.value), name)
        for tier, name in zip(tiers, names, strict=True)
        if not math.isnan(tier.value) and len(names) > 1
    ]
    return Track(axis.at(lead.value), left, round(right - left, 2), pins(marks))


def initials(tiers: Sequence[str]) -> list[str]:
    """A letter per tier, or its number where first letters are not unique."""
    letters = [plain(tier)[:1].upper() for tier in tiers]
    return letters if len(set(letters)) == len(letters) else [str(number + 1) for number in range(len(tiers))]


MOST_NAME = 40
"""Characters of a label in a picture; longer ones are cut in the middle."""
_LABEL_EM = 7.0
"""Width of a character of a label at most, in SVG units."""
_PLOT, _ROW, _EDGE = 480.0, 24.0, 16.0
"""Width of the plot, height of a row, and room at the edges."""
_INK, _GREY, _GRID = "#0b5c94", "#565f6b", "#e1e5e9"


@known_as("evalcube.results")
class Picture(str):
    """A picture as SVG.

    Examples
    --------
    >>> Picture("<svg/>")._repr_svg_()
    '<svg/>'
    """

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def board_picture(board: Leaderboard) -> Picture:
    """Draw what leads a leaderboard, or the column that it is sorted by; rows with open marks are not ranked."""
    scale = 1.0 if board.lead == "score" else 100.0
    rows = [
        (label, sorted_estimate(board, row) or board.leading(row).scaled(scale), row.rank is not None)
        for row, label in zip(board.rows, label_rows(board.rows), strict=True)
    ]
    named = sorted_estimate(board, board.rows[0]) if board.rows else None
    quantity = (
        board.sort if named else ("ReasonScore" if board.lead == "score" else f"{board.rate_name}, percent")
    )
    return _forest(rows, f"{quantity} ({100 * board.confidence:g}% intervals)")


def rank_picture(ranking: Ranking) -> Picture:
    """Draw the places that each evaluation takes when the questions are drawn again."""
    rows = [(item.label, item.row.rank_interval, item.row.rank is not None) for item in ranking.rows]
    return _forest(rows, "rank: mean and interval over the draws")


def difference_picture(pairs: Sequence[Pair]) -> Picture:
    """Draw differences of success rates: by task of one pair, overall of several; open marks may be chance."""
    if len(pairs) == 1:
        quantity = f"{_pair_label(pairs[0])}, percentage points"
        items = [(item.task or "all tasks", item) for item in (*pairs[0].tasks, pairs[0].overall)]
    else:
        quantity = "first − second, percentage points"
        items = [(_pair_label(pair), pair.overall) for pair in pairs]
    rows = [(label, item.difference.scaled(100.0), item.p_holm < 0.05) for label, item in items]
    return _forest(rows, f"{quantity} (95% intervals)", zero=True)


def _pair_label(pair: Pair) -> str:
    """Return both names of a pair, each with its half of the room."""
    return " − ".join(shorten(name, MOST_NAME // 2) for name in (pair.first, pair.second))


def _forest(rows: Sequence[tuple[str, Estimate, bool]], quantity: str, *, zero: bool = False) -> Picture:
    """Draw a line for each row, the first at the top: its label, its interval, and a full or an open mark."""
    labels = [shorten(label, MOST_NAME + len(" − ")) for label, _, _ in rows]
    ends = [end for _, estimate, _ in rows for end in (estimate.value, estimate.lower, estimate.upper)]
    axis = axis_around([*ends, 0.0] if zero else ends)
    left = 2 * _EDGE + _LABEL_EM * max(map(cell_len, labels), default=0)
    bottom = _EDGE + _ROW * len(rows)
    parts = []
    for tick in axis.ticks():
        x = left + _PLOT * tick.at / 100
        colour = _GREY if zero and float(tick.label) == 0 else _GRID
        parts.append(f'<path d="M{x:.1f} {_EDGE}V{bottom:.1f}" stroke="{colour}"/>')
        parts.append(_label(tick.label, x, bottom + _EDGE, "middle", _GREY))
    for line, (label, (_, estimate, full)) in enumerate(zip(labels, rows, strict=True)):
        y = _EDGE + _ROW * (line + 0.5)
        parts.append(_label(label, left - _EDGE / 2, y + 4, "end"))
        if math.isnan(estimate.value):
            continue
        ends = [estimate.value if math.isnan(end) else end for end in (estimate.lower, estimate.upper)]
        value, lower, upper = (left + _PLOT * axis.at(end) / 100 for end in (estimate.value, *ends))
        parts.append(f'<path d="M{lower:.1f} {y}H{upper:.1f}" stroke="{_INK}" stroke-width="2"/>')
        fill = _INK if full else "white"
        parts.append(
            f'<circle cx="{value:.1f}" cy="{y}" r="4" fill="{fill}" stroke="{_INK}" stroke-width="2"/>'
        )
    parts.append(_label(plain(quantity), left + _PLOT / 2, bottom + 2.5 * _EDGE, "middle"))
    width, height = left + _PLOT + 2 * _EDGE, bottom + 3 * _EDGE
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" font-family="sans-serif" font-size="12">'
    )
    return Picture("\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>\n"]))


def _label(text: str, x: float, y: float, anchor: str, colour: str = "black") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
