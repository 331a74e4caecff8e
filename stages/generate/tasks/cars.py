"""Task `cars`: where a car stands after a story of cars that change places in a line."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field

from evalcube.stages.generate.answers.choices import ChoiceReader
from evalcube.stages.generate.answers.final import Mention
from evalcube.stages.generate.answers.numbers import WORD, digits_of_words
from evalcube.stages.generate.answers.values import AnyOf, PatternForm, read_value
from evalcube.stages.generate.base import Task, TaskParams, Trial, param
from evalcube.stages.generate.material import wordings
from evalcube.stages.generate.material.words import CARS, NAMES, ordinal, with_article
from evalcube.stages.generate.stream import Stream

COLORS = tuple(CARS["colors"].split())
BODIES = tuple(CARS["bodies"].split())
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
_PLACES = {word: str(n) for n, word in enumerate(_ORDINALS, 1)}
_PLACES |= {ordinal(n): str(n) for n in range(1, 13)}

_COLOR_READER = ChoiceReader(COLORS)
_PLACE = re.compile(
    rf"(?<![\w.-])(?:(?P<digits>[0-9]{{1,2}})(?![\w^]|[.,][0-9])|(?P<ordinal>{'|'.join(_PLACES)})(?!\w)"
    rf"|(?P<spelled>{WORD})(?![\w-]))",
    re.IGNORECASE,
)


def _position(match: re.Match[str]) -> Mention | None:
    if match.string[: match.start()].rstrip().lower().endswith(COLORS):
        return None  # "the red one" is a car
    word = match[0].lower()
    spelled, ordinal_number = match["spelled"], match["ordinal"]
    value = digits_of_words(word) if spelled else _PLACES[word] if ordinal_number else str(int(word))
    # "first" is an ordinary word too
    return Mention(*match.span(), value, spelled is not None or word in _ORDINALS)


_POSITIONS = PatternForm(_PLACE, _position, counts_things=True)
_EITHER = AnyOf(_COLOR_READER, _POSITIONS)

_SAY = wordings("cars")

_FORMS = {"position": "number of the position", "car": "color"}


class CarsParams(TaskParams):
    """Params of `Cars`."""

    cars: int = param(4, 3, 12, "Cars in the line; more to keep in mind.")
    moves: int = param(4, 1, 30, "Moves in the line; each is a step to follow.")
    confounders: int = param(0, 0, 10, "Events that change nothing; each must be ignored.")
    reference: Literal["absolute", "relative", "attribute"] = Field(
        "absolute",
        description="How moves are described: by position numbers, relative to another car, or with cars "
        "named by body or driver, which the prompt lists.",
    )
    question: Literal["position", "car"] = Field(
        "position", description="The position of a car, or the car in a position."
    )


class Cars(Task[CarsParams]):
    """Where a car stands after moves in a line."""

    name = "cars"
    version = 1
    summary = "where a car stands after moves in a line"
    guess_rule = "1/cars"
    Params = CarsParams

    def generate(self, params: CarsParams, stream: Stream) -> Trial:
        """Line cars up, move them, and ask about one of them or one of the positions."""
        colors = stream.sample(COLORS, params.cars)
        lineup, names = _introduce(colors, params.reference == "attribute", stream)
        line = list(range(params.cars))
        lines = [_move(line, names, params.reference, stream) for _ in range(params.moves)]
        for _ in range(params.confounders):
            lines.insert(stream.below(len(lines) + 1), _confounder(names, stream))
        position = stream.below(params.cars)
        if params.question == "position":
            question = stream.choice(_SAY.ask_place).format(a=names[line[position]])
            answer, options = str(position + 1), tuple(map(str, range(1, params.cars + 1)))
        else:
            question = stream.choice(_SAY.ask_car).format(k=position + 1)
            answer, options = colors[line[position]], tuple(colors)
        opening = stream.choice(_SAY.openings).format(n=params.cars)
        cars = stream.choice(_SAY.lineups).format(cars=lineup)
        rules = stream.choice(_SAY.rules).format(n=params.cars)
        closing = stream.choice(_SAY.closings).format(form=_FORMS[params.question])
        story = "\n".join(lines)
        prompt = f"{opening} {cars} {rules}\n{stream.choice(_SAY.then)}\n{story}\n{question} {closing}"
        return Trial(prompt, answer, 1 / params.cars, options)

    def parse(self, text: str) -> str | None:
        """Read a position or a color, whichever an explicit answer begins with; else the last one mentioned."""
        return read_value(text, _EITHER)

    def parse_reply(self, text: str, params: CarsParams, trial: Trial) -> str | None:  # noqa: ARG002
        """Read what was asked for, a position or a color."""
        return read_value(text, _POSITIONS if params.question == "position" else _COLOR_READER)

    def difficulty(self, params: CarsParams) -> float:
        """One step per move, a quarter more if relative and a half if by attribute; half a step per extra."""
        weight = {"absolute": 1.0, "relative": 1.25, "attribute": 1.5}[params.reference]
        return weight * params.moves + 0.5 * params.confounders + 0.5 * params.cars


def _introduce(colors: list[str], attributes: bool, stream: Stream) -> tuple[str, list[str]]:
    """The line in words, and what each car is called in the story."""
    if not attributes:
        return ", ".join(colors), [f"the {color} car" for color in colors]
    bodies, drivers = stream.sample(BODIES, len(colors)), stream.sample(NAMES, len(colors))
    cars = [with_article(f"{c} {b} driven by {d}") for c, b, d in zip(colors, bodies, drivers, strict=True)]
    names = [
        f"the {body}" if stream.below(2) else f"{driver}'s car"
        for body, driver in zip(bodies, drivers, strict=True)
    ]
    return ", ".join(cars), names


def _move(line: list[int], names: list[str], reference: str, stream: Stream) -> str:
    """A sentence about one move; `line`, the cars from front to back, is brought to the state after it."""
    start, goal = stream.below(len(line)), stream.below(len(line) - 1)
    goal += goal >= start
    if reference == "absolute":
        return _move_by_number(line, names, start, goal, stream)
    return _move_by_neighbor(line, names, start, goal, stream)


def _move_by_number(line: list[int], names: list[str], start: int, goal: int, stream: Stream) -> str:
    draw, wording = divmod(stream.below(6), 2)
    if draw == 0:
        line[start], line[goal] = line[goal], line[start]
        return str(_SAY.swap_places[wording].format(i=start + 1, k=goal + 1))
    car = line.pop(start)
    line.insert(goal, car)
    if draw == 1:
        return str(_SAY.from_place[wording].format(i=start + 1, k=goal + 1))
    return _capital(_SAY.to_place[wording].format(a=names[car], k=goal + 1))


def _move_by_neighbor(line: list[int], names: list[str], start: int, goal: int, stream: Stream) -> str:
    draw, wording = divmod(stream.below(8), 2)
    first, second = line[start], line[goal]
    a, b = names[first], names[second]
    if draw == 0:
        line[start], line[goal] = second, first
        return _capital(_SAY.swap[wording].format(a=a, b=b))
    del line[start]
    if draw == 1:
        line.insert(goal, first)
        count = abs(goal - start)
        steps = "1 place" if count == 1 else f"{count} places"
        return _capital(
            _SAY.steps[wording].format(a=a, steps=steps, way="back" if goal > start else "forward")
        )
    behind = draw == 2
    line.insert(line.index(second) + behind, first)
    return _capital((_SAY.behind if behind else _SAY.ahead)[wording].format(a=a, b=b))


def _confounder(names: list[str], stream: Stream) -> str:
    i, j = stream.below(len(names)), stream.below(len(names) - 1)
    return _capital(stream.choice(_SAY.confounders).format(a=names[i], b=names[j + (j >= i)]))


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
