"""Task `shapes`: the name of the shape that an SVG path draws."""

from __future__ import annotations

from math import atan, cos, pi, radians, sin

from evalcube.stages.generate.answers.choices import ChoiceReader
from evalcube.stages.generate.base import Task, TaskParams, Trial, param
from evalcube.stages.generate.material import wordings
from evalcube.stages.generate.stream import Stream

POLYGONS = {"triangle": 3, "pentagon": 5, "hexagon": 6, "heptagon": 7, "octagon": 8}
KINDS = (*POLYGONS, "circle", "ellipse", "kite", "line", "rectangle", "sector", "trapezoid")
_SIZE = 10.0
"""Radius of the shapes at scale 1."""

_SAY = wordings("shapes")
_READER = ChoiceReader(KINDS)

_Point = tuple[float, float]


class ShapesParams(TaskParams):
    """Params of `Shapes`."""

    choices: int = param(10, 2, 12, "Shapes to choose from; more to tell apart.")
    rotation: int = param(45, 0, 180, "Largest rotation either way, in degrees; 0 keeps sides upright.")
    scale: int = param(2, 1, 100, "Largest scale factor; larger and less round numbers.")
    offset: int = param(10, 0, 1000, "Largest distance from the origin in x and in y; hides symmetries.")
    noise: float = param(0, 0, 2, "Error of points and radii, in percent of the size; hides equal sides.")


class Shapes(Task[ShapesParams]):
    """Name the shape of an SVG path.

    The kinds differ by far more than the largest noise: opposite sides are parallel within 8 degrees or at
    least 20 degrees apart, a polygon turns by at least 15 degrees at each corner, and the axes of an ellipse
    have a ratio of 1.4 or more.
    """

    name = "shapes"
    version = 1
    summary = "the name of the shape that an SVG path draws"
    guess_rule = "1/choices"
    Params = ShapesParams

    def generate(self, params: ShapesParams, stream: Stream) -> Trial:
        """Draw the options, one of them, and a path of it."""
        options = tuple(stream.sample(KINDS, params.choices))
        answer = stream.choice(options)
        path = _Pen(params, stream).path(answer)
        noise = f" {_SAY.noise.format(noise=params.noise)}" if params.noise else ""
        opening, question = stream.choice(_SAY.openings), stream.choice(_SAY.questions)
        closing = stream.choice(_SAY.closings)
        prompt = f"{opening}\n\n{path}\n\n{question}{noise} {_SAY.terms}\nOptions: {', '.join(options)}.\n{closing}"
        return Trial(prompt, answer, 1 / params.choices, options)

    parse = staticmethod(_READER.read_option)
    """Read one of the names of shapes."""

    def difficulty(self, params: ShapesParams) -> float:
        """A few steps to follow a path and compare it with the options; more for each kind of disturbance."""
        p = params
        disturbance = p.rotation / 45 + p.scale / (p.scale + 10) + p.offset / (p.offset + 100) + p.noise
        return 4 + 0.25 * p.choices + disturbance


class _Pen:
    """Writes paths of shapes in one random placement."""

    def __init__(self, p: ShapesParams, stream: Stream) -> None:
        self._stream = stream
        self._degrees = self._uniform(-p.rotation, p.rotation)
        self._size = _SIZE * self._uniform(1, p.scale)
        self._x, self._y = self._uniform(-p.offset, p.offset), self._uniform(-p.offset, p.offset)
        self._noise = p.noise / 100
        self._cos, self._sin = cos(radians(self._degrees)), sin(radians(self._degrees))

    def path(self, kind: str) -> str:
        """The path of a shape of that kind."""
        if kind in ("circle", "ellipse"):
            return self._oval(1.0 if kind == "circle" else self._uniform(0.4, 0.7))
        if kind == "sector":
            return self._sector()
        if kind == "line":
            return "M {} L {}".format(*[self._place(point) for point in ((-1, 0), (1, 0))])
        return self._close_polygon(self._corners(kind))

    def _corners(self, kind: str) -> list[_Point]:
        """The corners of a polygon, in order, on or near the unit circle."""
        if kind == "rectangle":
            half = atan(self._uniform(0.45, 0.8))
            return [(x * cos(half), y * sin(half)) for x, y in ((1, 1), (-1, 1), (-1, -1), (1, -1))]
        if kind == "kite":
            wide = self._uniform(0.6, 0.75)
            return [(0.5, wide), (self._uniform(0.8, 1), 0), (0.5, -wide), (-self._uniform(0.9, 1.1), 0)]
        if kind == "trapezoid":
            high, top = self._uniform(0.4, 0.6), self._uniform(0.7, 1.1)
            left = self._uniform(-1, 1 - top)
            return [(-1, -high), (1, -high), (left + top, high), (left, high)]
        count = POLYGONS[kind]
        turns = [2 * pi * (i + self._uniform(-0.2, 0.2)) / count for i in range(count)]
        return [(cos(turn), sin(turn)) for turn in turns]

    def _close_polygon(self, corners: list[_Point]) -> str:
        """A polygon from any corner, either way round, closed by a command or by its first point."""
        start = self._stream.below(len(corners))
        corners = corners[start:] + corners[:start]
        if self._stream.below(2):
            corners.reverse()
        points = [self._place(point) for point in corners]
        end = "Z" if self._stream.below(2) else f"L {points[0]}"
        return f"M {' L '.join(points)} {end}"

    def _oval(self, ratio: float) -> str:
        """Two or three arcs around the center."""
        arcs, start = 2 + self._stream.below(2), self._uniform(0, 2 * pi)
        turns = [start + 2 * pi * i / arcs for i in range(arcs)]
        points = [self._place((cos(turn), ratio * sin(turn))) for turn in turns]
        radii = f"{self._radius(1)} {self._radius(ratio)} {_number(self._degrees)} 0 1"
        return f"M {points[0]} " + " ".join([f"A {radii} {point}" for point in [*points[1:], points[0]]])

    def _sector(self) -> str:
        """Two straight lines and an arc."""
        large = self._stream.below(2)
        turn = radians(self._uniform(210, 300) if large else self._uniform(40, 150))
        center, first, last = (self._place(point) for point in ((0, 0), (1, 0), (cos(turn), sin(turn))))
        radius = self._radius(1)
        end = "Z" if self._stream.below(2) else f"L {center}"
        return f"M {center} L {first} A {radius} {radius} 0 {large} 1 {last} {end}"

    def _place(self, point: _Point) -> str:
        """The point after noise, rotation, scale and offset, as text."""
        x, y = point
        if self._noise:
            # within a circle, so that no direction is moved further than another
            error, direction = self._noise * self._uniform(0, 1), self._uniform(0, 2 * pi)
            x, y = x + error * cos(direction), y + error * sin(direction)
        across = self._size * (x * self._cos - y * self._sin) + self._x
        down = self._size * (x * self._sin + y * self._cos) + self._y
        return f"{_number(across)},{_number(down)}"

    def _radius(self, radius: float) -> str:
        error = self._noise * self._uniform(-1, 1) if self._noise else 0.0
        return _number(self._size * (radius + error))

    def _uniform(self, low: float, high: float) -> float:
        return low + (high - low) * self._stream.below(1_000_001) / 1_000_000


def _number(value: float) -> str:
    """Two decimals; no negative zero."""
    return f"{round(value, 2) + 0.0:.2f}"
