"""Decides which statement of a reply is its final answer: the last one that stands, typed by whatever reader asks.

One grammar serves every kind of value. A reply is places that state a value (`passages`), and cues that take back
what stands before them ("Wait, ...", "Correction: ...", "That is wrong."). What a cue is followed by beats what it
takes back; two final forms that differ, with no cue between them, are no answer.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator

from evalcube.stages.generate.answers.passages import OTHER_TOPIC, TAIL, Passage, Rank, last_lines, passages

REFUSED = ""
"""What a place gives that denies a value, hedges between two, or says that there is none: the search ends there."""

CUES = 8
"""Cues that are followed, from the last one backwards."""
_HEAD = 60
"""Characters before a value that are looked at for the begin of its line."""
_REACH = 400
"""Characters after a cue in which its sentence states a value."""

_BEGIN = re.compile(r"[\n.!?;:,(\u2014\u2013\u2026-](?>[\s*_#>\"'(\[\u2026-]*)([^\W\d_]+)")
_CAPITAL = re.compile(r"[\s>](?=(?-i:[A-Z])|[^\x00-\u024f])([^\W\d_]+)")
"""Where a sentence begins on the line of an answer, which need not end with a full stop."""
_LEADS = r"(?:(?:and|but|so|oh|ah|okay|ok|h+m+|well|yes)\b[\s,.\u2026-]{1,4})?"
_FIRST_WORDS = frozenset(
    "and but so oh ah okay ok well yes that this it the my scratch strike forget ignore disregard discard "
    "cross never nevermind i does doesn "
    "das c es wait hold hang actually in correction edit update erratum errata whoops sorry pardon apologies "
    "no nope on upon after "
    "recheck rechecking recount recounting reread rereading double a looking rather make let revised "
    "corrected new updated amended better "
    "korrektur moment warte nein entschuldigung doch en espera attendez non erreur correzione scusa aspetta "
    "desculpe desculpa correctie "
    "rechecked recounted reexamining reconsidering recomputing recalculating reverifying rethinking re "
    "checking reviewing lets not then".split()
)
_FAULT = r"(?:wrong|incorrect|mistaken|not (?:right|correct|it)|an? (?:mistake|error|typo|slip)|false start)"
_THAT = r"(?:that|this|it|the above|(?:the|my) (?:\w{2,9} )?(?:answer|result|line|value)(?: above| before)?)"
_REDO = r"(?:correct|fix|revise|redo|rephrase|restate|amend|reconsider|re-?(?:compute|calculate)|start over)"
_DENIES = (
    rf"{_THAT}(?:['’]s| is| was)(?: (?:actually|clearly|of course|all))? {_FAULT}\b|(?:scratch|strike|forget|"
    rf"ignore|disregard|discard|cross out) "
    r"(?:that|this|it|the above|my|the previous|everything)\b|never ?mind\b|i (?:(?:have|see|think|realize|"
    r"realise|notice|just)\s(?:that )?)?(?:i )?(?:made|make) an? "
    r"(?:\w{2,12} )?(?:mistake|error|slip|typo)\b|i (?:was|am) (?:wrong|mistaken)\b|i take (?:that|it) back\b|"
    r"(?:that )?does(?:n['’]t| not) (?:work|hold|fit)\b"
    r"|das (?:ist|war) falsch\b|c['’]est faux\b|es incorrecto\b|不对|不對|错了|錯了|間違い"
)
_SOFT = (
    rf"wait\b|hold on\b|hang on\b|h+m+\b|actually\b|in fact\b|correction\b|edit(?=\W)|update(?=\W)|erratum\b|"
    rf"errata\b|o+ps\b|whoops\b|sorry\b|pardon\b|"
    rf"(?:my )?apologies\b|i apologi[sz]e\b|my (?:mistake|bad|error)\b|no(?=[,.!;:\u2014\u2013-]| wait\b|"
    rf" sorry\b| it\b| the\b| that\b)|nope\b|on (?:second|further) thoughts?\b|"
    rf"on (?:\w{{2,12}} )?(?:reflection|inspection|review)\b|(?:up)?on (?:re-?)?(?:check|review|reflect|"
    rf"reconsider|read|count|verif|examin)\w{{0,6}}\b|"
    rf"(?:after )?(?:re-?|double[- ]|a )(?:check|read|count|examin|consider|comput|calculat|verif|think|"
    rf"second)\w{{0,6}}\b|looking (?:again|closer|back)\b|rather\b|"
    rf"i (?:meant?|should have (?:said|written))\b|make that\b|(?:let me|let['’]s|i(?: need to| must| have to|"
    rf"['’]ll| will)?) (?:now )?(?:just )?{_REDO}\b|"
    r"(?=(?:so )?the (?:actual|correct|right|real|true|revised|corrected|new|updated)(?: \w{2,12})? (?:is|"
    r"should|must|would)\b|(?:so )?the (?:\w{2,12} )?answer (?:should|ought to|must) (?:actually )?(?:be|"
    r"have)\b)|"
    r"(?:revised|corrected|new|updated|amended|better)(?: final)? (?:answer|result|value|solution)\b|"
    r"korrektur\b|moment\b|warte\b|nein\b|entschuldigung\b|doch\b|correcci[oó]n\b|perd[oó]n\b|espera\b|"
    r"en realidad\b|attendez\b|non\b|"
    r"erreur\b|désolé\b|correzione\b|scusa\b|aspetta\b|correção\b|desculpe?\b|correctie\b|исправление\b|нет\b|"
    r"извините\b|"
    r"更正|修正|訂正|纠正|等等|等一下|抱歉|对不起|不,|いや|すみません|정정|잠깐|아니|تصحيح|عفوا|सुधार|रुको"
)
_CUE = re.compile(rf"{_LEADS}(?:(?P<denies>{_DENIES})|{_SOFT})", re.IGNORECASE)
_CONFIRMS = re.compile(
    r"\b(?:yes|yep|indeed|confirm(?:s|ed)?|checks? out|consistent|matches|holds|stands|agrees|still|verified|"
    r"as (?:before|stated)|"
    r"(?:is|was|['’]s|are|all) (?:\w{2,9} )?(?:right|correct|fine|good|valid))\b",
    re.IGNORECASE,
)
_UNFINISHED = re.compile(
    rf"{_LEADS}(?:h+m+\b|wait\b|hold on\b|let me\b|let['’]s\b|i (?:still )?(?:need|have) to\b|not sure\b|"
    rf"then\W*\Z)",
    re.IGNORECASE,
)
_STATEMENT = re.compile(
    r"(?:\b(?:it|this|that|which|answer|result|outcome|value|solution|output|one|mine|list|order|sequence|date|total|count|"
    r"choice|option|respuesta|"
    r"r[eé]ponse|antwort|risposta|resposta)\b(?:\s\w{5,9}(?=\s\w{1,6}\s))?(?:\s(?:really|actually|in fact|"
    r"then))?(?:['’]s|\s(?:is|was|are|equals|becomes|ist|lautet|es|est|è|é)\b"
    r"|\s(?:should|must|would|ought to|has to|needs to)(?:\s(?:really|actually|rather|"
    r"instead))?\s(?:have\s)?(?:be|been|read|say|equal)\b)"
    r"|\bI\s(?:really\s|actually\s|now\s)?(?:get|got|find|mean|meant|have)\b(?:\sto\s(?:say|write))?|"
    r"\bmake\sthat\b|\bfinal\s(?:answer|result|value)(?=\s\S)|\bc['’]est\b|\bes ist\b|(?:答案|正解|結果|结果|应)?(?:是|"
    r"为|為|は)|\A[^\n:.{}\[\]\"]{0,30}:)"
    r"(?:\s(?:really|actually|rather|simply|in\sfact|now|then|therefore|the|of\scourse)\b)*\s?[:,]?",
    re.IGNORECASE,
)
SAYS_NOTHING = re.compile(
    r"\s*(?:all |still |indeed |that )?(?:right|correct|incorrect|wrong|mistaken|fine|good|clear|consistent"
    r"|confirmed|what|why|how|"
    r"because|since|as|not|also|well|worth|important|possible|an? (?:mistake|error|typo|slip|common)|due|in"
    r"|obtained|derived|found|given|"
    r"based|computed|calculated|reached|supported|explained|simply the)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<![.!?;。])[.!?;。]+[\"'`*_)\]]*(?=\s|\Z)|\n")

_BROKEN_OFF = re.compile(
    r"\b(?:but|and|or|though|although|because|since|as|if|while|unless|however|so|next|the|an|of|to)"
    r"[,.\s\u2026]*\Z",
    re.IGNORECASE,
)
"""An end that is none."""
_WORD = re.compile(r"\S+")
_CLOSERS = " .,!*_`\"')]}~"
_OPENERS = " *_`\"'(["
_LONGEST = 40
"""Words of a list that ends a sentence."""
_STRUCTURE = re.compile(r"\W{0,3}\||\W{0,3}[0-9]{1,2}[.)]\s|[-+*\u2022]\s|[\"'{}]\w*[\"']")
"""A row, an item or a field, which states nothing by itself."""
_POSTSCRIPT = re.compile(
    r",?\s\(?(?:(?:instead of|rather than|(?:and )?not) [^.]*|instead|after all|now|then|though|actually|rather"
    r"|all along|it is|is (?:right|correct)|I now \w+)\W*$",
    re.IGNORECASE,
)
"""What may follow a value that is put in another's place."""
_ASSERTS = re.compile(
    r"(?:\A|[,;\u2013\u2014(\]=]\s?|\b(?:so|thus|hence|therefore|but)\W{1,3}|\breplac[^.]*\b(?:by|with)\s"
    r"|\b(?:giv(?:es?|ing)|yields?|leav(?:es?|ing)|mak(?:es?|ing)|gets?|we have|finds?|meant?|put|use|read|turns out"
    r"|settl\w+ on|believe|go(?:ing)? with|(?:corrected|superseded|replaced) (?:as|by)|end(?:ing)? up with"
    r"|(?:com|chang|switch|correct|revis|amend)\w*(?: \w+){0,2} to"
    r"|(?:should|must|ought to|have to|has to)(?: have)? (?:be|been|read|say)|i['’]d say)\s"
    r"(?:(?:it|now|exactly|actually)\s)?(?:to be\s)?)"
    r"(?:the\s|option\s)?\W*\Z",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(r"\b(?:so|thus|hence|therefore)\W*\Z", re.IGNORECASE)
_ARROW = re.compile(r"\s?(?:->|=>|[\u2192\u21d2])")
_EXPLAINS = re.compile(
    r"\b(?:if|had i|no way|cannot|can['’]t|would|could|might|because|since|unlike|without|suppose|assuming|than|mistake"
    r"|guess|each|start|initial\w*|original\w*|input|given|today|earlier|contrast|average|mean|half|twice)\b"
    r"|\bnot\W*\Z|\b[a-z]\s?=\W*\Z",
    re.IGNORECASE,
)
"""What makes a value that ends a sentence one of the reasons."""
_FIRST = re.compile(r"\s*(?:[*_`\"'(]*\w+|\S+)")

Read = Callable[[Passage], str | None]
"""What a place gives: a value, `REFUSED`, or None for nothing of the kind."""


def read_final(text: str, read: Read, end: Callable[[str], str | None], *, typed: bool = True) -> str | None:
    """The value that a reply gives as its final answer; None if there is none, or if two of them contradict.

    Parameters
    ----------
    text
        The reply without its reasoning trace, and without mark-up.
    read
        The value in a place.
    end
        The value that a text without marks ends up with.
    typed
        Whether values are of a kind; any words are one else, so that only what is called the answer is.
    """
    found = list(passages(text))
    stands = next(((place, value) for place in found if (value := read(place)) is not None), None)
    after = text if stands is None else text[stands[0].start :]
    after = after if stands is not None else after[-_REACH:]
    corrected = _corrected(after, read, stands[1] if stands else None, typed=typed)
    if corrected is not None:
        return corrected or None
    if stands is None:
        return _unmarked(text, end)
    place, value = stands
    if _contradicted(text, found, place, value, read):
        return None
    # brackets and JSON are no part of a sentence
    spoken = typed and value.lstrip("-")[:1].isalnum()
    return _replaced(text, place, value, read, end) if spoken else value or None


def _unmarked(text: str, end: Callable[[str], str | None]) -> str | None:
    value = end(text)
    if not value or _BROKEN_OFF.search(text[-_HEAD:]):
        return None
    tail = text[-_REACH:]
    last = max((cue.start() for cue in _cues(tail, 0, _UNFINISHED)), default=-1)
    if last >= 0 and end(tail[last:]) != value and not _CONFIRMS.search(tail, last):
        return None
    return value


def _contradicted(text: str, found: list[Passage], stands: Passage, value: str, read: Read) -> bool:
    """Whether the last place of another rank gives another value, and no cue takes it back."""
    ranks = {stands.rank}
    for place in found:
        if place.rank in ranks or (place.start < stands.start and not _is_final(text, place)):
            continue
        other = read(place)
        if other is not None:
            ranks.add(place.rank)
            if other and other.casefold() != value.casefold():
                return next(_cues(text[: stands.start], place.start), None) is None
    return False


def _replaced(text: str, place: Passage, value: str, read: Read, end: Callable[[str], str | None]) -> str:
    """What stands after all: another value if the reply ends with it, and does not explain the first one with it."""
    first = _FIRST.match(
        text, max(place.start, text.find(place.text[:_HEAD], place.start))
    )  # in a block's first line
    later = _SENTENCE_END.search(text, first.end() - 1) if first else None
    if later is None:
        return value
    after = text[later.end() :]
    line = next(last_lines(after[-_REACH:]), "") if after else ""
    if not line or "?" in line or _STRUCTURE.match(line):
        return value
    stops = [stop.end() for stop in _SENTENCE_END.finditer(line.rstrip(_CLOSERS))]
    whole = line[stops[-1] if stops else 0 :].strip(_CLOSERS).lstrip(_OPENERS)
    sentence = _POSTSCRIPT.sub("", whole).strip(_CLOSERS)

    count = value.count(", ") + 1

    def value_of(part: str) -> str:
        found = part.strip() and (end(part) or read(Passage(part.strip(), Rank.SAID, False, 0)))
        return ", ".join(found.split(", ")[-count:] if count > 1 else [found]) if found else ""

    head, *tail = _ARROW.split(sentence, maxsplit=1)
    if tail and value_of(head) in ("", value):
        sentence = tail[0]
    words = [word.start() for word in _WORD.finditer(sentence)] or [0]
    other = value_of(sentence) or (value_of(sentence[words[-1] :]) if count == 1 else "")
    if not other or f", {value}".endswith(f", {other}") or not _alike(value, other):
        return value
    if value_of(sentence[: words[-1]]) == other:
        return value
    at = next((at for at in reversed(words[-_LONGEST:]) if value_of(sentence[at:]) == other), 0)
    lead = sentence[:at]
    stated = (
        whole != sentence
        or _ASSERTS.search(lead)
        or any(not lead[match.end() :].strip(_OPENERS) for match in _STATEMENT.finditer(lead))
    )
    if not stated or _EXPLAINS.search(lead) or (lead.endswith(": ") and OTHER_TOPIC.search(lead)):
        return value
    if "%" in sentence[at:] and "%" not in text[place.start : later.start()]:
        return value
    before = value_of(lead) or value_of(after[: after.rfind(whole)][-_REACH:])
    alone = not any(map(str.isalnum, lead)) or _CONCLUDES.search(lead)
    return other if alone or before in ("", value) or not _alike(value, before) else value


def _alike(value: str, other: str) -> bool:
    """Whether two values may stand for each other, which any may but lists: of one length, or with a common item."""
    one, two = value.split(", "), other.split(", ")
    if len(one) == len(two) and (len(one) == 1 or one[0][-1].isdigit()):
        return True
    return not set(one).isdisjoint(two)


def _is_final(text: str, place: Passage) -> bool:
    """Whether a mark begins its line, and is no step on the way."""
    before = text[max(0, place.start - _HEAD) : place.start].rpartition("\n")[2]
    return place.rank is not Rank.SAID and len(before.split()) <= 2


def _corrected(text: str, read: Read, value: str | None, *, typed: bool = True) -> str | None:
    """What the last cue in a text puts in the place of a value; `REFUSED` if it takes it back for nothing."""
    first = _FIRST.match(text)
    if first is None:
        return None
    for cue in sorted(deque(_cues(text, first.end()), maxlen=CUES), key=re.Match.start, reverse=True):
        tail = text[cue.end() :]
        for found in _after_cue(
            tail, read, whole=typed or cue[0].lower().endswith(("meant", "mean", "that"))
        ):
            return found
        if cue["denies"] is not None and value is not None and " was" not in cue["denies"]:
            return REFUSED
    return None


def _cues(text: str, begin: int, form: re.Pattern[str] = _CUE) -> Iterator[re.Match[str]]:
    """The cues from a place on."""
    line = text.find("\n", begin, begin + TAIL)
    for pattern, end in ((_CAPITAL, line if line >= 0 else len(text)), (_BEGIN, len(text))):
        for start in pattern.finditer(text, begin, end):
            word = start[1]
            if word.lower() in _FIRST_WORDS or word[:2].lower() in ("hm", "oo") or not word.isascii():
                cue = form.match(text, start.start(1))
                if cue is not None:
                    yield cue


def _after_cue(tail: str, read: Read, *, whole: bool) -> Iterator[str]:
    """The values that a cue's sentence, or one after it, states: the first one is the firmest."""
    for place in passages(tail):
        if (found := read(place)) is not None:
            yield found
    near = tail[:_REACH]
    for match in reversed(list(_STATEMENT.finditer(near))):
        if SAYS_NOTHING.match(tail, match.end()):
            continue
        found = read(Passage(tail[match.end() :][:TAIL], Rank.SAID, False, 0))
        if found:
            yield found
    if not whole:
        return
    stop = _SENTENCE_END.search(tail)
    sentence = tail[: min(stop.start(), TAIL) if stop else TAIL]
    found = read(Passage(sentence, Rank.SAID, False, 0)) if sentence.strip(" \t*_,.:;-") else None
    if found and len(sentence.split()) <= len(found.split()) + 3:
        yield found
