r"""A model's final answer text in, one normalised answer out: integer, truth value or one of some options.

Readers never raise and take linear time on any text. They look at explicit answers first (``Answer: 7``,
``the answer is 7``, ``\boxed{7}``), the last one that can be read, then at bold text, then at the rest. An
answer that hedges between two values is no answer.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

_SEGMENT = 300
"""Characters of an explicit answer that are looked at."""
_CANDIDATES = 20
"""Explicit answers that are looked at, from the last one backwards."""

_MINUS = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d", "-") | {"\r": "\n"})
_LATEX_TEXT = re.compile(r"\\(?:text|textbf|mathrm|mathbf|operatorname)\s{0,3}\{([^{}\\]*+)\}")
_LATEX_COMMA = re.compile(r"\{,\}|\\[,!;:]")
_EXPLICIT = re.compile(
    r"\\boxed\s{0,3}\{(?P<boxed>[^{}]{0,300})\}"
    r"|^[#*_> \t]{0,12}(?:final[ \t]{1,3})?answer[*_ \t]{0,8}$"
    r"|\banswer\b[^\n:=]{0,60}?(?:[:=]|\bis\b:?)",
    re.IGNORECASE | re.MULTILINE,
)
# Where one may be: a pattern that begins with a set of letters is searched for ten times as fast as that one.
_MARK = re.compile(r"[aA\\](?i:nswer|boxed)")
_LINE_START = 21
"""Characters before the word "answer" in which its line begins, where the line holds nothing else."""
_BOLD = re.compile(r"\*\*([^*\n]{1,80})\*\*")
_CUT_WORD = re.compile(r"(?<!\w)[\w.,]++$")
_DECORATION = " \t\n*_`$#>\"'([{\\<~:=“”‘’"


def normalised(text: str) -> str:
    """The text with plain minus signs and line ends, and without LaTeX around words and in numbers."""
    text = text.translate(_MINUS)
    if "\\" in text or "{,}" in text:
        text = _LATEX_COMMA.sub(",", _LATEX_TEXT.sub(r"\1", text))
    return text


def _explicit(text: str) -> Iterator[str]:
    """What stands in an explicit answer, one line each, the last answer first."""
    for match in reversed(deque(_explicit_matches(text), maxlen=_CANDIDATES)):
        boxed = match["boxed"]
        if boxed is not None:
            yield boxed.strip(_DECORATION)
            continue
        rest = text[match.end() : match.end() + _SEGMENT]
        if len(rest) == _SEGMENT and rest[-1].isalnum():
            rest = _CUT_WORD.sub("", rest)
        yield rest.lstrip(_DECORATION).split("\n", 1)[0].rstrip()


def _explicit_matches(text: str) -> Iterator[re.Match[str]]:
    """The same as ``_EXPLICIT.finditer(text)``."""
    begin = 0
    while (mark := _MARK.search(text, begin)) is not None:
        at = mark.start()
        line = text.rfind("\n", max(begin, at - _LINE_START), at) + 1
        match = _EXPLICIT.match(text, max(line, begin)) or _EXPLICIT.match(text, at)
        if match is not None:
            yield match
        begin = at + 1 if match is None else match.end()


def _bold(text: str) -> Iterator[str]:
    """Bold passages, the last one first."""
    for match in reversed(deque(_BOLD.finditer(text), maxlen=_CANDIDATES)):
        yield match[1].strip(_DECORATION)


def explicit_answers(text: str) -> Iterator[str]:
    """What a text gives as its answer in so many words, one line each, the last one first.

    Examples
    --------
    >>> list(explicit_answers("The answer is 7. Wait! Answer: 8"))
    ['8', '7. Wait! Answer: 8']
    """
    return _explicit(normalised(text))


# ---- integers

_NUMBER = re.compile(
    r"(?<![\w.])(?<![A-Za-z]-)(?:(?<![\w)\]}-])(?<![0-9)\]}] )(?P<sign>-|\A- |negative |minus ))?"
    r"(?P<digits>[0-9]++(?:[.,_\u00a0\u2009\u202f][0-9]++)*+)(?![\w^])",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"[0-9]++(?:\.0++)?+")
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:([,_\u00a0\u2009\u202f])[0-9]{3})(?:\1[0-9]{3})*+(?:\.0++)?+")
_OPERATOR_NEXT = re.compile(r"\s{0,3}(?:[-+*/×·÷^]|\\times|\\cdot|(?:times|plus|minus)\b)\s{0,3}[-(0-9]")
_ALTERNATIVES = re.compile(r"-?[0-9]++[\s$*]{0,4}or\b[\s$*]{0,4}-?[0-9]", re.IGNORECASE)


def last_integer(text: str) -> str | None:
    """The integer a text ends up with, in plain decimal digits; None if there is none.

    Thousands separators, Unicode minus signs, LaTeX and a decimal part of zeros are understood. The number is
    handled as text, so that one of any length is read without an error.

    Examples
    --------
    >>> last_integer("3 + 4 = 7, so the answer is **7**. (Checked twice.)")
    '7'
    >>> last_integer("Answer: −1,234.")
    '-1234'
    >>> last_integer("half of it") is None
    True
    """
    text = normalised(text)
    for segment in _explicit(text):
        if _ALTERNATIVES.match(segment):
            return None
        found = _leading_integer(segment) or _final_integer(segment)
        if found is not None:
            return found
    for passage in _bold(text):
        match = _NUMBER.match(passage)
        if match and match.end() >= len(passage.rstrip(" .!")):
            found = _integer(match)
            if found is not None:
                return found
    return _final_integer(text)


def _leading_integer(segment: str) -> str | None:
    """The integer a segment begins with, unless a calculation begins there."""
    match = _NUMBER.match(segment)
    if match is None or _OPERATOR_NEXT.match(_skip_decoration(segment, match.end())):
        return None
    return _integer(match)


def _skip_decoration(segment: str, start: int) -> str:
    return segment[start:].lstrip("$`\\)")


def _final_integer(text: str) -> str | None:
    for match in reversed(deque(_NUMBER.finditer(text), maxlen=_CANDIDATES)):
        found = _integer(match)
        if found is not None:
            return found
    return None


def _integer(match: re.Match[str]) -> str | None:
    digits = match["digits"]
    if not (_PLAIN.fullmatch(digits) or _THOUSANDS.fullmatch(digits)):
        return None
    whole = re.sub("[^0-9]", "", digits.split(".", 1)[0]).lstrip("0")
    return ("-" if match["sign"] and whole else "") + (whole or "0")


# ---- one of some options

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
        for segment in _explicit(text):
            mentions = self._mentions(segment)
            if mentions:
                return None if _hedges(segment, mentions) else self._option(mentions[0])
        for passage in _bold(text):
            match = self._pattern.fullmatch(passage.rstrip(" .!"))
            if match:
                return self._option(match)
        last = deque(self._affirmed(text, self._pattern.finditer(text)), maxlen=1)
        return self._option(last[0]) if last else None

    def _mentions(self, segment: str) -> list[re.Match[str]]:
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
    """Tell whether the first two mentions are alternatives of each other."""
    if len(mentions) < 2 or _folded(mentions[0][0]) == _folded(mentions[1][0]):
        return False
    return _HEDGE.fullmatch(segment[mentions[0].end() : mentions[1].start()]) is not None


# ---- truth values

_TRUE = frozenset({"true", "t", "on", "1", "yes"})
_TRUTH = _TRUE | {"false", "f", "off", "0", "no"}
_WORD = re.compile(r"[A-Za-z0-9]++")
_CLAUSE_END = re.compile(r"[\"'`*_$”’})\]\\>\s]*(?:$|[.,;:!(]|-{1,3}\s|—)(?!\d)")
_AFTER_FULL_WORD = re.compile(r"\W{0,4}(?:and|or|xor|nor)\b|\s*[/|=]", re.IGNORECASE)
_TAIL = re.compile(
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
    for segment in _explicit(text):
        found = _statement(segment)
        if found is not None:
            return found
    for passage in _bold(text):
        found = _whole(passage)
        if found is not None:
            return found
    stripped = text.rstrip()
    return _statement(stripped[stripped.rfind("\n") + 1 :][-_SEGMENT:].strip(_DECORATION))


def _statement(segment: str) -> str | None:
    """The value that one line states, if it states one."""
    first = _WORD.match(segment)
    if first and first[0].lower() in _TRUTH:
        rest = segment[first.end() :]
        full = first[0].lower() in {"true", "false"}
        if _CLAUSE_END.match(rest) or (full and not _AFTER_FULL_WORD.match(rest)):
            return _canonical(first[0])
    tail = _TAIL.search(segment)
    if tail:
        return _canonical(tail[1])
    values = {match[0].lower() for match in _FULL_WORDS._mentions(segment)}  # noqa: SLF001
    return values.pop() if len(values) == 1 else None


def _whole(passage: str) -> str | None:
    word = passage.rstrip(" .!")
    return _canonical(word) if word.lower() in _TRUTH else None


def _canonical(word: str) -> str:
    return "true" if word.lower() in _TRUE else "false"
