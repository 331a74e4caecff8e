"""Decides whether a value is a reply's final answer: it stands by itself, and nothing after it takes it back.

The last mark of an answer gives a value (`passages`). A sentence after it states it again, takes it back, or turns to
another value, which makes it no answer; most only talk about values, as reasons do. Nor is one of two values in a line
an answer, unless the other one is a step to it, its circumstance or reason. `wording` has the cues.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from evalcube.stages.generate.answers import wording as words
from evalcube.stages.generate.answers.passages import CHATTER

if TYPE_CHECKING:
    from evalcube.stages.generate.answers.values import Form

REFUSED = ""
"""What a place gives that denies a value, hedges between two, or says that there is none: the search ends there."""

SENTENCES = 60
"""Sentences after an answer that are looked at, the last ones."""
LONGEST_SENTENCE = 600
"""Characters of a sentence that are read, its last ones."""


class Mention(NamedTuple):
    """One value in a line."""

    start: int
    end: int
    value: str | None
    """In its usual form; None for what is of the kind, but cannot be an answer (as 3.5 where an integer is due)."""
    weak: bool = False
    """Whether it is an ordinary word too, and counts only where it is stated."""


def is_taken_back(tail: str, value: str, mentions: Sequence[Mention], *, unknown: bool) -> bool:
    """Whether a text takes the answer before it back, or turns to another one; not if it states it again at last.

    An answer that says that nothing is known (`unknown`) is not taken back by a sentence that says so.
    """
    taken_back = reopened = turned = False
    topic: str | None = value
    for low, high in sentence_spans(tail):
        begin = max(low, high - LONGEST_SENTENCE)
        sentence = tail[begin:high]
        inside = [
            m._replace(start=m.start - begin, end=m.end - begin) for m in mentions if begin <= m.start < high
        ]
        claim = _claim(sentence, value, inside)
        claim = None if claim == "other" and CHATTER.match(sentence) else claim  # a check has other values
        cued, turned = turned, words.TURNS.search(sentence) is not None
        turns = claim == "other" and (turned or cued)
        gives_up = words.GIVES_UP.search(sentence) if not tail[high:].strip() else None
        lacks = None if unknown else words.LACKS.search(sentence) or gives_up
        is_open = lacks is not None and not _IF.search(sentence, 0, lacks.start())
        denies = claim == "denied" or is_open or _withdraws(sentence, value, inside, topic)
        taken_back = claim != "again" and (taken_back or turns or denies)
        reopens = claim is None and (reopened or words.REOPENS.search(sentence) is not None)
        reopened = reopens and not words.CONFIRMS.search(sentence)
        topic = inside[-1].value if inside else topic
    return taken_back or reopened


def _claim(
    sentence: str, value: str, mentions: Sequence[Mention]
) -> Literal["again", "denied", "other"] | None:
    """What a sentence makes of the last value that it states: the answer again, or denied, or another one."""
    claim: Literal["other"] | None = None
    hypothetical = "would" in sentence and not words.TURNS.match(sentence.lstrip())
    for mention in reversed(mentions):
        ends = (LINE_END if mention.weak else words.ENDS).match(sentence, mention.end)
        affirmed = words.is_affirmed(sentence, mention.start, mention.end)
        denied = not affirmed and words.is_denied(sentence, mention.start, mention.end)
        if mention.value == value and (denied or words.DROPS.search(sentence[: mention.start][-24:])):
            return "denied"
        if mention.value == value and affirmed and (ends or words.RIGHTLY.match(sentence, mention.end)):
            withdrawn = words.WITHDRAWS.search(sentence, mention.end)
            return None if withdrawn and not withdrawn["cross"] else claim or "again"
        if mention.value and affirmed and ends and not (hypothetical or words.CONDITION.search(sentence)):
            claim = "other"
    return claim


_IF = words.cue(r"\b(?:if|unless|falls|wenn)\b")


def _withdraws(sentence: str, value: str, mentions: Sequence[Mention], topic: str | None) -> bool:
    """Whether a sentence takes the answer back, and not another value that it or the one before it names."""
    for cue in words.WITHDRAWS.finditer(sentence):
        named = [m.value for m in mentions if m.end <= cue.start() or cue["cross"]] or [topic]
        topics = named if cue["cross"] else named[-1:] if cue["pronoun"] else [value]
        if value in topics and not _IF.search(sentence, 0, cue.start()):
            return True
    return False


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Where the last sentences of a text begin and end."""
    return list(pairwise([0, *(stop.end() for stop in words.SENTENCE_END.finditer(text)), len(text)]))[
        -SENTENCES:
    ]


# ---- two values beside each other

SUM_RESULT = words.late(
    r"(?:[=≈⇒→]|\b(?:is|gives?|makes?|equals?|yields?|totals?|leaves?))[\s\"'`*_$(]{0,6}$", re.IGNORECASE
)
_BRACKETED = words.late(r"\([^()]*\)")
_APART = words.cue(rf"[.;(\n]|{words.REASON.pattern}")
_CLAUSE = words.late(r"[,;](?![0-9])\s?(?:and\s|or\s)?|\s(?:and|und|et|y(?!\s?=)|и|[&/\u2014\u2013-])\s")
_CALCULATED = words.late(r"(?<![\w(])[0-9][^=]*[=≈][\s$*]*\Z")
LINE_END = words.late(r"(?>[^\w?]*)$")


def has_rival(line: str, mentions: Sequence[Mention], form: Form) -> bool:
    """Whether another value takes the place of the first one; of two labels, none counts."""
    first = mentions[0]
    rival = next((m for m in mentions if m.value not in (None, first.value)), None)
    shared = words.SHARES.match(line, rival.end) if rival else None
    if rival is None or shared or not words.is_affirmed(line, rival.start, rival.end):
        return shared is not None
    gap = _BRACKETED.sub("", line[first.end : rival.start])
    apart = _APART.search(gap) and not words.CONDITION.search(gap)
    return words.CHANGED.search(gap) is not None or (form.labels and not apart)


def is_one_of_several(sentence: str, low: int, chosen: Mention, mentions: Sequence[Mention]) -> bool:
    """Whether a number beside that of a sentence is no circumstance, reason or step to it."""
    start, end = chosen.start - low, chosen.end - low
    premise = _CALCULATED.search(_CLAUSE.split(sentence[:start])[-1])
    for rival in mentions:
        at, after = rival.start - low, rival.end - low
        if rival.weak or rival.value in (None, chosen.value) or not words.is_affirmed(sentence, at, after):
            continue
        gap = sentence[end:at] or sentence[after:start]
        apart = _CLAUSE.search(gap)
        if at < start:
            explained: object = premise or not apart or words.RESULTS.search(sentence, after)
        else:
            reasons = (words.CAUSE,) if apart else (words.REASON, SUM_RESULT)
            explained = any(reason.search(gap) for reason in reasons)
        explained = explained or words.NEARLY_RELATES.search(_CLAUSE.split(sentence[:at])[-1])
        explained = explained or words.RANGE.search(sentence[:at])
        if not explained:
            return True
    return False


_ONE_WORD = words.late(r"\s?[^\W\d_]{1,15}(?:\(|,?\s{0,2}(?:(?:and|or|und|oder|et|ou|y|o|и|или)\s)?)")
"""What makes a range, a choice or one quantity of two numbers, in whatever language."""


def hedges(line: str, mentions: Sequence[Mention], form: Form) -> bool:
    """Whether two neighbours of different value are alternatives of each other, or a pair where one is due."""
    for left, right in pairwise(mentions):
        gap = line[left.end : right.start]
        bare = _BRACKETED.sub("", gap)
        alike = left.value == right.value
        amount = line[left.start] in "$€£¥₹" and words.RELATES.search(gap)  # $520 in 13 weeks
        joins = form.counts and not (amount or (alike and left.value) or words.is_stated(line, right.start))
        if joins and _ONE_WORD.fullmatch(bare):
            return not words.REASON.match(gap)
        if alike or left.value is None or len(gap) > 60 or not words.GAP.fullmatch(bare):
            continue
        remark = gap.lstrip(" *_`\"')$")[:1] in ("(", ".") or words.EQUATES.search(gap)
        weak = (left.weak or right.weak) and not LINE_END.match(line, right.end)
        either = words.ALTERNATIVE.search(bare) or not (weak or remark)
        if either and not any(words.is_denied(line, m.start, m.end) for m in (left, right)):
            return True
    return False
