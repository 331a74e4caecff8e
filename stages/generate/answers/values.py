"""Reads one value, as a number, a text or one of some options, from the places where a reply's answer may stand.

What is common to all such values is here: what may stand before and after a value, what denies it, and what makes it
one of two. Only how a value is written differs, and that is its form.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

from evalcube.stages.generate.answers import passages as places
from evalcube.stages.generate.answers import wording as words
from evalcube.stages.generate.answers.final import (
    LINE_END,
    REFUSED,
    SUM_RESULT,
    Mention,
    has_rival,
    hedges,
    is_one_of_several,
    is_taken_back,
)
from evalcube.stages.generate.answers.passages import Passage, Rank
from evalcube.stages.generate.answers.ways import note


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
    free = False
    """Whether any words are a value: what follows a statement is one."""
    longest = places.SEGMENT
    """Characters of a line that may be a value as a whole."""

    @abstractmethod
    def mentions(self, line: str) -> Sequence[Mention]:
        """Every value in a line, in order."""

    def later(self, text: str, value: str) -> Sequence[Mention]:  # noqa: ARG002 - for other forms
        """Every value in what follows an answer."""
        return self.mentions(text)

    def text_of(self, value: str) -> str:
        """What a value says."""
        return value

    def first_line(self, tail: str) -> str:
        """The part of what follows a mark in which a value may stand."""
        return first_line(tail, self.longest)

    def in_box(self, tail: str) -> str:
        """What stands in a LaTeX box."""
        return places.in_box(tail)

    def in_place(self, passage: Passage) -> str | None:
        """The value that a place gives; `REFUSED` if it denies or hedges, None for nothing of the kind."""
        line = self.first_line(self.in_box(passage.text) if passage.boxed else passage.text)
        return read_line(line, self, loose=passage.rank is not Rank.SAID)

    def at_end(self, text: str) -> str | None:
        """The value of a text without a mark: of its first paragraph, or of the last line that states one."""
        first, gap, tail = text.strip().partition("\n\n")
        head = whole(first, self) if gap else None
        return _unless_taken_back(tail, head, self) if head else at_end(text, self)


class PatternForm(Form):
    """Values as a pattern finds them, each a mention by a function of its match; None for what is none.

    Traits are attributes of `Form` that differ from its own.
    """

    def __init__(
        self, pattern: re.Pattern[str], mention: Callable[..., Mention | None], **traits: object
    ) -> None:
        self._pattern, self._mention = pattern, mention
        self.__dict__.update(traits)
        self.mentions = lru_cache(maxsize=8)(self.mentions)  # type: ignore[method-assign]  # a line is read some times

    def mentions(self, line: str) -> Sequence[Mention]:
        """Every value in a line, in order."""
        return list(filter(None, map(self._mention, self._pattern.finditer(line))))


class AnyOf(Form):
    """Values of several forms, such as names and numbers."""

    counts_things = True

    def __init__(self, *forms: Form) -> None:
        self._forms, self.counts = forms, any(form.counts for form in forms)

    def mentions(self, line: str) -> Sequence[Mention]:
        """Every value in a line, in order."""
        return sorted(mention for form in self._forms for mention in form.mentions(line))


_NO_VALUE = words.late(r"[ *`$]*(?:[\[<{}_]|[A-Za-z]\W{1,5}where\b)")
"""What an answer line has instead of a number: "[your answer]", an empty box, or "x", which is explained below."""


def read_value(text: str, form: Form) -> str | None:
    """The value that a reply gives as its answer, in its usual form; None if there is none or it is one of two."""
    return read_final(places.plain_digits(places.normalise(text)), form)


def read_final(text: str, form: Form) -> str | None:
    """As `read_value`, of a text that is normalised already."""
    text = places.without_next_question(text)
    marked = list(places.passages(text))
    if any(map(places.is_cut, marked)):
        note("box, tag or field", form.name, read=False)
        return None
    passage, value = next(((p, v) for p in marked if (v := form.in_place(p)) is not None), (None, None))
    if passage is None or value is None:
        holder = form.counts and any(_NO_VALUE.match(p.text) for p in marked)
        unmarked = None if holder else form.at_end(text[max((p.start for p in marked), default=0) :]) or None
        note("reply's end" if unmarked or marked else "no place", form.name, read=unmarked is not None)
        return unmarked
    final = value and _unless_taken_back(text[_end_of(text, passage, value, form) :], value, form)
    if final and (_is_listed(text, marked, form) or _is_contradicted(text, marked, passage, value, form)):
        final = REFUSED
    note("correction" if value and not final else passage.rank.value, form.name, read=bool(final))
    return final or None


def _unless_taken_back(tail: str, value: str, form: Form) -> str:
    """An answer; `REFUSED` if what follows takes it back, or states another one."""
    tail = tail[-places.TAIL :]
    unknown = words.DECLINES.match(form.text_of(value)) is not None
    return REFUSED if is_taken_back(tail, value, form.later(tail, value), unknown=unknown) else value


def _end_of(text: str, passage: Passage, value: str, form: Form) -> int:
    """Where a value ends in its place; where the place ends if the value is not written so."""
    start = max(passage.start, text.find(passage.text[:60], passage.start))
    if passage.boxed:
        return start + len(places.in_box(passage.text)) + 1
    near = text[start : start + places.TAIL]
    ends = [m.end for m in form.mentions(near) if m.value == value or not value]
    return start + (ends[0] if ends else near.find(value) + len(value) if value in near else len(near))


def _is_listed(text: str, marked: Sequence[Passage], form: Form) -> bool:
    """Whether three answer lines, one right below the other, give three values, as a list of what may be answered."""
    lines = [passage for passage in marked if passage.rank is Rank.ASKED][:3]
    below = (text.count("\n", lower.start, upper.start) == 1 for upper, lower in pairwise(lines))
    return len(lines) == 3 and all(below) and len({form.in_place(passage) for passage in lines}) == 3


def _is_contradicted(text: str, marked: Sequence[Passage], first: Passage, value: str, form: Form) -> bool:
    """Whether a later place of another rank gives another value, or a box or tag beside the answer's does."""
    # "Answer: The answer is X" states X
    frame = words.STATEMENT.match(value) if form.free else None
    inner = frame.end() if frame else 0
    for passage in marked:
        later = passage.start > first.start + inner and passage.rank is not first.rank
        low, high = sorted((passage.start, first.start))
        both = passage.rank is first.rank is Rank.MARKED and high - low <= places.SEGMENT
        beside = both and "\n" not in text[low:high].strip() and not words.TURNS.search(text, low, high)
        if later or beside:
            rival = form.in_place(passage)
            if rival and rival.casefold() != value.casefold():
                return True
    return False


def first_line(tail: str, longest: int = places.SEGMENT) -> str:
    """The first line that says something, cut to so many characters and a whole word.

    An item of a list goes on with the others.
    """
    tail = places.on_one_line(tail, " and ")
    line = tail[: longest + 1].split("\n", 1)[0]
    if len(line) > longest:  # a word is not cut
        line = line[:longest] + re.split(r"\s", tail[longest:], maxsplit=1)[0]
    return line.strip(" \t\n")


# ---- a value in a line

_NOUN = words.cue(
    r"\s?%|[\u3040-\u9fff\uac00-\ud7a3]|\s(?!of\b|or\b|and\b|not\b)[a-zµ][\w²³/]{0,19}"
    r"(?:\s(?:of\s)?(?!is\b|are\b|was\b)[a-z]{2,20})?(?=[\s*_.!]*$|\s<relates>\b)"
)
"""What a number counts: the last words of a line, or those before a circumstance; a sign or script may touch it."""
_SENTENCE = words.late(r"(?<=[.!?])[\"'`*)]{0,3}\s+(?=[A-Z(\"'*`])")
_STOP_OR_LINE = words.late(r"\n|(?<=[.!?]) (?=[A-Z])")
_LEFT_SIDE = words.late(
    r"(?![^=\n]{0,60}\b(?:when|where|if|for|with|at)\s\W?[a-z]\W?\s?=)(?:[^=.;:(\n]|\.(?=[0-9])){0,60}(?<![<>!-])=[^=>]"
    r"|[^.;:,(\n]{0,80}?\b(?:(?:make|give|equal|yield|leave)s?|totals)\s[\s$*]{0,6}[0-9]"
)
"""The rest of an expression before an equals sign, which is none in "5 for x = 3"."""


def whole(line: str, form: Form) -> str | None:
    """The value that a line is, with nothing but decoration around it."""
    mentions = form.mentions(line)
    if len(mentions) != 1:
        return None
    only = mentions[0]
    before, after = line[: only.start], line[only.end :]
    bare = not any(map(str.isalnum, before + after)) and "?" not in after
    return only.value if bare and words.is_affirmed(line, only.start, only.end) else None


def at_end(text: str, form: Form) -> str | None:
    """The value that the last line with one is, has in bold, or states in its last sentence that affirms one."""
    explained = _EXPLAINED.search(text[-places.TAIL :])
    for line in () if words.ASKS.search(text) else places.last_lines(places.without_code(text)):
        if words.LACKS.search(text, max(0, text.rfind(line) - places.SEGMENT)):
            return None  # it asks for what is missing: this is a sample, or one of several answers
        result = [] if _NO_SENTENCE.match(line) else words.RESULT.split(line)[-1:]
        for part in (*places.bold_passages(line), *result):
            start = line.rfind(part)
            denied = part != line and not words.is_affirmed(line, start, start + len(part))
            if denied or (explained and line in explained[0] and start < 9):
                continue
            noun = part != line and form.counts_things and _NOUN.search(part)
            if (value := whole(part[: noun.start()] if noun else part, form)) is not None:
                final = _unless_taken_back(text[text.rfind(part) + len(part) :], value, form)
                return None if words.breaks_off(text) else final or None
        if not result:
            return None
        near = line if len(line) <= form.longest else line[line.rfind(" ", 0, -form.longest) + 1 :]
        if mentions := form.mentions(near):
            value = read_line(near, form, loose=False, last=True)
            stated = [m for m in mentions if m.value == value or not value]
            if not value or any(map(words.DECLINES.match, _SENTENCE.split(near[: mentions[0].start])[:-1])):
                return None
            parts = _STOP_OR_LINE.split(text[text.rfind(near) :])
            tail = "\n".join(part for part in parts if not places.CHATTER.match(part))
            return None if _is_doubtful(tail, mentions, stated[0]) else value
    return None


_EXPLAINED = words.late(r"(?m)(?:^[^\w\n*]{0,6}\*\*[^*\n:]{1,80}\*\*[ \t][^\n]*\w[^\n]*(?:\n|\Z)){3,}")
"""Lines, one below the other, that each begin with a bold term and explain it."""
_NO_SENTENCE = words.late(r"\||\{(?=[^\n]*\"(?:arguments|parameters)\"\s?:)")
"""A table's row, which states nothing but in bold, or a call of a tool."""
_REMARK = words.late(r"(?:\w|[^\x00-\x7f])[^(\n]{0,9}\([^()\n]{0,60}\Z")
"""An open bracket behind words."""
_UNFINISHED = words.late(r"[.!?]\s{1,9}(?:[^.!?\\\n]|[.](?=\w)){0,300}[\w,]\s*\Z")
"""A sentence that does not end, after another one."""


def _is_doubtful(tail: str, mentions: Sequence[Mention], at: Mention) -> bool:
    """Whether the sentence with a value, or what follows it, leaves open whether it is the answer."""
    for mention in reversed(mentions):  # what is said of others is no doubt
        denial = words.DENIED.match(tail, mention.end) if mention.start > at.start else None
        tail = tail[: mention.start] + tail[denial.end() :] if denial else tail
    begin = max((stop.end() for stop in words.SENTENCE_END.finditer(tail, 0, at.start)), default=0)
    begin = max((turn.end() for turn in words.RESULT.finditer(tail, begin, at.start)), default=begin)
    opened = words.REOPENS.search(tail, begin)
    return (
        words.DOUBT.search(tail, begin) is not None
        or words.breaks_off(tail)
        or _UNFINISHED.search(tail, at.end) is not None
        or (opened is not None and words.CONFIRMS.search(tail, opened.end()) is None)
    )


def read_line(line: str, form: Form, *, loose: bool, last: bool = False) -> str | None:
    """The value of a line's first sentence with one; at the end of a text, of the last one.

    None if there is none, `REFUSED` if the line denies or hedges.
    """
    mentions = form.mentions(line)
    named = any(m.end - m.start == len(line) or words.is_stated(line, m.start) for m in mentions)
    if not last and words.DECLINES.match(line) and not named:
        return REFUSED
    spans = list(pairwise([0, *(cut.end() for cut in _SENTENCE.finditer(line)), len(line)]))
    for low, high in reversed(spans) if last else spans:
        if last and line[low : low + 1] == "(" and low:
            continue
        inside = [m for m in mentions if low <= m.start < high and not _is_remark(line, low, m, form)]
        if line[low:high].rstrip(" *_`\"')").endswith("?"):
            return REFUSED
        leads = not last if form.labels else last or low == 0
        chosen = _leading(line, low, inside, form) if leads else None
        if last and chosen and not (LINE_END.match(line, chosen.end) or _noun(line, chosen, form)):
            chosen = None
        if chosen is None:
            affirmed = [m for m in inside if words.is_affirmed(line, m.start, m.end)]
            chosen = _stated_value(line[:high], low, affirmed, form, last=last)
            chosen = chosen or (_loose_value(line[:high], affirmed, form) if loose else None)
            if chosen is None and last and form.counts_things and not all(m.weak for m in inside):
                return None  # the text does not end up with what an earlier sentence says
            claim = words.REASON.split(line, maxsplit=1)[0] if chosen and loose else ""
            if chosen and loose and (words.DOUBT.search(claim) or words.LACKS.search(line[: chosen.start])):
                return REFUSED
        if chosen is not None:
            position = mentions.index(chosen) if chosen in mentions else 0
            near = mentions[max(0, position - 1) : position + 2]
            contested = (
                hedges(line, near, form)
                or words.OR_ELSE.match(line, chosen.end)
                or has_rival(line, mentions[position:], form)
                or (form.counts and not last and is_one_of_several(line[low:high], low, chosen, inside))
            )
            return REFUSED if contested or chosen.value is None else chosen.value
    return REFUSED if loose and form.counts and not all(m.weak for m in mentions) else None


def _leading(line: str, low: int, mentions: Sequence[Mention], form: Form) -> Mention | None:
    """The value that a sentence begins with, but for words that say no more than that it follows."""
    lead = words.LEAD.match(line, low)
    start = lead.end() if lead else low
    first = next(
        (m for m in mentions if m.start <= start and not (m.weak and not _ends(line, m, form))), None
    )
    if first and len(mentions) > 1 and form.counts and words.RELATES.search(line[low : first.start]):
        return None
    if first is None or not words.is_affirmed(line, first.start, first.end):
        return None
    joins = form.word_operators
    calculates = form.counts and (first.value is None or _LEFT_SIDE.match(line, first.end))
    if not calculates and not (joins and joins.match(line, first.end)):
        return first
    results = [m for m in mentions if SUM_RESULT.search(line[max(0, m.start - 24) : m.start])]
    return results[-1] if results else first._replace(value=None)


def _ends(line: str, at: Mention, form: Form) -> bool:
    """Whether a clause ends after a word that may be a value."""
    return _noun(line, at, form) or words.WEAK_END.match(line, at.end) is not None


def _noun(line: str, at: Mention, form: Form) -> bool:
    """Whether a line ends with a noun after a number."""
    return form.counts_things and _NOUN.match(line, at.end) is not None


def _stated_value(
    line: str, low: int, affirmed: Sequence[Mention], form: Form, *, last: bool
) -> Mention | None:
    """The value that a sentence says is the one: after an equals sign, "is" or a colon."""

    def is_said(at: Mention) -> bool:
        if last and form.labels:
            return _by_name(line, low, at, affirmed)
        return words.is_stated(line, at.start) or (last and words.RIGHTLY.match(line, at.end) is not None)

    candidates = [m for m in affirmed if is_said(m) and (not m.weak or _ends(line, m, form))]
    if not candidates:
        strong = [m for m in affirmed if not m.weak]
        concludes = last and form.counts_things and words.CONCLUDES.match(line, low)
        return strong[0] if concludes and len(strong) == 1 else None
    reason = words.REASON.search(line, candidates[0].end)
    return [m for m in candidates if not reason or m.end <= reason.start()][-1]


def _is_remark(line: str, low: int, at: Mention, form: Form) -> bool:
    """Whether a number stands in a bracket behind words."""
    return form.counts and _REMARK.search(line, max(low, at.start - 80), at.start) is not None


_MARKED_LABEL = words.late(r"[(\[]|(?<=\[[xX]\] )")
"""Where a label in brackets begins, or behind a checked box."""


def _loose_value(line: str, affirmed: Sequence[Mention], form: Form) -> Mention | None:
    """The label in brackets or behind a check, or the only number with a unit, of an answer line's first sentence."""
    strong = [m for m in affirmed if not m.weak]
    if form.labels:
        return next((m for m in reversed(strong) if _MARKED_LABEL.match(line, m.start)), None)
    heads = [m for m in strong if not form.counts_things or not words.NEARLY_RELATES.search(line[: m.start])]
    counted = [m for m in heads if not form.counts_things or line[m.start] in "$€£" or _noun(line, m, form)]
    return counted[0] if len(heads) == len(counted) == 1 else None


def _by_name(line: str, low: int, at: Mention, affirmed: Sequence[Mention]) -> bool:
    """Whether a letter is named as an option's, or ends the last clause of its sentence and is no quantity."""
    before = line[max(low, at.start - 16) : at.start]
    lead = words.CONCLUDES.match(line, low, at.start)
    if lead and not any(map(str.isalnum, line[lead.end() : at.start])) and LINE_END.match(line, at.end):
        return True
    ends = (
        at is affirmed[-1] and words.ENDS.match(line, at.end) is not None and words.is_stated(line, at.start)
    )
    if at.end - at.start == 1 and not words.SUBJECT.search(line[low : at.start]):
        ends = False  # a bare letter may be the name of a quantity
    return bool(
        words.NAMES.search(before) or words.RIGHTLY.match(line, at.end) or (ends and "=" not in before[-8:])
    )
