"""Task `movies`: which film shares genre and theme with some others."""

from __future__ import annotations

from math import isqrt
from typing import Literal

from pydantic import Field

from evalcube.stages.generate.answers.choices import ChoiceReader
from evalcube.stages.generate.base import Task, TaskParams, Trial, param
from evalcube.stages.generate.material import material, wordings
from evalcube.stages.generate.stream import Stream

_FILMS = material("films")

TITLES = tuple(_FILMS["titles"].splitlines())
"""Titles that give away neither genre nor theme; none is part of another."""
GENRES = {genre: tuple(text.splitlines()) for genre, text in _FILMS["genres"].items()}
"""Sentences about the setting, by genre; they say nothing about a theme."""
THEMES = {theme: tuple(text.splitlines()) for theme, text in _FILMS["themes"].items()}
"""Sentences about the plot, by theme; they fit any genre."""

_READER = ChoiceReader(TITLES)
_GENRES = tuple(GENRES)
_THEMES = tuple(THEMES)
_WORDINGS = 5

_SAY = wordings("movies")
_LIST_TEXTS = tuple(text.format(genres=", ".join(_GENRES), themes=", ".join(_THEMES)) for text in _SAY.lists)


class MoviesParams(TaskParams):
    """Params of `Movies`."""

    reference_count: int = param(3, 1, 8, "Films that set genre and theme; more make it easier.")
    choice_count: int = param(4, 2, 12, "Films to choose from; more to compare, less to guess.")
    hint: Literal["labels", "lists", "none"] = Field(
        "lists",
        description="Help: genre and theme of each film as labels, only lists of possible genres and themes, or none.",
    )


class Movies(Task[MoviesParams]):
    """Pick the film that shares genre and theme with a reference set.

    The films are invented, so that nothing but the descriptions gives the answer. Each choice has another pair of
    genre and theme, out of a grid of a few genres and themes; which of them is right is drawn last. So the choices
    alone give nothing away, and most of them share a genre or a theme with others.
    """

    name = "movies"
    version = 2
    summary = "the film that shares genre and theme with a reference set"
    guess_rule = "1/choice_count"
    Params = MoviesParams

    def generate(self, params: MoviesParams, stream: Stream) -> Trial:
        """Draw genre and theme, films that have both, and films that do not."""
        kinds = _kinds(params.choice_count, stream)
        position = stream.below(params.choice_count)
        titles = stream.sample(TITLES, params.reference_count + params.choice_count)
        references, choices = titles[: params.reference_count], titles[params.reference_count :]
        labels = params.hint == "labels"
        turn = stream.below(_WORDINGS)
        liked = "\n".join([_film(title, kinds[position], labels, turn, 3, stream) for title in references])
        # the choices have wordings of their own, so that none can be found by comparing sentences
        offered = "\n".join(
            [
                _film(title, each, labels, turn + 3, 2, stream)
                for title, each in zip(choices, kinds, strict=True)
            ]
        )
        opening = stream.choice(_SAY.openings if params.reference_count > 1 else _SAY.openings_one)
        hint = f"\n\n{stream.choice(_LIST_TEXTS)}" if params.hint == "lists" else ""
        question, closing = stream.choice(_SAY.choices), stream.choice(_SAY.closings)
        prompt = f"{opening}\n{liked}\n\n{question}\n{offered}{hint}\n\n{closing}"
        return Trial(prompt, choices[position], 1 / params.choice_count, tuple(choices))

    parse = staticmethod(_READER.read_option)
    """Read the last known title, an explicit answer first."""

    def difficulty(self, params: MoviesParams) -> float:
        """Films to compare, and a little where few films set the kind; the less help, the more for each."""
        weight = {"labels": 0.5, "lists": 0.9, "none": 1.0}[params.hint]
        return weight * (params.choice_count + 4 / (1 + params.reference_count))


def _film(title: str, kind: tuple[str, str], labels: bool, first: int, wordings: int, stream: Stream) -> str:
    """One film in one line, in one of the wordings from `first` on, counted round the list."""
    genre, theme = kind
    label = f" ({genre}; {theme})" if labels else ""
    setting = GENRES[genre][(first + stream.below(wordings)) % _WORDINGS]
    plot = THEMES[theme][(first + stream.below(wordings)) % _WORDINGS]
    return f"- {title}{label}: {setting} {plot}"


def _kinds(count: int, stream: Stream) -> list[tuple[str, str]]:
    """Different pairs of genre and theme, out of a grid that is as small and as square as it can be."""
    long = isqrt(count - 1) + 1
    sides = [long, -(-count // long)]
    stream.shuffle(sides)
    genres, themes = stream.sample(_GENRES, sides[0]), stream.sample(_THEMES, sides[1])
    return stream.sample([(genre, theme) for genre in genres for theme in themes], count)
