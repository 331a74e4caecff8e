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
_WRONG = phrases("wrong")
_DENIED = cue(
    rf"[\s\"'`*”’)$.\]}}]{{0,6}}(?:(?:is|was|are|would be|seems|looks|must be)\s(?:\w{{1,9}}\s){{0,2}}?{_WRONG}\b"
    r"|(?:では|じゃ)[なあ]|[이가]\s?아|(?:isn|wasn|aren|can|couldn|won|wouldn|doesn|don)['’]?t\b"
    r"|can ?not\b|(?:wrong|incorrect"
    r"|does not|fails|violates|breaks|contradicts)\b|[\[(](?:wrong|incorrect|no\b|not (?:right|correct|it|the answer"
    r"|sure|certain|final|valid)\b)|was (?:my|the|an?) (?:first|initial|previous|earlier|old)\b"
    rf"|(?<![.!])(?<![.!]\s)[^.\n(]{{0,40}}\bbut (?:it|that|this)(?:['’]s| is| was)?[^.\n]{{0,12}}\b{_WRONG}\b)"
)
_UNSURE = cue(
    r"\b" + phrases("unsure") + r"[\s\"'`*$(\\:]{0,4}(?:the |a )?[\s\"'`*$(\\]{0,4}$"
    r"|\b(?:(?:first|second|one|another|other|possible|potential|initial|plausible|likely|tentative"
    r"|next) (?:\w{3,9} )?(?:candidate|guess|(?<!only )possibility|(?<!second )attempt|idea|thought|option|choice"
    r"|answer|value|try)|candidates|options|choices|possibilities|(?:close|near|equal or close) to)(?: (?:is|was|are"
    r"|were|would be|might be|could be|include))?[\s\"'`*$(\\:]{1,4}$|\b(?:if|suppose|supposing|assum(?:e|ing)"
    r"|(?<![\w’'] )say|whether|imagine|start with|try|trying|consider(?! my)|considering|(?<!the )(?<!a )test"
    r"|testing)\b[^.!?;,\n]{0,30}?[\s\"'`*$(\\:]{1,4}$"
)
_OPEN_END = cue(
    r"[\s\"'`*)$]{0,4}(?:(?:,\s?)?or "
    + phrases("open_end")
    + r"\b|\s?\?|,? (?:right|correct|no|isn['’]t it)\?|,? if (?!(?:i|my|the|you)\b)\w+(?: \w+){0,3},\s"
    r"|(?:,\s?)?(?:maybe|perhaps|possibly)\b"
    r"|\s(?:would|might|could) (?:be|have)\b(?! (?:the|my) \w*\s?answer)|\s?(?:±|\+/-))"
)
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
_ABOVE = (
    r"(?:the|my|our|this|that) (?:\w{2,9} ){0,2}(?:answer|result|line|value|statement|claim|solution|reasoning|count"
    r"|calculation|choice|total|verification|check|work|response|conclusion|above)(?: (?:above|before|line|given))?"
    r"|verification|something"
)
_FALSE = phrases("false")
_HOLDS = phrases("holds")
WITHDRAWS = cue(
    rf"\b(?:(?:(?P<above>{_ABOVE})|(?P<pronoun>that|this|it|which))(?:(?:['’]s| (?:\w+ly |just )?(?:is|was|looks?"
    rf"|seems?|must be|has to be|contains|has|may be|might be)) (?!not\b|n['’]t)(?:\w{{2,9}} )?{_FALSE}\b|(?:['’]s"
    rf"| (?:is|was|can?|could|does|did|would|wo|will|do|seems? to|has|must))? ?(?:n['’]?t|not|never"
    rf"|hardly) (?:\w{{2,9}} ){{0,2}}?{_HOLDS}\b"
    r"|(?: \w+ly)? (?:contradicts|violates|conflicts|fails|ignores|overlooks|misses|breaks|clashes|disagrees"
    r"|needs (?:correcting|correction|fixing))\b)"
    rf"|do(?:es)?(?: not|n['’]?t) (?:think|believe|trust|buy|like) (?:that|this|it|(?:the"
    rf"|my) answer)\b(?! (?:\w+ ){{0,3}}{_FALSE})"
    r"|(?:scratch|scrap|strike|forget|ignore|disregard|discard|cancel|delete|drop|retract|withdraw|take back) (?:that"
    r"|this|it|(?:the|this|my|all of the) (?:\w{2,9} )?(?:above|line|answer|result)|my|the previous|everything(?! else)"
    r"|what i)\b|(?:scratch|strike|forget|ignore) (?:all|everything)\b(?! else)|asks? for something else\b|I(?:(?:['’]m"
    r"| am) (?:not|no longer) (?:\w+ )?(?:sure|certain|convinced|confident)\b(?! (?:why|how|what))| (?:(?:now|do|have"
    r"|still|really|\w+ly) ){0,2}doubts?\b| (?:was|am|['’]m) (?:wrong|mistaken|off)\b(?! about (?!this|that))"
    r"|(?:['’]ve| have| just| must| now| see| think| realise| realize| notice| fear| only|['’]m afraid| that| i"
    r"| had){0,4} (?:(?:made|found|spot(?:ted)?|see|notice[d]?) (?:an?|my|the) (?:\w+ )?(?:mistake|error|slip|typo"
    r"|blunder)|mis(?:read|counted|calculated|applied|took|placed|added|typed|understood)|forgot|overlooked|mixed up"
    r"|messed up|swapped|transposed|botched|(?:dropped|skipped|missed|left out) (?:an?|the|one|two|some))\b)|(?:see|is"
    r"|are) (?:the|an?|some) (?:problem|mistake|error|issue|flaw|catch)s?\b|I (?P<view>(?:(?:do not|don['’]?t|can(?:no"
    r"|['’])t) (?:agree|accept|concur)|disagree)\b)|never ?mind\b|no longer (?:believe|think|trust|stand)\b"
    r"|\A\W*not (?:quite |really |at all )?(?:right|correct|true)\b|take (?:that|it|this) back\b|das (?:ist"
    r"|war) falsch\b|c['’]est faux\b|es incorrecto\b)|不对|不對|错了|錯了|間違い|[\u2717\u2718\u274c]"
)
"""What takes back what stands before it; a pronoun stands for the value that was named last."""
REOPENS = cue(
    r"\b(?:let me|let['’]s|i(?:['’]ll| will| need to| have to| should| must| want to)|need to|time to) (?:just |now "
    r"|quickly )?(?:re-?(?!ad\b|port|spon|mind|st\b|state|peat|cap|turn|call)\w{2,}|double-?check|check|verify"
    r"|try (?:again|another|once more)|start (?:over|again)|think (?:again|more)|look again|go back)\b|\b(?:hold on"
    r"|hang on|h+mm+|oh no|wait(?! (?:for|until|time)\b))\b"
)
"""What leaves open whether what stands before it stands, until something more is said."""
_HEDGES = phrases("hedges")
HEDGE = cue(rf"\b{_HEDGES}\b")
"""What makes a statement after it in its clause none of the answer."""
RESULT = cue(
    r"[,;]\s(?:so|but|hence|thus|therefore|the (?:correct|right|final|only))\b|\b(?:wait|ho?ld on|hang on|h+mm+"
    r"|oh no)\b\W{1,4}(?:no\W{1,4})?(?=(?:it|that|this|the)\b)"
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
RIGHTLY = cue(
    r"[\s\"'`*_)\]}”’»$]*\s(?:it is(?=\W*\Z|\W*,)|is (?:it|right|correct|meant|true|what (?:i|it)|(?:actually |now "
    r"|therefore |thus )?(?:the|my) \w*\s?(?:right|correct|true|real|answer|one|choice|option|result))|must be|fits"
    r"|works|is (?:better|best)|makes more|is richtig|ist richtig|does)\b(?! only)"
)
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
ASSERTS = cue(
    r"(?:\b(?:(?:so|thus|hence|therefore|but|said|written|answered|meant?|nope|no|put|use|read|say|insert|get|got|find"
    r"|have|take|obtain|answer|write|making|leaving|giving|is|are|ist|es|est|è|é|result|value|be|been|me|rather"
    r"|becomes?|reads?|says?|reach|arrive at|believe|think|becoming|being)"
    r"|(?:comes?|came|amounts?|changed?s?|corrected|leads?"
    r"|leans?) (?:to|out (?:as|at|to))|ends? up with|settle for)\s(?:(?:exactly|actually|instead|simply|the|an?|option"
    r"|it|it['’]s|have|be|now)\s){0,2}|(?<!不)[是为為は])\W*\Z"
)
"""What asserts the value after it, beside `stated`."""
SUBJECT = cue(r"\b" + phrases("subject") + r"\b|[是为為は]|\A\W*(?:\w+\W+)?\Z")
"""What may be the answer."""
PART = cue(
    r"\bof which\b|\b(?:the|an?) (?!(?:answer|result|\w*correct\w*|right|final|actual|real|true|total|whole|overall"
    r"|proper|new|revised|updated|only|same|required|requested|asked|missing|next|resulting"
    r"|desired) )[a-z]{4,14} (?:value|number|result|sum|total|count|date|word|item|figure|term|expression|list"
    r"|sequence|order|letter|state)s?\b"
)
"""What is another value than the one asked for, as it has a name of its own."""
GLOSS = re.compile(r"[\"'`*_)]{0,4}\s?\([^()\n]{1,40}\)(?=\s\w)")
"""What a value is called as well, before its sentence goes on."""
HEADING = cue(
    rf"[\W_]*(?:(?:the |my |detailed |short |brief |full |key )*{phrases('heading')})[*_]*\s?(?:[:\n])"
)
"""A heading under which values are reasons unless a sentence says more."""
SAYS_NOTHING = cue(rf"\s*(?:all |still |indeed |that )?{phrases('says_nothing')}\b")
"""What follows "it is" where that states no answer."""
FRAME = cue(
    r"(?:\b(?:it|this|that|answer|result|value|solution|one|option|choice|order|respuesta|r[eé]ponse|antwort|risposta"
    r"|resposta)\b(?:\s\w{5,9}(?=\s\w{1,6}\s))?(?:['’]s|\s(?:is|was|are|becomes|ist|lautet|es|est|è|é)\b|\s(?:should"
    r"|must|would|ought to|has to)(?:\s(?:really|actually|rather))?\s(?:have\s)?(?:be|been|read|say)\b)"
    r"|\bI\s(?:now\s)?(?:get|got|find|obtain(?:ed)?|mean|meant)\b(?:\sto\s(?:say|write))?|\b(?:make|swap)\s(?:that"
    r"|this)\b(?: for)?|\bfinal\s(?:answer|result|value)(?=\s\S)|\bc['’]est\b|\bes ist\b"
    r"|(?:答案|正解|結果|结果|应)?(?:是|为|為|は)"
    r"|\b(?:chang|replac|revis|correct|amend)\w* [^.\n]{0,30}\b(?:to|with)\b|\b(?:(?:go(?:ing)?|stay|stick"
    r"|settle) (?:with|on)|stand by|i(?:['’]d| now)? say)\b|\A[^\n:.{}\[\]\"]{0,30}:)(?:\s(?:really|actually|rather"
    r"|simply|in\sfact|now|then|therefore|the|of\scourse)\b)*\s?[:,]?"
)
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
