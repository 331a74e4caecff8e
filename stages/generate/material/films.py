"""A catalogue of invented films for the task `movies`: titles, and sentences that show a genre or a theme."""

from __future__ import annotations

from evalcube.stages.generate.material import material

_FILMS = material("films")

TITLES = tuple(_FILMS["titles"].splitlines())
"""Titles that give away neither genre nor theme; none is part of another."""
GENRES = {genre: tuple(text.splitlines()) for genre, text in _FILMS["genres"].items()}
"""Sentences about the setting, by genre; they say nothing about a theme."""
THEMES = {theme: tuple(text.splitlines()) for theme, text in _FILMS["themes"].items()}
"""Sentences about the plot, by theme; they fit any genre."""
