"""Which code this user's own configs name: no other is imported or compiled, whatever a cube says."""

from __future__ import annotations

from collections.abc import Iterable

_NAMED: set[str] = set()
"""Each ``module:function``, and each ``template: ...`` with code, that a config of this user's names."""


def allow_code(names: Iterable[str]) -> None:
    """Let code be run that the user's own config names; nobody else's word has anything imported or compiled."""
    _NAMED.update(names)


def may_run(name: str) -> bool:
    """Whether code is an installed entry point's, or named by the user's own config."""
    return ":" not in name or name in _NAMED
