"""Functions of installed packages that assertions name."""

from __future__ import annotations

import pickle
from importlib.metadata import EntryPoint

import pytest

from evalcube.stages.process.assertions import DeclarationError
from evalcube.stages.process.assertions.hooks import CHECKS, Installed


def test_installed__loads_what_is_named_and_refuses_what_is_broken_or_taken_twice() -> None:
    named = [("size", "builtins:len"), ("gone", "no_such_module:f"), ("name", "builtins:__name__")]
    named += [("twice", "builtins:len"), ("twice", "builtins:sum")]

    found = pickle.loads(pickle.dumps(Installed(CHECKS, [EntryPoint(*each, CHECKS) for each in named])))  # noqa: S301

    assert list(found) == ["size", "gone", "name", "twice"]
    assert found["size"] is len
    for name in ("gone", "name", "twice"):
        with pytest.raises(DeclarationError, match=f"'{name}'"):
            found[name]
    with pytest.raises(KeyError):
        found["none"]
