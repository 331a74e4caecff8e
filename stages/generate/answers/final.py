"""Decides which statement of a reply is its final answer: the last one that stands, typed by whatever reader asks.

The last mark of an answer gives a value (`passages`). What follows is read sentence by sentence: each takes the answer
back, states it again, states another value, or only talks about values, as reasons do. Another value is the answer
where a cue of a correction goes with it; two final forms that differ without one are no answer. `wording` has the cues.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from evalcube.stages.generate.answers import wording as words
from evalcube.stages.generate.answers.passages import CHATTER, OTHER_TOPIC, TAIL, Passage, Rank, passages

REFUSED = ""
"""What a place gives that denies a value, hedges between two, or says that there is none: the search ends there."""

_SENTENCES = 60
"""Sentences after an answer that are looked at, the last ones."""
_VALUES = 8
"""Values of a sentence that are looked at, the last ones."""
_WORDS = 8
"""Words of a free text that takes an answer's place without being a name."""
_NEAR = 200
"""Characters of a sentence before and after them that are read."""


class Mention(NamedTuple):
    """One value in a line."""

    start: int
    end: int
    value: str | None
    """In its usual form; None for what is of the kind, but cannot be an answer (as 3.5 where an integer is due)."""
    weak: bool = False
    """Whether it is an ordinary word too, and counts only where it is stated."""


Find = Callable[[str], Sequence[Mention]]
"""Every value of a kind in a text, in order."""


class Role(Enum):
    """What a sentence makes of a value."""

    ANSWER = "answer"
    """It is the answer that stands already."""
    DENIED = "denied"
    """It is that answer, and is not right."""
    REPLACES = "replaces"
    """It is the answer in the place of the one that stands."""
    STATED = "stated"
    """It is the answer."""
    OPEN = "open"
    """It is what cannot be told to be the answer or another thing."""


_LINE = 1500
"""Characters of a place in which its value is looked for."""
_HEAD = 60
"""Characters before a value that are looked at for the begin of its line."""
_REACH = 400
"""Characters of a text without marks, or after a cue, in which a value is taken back."""

_UNFINISHED = re.compile(
    r"(?:\A|[\n.!?;:,(\u2014\u2013\u2026-])[\s*_#>\"'(\[\u2026-]*(?:and |but |so |oh,? )?(?:h+m+\b|wait\b"
    r"|hold on\b|let me\b"
    r"|let['’]s\b|i (?:still )?(?:need|have) to\b|not sure\b|then\W*\Z)",
    re.IGNORECASE,
)
_BROKEN_OFF = re.compile(
    r"\b(?:but|and|or|though|although|because|since|as|if|while|unless|however|so|next|the|an|of|to)"
    r"[,.\s\u2026]*\Z",
    re.IGNORECASE,
)
"""An end that is none."""
_CLOSED = re.compile(r"[}>$\]](?=\s|\Z)")
_NAMED = re.compile(r"(?<![\w])[A-Z][\w'’-]*\Z")
_FIRST = re.compile(r"\s*(?:[*_`\"'(]*\w+|\S+)")

Read = Callable[[Passage], str | None]
"""What a place gives: a value, `REFUSED`, or None for nothing of the kind."""


def read_final(
    text: str, read: Read, end: Callable[[str], str | None], find: Find, *, free: bool = False
) -> str | None:
    """The value that a reply gives as its final answer; None if there is none, or if two of them contradict.

    Parameters
    ----------
    text
        The reply without its reasoning trace, and without mark-up.
    read
        The value in a place.
    end
        The value that a text without marks ends up with.
    find
        Every value in a text.
    free
        Whether any words may be a value, so that only a cue takes one back.
    """
    found = list(passages(text))
    place, value = next(((p, v) for p in found if (v := read(p)) is not None), (None, None))
    if place is None or value is None:
        return _unmarked(text, found, read, end, find, free=free) or None
    begin = _end_of(text, place, value, None if free else find)
    later = _contradiction(text, found, (place, value, begin), read)
    if later is None and begin < len(text):
        tail = text[begin:][-TAIL:]
        if free:
            later = _worded(
                tail, value, read, find, named=_NAMED.search(text, max(0, begin - _HEAD), begin) is not None
            )
        elif value or words.TURNS.search(tail):
            later = instead(tail, value, find)
    return (value if later is None else later) or None


def _end_of(text: str, place: Passage, value: str, find: Find | None) -> int:
    """Where a value ends in its place; without a value, or where it is not written so, where the sentence ends."""
    start = max(place.start, text.find(place.text[:_HEAD], place.start))
    near = text[start : start + _LINE]
    closed = _CLOSED.search(near) if place.rank is Rank.MARKED and " " not in value else None
    if closed and find is None:
        return start + closed.end()
    if value and find is None:
        written = re.search(r"[\W_]{1,9}".join(map(re.escape, value.split()[:_LINE])), near, re.IGNORECASE)
        if written:
            return start + written.end()
    for mention in find(near) if find else ():
        if mention.value == value or not value:
            end = mention.end if closed is None or mention.start < closed.end() else closed.end()
            return start + end
    if closed:
        return start + closed.end()
    first = _FIRST.match(text, start)
    stop = words.SENTENCE_END.search(text, first.end() - 1) if first else None
    return stop.end() if stop else len(text)


def _heading(text: str, find: Find) -> str | None:
    """The value that a reply begins with, in a paragraph of its own, or what takes its place."""
    first, gap, tail = text.strip().partition("\n\n")
    for mention in find(first[:TAIL]) if gap else ():
        rest = first[: mention.start] + first[mention.end :]
        if mention.value and not any(map(str.isalnum, rest)):
            later = instead(tail[-TAIL:], mention.value, find)
            return mention.value if later is None else later
    return None


def _labelled(text: str, read: Read, find: Find) -> str | None:
    """The value on the last line that says of itself that it is a result, or what later takes its place."""
    label = deque(words.LABEL.finditer(text), maxlen=1)
    if not label:
        return None
    place = Passage(text[label[0].end() :][:TAIL], Rank.SAID, boxed=False, start=label[0].end())
    value = read(place)
    if not value:
        return None
    later = instead(text[_end_of(text, place, value, find) :][-TAIL:], value, find, firm=False)
    return value if later is None else later


def _unmarked(
    text: str,
    found: Sequence[Passage],
    read: Read,
    end: Callable[[str], str | None],
    find: Find,
    *,
    free: bool,
) -> str | None:
    """The value that a text gives without a mark: in its first paragraph, after a label, or at its end."""
    for value in (None if free else _heading(text, find), None if free else _labelled(text, read, find)):
        if value is not None:
            return value
    value = end(text)
    if value and not _BROKEN_OFF.search(text[-_HEAD:]):
        tail = text[-_REACH:]
        last = max((cue.start() for cue in _UNFINISHED.finditer(tail)), default=-1)
        if last < 0 or end(tail[last:]) == value or words.CONFIRMS.search(tail, last):
            return value
    tail = text[_end_of(text, found[0], REFUSED, None if free else find) :][-TAIL:] if found else ""
    return instead(tail, REFUSED, find) if not free and words.TURNS.search(tail) else None


def _contradiction(
    text: str, found: Sequence[Passage], stands: tuple[Passage, str, int], read: Read
) -> str | None:
    """What two places of different rank give that differ: the later one after a cue, else `REFUSED`."""
    first, value, begin = stands
    ranks = {first.rank}
    for place in found:
        before = place.start < first.start
        if place.rank in ranks or (before and not _is_final(text, place)):
            continue
        other = read(place)
        if other is not None:
            ranks.add(place.rank)
            if other and other.casefold() != value.casefold():
                between = (place.start, first.start) if before else (begin, place.start)
                if not any(cue.search(text, *between) for cue in (words.TURNS, words.REDOES)):
                    return REFUSED
                return None if before else other
    return None


def _is_final(text: str, place: Passage) -> bool:
    """Whether a mark begins its line, and is no step on the way."""
    before = text[max(0, place.start - _HEAD) : place.start].rpartition("\n")[2]
    return place.rank is not Rank.SAID and len(before.split()) <= 2


# ---- what follows


class _Sentence(NamedTuple):
    text: str
    mentions: list[Mention]
    in_row: bool
    """Whether it is a row of a table, an item or a field among others."""
    asked: bool
    """Whether it answers a question of the reply itself."""
    goes_on: bool
    """Whether it is the rest of the answer's own sentence."""


def instead(tail: str, value: str, find: Find, *, free: bool = False, firm: bool = True) -> str | None:
    """The value that a text ends up with after an answer; `REFUSED` if it takes it back, None if it lets it stand."""
    mentions = [part for mention in find(tail) if mention.value for part in _parts(mention, value, tail)]
    mentions = [m for m in mentions if value == REFUSED or _alike(value, m.value or "")]
    sentences = list(_sentences(tail, mentions))
    last = max((i for i, s in enumerate(sentences) if not CHATTER.match(s.text)), default=-1)
    explained = words.HEADING.match(tail) is not None
    stands, cued = value, False
    for place, sentence in enumerate(sentences):
        turns = words.TURNS.search(sentence.text) is not None
        withdrawn = words.WITHDRAWS.match(sentence.text) is not None
        redone = words.REDOES.search(sentence.text) is not None
        hard = turns or withdrawn or cued or stands == REFUSED
        role, other = _claim(sentence, value)
        unexplained = place == last and not explained
        if role is Role.REPLACES or (role is Role.STATED and (hard or not firm or redone)):
            stands = other
        elif role in (Role.STATED, Role.OPEN) and (sentence.in_row or (sentence.goes_on and not hard)):
            continue
        elif role is Role.STATED:
            stands = REFUSED if unexplained or (place == 0 and not explained) else stands
        elif role is Role.OPEN:
            stands = REFUSED if hard or (unexplained and (redone or (firm and not free))) else stands
        elif role is Role.ANSWER:
            stands = value
        elif withdrawn or role is Role.DENIED:
            stands = REFUSED
        elif words.CONFIRMS.search(sentence.text):
            turns = False
        cued = turns or redone
    return None if stands == value else stands


def _sentences(tail: str, mentions: Sequence[Mention]) -> Iterator[_Sentence]:
    """The sentences after an answer, each with its values."""
    structured = len(words.STRUCTURED.findall(tail)) > 1
    stops = [0, *(stop.end() for stop in words.SENTENCE_END.finditer(tail)), len(tail)]
    for low, high in list(pairwise(stops))[-_SENTENCES:]:
        if not any(map(str.isalnum, tail[low:high])) and not mentions:
            continue
        first = bisect_left(mentions, low, key=attrgetter("start"))
        past = bisect_left(mentions, high, key=attrgetter("start"))
        inside = mentions[first:past][-_VALUES:]
        begin = max(low, inside[0].start - _NEAR) if inside else low
        end = max(min(high, inside[-1].end + _NEAR), inside[-1].end) if inside else min(high, low + 2 * _NEAR)
        in_row = structured and words.STRUCTURED.match(tail, tail.rfind("\n", 0, low + 1) + 1)
        asked = tail[max(0, low - 9) : low].rstrip().endswith("?")
        shifted = [m._replace(start=m.start - begin, end=m.end - begin) for m in inside]
        if shifted or any(map(str.isalnum, tail[low:high])):
            yield _Sentence(tail[begin:end], shifted, bool(in_row), asked, low == 0)


def _claim(sentence: _Sentence, value: str) -> tuple[Role | None, str]:
    """What a sentence says of the answer, and the value that it states."""
    text = sentence.text
    mentions = [
        m for m in sentence.mentions if not m.weak or (not sentence.asked and _said_outright(text, m))
    ]
    denied = False
    for place, mention in reversed(list(enumerate(mentions))):
        role = _role(text, mentions, place, value)
        if role is Role.DENIED:
            denied = True
        elif role is Role.STATED and denied:
            return Role.REPLACES, mention.value or ""
        elif role is not None and not (role is Role.OPEN and denied):
            return role, mention.value or ""
    return (Role.DENIED if denied else None), REFUSED


def _role(text: str, mentions: Sequence[Mention], place: int, value: str) -> Role | None:
    """What a sentence makes of one of its values; None if it only talks about it."""
    at = mentions[place]
    before = text[: at.start]
    if text.rstrip(" \n*_\"')").endswith("?"):
        return None
    supposed = words.SUPPOSES.search(before) is not None
    if at.value == value:
        if words.denied_before(text, at.start) or words.denied_after(text, at.end):
            return None if supposed else Role.DENIED
        return Role.ANSWER if words.affirmed(text, at.start, at.end) else None
    gloss = words.GLOSS.match(text, at.end)
    after = text[gloss.end() if gloss else at.end :]
    rightly = words.RIGHTLY.match(after)
    if not (rightly or words.ENDS.match(after)) or words.REFERENCE.search(before):
        return None
    affirmed = words.affirmed(text, at.start, at.end)
    standing = [m for m in mentions[:place] if m.value == value]
    if standing and affirmed and words.REPLACES.fullmatch(text, standing[-1].end, at.start):
        return Role.REPLACES
    operand = words.OPERATED.match(after) or words.OPERATOR.search(before)
    if operand or not affirmed or (standing and words.EQUALS.search(before)):
        return None
    if any(words.denied_before(text, m.start) or words.denied_after(text, m.end) for m in standing):
        return Role.REPLACES
    if supposed or words.EXPLAINS.search(before):
        return None
    if rightly:
        return Role.STATED
    role = _offered(before, alone=len({m.value for m in mentions}) == 1)
    return role if role is Role.STATED or words.LAST.match(after) else None


def _offered(before: str, *, alone: bool) -> Role | None:
    """What the words before a value that ends a clause make of it."""
    if words.EQUATION.search(before):
        return Role.OPEN if words.TURNS.search(before) else None
    *labels, clause = words.CUT.split(before)
    before = words.ARTICLE.sub("", before)
    open_end = Role.OPEN if alone else None
    _, bracket, aside = before.rpartition("(")
    if bracket and ")" not in aside and any(map(str.isalnum, aside)) and not words.TURNS.search(aside):
        return None
    if not any(map(str.isalnum, clause)):
        label = " ".join(labels)
        turned = words.TURNS.search(label) or words.REDOES.search(label)
        if not turned and OTHER_TOPIC.search(label):
            return None
        said = any(map(str.isalnum, label))
        return Role.STATED if alone and (turned or words.SUBJECT.search(label) or not said) else open_end
    if words.PART.search(clause):
        return None
    if words.BARE.fullmatch(clause) or words.CHANGES.search(clause):
        return Role.STATED
    if words.INTRODUCES.match(clause):
        return (
            Role.STATED if alone and (words.TURNS.search(before) or words.REDOES.search(before)) else open_end
        )
    if words.ASSERTS.search(before) or words.stated(before, len(before)):
        return Role.STATED if words.SUBJECT.search(clause) else Role.OPEN
    return None if words.RELATES.search(clause) else open_end


def _parts(mention: Mention, value: str, text: str) -> list[Mention]:
    """A list without words of its sentence at an end, or with the one that it replaces apart ("1, 2 -> 1, 3")."""
    items, answer = (mention.value or "").split(", "), value.split(", ")
    size = len(answer)
    if size >= len(items):
        return [mention]
    cut = size if sorted(items[:size]) == sorted(answer) else -size
    if cut < 0 and sorted(items[cut:]) != sorted(answer):
        return [mention]
    at = mention.start
    for item in items[:cut]:
        at = max(at, text.find(item, at, mention.end) + len(item))
    following = max(at, text.find(items[cut], at, mention.end))
    first = Mention(mention.start, at, ", ".join(items[:cut]))
    second = Mention(following, mention.end, ", ".join(items[cut:]))
    return [first, second]


def _alike(value: str, other: str) -> bool:
    """Whether two values may stand for each other, which any may but lists: of one length, or mostly the same."""
    if "[" in (value[:1], other[:1]) or "{" in (value[:1], other[:1]):
        return value[0] == other[0]
    one, two = value.split(", "), other.split(", ")
    longest = max(len(one), len(two))
    return abs(len(one) - len(two)) * 4 <= longest or len(set(one) & set(two)) * 2 > longest


def _said_outright(sentence: str, at: Mention) -> bool:
    """Whether an ordinary word is a value, as a sentence of its own or stated at the end of one."""
    before, after = sentence[: at.start], sentence[at.end :]
    if words.RIGHTLY.match(after) or words.REPLACES.match(after) or any(map(str.isalnum, after)):
        return bool(words.RIGHTLY.match(after) or words.REPLACES.match(after))
    cues = (words.ASSERTS, words.CHANGES, words.INTRODUCES)
    return bool(
        words.BARE.fullmatch(before)
        or words.stated(sentence, at.start)
        or any(cue.search(before) for cue in cues)
    )


# ---- free text


def _worded(tail: str, value: str, read: Read, find: Find, *, named: bool) -> str | None:
    """As `instead`, of an answer of any words: what follows a cue and a statement is one."""

    def stated_or_named(text: str) -> list[Mention]:
        found: list[Mention] = []
        stops = [0, *(stop.end() for stop in words.SENTENCE_END.finditer(text)), len(text)]
        for low, high in list(pairwise(stops))[-_SENTENCES:]:
            sentence = text[low : min(high, low + 2 * _NEAR)]
            names = (
                [m for m in find(sentence) if _is_name(sentence, m)] if not CHATTER.match(sentence) else []
            )
            at = max((frame.end() for frame in words.FRAME.finditer(sentence)), default=0)
            at += len(sentence[at:]) - len(sentence[at:].lstrip(" *_"))
            if (
                at
                and not named
                and not any(name.start >= at for name in names)
                and not words.SAYS_NOTHING.match(sentence, at)
            ):
                other = read(Passage(sentence[at:], Rank.SAID, boxed=False, start=0))
                if other and len(other.split()) <= _WORDS:
                    names = [Mention(at, len(sentence.rstrip()), other)]
            found += [m._replace(start=low + m.start, end=low + m.end) for m in names]
        return found

    return instead(tail, value, stated_or_named, free=True)


def _is_name(sentence: str, at: Mention) -> bool:
    """Whether a capital is more than the one that a sentence begins with."""
    after = sentence[at.end :]
    if any(map(str.isalnum, sentence[: at.start])) or " " in sentence[at.start : at.end]:
        return True
    cue = words.BARE.fullmatch(sentence, at.start, at.end) or words.TURNS.fullmatch(
        sentence, at.start, at.end
    )
    return not cue and bool(words.ENDS.match(after) or words.RIGHTLY.match(after))
