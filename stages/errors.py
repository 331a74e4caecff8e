"""The errors of functions on numbers and labels, which cannot take what they are given."""

from __future__ import annotations

import builtins

from evalcube import EvalcubeError


# Callers of the packages whose formulas these are compare the names of errors, so that they are Python's.
class ValueError(EvalcubeError, builtins.ValueError):
    """An argument that a function cannot take; Python's ``ValueError``, too."""


class TypeError(ValueError, builtins.TypeError):
    """An argument of a kind that a function cannot take; Python's ``TypeError``, too."""


ArgumentError, ArgumentTypeError = ValueError, TypeError
