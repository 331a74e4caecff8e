"""Read which of some options a model's text ends up with, a truth value among them."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from stages.generate.answers.explicit import DECORATION, SEGMENT, bold_passages, explicit_lines, normalised

_NEGATED = re.compile(
    r"(?:\b(?:not|no longer|never|neither|nor|rather than|instead of|without)|n['’]t)"
    r"(?: (?:the|a|an|be|been|have|has|had|hold|holds|holding|own|get|his|her|their|longer|with)){0,3}"
    r"[ \"'`*“‘]{1,3}$",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"[\s\"'`*.]*(?:,|/|\||\bor\b|\band\b|,\s?or\b|,\s?and\b)+\s*(?:(?:the|an?)\s+)?[\"'`*]*", re.IGNORECASE
)


class ChoiceReader:
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

    def read(self, text: str) -> str | None:
        """The option of the last explicit answer that has one, else the last one mentioned and not denied."""
        text = normalised(text)
        for segment in explicit_lines(text):
            mentions = self.mentions(segment)
            if mentions:
                return None if _hedges(segment, mentions) else self._option(mentions[0])
        for passage in bold_passages(text):
            match = self._pattern.fullmatch(passage.rstrip(" .!"))
            if match:
                return self._option(match)
        last = deque(self._affirmed(text, self._pattern.finditer(text)), maxlen=1)
        return self._option(last[0]) if last else None

    def mentions(self, segment: str) -> list[re.Match[str]]:
        """Every mention of an option that is not denied, in order."""
        return list(self._affirmed(segment, self._pattern.finditer(segment)))

    def _option(self, match: re.Match[str]) -> str | None:
        # a pattern that ignores case takes a few letters, as the long s, that lower() leaves alone
        return self._canonical.get(_folded(match[0]))

    @staticmethod
    def _affirmed(text: str, matches: Iterable[re.Match[str]]) -> Iterator[re.Match[str]]:
        """Mentions that do not stand right after a negation."""
        for match in matches:
            if not _NEGATED.search(text[max(0, match.start() - 40) : match.start()]):
                yield match


def _folded(option: str) -> str:
    return " ".join(option.lower().split())


def _hedges(segment: str, mentions: Sequence[re.Match[str]]) -> bool:
    """Whether the first two mentions are alternatives of each other."""
    if len(mentions) < 2 or _folded(mentions[0][0]) == _folded(mentions[1][0]):
        return False
    return _HEDGE.fullmatch(segment[mentions[0].end() : mentions[1].start()]) is not None


_TRUE = frozenset({"true", "t", "on", "1", "yes"})
_TRUTH = _TRUE | {"false", "f", "off", "0", "no"}
_WORD = re.compile(r"[A-Za-z0-9]++")
_CLAUSE_END = re.compile(r"[\"'`*_$”’})\]\\>\s]*(?:$|[.,;:!(]|-{1,3}\s|—)(?!\d)")
_AFTER_FULL_WORD = re.compile(r"\W{0,4}(?:and|or|xor|nor)\b|\s*[/|=]", re.IGNORECASE)
_STATED = re.compile(
    r"(?:\b(?:is|to|be|as|value|gives|yields|equals|returns)|[=:>→⇒])[\s\"'`*_$“‘({]{0,6}"
    r"(true|false|on|off|yes|no|[TF]|[tf]|[10])[\"'`*_$”’})\]\\\s]{0,6}[.!]?[\"'`*_$\s]{0,6}$",
    re.IGNORECASE,
)
_FULL_WORDS = ChoiceReader(["true", "false"])


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
    text = normalised(text)
    for segment in explicit_lines(text):
        found = _statement(segment)
        if found is not None:
            return found
    for passage in bold_passages(text):
        found = _whole(passage)
        if found is not None:
            return found
    stripped = text.rstrip()
    return _statement(stripped[stripped.rfind("\n") + 1 :][-SEGMENT:].strip(DECORATION))


def _statement(segment: str) -> str | None:
    """The value that one line states, if it states one."""
    first = _WORD.match(segment)
    if first and first[0].lower() in _TRUTH:
        rest = segment[first.end() :]
        full = first[0].lower() in {"true", "false"}
        if _CLAUSE_END.match(rest) or (full and not _AFTER_FULL_WORD.match(rest)):
            return _canonical(first[0])
    tail = _STATED.search(segment)
    if tail:
        return _canonical(tail[1])
    values = {match[0].lower() for match in _FULL_WORDS.mentions(segment)}
    return values.pop() if len(values) == 1 else None


def _whole(passage: str) -> str | None:
    word = passage.rstrip(" .!")
    return _canonical(word) if word.lower() in _TRUTH else None


def _canonical(word: str) -> str:
    return "true" if word.lower() in _TRUE else "false"
