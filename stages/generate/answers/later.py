"""Decides whether what follows an answer takes it back, from where another value of its kind stands in a sentence."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from evalcube.stages.generate.answers.passages import OTHER_TOPIC
from evalcube.stages.generate.answers.wording import REFERENCE, affirmed, any_of, denied_after, stated

REFUSED = ""
"""What a place gives that denies a value, hedges between two, or says that there is none: the search ends there."""

SENTENCES = 60
"""Sentences after an answer that are looked at, from the last one backwards."""


VALUES = 8
"""Values of a sentence that are looked at, from the last one backwards."""
_LISTED = 3
"""Values of a sentence that are parts, if nothing says otherwise."""
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
    STATED = "stated"
    """It is the answer."""
    ALONE = "alone"
    """It stands by itself."""
    OTHER = "other"
    """What something else is, if nothing is corrected."""
    OPEN = "open"
    """What it is cannot be told."""


SENTENCE_END = re.compile(r"(?<![.!?;。])[.!?;。]+[\"'`*_)\]]*(?=\s|\Z)|\n")
CUE = re.compile(
    r"\b(?:h+m+|o+ps|no(?=[,.;:!\u2014-]|\s(?:no|wait|it|the|sorry)\b)|(?<!then )again|"
    + any_of(
        "wait hold_on hang_on actually in_fact corrections? edit update errat(?:um|a) whoops sorry pardon apolog\\w+ "
        "my_(?:mistake|bad|error) nope (?:second|fresh|closer|further)_(?:looks?|thoughts?|pass|reading"
        "|inspection|count) "
        "reflection review rather instead meant make_that re-?(?:check|count|read|comput|calculat)\\w* looking_again "
        "actual correct right revised corrected new updated better wrong incorrect mistake error should_(?:be|have) "
        "let_me_(?:correct|fix|redo) mis\\w+ forg[eo]t overlook\\w* skipp\\w+ dropp\\w+ left_out "
        "mix\\w+_up slip typo careless\\w* "
        "chang\\w+ switch\\w* revis\\w+ amend\\w* replac\\w+ after_all all_along turns_out too_(?:hasty|quick) "
        "scra(?:tch|p) strike retract withdr[ae]w\\w* ignore disregard vertan falsch tromp\\w+ "
        "equivoqu\\w+ sbagliat\\w+ errad\\w+ ошиб\\w+ "
        "korrektur moment nein entschuldigung correcci[oó]n perd[oó]n non erreur correzione scusa "
        "correção desculpe? нет "
        "исправление"
    )
    + r")\b|更正|修正|訂正|不对|不對|错|錯|間違|정정|아니|تصحيح|सुधार",
    re.IGNORECASE,
)
"""What makes the second of two different final forms a correction of the first one."""
DENIES = re.compile(
    r"[\W_]{0,6}(?:"
    + any_of("and but so oh ah okay ok h+m+ well yes wait no sorry")
    + r"\b[\s,.!\u2026-]{1,4}){0,2}(?:(?:that|this|it|the above|(?:the|my) (?:\w{2,9} )?(?:answer|result|line|value)"
    r"(?: above| before)?)(?:['’]s| is| was)(?: \w{3,9})? (?:wrong|incorrect|mistaken|not (?:right"
    r"|correct|it)|an? (?:mistake"
    r"|error|typo|slip)|false start)\b|(?:scratch|scrap|strike|forget|ignore|disregard|discard|cancel) "
    r"(?:that|this|it|the above"
    r"|the (?:line|answer|result)|my|the previous|everything)\b|never ?mind\b|i (?:was|am) (?:wrong"
    r"|mistaken)(?! about)\b|i "
    r"take (?:that|it) back\b"
    r"|das (?:ist|war) falsch\b|c['’]est faux\b|es incorrecto\b|不对|不對|错了|錯了|間違い)",
    re.IGNORECASE,
)
"""A sentence that takes back what stands before it."""
_STRUCTURED = re.compile(
    r"^[^\S\n]{0,8}(?:\W{0,3}\||\W{0,3}[0-9]{1,2}[.)]\s|[-+*\u2022]\s|[\"'{}]\w*[\"']"
    r"|[^\W\d][\w ]{0,20}:[ *_]{1,4}\S{1,20}[ *_.]{0,4}$)",
    re.MULTILINE,
)
"""A row, an item or a field, which states nothing by itself where there are several."""
_ENDS = re.compile(
    r"[\s\"'`*_)\]}”’»$~/^]*(?:\Z|:\W*\Z|[.,;!?(…\u2014\u2013\u2192-]|<-|[^\x00-\x7f\w]|[\u3040-\u30ff\uac00-\ud7a3]|"
    + any_of(
        "now instead then actually really after_all all_along rather as_(?:my|the) altogether overall "
        "in_(?:all|total|fact) "
        "of_course of_them(?!\\s\\w) it_is is_(?:it|right|correct|meant|what|(?:the|my)_\\w*\\s?(?:right|correct"
        "|true|answer|one|choice"
        "|option)) must_be fits works makes and_not not rather_than instead_of because since ist_richtig"
    )
    + r"\b|(?:is|does|did|has|sein)(?: not)?\W*\Z)",
    re.IGNORECASE,
)
"""What follows a value that ends its clause, or is said to be the one."""
_CUT = re.compile(
    r"[;:\u2014\u2013\u2026][*_]*\s|,\s(?:so|but|and|which|\w+ing)\s|\.\.\.|->|=>"
    r"|[\u2192\u21d2\u2794-\u27bf]",
    re.IGNORECASE,
)
_ASSERTS = re.compile(
    r"(?:\b(?:(?:so|thus|hence|therefore|but|meant?|nope|no|to|put|use|read|say|insert|get|got|find|have|take"
    r"|making|leaving"
    r"|giving|is|ist|es|est|è|é|answer|result|value)|(?:comes?|came) (?:to|out (?:as|at|to))"
    r"|(?:should|must|ought to|has to|let['’]s|i['’]d)(?: have)? (?:be|been|read|say))\s"
    r"(?:(?:exactly|actually|instead|simply|the|an?|option|it|have|be)\s){0,2}|(?<!不)[是为為は])\W*\Z",
    re.IGNORECASE,
)
_EXPLAINS = re.compile(
    r"\b"
    + any_of(
        "if had no_way cannot can['’]t would could might may because since unlike without suppose "
        "assum\\w+ than common\\w* "
        "guess each first start\\w* initial\\w* original\\w* input given reference before today "
        "yesterday previous\\w* "
        "earlier contrast "
        "average mean half twice unsorted so_far expect\\w* include\\w* both exclud\\w* eliminat\\w* "
        "reject\\w* rul\\w+_out "
        "contradict\\w* beware avoid\\w* opposed compar\\w* even per puede podría kann könnte peut pourrait"
    )
    + r"\b|n['’]t\b|\bn[ãa]o\b|\b(?:nearly|almost)\b|\b(?:nicht|pas)\W*\Z|\b(?:of|from|in|than|after|before"
    r"|over|about|until"
    r"|between|like)\W*(?:the\s)?\Z|\w \(\W*\Z"
    r"|\bnot(?: to \w+)?\W*\Z|不是\W*\Z|\b[a-z]\s?=\W*\Z",
    re.IGNORECASE,
)
"""What makes a value that ends a clause one of the reasons."""
_SUBJECT = re.compile(
    r"\b"
    + any_of(
        "it this that i we there the_(?:\\w+_)?one which what they make answer result total sum count "
        "value number outcome "
        "solution choice option date order list sequence terms expression let_me figure letter item "
        "\\w*correct\\w* proper richtig\\w* please "
        "antwort r[eé]ponse respuesta risposta resposta es das ce? should must let['’]s \\w+ing"
    )
    + r"\b|[是为為は]|\A\W*(?:\w+\W+)?\Z",
    re.IGNORECASE,
)
"""What may be the answer."""
_PART = re.compile(
    r"\bof which\b|\bthe (?!(?:answer|result|\w*correct\w*|right|final|actual|real|true|total|whole|overall|proper|new"
    r"|revised|updated|only|same|required|asked|missing|next|resulting) )[a-z]{4,14} "
    r"(?:value|number|result|sum|total|count|date|word|item|figure|term|expression|list|sequence|order|letter)s?\b",
    re.IGNORECASE,
)
"""What is another value than the one asked for, as it has a name of its own."""
_PAIRED = re.compile(r"\b(?:and|or)\W*\Z", re.IGNORECASE)
_GOES_ON = re.compile(r"[\"'`*_)]{0,4},\s\w")
_EQUALS = re.compile(r"=[^\w>]*\Z")
_OPERATOR = re.compile(
    r"(?:(?:[0-9)\]}]|\b[a-z])\s?(?:[-+*/×·÷^<>]|\\times|\\cdot)|\b(?:plus|minus|times|and"
    r"|or|(?:add|subtract|multiply|divide|remove|deduct)(?:s|ed|ing|ies|ied)?(?: \w{1,9})?(?: by)?))"
    r"\s?[\s*_`$(\[{]{0,3}\Z",
    re.IGNORECASE,
)
_GLOSS = re.compile(r"[\"'`*_)]{0,4}\s?\([^()\n]{1,40}\)(?=\s\w)")
"""What a value is called as well, before its sentence goes on."""
_REASONS = re.compile(
    r"[\W_]*(?:(?:the |my |detailed |short |brief |full )*(?:explanations?|reason(?:s|ing)?|solution|steps?(?: \d+)?"
    r"|step[- ]by[- ]step(?: \w+)?|working|work(?:ed)?|calculations?|derivation|justification|rationale|break ?down"
    r"|details?|method|approach|why|how|notes?|proof|verification|check"
    r"|here(?:['’]s| is) (?:how|why|the|my|a)[^\n:]{0,60}))[*_]*\s?(?:[:\n])",
    re.IGNORECASE,
)
"""A heading under which values are reasons unless a sentence says more."""
_OPERATED = re.compile(
    r"[\s)\]}$`*_]{0,4}(?:(?:[+*/×·÷^<>=-]|\\times|\\cdot)(?=\s?[(0-9a-z])|\b(?:plus|minus|times)\b)",
    re.IGNORECASE,
)


def instead(tail: str, value: str, find: Find) -> str | None:
    """The value that a text ends up with after an answer; `REFUSED` if it takes it back, None if it lets it stand."""
    mentions = [_trimmed(mention, value, tail) for mention in find(tail) if mention.value]
    mentions = [m for m in mentions if value == REFUSED or _alike(value, m.value or "")]
    restated = [m.start for m in mentions if m.value == value and tail[m.end : m.end + 1] != "?"]
    cued, explains = CUE.search(tail) is not None, _REASONS.match(tail) is not None
    for role, other, low in _claims(tail, value, mentions):
        if role is Role.ANSWER:
            return None
        if role is Role.STATED or (role is Role.ALONE and cued):
            return other
        unclear = role is Role.OPEN and not explains and not any(at < low for at in restated)
        if cued or unclear or role in (Role.DENIED, Role.ALONE):
            return REFUSED
    return None


def _claims(tail: str, value: str, mentions: Sequence[Mention]) -> Iterator[tuple[Role, str, int]]:
    """What each sentence says of a value, and where it begins, from the last one backwards."""
    structured = len(_STRUCTURED.findall(tail)) > 1
    stops = [0, *(stop.end() for stop in SENTENCE_END.finditer(tail)), len(tail)]
    for low, high in list(pairwise(stops))[: -SENTENCES - 1 : -1]:
        first = bisect_left(mentions, low, key=attrgetter("start"))
        inside, mentions = mentions[first:][-VALUES:], mentions[:first]
        if inside:
            begin = max(low, inside[0].start - _NEAR)
            sentence = tail[begin : max(min(high, inside[-1].end + _NEAR), inside[-1].end)]
            inside = [m._replace(start=m.start - begin, end=m.end - begin) for m in inside]
            in_row = structured and _STRUCTURED.match(tail, tail.rfind("\n", 0, low + 1) + 1)
            asked = tail[max(0, low - 9) : low].rstrip().endswith("?")
            inside = [m for m in inside if not m.weak or (not asked and _said_outright(sentence, m))]
            for place, mention in reversed(list(enumerate(inside))):
                role = _role(sentence, inside, place, value)
                if role is Role.OPEN and any(map(str.isalnum, tail[high:])):
                    role = Role.OTHER
                if role is not None and not (in_row and role is not Role.ANSWER):
                    yield role, mention.value or "", low
        if DENIES.match(tail, low):
            yield Role.DENIED, "", low


def _trimmed(mention: Mention, value: str, text: str) -> Mention:
    """A list without words of its sentence at an end, or without the one that it replaces ("1, 2 -> 1, 3")."""
    items, answer = (mention.value or "").split(", "), value.split(", ")
    size = len(answer)
    if size >= len(items):
        return mention
    replaced = items[:size] == answer
    if replaced or sorted(items[-size:]) == sorted(answer):
        items = items[size:] if replaced else items[-size:]
        start = max(text.rfind(items[0], mention.start, mention.end), mention.start)
        return mention._replace(start=start, value=", ".join(items))
    if sorted(items[:size]) == sorted(answer):
        rest = ", ".join(["", *items[size:]])
        return mention._replace(end=mention.end - len(rest), value=", ".join(items[:size]))
    return mention


def _alike(value: str, other: str) -> bool:
    """Whether two values may stand for each other, which any may but lists: of one length, or mostly the same."""
    if "[" in (value[:1], other[:1]) or "{" in (value[:1], other[:1]):
        return value[0] == other[0]
    one, two = value.split(", "), other.split(", ")
    longest = max(len(one), len(two))
    return abs(len(one) - len(two)) * 4 <= longest or len(set(one) & set(two)) * 2 > longest


def _said_outright(sentence: str, at: Mention) -> bool:
    """Whether an ordinary word is a value, as a sentence of its own or stated at the end of one."""
    before = sentence[: at.start]
    said = not any(map(str.isalnum, before)) or stated(sentence, at.start) or _ASSERTS.search(before)
    return bool(said) and not any(map(str.isalnum, sentence[at.end :]))


def _role(sentence: str, mentions: Sequence[Mention], place: int, value: str) -> Role | None:
    """What a sentence makes of one of its values; None if that is a reason for the answer."""
    at = mentions[place]
    if at.value == value:
        denied = Role.DENIED if denied_after(sentence, at.end) else None
        return denied or (Role.ANSWER if affirmed(sentence, at.start, at.end) else None)
    gloss = _GLOSS.match(sentence, at.end)
    before, after = sentence[: at.start], sentence[gloss.end() if gloss else at.end :]
    if not _ENDS.match(after) or after.rstrip(" \n*_\"')").endswith("?") or REFERENCE.search(before):
        return None
    contrasted = place > 0 and mentions[place - 1].value == value
    operand = (
        _PAIRED.search(before) or _OPERATED.match(after) or (_OPERATOR.search(before) and not contrasted)
    )
    if operand or (value and value in before and _EQUALS.search(before)):
        return None
    replaced = any(m.value == value and not affirmed(sentence, m.start, m.end) for m in mentions)
    return _claim(sentence, mentions, at, replaced=replaced, contrasted=contrasted)


def _claim(
    sentence: str, mentions: Sequence[Mention], at: Mention, *, replaced: bool, contrasted: bool
) -> Role | None:
    """What the clause before a value that ends it makes of this value; None if that is a reason."""
    before = sentence[: at.start]
    asserted = _ASSERTS.search(before)
    *labels, clause = _CUT.split(before)
    said = any(map(str.isalnum, clause))
    label = (
        "" if said or not before.rstrip(" *_").endswith(":") or len(labels[-1].split()) > 4 else labels[-1]
    )
    firm = affirmed(sentence, at.start, at.end)
    if replaced and firm:
        return Role.STATED
    if OTHER_TOPIC.search(label) or _EXPLAINS.search(clause if said else label):
        return None
    if said and not asserted and not firm:
        return None
    if contrasted and asserted:
        return Role.STATED
    others = {m.value for m in mentions if at.start - len(clause) <= m.start <= at.end + 6}
    if len(others) - contrasted > 1:
        return Role.OTHER
    if not said:
        return Role.STATED if labels else Role.ALONE
    if _PART.search(clause):
        return Role.OTHER
    if asserted or stated(sentence, at.start):
        return Role.STATED if _SUBJECT.search(clause) else Role.OTHER
    goes_on = _GOES_ON.match(sentence, at.end)
    listed = len({m.value for m in mentions}) >= _LISTED
    return Role.OTHER if contrasted or goes_on or listed else Role.OPEN
