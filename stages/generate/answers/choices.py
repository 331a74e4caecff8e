"""Read which of some options a model's text ends up with, a truth value among them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from evalcube.stages.generate.answers.final import Mention
from evalcube.stages.generate.answers.values import Form, read_line, read_value


class ChoiceReader(Form):
    """Reads which of some options a text ends up with.

    Parameters
    ----------
    options
        Words or phrases; letter case and white space do not matter. An option that is part of another one is
        found only where the longer one is not.

    Examples
    --------
    >>> ChoiceReader(["drum", "drum kit", "lamp"]).read("Not the lamp. Answer: the Drum  Kit!")
    'drum kit'
    """

    def __init__(self, options: Sequence[str]) -> None:
        self._canonical = {_folded(option): option for option in options}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Made when first used: tasks have readers of many words, and each takes milliseconds."""
        ordered = sorted(self._canonical, key=len, reverse=True)
        words = "|".join(r"\s{1,3}".join(map(re.escape, option.split())) for option in ordered)
        return re.compile(rf"(?<!\w)(?<!\w-)(?:{words})(?!\w|-\w)", re.IGNORECASE)

    def mentions(self, line: str) -> Sequence[Mention]:
        """Every option in a line, in order."""
        # a pattern that ignores case takes a few letters, as the long s, that lower() leaves alone
        return [
            Mention(match.start(), match.end(), self._canonical.get(_folded(match[0])))
            for match in self._pattern.finditer(line)
        ]

    def read(self, text: str) -> str | None:
        """The option that a reply gives as its answer; see `read_value`."""
        return read_value(text, self)

    def mentioned(self, line: str) -> str | None:
        """The option that one line gives; None if it gives none, or hedges."""
        return read_line(line, self, loose=True) or None


def _folded(option: str) -> str:
    return " ".join(option.lower().split())


_TRUE = frozenset({"true", "t", "on", "1", "yes"})
_TRUTH = re.compile(
    r"(?<![\w.])(?<!\w['’-])(?:true|false|on|off|yes|no(?!,? (?:wait\b|it['’]?s\b))|[tf10])(?![\w]|[.,][0-9]|['’-]\w)",
    re.IGNORECASE,
)


class _Truths(Form):
    word_operators = re.compile(r"[\s\"'`*]{0,4}(?:and|or|xor|nor)\b|\s*=", re.IGNORECASE)

    def mentions(self, line: str) -> Sequence[Mention]:
        found = []
        for match in _TRUTH.finditer(line):
            word = match[0].lower()
            value = "true" if word in _TRUE else "false"
            found.append(Mention(match.start(), match.end(), value, weak=word not in ("true", "false")))
        return found


_TRUTHS = _Truths()


def truth_value(text: str) -> str | None:
    r"""The truth value a text ends up with, "true" or "false", from any of five pairs of words.

    Read are True/False, T/F, on/off, 1/0 and yes/no. In running prose only "true" and "false" count; the
    others are ordinary words there, read only where they are a whole clause or end a statement ("... is on").

    Examples
    --------
    >>> truth_value("So the value is off.\nAnswer: off")
    'false'
    >>> truth_value("on reflection, no idea") is None
    True
    """
    return read_value(text, _TRUTHS)
