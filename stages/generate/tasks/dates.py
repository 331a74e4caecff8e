"""Task `dates`: a date to work out from a short story that fixes today."""

from __future__ import annotations

from datetime import date
from math import log2
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from evalcube.stages.generate.answers.dates import MONTHS, last_date
from evalcube.stages.generate.base import Task, TaskParams, Trial, param
from evalcube.stages.generate.material import wordings
from evalcube.stages.generate.material.date_stories import ORDINALS, STORIES, WEEKDAYS, Draw
from evalcube.stages.generate.material.words import EVENTS, NAMES
from evalcube.stages.generate.stream import Stream

EARLIEST, LATEST = 1950, 2080
"""Years between which all dates lie."""
LARGEST_OFFSET = 60

_BY_LEVEL = tuple(tuple(s for s in STORIES.values() if s.level == level) for level in range(1, 5))
_SAY = wordings("dates")
_FORMAT_COST = {"iso": 0.0, "long": 0.1, "british": 0.1, "us": 0.25, "european": 0.25}

if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal[("any", *STORIES)]


class DatesParams(TaskParams):
    """Params of `Dates`."""

    kind: Kind = Field("any", description="Kind of story; any: a random one of the given level.")
    level: int = param(
        1,
        1,
        4,
        "1: one step of days or weeks, 2: inclusive counts, months and years, 3: weekdays and working days, "
        "4: several steps. A named kind has its own level.",
    )
    offset: int = param(
        10, 1, LARGEST_OFFSET, "Days, weeks, months or years to count: at most this many, at least half."
    )
    format: Literal["iso", "long", "british", "us", "european"] = Field(
        "iso",
        description="How the story writes dates: 2021-03-05, March 5, 2021, 5 March 2021, 03/05/2021 or "
        "05.03.2021; all but the first must be translated.",
    )

    @model_validator(mode="before")
    @classmethod
    def _level_of_kind(cls, data: Any) -> Any:  # noqa: ANN401 - whatever the caller passes
        # one cell has one set of params, so that a named kind brings its level
        kind = data.get("kind") if isinstance(data, dict) else None
        return {"level": STORIES[kind].level, **data} if isinstance(kind, str) and kind in STORIES else data

    @field_validator("level")
    @classmethod
    def _agrees_with_kind(cls, value: int, info: ValidationInfo) -> int:
        kind = info.data.get("kind", "any")
        if kind != "any" and STORIES[kind].level != value:
            raise ValueError(f"must be {STORIES[kind].level} for kind {kind}; leave it out")
        return value


class Dates(Task[DatesParams]):
    """Date questions from a short story that fixes "today".

    All dates lie between 1950 and 2080 in the Gregorian calendar. Whatever everyday language leaves open (month
    ends, whether today counts, working days) is stated in the prompt.
    """

    name = "dates"
    version = 2
    summary = 'a date that follows from a short story which fixes "today"'
    guess_rule = "0"
    Params = DatesParams

    def generate(self, params: DatesParams, stream: Stream) -> Trial:
        """Draw a story of the kind or level, a stated date and numbers; the story's rule gives the answer."""
        story = stream.choice(_BY_LEVEL[params.level - 1]) if params.kind == "any" else STORIES[params.kind]
        n = stream.between((params.offset + 1) // 2, params.offset)
        margin = n + 1 if story.years else 25
        first = date(EARLIEST + margin, 1, 1).toordinal()
        day = date.fromordinal(first + stream.below(date(LATEST - margin, 12, 31).toordinal() - first + 1))
        draw = Draw(day, n, stream.between(2, 9), stream.between(1, 4), stream.below(7))
        event = stream.choice(EVENTS)
        text = stream.choice(story.wordings).format_map(
            _words(draw, params.format, stream.choice(NAMES), event)
        )
        note = f" {story.note}" if story.note else ""
        question = stream.choice(_SAY.questions).format(what=event)
        prompt = (
            f"{_SAY.stated.get(params.format, '')}{text}{note}\n{question} {stream.choice(_SAY.closings)}"
        )
        return Trial(prompt, story.solve(draw).isoformat())

    parse = staticmethod(last_date)
    """Read the last date, an explicit answer first."""

    def difficulty(self, params: DatesParams) -> float:
        """One to six steps by level, growing with the logarithm of the offset; up to a quarter by format."""
        return (1.0, 2.0, 4.0, 6.0)[params.level - 1] * (1 + 0.25 * log2(params.offset)) + _FORMAT_COST[
            params.format
        ]


def _words(draw: Draw, style: str, who: str, what: str) -> dict[str, object]:
    """What the placeholders of a story stand for."""
    n, day = draw.n, _SAY.written[style].format(day=draw.day, month=MONTHS[draw.day.month - 1])
    plural = "s" if n > 1 else ""
    return {
        "day": day,
        "named": f"{WEEKDAYS[draw.day.weekday()]}, {day}",
        "n": n,
        "count": n + 1,
        "days": f"{n} day{plural}",
        "weeks": f"{n} week{plural}",
        "months": f"{n} month{plural}",
        "years": f"{n} year{plural}",
        "every": f"every {n} days" if n > 1 else "every day",
        "workdays": f"{n} working day{plural}",
        "m": draw.m,
        "k_days": f"{draw.k} day{'s' if draw.k > 1 else ''}",
        "kth": ORDINALS[draw.k - 1],
        "weekday": WEEKDAYS[draw.weekday],
        "who": who,
        "what": what,
    }
