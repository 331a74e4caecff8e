r"""A regular expression of the user and a model's text in; whether it occurs out, within a bounded time.

The `regex` package backtracks as `re` does, so look-around and back references work, but it can be given a time
limit. A pattern that runs out of it on some text is unmeasured, not hung.
"""

from __future__ import annotations

import regex

from stages.process.assertions.model import UnmeasuredError

SECONDS = 1.0
"""CPU time of this process that one search may take."""
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
_PIECE = regex.compile(r"\\k<(?P<name>\w+)>|\\(?P<escape>.)|\[\^?\]|.", regex.DOTALL)
_MEMBER = regex.compile(r"\\(?P<escape>.)|.", regex.DOTALL)


def compile_pattern(pattern: str, flags: str, *, ecmascript: bool = False) -> regex.Pattern[str]:
    r"""The compiled pattern; `regex` keeps the last few hundred.

    Parameters
    ----------
    pattern, flags
        As declared; `flags` out of `FLAGS`.
    ecmascript
        Read the pattern as JavaScript does: ``$`` is the very end, ``\d``, ``\w`` and ``\b`` are ASCII.

    Raises
    ------
    regex.error
        The pattern is none.
    """
    number = regex.VERSION0
    for letter in flags:
        number |= _NAMES.get(letter, 0)
    source = _translated(pattern, flags) if ecmascript else pattern
    return regex.compile(source, number)


def search(pattern: str, flags: str, text: str, *, seconds: float, ecmascript: bool = False) -> bool:
    """Whether `pattern` occurs in `text`; with flag y, whether it does at its start.

    Raises
    ------
    UnmeasuredError
        The search took more than `seconds`.
    """
    compiled = compile_pattern(pattern, flags, ecmascript=ecmascript)
    find = compiled.match if "y" in flags else compiled.search
    try:
        return find(text, timeout=seconds, concurrent=True) is not None
    except TimeoutError:
        raise UnmeasuredError(f"the pattern took more than {seconds:.2g} s on this output") from None
    except (MemoryError, RecursionError):
        raise UnmeasuredError("the pattern took more memory than there is on this output") from None


def _translated(pattern: str, flags: str) -> str:
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
            parts.append(_plain(piece[0], flags))
    return "".join(parts)


def _plain(piece: str, flags: str) -> str:
    """An unescaped character outside a class, or an empty class."""
    many = "m" in flags
    return {
        "$": rf"(?:(?=[{_ENDS}])|\Z)" if many else r"\Z",
        "^": rf"(?:(?<=[{_ENDS}])|\A)" if many else r"\A",
        ".": r"[\s\S]" if "s" in flags else f"[^{_ENDS}]",
        "[^]": r"[\s\S]",
        "[]": "(?!)",
    }.get(piece, piece)
