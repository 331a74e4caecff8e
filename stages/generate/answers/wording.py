"""The words around an answer, a list for each role: what announces, denies, explains or takes it back."""

from __future__ import annotations

import re
from typing import Any, cast

from evalcube.stages.generate.answers.cues import phrases


class _Late:
    """A pattern that is compiled when it is first used: for all of them together that takes a fifth of a second."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a pattern has
        found = getattr(re.compile(self.pattern, re.IGNORECASE), name)
        setattr(self, name, found)  # so that it is not asked for again
        return found


def cue(pattern: str) -> re.Pattern[str]:
    """A pattern that lets letter case be."""
    return cast("re.Pattern[str]", _Late(pattern))


_SOME_QUIET = r"[\s\"'`*_$“‘({\[<\\>|:]{0,8}"

_NOT = phrases("not")
_AFTER_NOT = phrases("after_not")
_NEGATION = cue(
    rf"(?:≠|!=|\\neq?\b|¬|\b{_NOT}"
    rf"|n['’]t)[\s,:]{{0,3}}(?:{_AFTER_NOT}[\s\"'`*“‘:$(]{{1,4}}){{0,6}}[\s\"'`*“‘$(\\\[]{{0,4}}$"
)
_DENIED = cue(r"[\s\"'`*”’)$.\]}]{0,6}" + phrases("denied"))
_UNSURE = cue(
    rf"\b{phrases('unsure')}[\s\"'`*$(\\:]{{0,4}}(?:the |a )?[\s\"'`*$(\\]{{0,4}}$"
    rf"|\b{phrases('unsettled')}(?: (?:is|was|are|were|would be|might be|could be|include))?[\s\"'`*$(\\:]{{1,4}}$"
    rf"|\b{phrases('supposing')}\b[^.!?;,\n]{{0,30}}?[\s\"'`*$(\\:]{{1,4}}$"
)
_OPEN_END = cue(r"[\s\"'`*)$]{0,4}" + phrases("open_ends"))
_STATES = phrases("states")
_BETWEEN = phrases("between")
_AFTER_STATES = rf"{_SOME_QUIET}(?:{_BETWEEN}\s){{0,4}}{_SOME_QUIET}"
STATING = rf"(?:[=≈→⇒:]|->|=>|\b(?:it|that|this)['’]s|\b{_STATES}(?!\w)){_AFTER_STATES}"
_STATED = cue(rf"{STATING}$")
STATEMENT = cue(
    rf"[^.!?\n]{{0,80}}?(?:[\u2026\u2234]|{STATING})(?:(?:that )?(?:(?:it|this|the \w+)\s?)?{STATING})?"
)
"""What a sentence begins with that states the words after it."""
_DECLINES = cue(
    r"(?>[\W_]*)(?:i |we |it |there |that |one )?(?:(?:do|does|did|could|can|is|was|am|are)(?: ?n[o']t)|"
    + phrases("declines")
    + ")"
)


def affirmed(line: str, start: int, end: int) -> bool:
    """Whether nothing around a part of a line denies it or leaves it open.

    Examples
    --------
    >>> affirmed("It is not 42", 10, 12), affirmed("It is 42", 6, 8), affirmed("42 is wrong", 0, 2)
    (False, True, False)
    """
    before = line[max(0, start - 80) : start]
    if _NEGATION.search(before) or _UNSURE.search(before):
        return False
    return not (_DENIED.match(line, end) or _OPEN_END.match(line, end))


def denied_before(line: str, start: int) -> bool:
    """Whether what stands before a part of a line denies it."""
    return _NEGATION.search(line[max(0, start - 80) : start]) is not None


def denied_after(line: str, end: int) -> re.Match[str] | None:
    """What follows a part of a line and denies it."""
    return _DENIED.match(line, end)


def stated(line: str, start: int) -> bool:
    """Whether a part of a line stands after an equals sign, a colon, "is" or the like."""
    return _STATED.search(line[max(0, start - 48) : start]) is not None


def declines(line: str) -> bool:
    """Whether a line says that there is no answer."""
    return _DECLINES.match(line) is not None


# ---- what follows an answer

SENTENCE_END = re.compile(r"(?<![.!?;。])[.!?;。]+[\"'`*_)\]]*(?=\s|\Z)|\n")
TURNS = cue(
    r"\b(?:h+m+|o+ps|no(?=\s?[,.;:!\u2014\u2013-]|\s(?:no|wait|it|the|sorry)\b)|"
    + phrases("turns")
    + r")\b|更正|修正|訂正|不对|不對|错|錯|間違|정정|아니|تصحيح|सुधार"
)
"""A cue of a correction: beside it, another value is the answer."""
REDOES = cue(r"\b(?:(?<!then )again|" + phrases("redoes") + r")\b")
"""What is done once more, which may end otherwise than before."""
WITHDRAWS = cue(r"\b" + phrases("withdraws") + r"|不对|不對|错了|錯了|間違い|[\u2717\u2718\u274c]")
"""What takes back what stands before it; a pronoun stands for the value that was named last."""
REOPENS = cue(
    rf"\b{phrases('lets_me')} (?:just |now |quickly )?{phrases('reopens')}\b|\b{phrases('pauses')}\b"
)
"""What leaves open whether what stands before it stands, until something more is said."""
_HEDGES = phrases("hedges")
HEDGE = cue(rf"\b{_HEDGES}\b")
"""What makes a statement after it in its clause none of the answer."""
RESULT = cue(
    rf"[,;]\s{phrases('result')}\b|\b{phrases('pauses')}\b\W{{1,4}}(?:no\W{{1,4}})?(?=(?:it|that|this|the)\b)"
)
"""Where a sentence turns from what is not the answer to what is."""
CONDITION = cue(rf"\b{phrases('condition')}\b")
"""What makes all that its sentence states none of the answer."""
DOUBT = cue(
    rf"\b(?:(?!(?<=\bi )(?:say|said|wrote)\b|(?<=['’]d )say|(?<=ld )say|(?<=at )said|can['’]?t\b|cannot\b){_HEDGES}|"
    + phrases("doubt")
    + rf")\b|{CONDITION.pattern}|\(\?\)|[\u2717\u2718\u274c]"
)
"""What leaves open whether a value that has no mark is the answer."""
CONFIRMS = cue(phrases("confirms"))
RIGHTLY = cue(r"[\s\"'`*_)\]}”’»$]*\s" + phrases("rightly") + r"\b(?! only)")
"""What says of the value before it that it is the answer."""
ENDS = cue(
    r"[\s\"'`*_)\]}”’»$~/^]*(?:\Z|:\W*\Z|[.,;!?(…\u2014\u2013\u2192-]|<-|[^\x00-\x7f\w]|"
    + phrases("ends")
    + r"\b|(?:is|does|did|has|sein)(?: not)?\W*\Z)"
)
"""What follows a value that ends its clause."""
CUT = cue(phrases("cut"))
"""Where a clause begins."""
SUPPOSES = cue(
    r"\b"
    + phrases("supposes")
    + r"\b|['’]d\b(?! (?:rather|say|go|now|choose|like|change|revise|correct|amend|put|pick|take|better))"
)
"""What makes a sentence speak of what is not, was, or others think."""
EXPLAINS = cue(
    r"\b"
    + phrases("explains")
    + r"\b|n['’]t\b|\bn[ãa]o\b|\b(?:nearly|almost)\b|\b(?:nicht|pas)[^\w,]*\Z|\w \(\W*\Z"
    r"|\bnot(?: to \w+)?\W*\Z|不是\W*\Z|\b[a-z]\s?=\W*\Z"
)
"""What makes a value that ends a clause one of the reasons."""
RELATES = cue(rf"\b{phrases('relates')}\W*(?:the\s)?\Z")
"""What makes a value a circumstance."""
ASSERTS = cue(rf"(?:\b{phrases('asserts')}\s(?:{phrases('exactly')}\s){{0,2}}|(?<!不)[是为為は])\W*\Z")
"""What asserts the value after it, beside `stated`."""
SUBJECT = cue(r"\b" + phrases("subject") + r"\b|[是为為は]|\A\W*(?:\w+\W+)?\Z")
"""What may be the answer."""
PART = cue(rf"\bof which\b|\b(?:the|an?) (?!{phrases('asked_for')} )[a-z]{{4,14}} {phrases('part')}s?\b")
"""What is another value than the one asked for, as it has a name of its own."""
GLOSS = re.compile(r"[\"'`*_)]{0,4}\s?\([^()\n]{1,40}\)(?=\s\w)")
"""What a value is called as well, before its sentence goes on."""
HEADING = cue(
    rf"[\W_]*(?:(?:the |my |detailed |short |brief |full |key )*{phrases('heading')})[*_]*\s?(?:[:\n])"
)
"""A heading under which values are reasons unless a sentence says more."""
SAYS_NOTHING = cue(rf"\s*(?:all |still |indeed |that )?{phrases('says_nothing')}\b")
"""What follows "it is" where that states no answer."""
FRAME = cue(phrases("frame") + r"(?:\s" + phrases("really") + r"\b)*\s?[:,]?")
"""What states the words after it."""


EQUATION = cue(
    r"(?:[0-9a-z)\]}][\s$]?[-+*/×·÷^&|]\s?[^=\na-z]{1,60}|\b(?:and|or|xor|not|plus|minus|times)\s[^=\n]{1,60})(?:=|≈|→"
    r"|\\to|\b(?:is|gives|makes|equals|yields))\W*\Z"
)
"""The left side of a calculation before its result."""
LAST = cue(rf"[^,(\n]*(?:\Z|\(|,\s{phrases('last')}\b)")
"""What follows a value that ends its sentence."""


REPLACES = re.compile(r"\W*(?:-+>|=>|[\u2192\u21d2\u2794-\u27bf]|/)\W*")
"""What stands between a value and the one in its place."""

ARTICLE = cue(r"\b(?:the|an?)\s\Z")
