"""The errors of functions on numbers and labels, which cannot take what they are given."""

from __future__ import annotations

from evalcube import EvalcubeError


class ArgumentError(EvalcubeError, ValueError):
    """An argument that a function cannot take; also a ``ValueError``, as Python's own functions raise."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of a kind that a function cannot take; also a ``TypeError``."""
