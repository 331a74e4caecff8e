"""Decides which statement of a reply is its final answer: the last one that stands, typed by whatever form asks.

The last mark of an answer gives a value (`passages`). What follows is read sentence by sentence: each takes the answer
back, states it again, states another value, or only talks about values, as reasons do. Another value is the answer
where a cue of a correction goes with it; two final forms that differ without one are no answer. Nor are two values in
a line, unless one is a step to the other one, its circumstance or reason. `wording` has the cues.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from evalcube.stages.generate.answers import wording as words
from evalcube.stages.generate.answers.passages import CHATTER, OTHER_TOPIC

if TYPE_CHECKING:
    from evalcube.stages.generate.answers.values import Form

REFUSED = ""
"""What a place gives that denies a value, hedges between two, or says that there is none: the search ends there."""

SENTENCES = 60
"""Sentences after an answer that are looked at, the last ones."""
_VALUES = 8
"""Values of a sentence that are looked at, the last ones."""
NEAR = 200
"""Characters of a sentence before and after them that are read."""


class Mention(NamedTuple):
    """One value in a line."""

    start: int
    end: int
    value: str | None
    """In its usual form; None for what is of the kind, but cannot be an answer (as 3.5 where an integer is due)."""
    weak: bool = False
    """Whether it is an ordinary word too, and counts only where it is stated."""


Role = Literal["stands", "denied", "replaces", "stated", "open"]
"""What a sentence makes of a value: it is the answer that stands already, or that and not right; it is the answer in
the place of that; it is stated; or it cannot be told to be the answer or another thing."""

_NAMES = re.compile(r"\w [A-Z][a-z]")
_SAYS = re.compile(r"[^\W_]|[\u2717\u2718\u274c]")


class _Sentence(NamedTuple):
    text: str
    mentions: list[Mention]
    asked: bool
    """Whether it answers a question of the reply itself."""
    goes_on: bool
    """Whether it is the rest of the answer's own sentence."""


def instead(tail: str, value: str, mentions: Sequence[Mention], *, free: bool = False) -> str | None:
    """The value that a text ends up with after an answer; `REFUSED` if it takes it back, None if it lets it stand."""
    mentions = [m for m in mentions if m.value and (value == REFUSED or _alike(value, m.value))]
    sentences = list(_sentences(tail, mentions))
    last = max((i for i, s in enumerate(sentences) if not CHATTER.match(s.text)), default=-1)
    explained = words.HEADING.match(tail) is not None
    stands, cued, opened = value, False, False
    topic: str | None = value
    for position, sentence in enumerate(sentences):
        turns = words.TURNS.search(sentence.text) is not None
        withdrawn = _withdrawn(sentence, value, topic)
        redone = words.REDOES.search(sentence.text) is not None
        confirmed = words.CONFIRMS.search(sentence.text) is not None
        hard = turns or withdrawn or cued or stands == REFUSED
        role, claimed = _claim(sentence, value)
        unexplained = position == last and not explained
        names = free and _NAMES.search(sentence.text)
        topic = sentence.mentions[-1].value if sentence.mentions else None if names else topic
        opened = opened or words.REOPENS.search(sentence.text) is not None
        opened = opened and role is None and not explained and not confirmed
        if role == "replaces" or (role == "stated" and (hard or redone)):
            stands = claimed
        elif role == "stands" and (stands != REFUSED or _ends_with(sentence, value)):
            stands = value
        elif role in ("stated", "open"):
            stated = unexplained or (position == 0 and not explained)
            doubted = hard or (unexplained and (redone or not free))
            if (hard or not sentence.goes_on) and (stated if role == "stated" else doubted):
                stands = REFUSED
        elif withdrawn or role == "denied":
            stands = REFUSED
        elif confirmed:
            turns = False
        cued = turns or redone
    if opened and stands == value:
        return REFUSED
    return None if stands == value else stands


def _ends_with(sentence: _Sentence, value: str) -> bool:
    """Whether a clause of a sentence ends with a value."""
    return any(m.value == value and words.ENDS.match(sentence.text, m.end) for m in sentence.mentions)


def _withdrawn(sentence: _Sentence, value: str, topic: str | None) -> bool:
    """Whether a sentence takes the answer back, and not another value that it or the one before it talks about."""
    for cue in words.WITHDRAWS.finditer(sentence.text):
        if words.SUPPOSES.search(words.CUT.split(sentence.text[: cue.start()])[-1]):
            continue
        before = [m.value for m in sentence.mentions if m.end <= cue.start() and not m.weak]
        if not cue["pronoun"] or (before[-1] if before else topic) == value:
            return True
    return False


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Where the last sentences of a text begin and end."""
    return list(pairwise([0, *(stop.end() for stop in words.SENTENCE_END.finditer(text)), len(text)]))[
        -SENTENCES:
    ]


def _sentences(tail: str, mentions: Sequence[Mention]) -> Iterator[_Sentence]:
    """The sentences after an answer, each with its values."""
    for low, high in sentence_spans(tail):
        inside = [m for m in mentions if low <= m.start < high][-_VALUES:]
        begin = max(low, inside[0].start - NEAR) if inside else low
        end = max(min(high, inside[-1].end + NEAR), inside[-1].end) if inside else min(high, low + 2 * NEAR)
        if inside or _SAYS.search(tail, low, high):
            asked = tail[max(0, low - 9) : low].rstrip().endswith("?")
            shifted = [m._replace(start=m.start - begin, end=m.end - begin) for m in inside]
            yield _Sentence(tail[begin:end], shifted, asked, low == 0)


def _claim(sentence: _Sentence, value: str) -> tuple[Role | None, str]:
    """What a sentence says of the answer, and the value that it states."""
    text = sentence.text
    mentions = [
        m for m in sentence.mentions if not m.weak or (not sentence.asked and _said_outright(text, m))
    ]
    denied = False
    for position, mention in reversed(list(enumerate(mentions))):
        role = _role(text, mentions, position, value)
        if role == "denied":
            denied = True
        elif role == "stated" and denied:
            return "replaces", mention.value or ""
        elif role is not None and not (role == "open" and denied):
            return role, mention.value or ""
    return ("denied" if denied else None), REFUSED


def _role(text: str, mentions: Sequence[Mention], position: int, value: str) -> Role | None:
    """What a sentence makes of one of its values; None if it only talks about it."""
    at = mentions[position]
    before, after = text[: at.start], text[at.end :]
    supposed = words.SUPPOSES.search(before) is not None
    affirmed = words.is_affirmed(text, at.start, at.end)
    if text.rstrip(" \n*_\"')").endswith("?"):
        return None
    if at.value == value:
        if _is_denied(text, at):
            return None if supposed else "denied"
        return "stands" if affirmed else None
    rightly = words.RIGHTLY.match(after)
    if not affirmed or not (rightly or words.ENDS.match(after)):
        return None
    standing = [m for m in mentions[:position] if m.value == value]
    replaced = standing and words.REPLACES.fullmatch(text, standing[-1].end, at.start)
    if replaced or any(_is_denied(text, m) for m in standing):
        return "replaces"
    if supposed or rightly:
        return None if supposed else "stated"
    role = _role_by_lead(before, alone=len({m.value for m in mentions}) == 1)
    return role if role == "stated" or words.LAST.match(after) else None


def _is_denied(text: str, at: Mention) -> bool:
    return words.denied_before(text, at.start) or words.DENIED.match(text, at.end) is not None


def _role_by_lead(before: str, *, alone: bool) -> Role | None:
    """What the words before a value that ends a clause make of it."""
    turned = words.TURNS.search(before) is not None
    clause = words.CUT.split(before)[-1]
    open_end: Role | None = "open" if alone else None
    _, bracket, aside = before.rpartition("(")
    if bracket and ")" not in aside and any(map(str.isalnum, aside)) and not words.TURNS.search(aside):
        return None
    if not any(map(str.isalnum, words.TURNS.sub("", clause))):
        turned = turned or words.REDOES.search(before) is not None
        if not turned and OTHER_TOPIC.search(before):
            return None
        preceded = any(map(str.isalnum, before))
        return "stated" if alone and (turned or words.SUBJECT.search(before) or not preceded) else open_end
    if words.PART.search(clause):
        return None
    if words.ASSERTS.search(before):
        return "stated" if words.SUBJECT.search(clause) else "open"
    return None if words.RELATES.search(clause) else open_end


def _alike(value: str, other: str) -> bool:
    """Whether two values may stand for each other, which any may but lists that differ much in length."""
    if "[" in value[:1] + other[:1] or "{" in value[:1] + other[:1]:
        return value[0] == other[0]
    sizes = sorted((value.count(", "), other.count(", ")))
    return (sizes[1] - sizes[0]) * 4 <= sizes[1] + 1


def _said_outright(sentence: str, at: Mention) -> bool:
    """Whether an ordinary word is a value, as a sentence of its own or stated at the end of one."""
    before, after = sentence[: at.start], sentence[at.end :]
    if words.RIGHTLY.match(after) or words.REPLACES.match(after):
        return True
    alone = not any(map(str.isalnum, words.TURNS.sub("", before)))
    return (alone or words.ASSERTS.search(before) is not None) and not any(map(str.isalnum, after))


# ---- two values beside each other

SUM_RESULT = re.compile(
    r"(?:[=≈⇒→]|\b(?:is|gives?|makes?|equals?|yields?|totals?|leaves?))[\s\"'`*_$(]{0,6}$", re.IGNORECASE
)
_BRACKETED = re.compile(r"\([^()]*\)")
_APART = re.compile(rf"[.;(\n]|{words.REASON.pattern}", re.IGNORECASE)
_CLAUSE = re.compile(r"[,;](?![0-9])\s?(?:and\s|or\s)?|\s(?:and|und|et|y(?!\s?=)|и|[&/\u2014\u2013-])\s")
_CALCULATED = re.compile(r"(?<![\w(])[0-9][^=]*[=≈][\s$*]*\Z")
LINE_END = re.compile(r"(?>[^\w?]*)$")


def is_replaced(line: str, mentions: Sequence[Mention], form: Form) -> bool:
    """Whether another value that follows the first one takes its place; of two letters in a sentence, none counts."""
    first = mentions[0]
    rival = next((m for m in mentions if m.value not in (None, first.value)), None)
    if rival is not None and words.SHARES.match(line, rival.end):
        return True
    if rival is None or not words.is_affirmed(line, rival.start, rival.end):
        return False
    gap = _BRACKETED.sub("", line[first.end : rival.start])
    apart = _APART.search(gap) and not words.CONDITION.search(gap)
    return bool(words.CHANGED.search(gap)) or (form.labels and not apart)


def is_one_of_several(sentence: str, low: int, chosen: Mention, mentions: Sequence[Mention]) -> bool:
    """Whether a number beside that of a sentence is no circumstance, reason or step to it."""
    start, end = chosen.start - low, chosen.end - low
    premise = words.PREMISE.match(sentence) or _CALCULATED.search(_CLAUSE.split(sentence[:start])[-1])
    explained: object = False
    for rival in mentions:
        at, after = rival.start - low, rival.end - low
        if rival.weak or rival.value in (None, chosen.value) or not words.is_affirmed(sentence, at, after):
            continue
        gap = sentence[end:at] or sentence[after:start]
        apart, relates = _CLAUSE.search(gap), words.NEARLY_RELATES
        if at < start:
            explained = premise or not apart or words.RESULTS.search(sentence, after)
        else:
            joined = explained and sentence[:at].endswith((", ", " and ")) and sentence[at].isdigit()
            relates, reason = (words.RELATES, words.CAUSE) if apart else (relates, words.REASON)
            explained = joined or gap.count("(") > gap.count(")") or reason.search(gap)
            step = not apart and SUM_RESULT.search(gap)
            explained = explained or step or words.SUBSET.match(sentence, after)
        explained = explained or relates.search(_CLAUSE.split(sentence[:at])[-1])
        if not explained:
            return True
    return False


_ONE_WORD = re.compile(r"\s?[^\W\d_]{1,15}(?:\(|,?\s?(?:(?:and|und|et|y|и)\s)?)")
"""What makes a range, a choice or one quantity of two numbers, in whatever language."""


def hedges(line: str, mentions: Sequence[Mention], form: Form) -> bool:
    """Whether two neighbours of different value are alternatives of each other, or a pair where one is due."""
    for left, right in pairwise(mentions):
        gap = line[left.end : right.start]
        alike = left.value == right.value
        amount = line[left.start] in "$€£¥₹" and words.RELATES.search(gap)  # $520 in 13 weeks
        joins = form.counts and not (amount or (alike and left.value) or words.is_stated(line, right.start))
        if joins and _ONE_WORD.fullmatch(gap):
            return not (words.REASON.match(gap) or words.SUBSET.match(line, right.end))
        calculated = left.value is None and words.is_stated(line, right.start)
        if alike or calculated or len(gap) > 60 or not words.GAP.fullmatch(gap):
            continue
        weak = (left.weak or right.weak) and not LINE_END.match(line, right.end)
        remark = gap.lstrip(" *_`\"')$")[:1] in ("(", ".") or words.EQUATES.search(gap)
        either = words.ALTERNATIVE.search(gap) or not (weak or remark)
        denied = any(words.denied_before(line, m.start) for m in (left, right))
        if either and not (denied or words.DENIED.match(line, right.end)):
            return True
    return False
