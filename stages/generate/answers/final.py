"""Decides which statement of a reply is its final answer: the last one that stands, typed by whatever reader asks.

The last mark of an answer gives a value (`passages`). What follows is read sentence by sentence: each takes the answer
back, states it again, states another value, or only talks about values, as reasons do. Another value is the answer
where a cue of a correction goes with it; two final forms that differ without one are no answer. `wording` has the cues.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from evalcube.stages.generate.answers import wording as words
from evalcube.stages.generate.answers.cues import phrases
from evalcube.stages.generate.answers.passages import (
    CHATTER,
    OTHER_TOPIC,
    TAIL,
    Passage,
    Rank,
    passages,
    without_next_question,
)
from evalcube.stages.generate.answers.ways import note

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


Find = Callable[[str], Sequence[Mention]]
"""Every value of a kind in a text, in order."""


Later = Callable[[str, str], str | None]
"""Of a tail and the answer before it; see `instead`."""


class Role(Enum):
    """What a sentence makes of a value."""

    ANSWER = "answer"  # that stands already
    DENIED = "denied"
    """It is that answer, and is not right."""
    REPLACES = "replaces"
    """It is the answer in the place of the one that stands."""
    STATED = "stated"
    OPEN = "open"
    """It is what cannot be told to be the answer or another thing."""


_LINE = 6000
"""Characters of a place in which its value is looked for."""
_HEAD = 60
"""Characters before a value that are looked at for the begin of its line."""
_REACH = 400
"""Characters of a text without marks, or after a cue, in which a value is taken back."""

_BROKEN_OFF = re.compile(phrases("broken_off"), re.IGNORECASE)
"""An end that is none."""
_SAYS_SO = re.compile(
    r"(?:\A|[.!?\n])[\s*_#>]*(?:(?:so|thus|hence|therefore),? )?(?:the|my|our) (?:final |correct )?answer is:?\Z",
    re.IGNORECASE,
)
_SHUT = re.compile(r"[\"'}\]>$,]*(?:\s*```)?")
"""What ends a box, or a JSON document after its answer."""
_OR_ELSE = re.compile(r"[\W_]{0,12}or\s", re.IGNORECASE)
_NAMES = re.compile(r"\w [A-Z][a-z]")
_SAYS = re.compile(r"[^\W_]|[\u2717\u2718\u274c]")
_EMPTY = re.compile(r"[\s*_`]*(?:<[^<>\n]{0,80}>[\s*_`.]*)?\Z")
"""What follows a mark that a reply was cut off after, or that it copied from its prompt."""
_CLOSED = re.compile(r"[}>$\]](?=\s|\Z)")
_FIRST = re.compile(r"\s*(?:[*_`\"'(]*\w+|\S+)")

Read = Callable[[Passage], str | None]
"""What a place gives: a value, `REFUSED`, or None for nothing of the kind."""


def read_final(
    text: str,
    read: Read,
    end: Callable[[str], str | None],
    find: Find | None,
    worded: Later | None = None,
    kind: str = "text",
) -> str | None:
    """The value that a reply gives as its final answer; None if there is none, or if two of them contradict."""
    free, find = worded is not None, find or (lambda _: ())
    text = without_next_question(text)
    found = list(passages(text))
    place, value = next(((p, v) for p in found if (v := read(p)) is not None), (None, None))
    if place is None or value is None:
        unmarked = _unmarked(text, found, end, find, free=free) or None
        note("reply's end" if unmarked or found else "no place", kind, read=unmarked is not None)
        return unmarked
    begin = _end_of(text, place, value, None if free else find)
    if place.rank is Rank.MARKED:
        begin = _SHUT.match(text, begin).end()  # type: ignore[union-attr]  # it matches nothing too
    later = _contradiction(text, found, (place, value, begin), read)
    if later is None and begin < len(text):
        tail = text[begin:][-TAIL:]
        if _OR_ELSE.match(tail):
            later = REFUSED
        elif worded is not None:
            later = worded(tail, value)
        elif value or words.TURNS.search(tail):
            later = instead(tail, value, find)
    final = value if later is None else later
    note("correction" if later else _PLACES[place.rank], kind, read=bool(final))
    return final or None


_PLACES = {Rank.ASKED: "answer line", Rank.MARKED: "box, tag or field", Rank.SAID: "statement"}


def _end_of(text: str, place: Passage, value: str, find: Find | None) -> int:
    """Where a value ends in its place; without a value, or where it is not written so, where the sentence ends."""
    start = max(place.start, text.find(place.text[:_HEAD], place.start))
    near = text[start : start + _LINE]
    bracket = _CLOSED.search(near) if place.rank is Rank.MARKED and " " not in value else None
    closed = bracket.end() if bracket else 0
    if value and find is None and (written := end_of_written(near, value)) is not None:
        return start + written
    for mention in find(near) if find else ():
        if mention.value == value or not value:
            return start + (mention.end if not closed or mention.start < closed else closed)
    if closed:
        return start + closed
    first = _FIRST.match(text, start)
    stop = words.SENTENCE_END.search(text, first.end() - 1) if first else None
    return stop.end() if stop else len(text)


def end_of_written(near: str, value: str) -> int | None:
    """Where the words of a value end, which anything but letters and digits may part; None if they are not there."""
    parts, plain = value.split(), near.lower()
    at = plain.find(parts[0].lower()) if parts else 0
    exact = near.isascii() and (len(parts) == 1 or value.replace(" ", "").isalnum())
    if exact and plain.startswith(value.lower(), at):
        return at + len(value)
    # Signs are parted by signs: to try all ways would take for ever, so each word is the next that there is.
    others = "".join(rf"(?>[\W_]{{1,9}}?{re.escape(part)})" for part in parts[1:])
    written = re.search(re.escape(parts[0]) + others, near, re.IGNORECASE) if parts else None
    return written.end() if written else None


def _heading(text: str, find: Find) -> str | None:
    """The value that a reply begins with, in a paragraph of its own, or what takes its place."""
    first, gap, tail = text.strip().partition("\n\n")
    for mention in find(first[:TAIL]) if gap and not first.endswith(("...", "\u2026")) else ():
        rest = first[: mention.start] + first[mention.end :]
        if mention.value and not any(map(str.isalnum, rest)):
            later = instead(tail[-TAIL:], mention.value, find)
            is_list = ", " in mention.value  # which may be the question's
            return mention.value if later is None else None if is_list else later
    return None


def _unmarked(
    text: str, found: Sequence[Passage], end: Callable[[str], str | None], find: Find, *, free: bool
) -> str | None:
    """The value that a text gives without a mark: in its first paragraph, after a label, or at its end."""
    if any(_EMPTY.match(place.text) and ":" in text[place.start - 4 : place.start] for place in found):
        return None
    head = None if free else _heading(text, find)
    if head is not None and ", " not in head:
        return head
    value = end(text) or head
    stands = value and not _BROKEN_OFF.search(text[-_HEAD:]) and (free or not _doubted(text, value, find))
    return value if stands else None


def _doubted(text: str, value: str, find: Find) -> bool:
    """Whether the sentence with a value, or what follows it, leaves open whether it is the answer."""
    tail = text[-_REACH - 2 * len(value) :]
    mentions = find(tail)
    at = max((m.start for m in mentions if m.value == value), default=0)
    for other in reversed(mentions):
        denial = words.denied_after(tail, other.end) if other.start > at else None
        tail = tail[: other.start] + tail[denial.end() :] if denial else tail
    begin = max((stop.end() for stop in words.SENTENCE_END.finditer(tail, 0, at)), default=0)
    begin = max((turn.end() for turn in words.RESULT.finditer(tail, begin, at)), default=begin)
    opened = words.REOPENS.search(tail, begin)
    return words.DOUBT.search(tail, begin) is not None or (
        opened is not None and words.CONFIRMS.search(tail, opened.end()) is None
    )


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
    """Whether a mark begins its line, or its sentence where that says "the answer is", and is no step on the way."""
    before = text[max(0, place.start - _HEAD) : place.start]
    if place.rank is Rank.SAID:
        return _SAYS_SO.search(before) is not None
    return len(before.rpartition("\n")[2].split()) <= 2


class _Sentence(NamedTuple):
    text: str
    mentions: list[Mention]
    asked: bool
    """Whether it answers a question of the reply itself."""
    goes_on: bool
    """Whether it is the rest of the answer's own sentence."""


def instead(tail: str, value: str, find: Find, *, free: bool = False) -> str | None:
    """The value that a text ends up with after an answer; `REFUSED` if it takes it back, None if it lets it stand."""
    mentions = [part for mention in find(tail) if mention.value for part in _parts(mention, value, tail)]
    mentions = [m for m in mentions if value == REFUSED or _alike(value, m.value or "")]
    sentences = list(_sentences(tail, mentions))
    last = max((i for i, s in enumerate(sentences) if not CHATTER.match(s.text)), default=-1)
    explained = words.HEADING.match(tail) is not None
    stands, cued, opened = value, False, False
    topic = None if free and _NAMES.search(value.partition(". ")[2]) else value
    for place, sentence in enumerate(sentences):
        turns = words.TURNS.search(sentence.text) is not None
        withdrawn = _withdrawn(sentence, value, topic)
        redone = words.REDOES.search(sentence.text) is not None
        hard = turns or withdrawn or cued or stands == REFUSED
        role, other = _claim(sentence, value)
        unexplained = place == last and not explained
        names = free and _NAMES.search(sentence.text)
        topic = sentence.mentions[-1].value if sentence.mentions else None if names else topic
        opened = (
            role is None and not explained and (opened or words.REOPENS.search(sentence.text) is not None)
        )
        opened = opened and not words.CONFIRMS.search(sentence.text)
        if role is Role.REPLACES or (role is Role.STATED and (hard or redone)):
            stands = other
        elif role in (Role.STATED, Role.OPEN) and sentence.goes_on and not hard:
            continue
        elif role is Role.STATED:
            stands = REFUSED if unexplained or (place == 0 and not explained) else stands
        elif role is Role.OPEN:
            stands = REFUSED if hard or (unexplained and (redone or not free)) else stands
        elif role is Role.ANSWER:
            stands = value
        elif withdrawn or role is Role.DENIED:
            stands = REFUSED
        elif words.CONFIRMS.search(sentence.text):
            turns = False
        cued = turns or redone
    if opened and stands == value:
        return REFUSED
    return None if stands == value else stands


def _withdrawn(sentence: _Sentence, value: str, topic: str | None) -> bool:
    """Whether a sentence takes the answer back, and not another value that it or the one before it talks about."""
    for cue in words.WITHDRAWS.finditer(sentence.text):
        if words.SUPPOSES.search(sentence.text[: cue.start()]):
            continue
        before = [m.value for m in sentence.mentions if m.end <= cue.start() and not m.weak]
        if not (cue["pronoun"] or cue["view"]) or (before[-1] if before else topic) == value:
            return True
    return False


def _sentences(tail: str, mentions: Sequence[Mention]) -> Iterator[_Sentence]:
    """The sentences after an answer, each with its values."""
    stops = [0, *(stop.end() for stop in words.SENTENCE_END.finditer(tail)), len(tail)]
    for low, high in list(pairwise(stops))[-SENTENCES:]:
        first = bisect_left(mentions, low, key=attrgetter("start"))
        past = bisect_left(mentions, high, key=attrgetter("start"))
        inside = mentions[first:past][-_VALUES:]
        begin = max(low, inside[0].start - NEAR) if inside else low
        end = max(min(high, inside[-1].end + NEAR), inside[-1].end) if inside else min(high, low + 2 * NEAR)
        asked = tail[max(0, low - 9) : low].rstrip().endswith("?")
        shifted = [m._replace(start=m.start - begin, end=m.end - begin) for m in inside]
        if shifted or _SAYS.search(tail, low, high):
            yield _Sentence(tail[begin:end], shifted, asked, low == 0)


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
    if not (rightly or words.ENDS.match(after)):
        return None
    affirmed = words.affirmed(text, at.start, at.end)
    standing = [m for m in mentions[:place] if m.value == value]
    if standing and affirmed and words.REPLACES.fullmatch(text, standing[-1].end, at.start):
        return Role.REPLACES
    if not affirmed:
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
    if not any(map(str.isalnum, words.TURNS.sub("", clause))):
        label = " ".join([*labels, clause])
        turned = words.TURNS.search(label) or words.REDOES.search(label)
        if not turned and OTHER_TOPIC.search(label):
            return None
        said = any(map(str.isalnum, label))
        return Role.STATED if alone and (turned or words.SUBJECT.search(label) or not said) else open_end
    if words.PART.search(clause):
        return None
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
    if words.RIGHTLY.match(after) or words.REPLACES.match(after):
        return True
    alone = not any(map(str.isalnum, words.TURNS.sub("", before)))
    outright = alone or words.stated(sentence, at.start) or words.ASSERTS.search(before) is not None
    return outright and not any(map(str.isalnum, after))
