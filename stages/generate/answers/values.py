"""Reads one value, as a number or one of some options, from the places where a reply's answer may stand.

What is common to all such values is here: what may stand before and after a value, what denies it, and what makes it
one of two. Only how a value is written differs, and that is its form.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from evalcube.stages.generate.answers import wording as words
from evalcube.stages.generate.answers.cues import phrases
from evalcube.stages.generate.answers.final import REFUSED, Mention, read_final
from evalcube.stages.generate.answers.passages import (
    BULLET,
    SEGMENT,
    Passage,
    Rank,
    bold_passages,
    in_box,
    last_lines,
    normalised,
    plain_digits,
)

SHORT = 400
"""Characters of a reply that is short enough to be an answer as a whole."""


_FILLER = phrases("filler")
_DATED = f"on(?= (?:the |{phrases('days')}|{phrases('months')}|[0-9]))"
_SIGNS = "\u2192\u21d2\u2705\u2714\u27a1\U0001f300-\U0001faff"
_LEAD = words.cue(
    rf"(?>[\s,:;*_`\"'“‘«$\\(\[{{<>=~≈#|.!{_SIGNS}-]*)(?>(?:(?:{_FILLER}|{phrases('days')}"
    rf"|{_DATED})(?!['’\w-])(?>[\s,:;*_`\"'“‘«$\\(\[{{<>=~≈|!-]*)){{0,12}})"
)
"""What may stand before a value that a line begins with."""

_REASON = words.cue(rf"[\s,(]{phrases('reason')}\b")
"""Where a sentence turns to the reasons for what it said."""


class Form(ABC):
    """How the values of one kind are written."""

    name = "value"
    """What the kind is called."""
    counts = False
    """Whether values are numbers, so that a calculation may stand around them."""
    counts_things = False
    """Whether a noun may follow a value, as in "three apples" and "third place"."""
    word_operators: re.Pattern[str] | None = None
    """Words between two values that make a calculation of them, if an equals sign follows."""

    labels = False
    """Whether values are letters, which stand for much else: in running text one has to be stated."""

    longest = SEGMENT
    """Characters of a line that may be a value as a whole."""

    @abstractmethod
    def mentions(self, line: str) -> Sequence[Mention]:
        """Every value in a line, in order."""

    def later(self, text: str) -> Sequence[Mention]:
        """Every value in what follows an answer."""
        return self.mentions(text)

    def first_line(self, tail: str) -> str:
        """The part of what follows a mark in which a value may stand."""
        return first_line(tail, self.longest)

    def in_box(self, tail: str) -> str:
        """What stands in a LaTeX box."""
        return in_box(tail)


_NOUN = re.compile(r"\s(?!of\b|or\b|and\b|not\b)[A-Za-z]{2,20}(?:\s[a-z]{2,20})?[\s*_.!]*$")
_SENTENCE = re.compile(r"(?<=[.!?])[\"'`*)]{0,3}\s+(?=[A-Z(\"'*`])")
_OPERATOR = words.cue(rf"[\s$`)}}*]{{0,4}}{phrases('operator')}[\s$`*]{{0,4}}[-+(0-9]")
_LEFT_SIDE = re.compile(r"[^=.;:(\n]{0,60}(?<![<>!-])=[^=>]")
"""The rest of an expression before an equals sign."""
_SUM_RESULT = re.compile(r"(?:[=≈⇒→]|\b(?:is|gives|makes|equals|yields))[\s\"'`*_$(]{0,6}$", re.IGNORECASE)
_LINE_END = re.compile(r"(?>[^\w?]*)$")
_WEAK_END = re.compile(rf"(?>[\"'`*_$”’}})\]\\>|\s]*){phrases('weak_end')}")
_WEAK_LEAD_END = re.compile(rf"{_WEAK_END.pattern}|\s(?:because|since|as)\b")


def read_value(text: str, form: Form) -> str | None:
    """The value that a reply gives as its answer, in its usual form; None if there is none or it is one of two."""
    text = plain_digits(normalised(text))
    return read_final(
        text, partial(_in_passage, form=form), partial(_unmarked, form=form), form.later, kind=form.name
    )


def _unmarked(text: str, form: Form) -> str | None:
    return _label_at_end(list(last_lines(text)), form) if form.labels else _at_end(text, form)


def _in_passage(passage: Passage, form: Form) -> str | None:
    line = form.first_line(form.in_box(passage.text) if passage.boxed else passage.text)
    return read_line(line, form, loose=passage.rank is not Rank.SAID)


def first_line(tail: str, longest: int = SEGMENT) -> str:
    """The first line that says something, cut to so many characters and a whole word.

    A line that ends with a colon goes on with the next one.
    """
    inner = tail.lstrip(" \t*_`")
    tail = inner.lstrip(" \t\n*_`") if inner[:1] == "\n" else inner
    tail = BULLET.sub("", tail, count=1) if inner[:1] == "\n" and BULLET.match(tail) else tail
    line, newline, rest = tail[: longest + 1].partition("\n")
    if newline and line.rstrip(" *_").endswith(":"):
        line = f"{line} {rest.lstrip().partition(chr(10))[0]}"
    if len(line) > longest:
        # a word is not cut
        space = _SPACE.search(tail, longest)
        line = tail[: space.start()] if space else tail
    return line.strip(" \t\n")


_ITEM = re.compile(r"\(?[0-9]{1,2}[.)]\s+(?=\S)")
"""The number of an item in a list."""
_SPACE = re.compile(r"\s")
_STOP = re.compile(r"[.;]\s")


def _window(line: str, longest: int) -> str:
    """The end of a line, beginning with a whole word."""
    return line if len(line) <= longest else line[line.rfind(" ", 0, len(line) - longest) + 1 :]


_SAID_BY_NAME = re.compile(r"(?i:option|answer|choice|letter|is|be|are|to|choose|:)[\s*_:`\"'(]{1,6}[(\[]?\Z")
_LINE_STOPS = re.compile(r"[.!)\]*_`$\"']\s*\Z")


def _label_at_end(lines: Sequence[str], form: Form) -> str | None:
    """The label that the last line is, begins with, has in bold or states in its last sentence."""
    line = lines[0] if lines else ""
    for part in (line, *bold_passages(line), words.RESULT.split(line)[-1]):
        if (value := _whole(part, form)) is not None:
            return value
    near = line[-form.longest :] if _LINE_STOPS.search(line) or len(line) <= SEGMENT else ""
    mentions = form.mentions(near)
    for begin, end in _sentences(near, last=True):
        last = [m for m in mentions if begin <= m.start < end]
        if not last or any(words.affirmed(near, m.start, m.end) for m in last):
            near = near[:end]
            break  # later sentences only deny
    first = next(iter(mentions), None)
    if (
        first is not None
        and first.start == 0
        and not any(m.start == 0 for m in form.mentions(lines[1] if lines[1:] else ""))
    ):
        return None if words.DOUBT.search(near) else read_line(near, form, loose=True)
    before = near[: last[-1].start] if last else ""
    named = _SAID_BY_NAME.search(before) or (words.stated(before, len(before)) and "=" not in before[-8:])
    lead = near[begin : len(before)]
    led = any(map(str.isalpha, lead)) and _LEAD.fullmatch(lead)
    if named or led or (last and words.RIGHTLY.match(near, last[-1].end)):
        return read_line(near, form, loose=not words.DOUBT.search(near, begin), last=True)
    return None


def _at_end(text: str, form: Form) -> str | None:
    """The value that the last line with one states; in a short reply, the last one mentioned."""
    lines = list(last_lines(text))
    for line in lines:
        parts, near = (line, *bold_passages(line)), _window(line, form.longest)
        mentions = form.mentions(near)
        if not mentions and near is line and len(parts) == 1 and not _ITEM.search(line):
            continue  # most lines of a reply without an answer
        found = next((v for part in parts if (v := _whole(part, form)) is not None), None)
        if found is None:
            found = read_line(near, form, loose=False, last=True)
        if found is not None:
            return found
        if any(m.value is None and not m.weak for m in mentions):
            break
    for line in lines[:1] if len(text.strip()) > SHORT else lines:
        found = read_line(_window(line, form.longest), form, loose=True, last=True)
        if found is not None:
            return None if words.DOUBT.search(text[-SHORT:]) else found
    return None


def _whole(line: str, form: Form) -> str | None:
    """The value that a line is, with nothing but decoration around it."""
    if len(line) > form.longest and " " in line:
        return None
    line = _ITEM.sub("", line, count=1)
    mentions = form.mentions(line)
    if len(mentions) != 1:
        return None
    only = mentions[0]
    before, after = line[: only.start], line[only.end :]
    if (
        any(map(str.isalnum, before + after))
        or "?" in after
        or not words.affirmed(line, only.start, only.end)
    ):
        return None
    return only.value


def read_line(line: str, form: Form, *, loose: bool, last: bool = False) -> str | None:
    """The value that one line gives; None if it has none, `REFUSED` if it denies or hedges."""
    mentions = form.mentions(line)
    if not last and words.declines(line) and (not mentions or _STOP.search(line, 0, mentions[0].start)):
        return REFUSED
    lead = _LEAD.match(line)
    start = lead.end() if lead else 0
    if not last or (mentions and mentions[0].start <= start and _LINE_END.match(line, mentions[0].end)):
        found = _leading(line, mentions, start, form)
        if found is not None:
            return found
    refused = False
    for low, high in _sentences(line, last=last):
        if last and line[low:high].rstrip(" *_").endswith("?"):
            continue
        inside = [m for m in mentions if low <= m.start < high]
        kept = [m for m in inside if words.affirmed(line, m.start, m.end)]
        refused = refused or (any(not m.weak for m in inside) and not kept)
        chosen = _stated(line[:high], low, kept, form, last=last)
        if chosen is None and loose and kept:
            chosen = _mentioned(line[:high], kept)
        if chosen is not None and loose and not last and words.DOUBT.search(line):
            return REFUSED
        if chosen is not None:
            return _accepted(line, mentions, chosen, form, last=last)
    return REFUSED if refused else None


def _sentences(line: str, *, last: bool) -> list[tuple[int, int]]:
    """Where the sentences of a line begin and end, in the order in which they are read."""
    ends = [(cut.start(), cut.end()) for cut in _SENTENCE.finditer(line)]
    begins = [0, *(end for _, end in ends)]
    spans = list(zip(begins, [*(start for start, _ in ends), len(line)], strict=True))
    return spans[::-1] if last else spans


def _leading(line: str, mentions: Sequence[Mention], start: int, form: Form) -> str | None:
    """The value that a line begins with, but for words that say no more than that it follows."""
    # such a word may be a value too, as "on": it is one where a clause ends after it
    first = next(
        (m for m in mentions if m.start <= start and not (m.weak and not _ends(line, m.end, form))), None
    )
    if first is None or not words.affirmed(line, first.start, first.end):
        return None
    joins = form.word_operators
    calculates = form.counts and (_OPERATOR.match(line, first.end) or _LEFT_SIDE.match(line, first.end))
    if calculates or (joins and joins.match(line, first.end)):
        return _result(line, mentions, first.end)
    return _accepted(line, mentions, first, form, last=False)


def _ends(line: str, end: int, form: Form) -> bool:
    """Whether a clause ends after a word that may be a value."""
    noun = form.counts_things and _NOUN.match(line, end)
    return bool(noun or _WEAK_LEAD_END.match(line, end))


def _result(line: str, mentions: Sequence[Mention], begin: int) -> str:
    """What follows the last sign of a result in a calculation; `REFUSED` where it has none."""
    for mention in reversed(mentions):
        before = line[max(0, mention.start - 24) : mention.start]
        if mention.start >= begin and mention.value and _SUM_RESULT.search(before):
            return mention.value
    return REFUSED


def _accepted(line: str, mentions: Sequence[Mention], chosen: Mention, form: Form, *, last: bool) -> str:
    place = mentions.index(chosen)
    near = mentions[max(0, place - 1) : place + 2]
    following = None if last else next((m for m in mentions[place + 1 :] if m.value != chosen.value), None)
    changed = following and following.value and _CHANGED.search(line, chosen.end, following.start)
    if changed and following and not words.denied_before(line, following.start):
        return REFUSED
    return REFUSED if chosen.value is None or _hedges(line, near, form) else chosen.value


def _hedges(line: str, mentions: Sequence[Mention], form: Form) -> bool:
    """Whether two neighbours of different value are alternatives of each other, or a pair where one is due."""
    return any(
        one.value != other.value
        and _makes_alternatives(
            line[one.end : other.start],
            weak=(one.weak or other.weak) and not _LINE_END.match(line, other.end),
            ranges=form.counts,
        )
        and not words.denied_before(line, other.start)
        for one, other in pairwise(mentions)
    )


_CHANGED = words.cue(r"\b(?:now|but|wait|actually|then again|changed|correction)\b")
"""What makes another value later in a line more than an aside."""
_QUIET = r"[\s\"'`*.,;:()\[\]$_“”‘’?!{}<>\\…–—-]"
_SWITCH = phrases("switch")
_OR = phrases("or") + rf"\b|{_SWITCH}\b"
_OTHER_WORDS = phrases("other_words")
_GAP = words.cue(rf"(?>(?:(?>{_QUIET}+)|[/|±→⇒]|\+/-|[a-z]\s?=|(?:{_OR}|{_OTHER_WORDS})(?![\w'’]))*)")
ALTERNATIVE = words.cue(rf"\b(?:{_OR})|[/|±→⇒]|[-=]>")
_GAP_AND = words.cue(r"\band\b|&|,\s?[a-z]\s?=")
_GAP_RANGE = words.cue(r"\b(?:to|through|until|till)\b|(?<![.\w])\.\.\.?")


def _makes_alternatives(gap: str, *, weak: bool, ranges: bool) -> bool:
    """Whether what stands between two different values makes them alternatives, or a pair."""
    if len(gap) > 60 or not _GAP.fullmatch(gap):
        return False
    if ALTERNATIVE.search(gap):
        return True
    if weak:
        return False
    return bool(
        _GAP_AND.search(gap)
        or (ranges and _GAP_RANGE.search(gap))
        or gap.strip(" \"'`*$") in (",", ";")
        or (ranges and gap.isspace())
    )


def _stated(line: str, low: int, kept: Sequence[Mention], form: Form, *, last: bool) -> Mention | None:
    """The value that a sentence says is the one: after an equals sign, "is" or a colon."""
    found = [
        mention
        for mention in kept
        if not (mention.weak and not _WEAK_END.match(line, mention.end))
        and not (form.counts and _OPERATOR.match(line, mention.end))
        and words.stated(line, mention.start)
    ]
    reason = None if last else _REASON.search(line, low)
    if found and reason is not None and found[0].end <= reason.start():
        found = [mention for mention in found if mention.end <= reason.start()]
    return found[-1] if found else None


def _mentioned(line: str, kept: Sequence[Mention]) -> Mention | None:
    """The value that a sentence mentions last, before any bracket; weak ones and references to steps do not count."""
    strong = [m for m in kept if not m.weak]
    if not strong:
        return None
    bracket = line.find("(", strong[0].end)
    outside = [m for m in strong if bracket < 0 or m.start < bracket]
    return outside[-1]
