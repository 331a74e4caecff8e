r"""Search a model's text for a user's regular expression within a bounded time.

Both come from outside: one ``(a+)+$`` and one output made for it would keep a worker busy for ever. The `regex` package
backtracks as `re` does, so look-around and back references work, but it can be given a time limit. A pattern that
runs out of it on some text is unmeasured, not hung.
"""

from __future__ import annotations

from collections.abc import Callable

import regex

from evalcube.stages.process.assertions.model import UnmeasuredError

SECONDS = 1.0
"""CPU time of this process that one search may take; CPU and not wall time, so that a loaded machine grades alike."""
FLAGS = "dgimsuvy"
"""Letters that may stand in ``flags``, as in JavaScript; d, g, u and v change nothing here."""

_NAMES = {"i": regex.IGNORECASE, "m": regex.MULTILINE, "s": regex.DOTALL}
_ENDS = r"\n\r\u2028\u2029"
_SPACES = r"\t\n\x0b\x0c\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_WORD = "A-Za-z0-9_"
_INSIDE = {"d": "0-9", "w": _WORD, "s": _SPACES}
_OUTSIDE = {
    **{letter: f"[{members}]" for letter, members in _INSIDE.items()},
    **{letter.upper(): f"[^{members}]" for letter, members in _INSIDE.items()},
    "b": f"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))",
    "B": f"(?:(?<=[{_WORD}])(?=[{_WORD}])|(?<![{_WORD}])(?![{_WORD}]))",
}
_PLAIN = {"$": r"\Z", "^": r"\A", ".": f"[^{_ENDS}]", "[^]": r"[\s\S]", "[]": "(?!)"}
"""Unescaped characters outside a class, and empty classes, that mean something else to `regex`."""
_PIECE = regex.compile(r"\\k<(?P<name>\w+)>|\\(?P<escape>.)|\[\^?\]|.", regex.DOTALL)
_MEMBER = regex.compile(r"\\(?P<escape>.)|.", regex.DOTALL)


def compile_pattern(pattern: str, flags: str = "") -> regex.Pattern[str]:
    """The compiled pattern of a `regex` assertion, in the syntax of Python."""
    number = regex.VERSION0
    for letter in flags:
        number |= _NAMES.get(letter, 0)
    # `regex` keeps the last few hundred itself, so that a pattern is compiled once and not once for every trial.
    return regex.compile(pattern, number)


def compile_ecmascript(pattern: str) -> regex.Pattern[str]:
    r"""The compiled pattern of a JSON schema, which is read as JavaScript reads it.

    ``$`` is the very end, and ``\d``, ``\w`` and ``\b`` are ASCII.
    """
    return regex.compile(_from_ecmascript(pattern), regex.VERSION0)


def search(pattern: str, flags: str, text: str, *, seconds: float) -> bool:
    """Whether `pattern` occurs in `text`; with flag y, whether it does at its start."""
    compiled = compile_pattern(pattern, flags)
    return _search_within(compiled.match if "y" in flags else compiled.search, text, seconds)


def search_ecmascript(pattern: str, text: str, *, seconds: float) -> bool:
    """Whether the pattern of a JSON schema occurs in `text`."""
    return _search_within(compile_ecmascript(pattern).search, text, seconds)


def _search_within(find: Callable[..., object], text: str, seconds: float) -> bool:
    try:
        # `concurrent` lets go of the interpreter: a search that runs into its limit does not stop other threads.
        return find(text, timeout=seconds, concurrent=True) is not None
    except TimeoutError:
        raise UnmeasuredError(f"the pattern took more than {seconds:.2g} s on this output") from None
    except (MemoryError, RecursionError):
        raise UnmeasuredError("the pattern took more memory than there is on this output") from None


def _from_ecmascript(pattern: str) -> str:
    """A JavaScript pattern in the syntax of `regex`."""
    parts: list[str] = []
    at, inside = 0, False
    while piece := (_MEMBER if inside else _PIECE).match(pattern, at):
        at = piece.end()
        if piece["escape"] is not None:
            parts.append((_INSIDE if inside else _OUTSIDE).get(piece["escape"], piece[0]))
        elif inside:
            inside = piece[0] != "]"
            parts.append(r"\[" if piece[0] == "[" else piece[0])
        elif piece["name"]:
            parts.append(f"(?P={piece['name']})")
        else:
            inside = piece[0] == "["
            parts.append(_PLAIN.get(piece[0], piece[0]))
    return "".join(parts)
