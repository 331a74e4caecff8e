"""Decides which statement of a reply is its final answer: the last one that stands, typed by whatever reader asks.

One grammar serves every kind of value. The last mark of an answer gives a value (`passages`). It stands unless the
text after it ends up with another value of its kind (`later`): what is not plainly a reason, as an operand, an item or
a value that is denied, takes the answer back, however it is introduced. It is the new answer where it is stated; else
there is none, as where two final forms differ. Of free text any words are values, so that there only a cue counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from evalcube.stages.generate.answers.later import (
    CUE,
    DENIES,
    REFUSED,
    SENTENCE_END,
    SENTENCES,
    Find,
    instead,
)
from evalcube.stages.generate.answers.passages import TAIL, Passage, Rank, passages

_HEAD = 60
"""Characters before a value that are looked at for the begin of its line."""
_REACH = 400
"""Characters of a text without marks, or after a cue, in which a value is taken back."""

_CONFIRMS = re.compile(
    r"\b(?:yes|yep|indeed|confirm(?:s|ed)?|checks? out|consistent|matches|holds|stands|agrees|still|verified|"
    r"as (?:before|stated)|(?:is|was|['’]s|are|all) (?:\w{2,9} )?(?:right|correct|fine|good|valid))\b",
    re.IGNORECASE,
)
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
_CAPITAL = re.compile(r"[\s>](?=[A-Z]|[^\x00-\u024f])")
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
        tail = text[_end_of(text, found[0], REFUSED, None) :][-TAIL:] if found else ""
        again = CUE.search(tail) and not free and instead(tail, REFUSED, find)
        return (not free and _heading(text, find)) or _unmarked(text, end) or again or None
    begin = _end_of(text, place, value, None if free else find)
    later = _contradiction(text, found, (place, value, begin), read)
    if later is None and begin < len(text):
        tail = text[begin:][-TAIL:]
        if free:
            later = _worded(tail, value, read, find)
        elif value or CUE.search(tail):
            later = instead(tail, value, find)
    return (value if later is None else later) or None


def _end_of(text: str, place: Passage, value: str, find: Find | None) -> int:
    """Where the sentence of a place ends, also where another one begins without a stop."""
    first = _FIRST.match(text, max(place.start, text.find(place.text[:_HEAD], place.start)))
    if first is None:
        return len(text)
    stop = SENTENCE_END.search(text, first.end() - 1)
    end = stop.end() if stop else len(text)
    another = _CAPITAL.search(text, first.end(), end) or (stop if stop and stop[0] == ";" else None)
    if another is None and place.rank is not Rank.MARKED:
        return end
    start = first.end() - len(first[0].lstrip())
    for mention in find(text[start : start + TAIL].partition("\n")[0]) if find else ():
        if mention.value == value:
            return start + mention.end
    return another.start() if another else end


def _heading(text: str, find: Find) -> str | None:
    """The value that a reply begins with, in a paragraph of its own, or what takes its place."""
    first, gap, tail = text.strip().partition("\n\n")
    for mention in find(first[:TAIL]) if gap else ():
        rest = first[: mention.start] + first[mention.end :]
        if mention.value and not any(map(str.isalnum, rest)):
            later = instead(tail[-TAIL:], mention.value, find)
            return mention.value if later is None else later or None
    return None


def _unmarked(text: str, end: Callable[[str], str | None]) -> str | None:
    value = end(text)
    if not value or _BROKEN_OFF.search(text[-_HEAD:]):
        return None
    tail = text[-_REACH:]
    last = max((cue.start() for cue in _UNFINISHED.finditer(tail)), default=-1)
    if last >= 0 and end(tail[last:]) != value and not _CONFIRMS.search(tail, last):
        return None
    return value


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
                if CUE.search(text, *between) is None:
                    return REFUSED
                return None if before else other
    return None


def _is_final(text: str, place: Passage) -> bool:
    """Whether a mark begins its line, and is no step on the way."""
    before = text[max(0, place.start - _HEAD) : place.start].rpartition("\n")[2]
    return place.rank is not Rank.SAID and len(before.split()) <= 2


# ---- free text

_LEAD = re.compile(
    r"[\W_]{0,6}(?:(?:and|but|so|oh|ah|okay|ok|well|yes|the|my|upon|on|after|i|made|an?)\b[\s,.!\u2026-]{1,4}){0,3}",
    re.IGNORECASE,
)

_STATEMENT = re.compile(
    r"(?:\b(?:it|this|that|answer|result|value|solution|one|option|choice|order|respuesta|r[eé]ponse"
    r"|antwort|risposta|resposta)\b"
    r"(?:\s\w{5,9}(?=\s\w{1,6}\s))?(?:['’]s|\s(?:is|was|are|ist|lautet|es|est|è|é)\b|\s(?:should|must"
    r"|would|ought to|has to)"
    r"(?:\s(?:really|actually|rather))?\s(?:have\s)?(?:be|been|read|say)\b)|\bI\s(?:now\s)?(?:get|got"
    r"|mean|meant)\b(?:\sto\s(?:say"
    r"|write))?|\bmake\sthat\b|\bfinal\s(?:answer|result|value)(?=\s\S)|\bc['’]est\b|\bes ist\b|(?:答案|正解"
    r"|結果|结果|应)?(?:是|为|為|は)"
    r"|\A[^\n:.{}\[\]\"]{0,30}:)(?:\s(?:really|actually|rather|simply|in\sfact|now|then|therefore|the"
    r"|of\scourse)\b)*\s?[:,]?",
    re.IGNORECASE,
)
SAYS_NOTHING = re.compile(
    r"\s*(?:all |still |indeed |that )?(?:right|correct|incorrect|wrong|mistaken|fine|good|clear"
    r"|consistent|confirmed|what|why|how"
    r"|because|since|as|not|also|well|worth|important|possible|an? (?:mistake|error|typo|slip|common)|due"
    r"|in|obtained|derived"
    r"|found|given|based|computed|calculated|reached|supported|explained|simply the)\b",
    re.IGNORECASE,
)
"""What follows "it is" where that states no answer."""


def _worded(tail: str, value: str, read: Read, find: Find) -> str | None:
    """As `instead`, of an answer of any words."""
    stops = {0, *(stop.end() for stop in SENTENCE_END.finditer(tail))}
    stops.update(start.end() for start in _CAPITAL.finditer(tail, 0, _REACH))
    for low in sorted(stops, reverse=True)[:SENTENCES]:
        lead = _LEAD.match(tail, low)
        cue = CUE.match(tail, lead.end() if lead else low)
        denied = DENIES.match(tail, low)
        if cue or denied:
            near = tail[low : low + _REACH]
            for match in reversed(list(_STATEMENT.finditer(near))):
                if not SAYS_NOTHING.match(near, match.end()):
                    other = read(Passage(near[match.end() :], Rank.SAID, boxed=False, start=0))
                    if other:
                        return None if other == value else other
        if denied:
            return REFUSED
    other = None if _CONFIRMS.search(tail) else instead(tail, value, find)
    return None if other is None or (other == REFUSED and not CUE.search(tail)) else REFUSED
