"""The words around an answer, a list for each role: what announces, denies, explains or takes it back."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from evalcube.stages.generate.answers.cues import phrases


class _Late:
    """A pattern that is compiled when it is first used: for all of them together that takes a third of a second."""

    def __init__(self, pattern: str, flags: int, compiler: Callable[..., Any]) -> None:
        self.pattern, self._flags, self._compiler = pattern, flags, compiler

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a pattern has
        attribute = getattr(self._compiler(self.pattern, self._flags), name)
        setattr(self, name, attribute)  # so that it is not asked for again
        return attribute


def late(pattern: str, flags: int = 0, compiler: Callable[..., Any] = re.compile) -> re.Pattern[str]:
    """A pattern that is compiled when it is first used."""
    return cast("re.Pattern[str]", _Late(pattern, flags, compiler))


_ROLE = re.compile(r"(?<!\?P)<([a-z_]+)>")


def cue(pattern: str) -> re.Pattern[str]:
    """A pattern that lets letter case be; ``<name>`` stands for the phrases of a name."""
    return late(pattern, re.IGNORECASE, _compile_cue)


def _compile_cue(pattern: str, flags: int) -> re.Pattern[str]:
    return re.compile(_ROLE.sub(lambda role: phrases(role[1]), pattern), flags)


TICKS, CROSSES = "\u2713\u2714\u2705", "\u2717\u2718\u274c"
_QUIET = r"[\s\"'`*_$“‘({\[<\\>|:]"
_NEGATION = cue(
    rf"(?:≠|!=|\\neq?\b|\[\s\]|¬|\b<not>|n['’]t|不[是为為]|[並并]?非|ليست?)[\s,:]{{0,3}}(?:<after_not>{_QUIET}{{1,4}}){{0,6}}{_QUIET}{{0,4}}\Z"
)
DENIED = cue(
    r"(?:(?:,? (?:and|or) |, )\(?[A-Z0-9]\b\)?){0,8}"
    rf"[\s\"'`*”’)$.\]}}]{{0,6}}(?:[{CROSSES}]"
    r"|<is>\s(?:\w{1,9}\s){0,2}?<wrong>\b|(?:では|じゃ)[なあ]|是不?[错錯对對正]|[이가]\s?아"
    r"|stimmt (?:\w+ )?nicht|no (?:es|era|está) correct|n['’]est pas (?:juste|correct|bon)|non è (?:corrett|giust)"
    r"|(?:isn|wasn|aren|can|couldn|won|wouldn|doesn|don)['’]?t\b|can ?not\b"
    r"|[\[(](?:wrong|incorrect|ambiguous\)|no(?=\W*[).,;])|not <holds>\b)|was <earlier>\b|d(?:oes|id) not exist\b"
    r"|(?<![.!])(?<![.!]\s)[^.\n(]{0,40}\bbut (?:it|that|this)(?:['’]s| is| was)?[^.\n]{0,12}\b<wrong>\b)"
)
_UNSURE = cue(
    r"\b(?:<unsure>|(?<!adds )(?<!add )up to)[\s\"'`*$(\\:]{0,4}(?:it(?:['’]s| is) )?(?:the |a )?[\s\"'`*$(\\]{0,4}\Z"
    r"|\b(?:<vague> (?:\w{3,9} )?(?<!only )<guesses>)(?: <be>)?[\s\"'`*$(\\:]{1,4}\Z"
)
_OPEN_END = cue(
    r"[\s\"'`*)$]{0,4}(?:\s?\?|,? (?:right|correct|no|isn['’]t it)\?"
    r"|\s\(?if\b|(?:,\s?)?(?:maybe|perhaps|possibly)\b"
    r"|\s(?:would|might|could) (?:be|have)\b(?! (?:the|my) \w*\s?answer)|\s?(?:±|\+/-|か(?!ら)|または|もしくは))"
)
_SAYS = (
    r"(?:<states>|<goes> (?:on )?(?:for|with|by|at|on|to)"
    r"|(?:makes|leaves|renders|turns) (?:it|that|this|the (?:whole )?\w+))(?!\w)"
)
_STATING = (
    rf"(?:[=≈→⇒:是为為は]|->|=>|\b(?:it|that|this)['’]s|\b{_SAYS})"
    rf"{_QUIET}{{0,8}}(?:<between>\s){{0,4}}{_QUIET}{{0,8}}"
)
_STATED = cue(rf"{_STATING}\Z")
STATEMENT = cue(
    rf"[^.!?\n]{{0,80}}?(?:[\u2026\u2234]|{_STATING})(?:(?:that )?(?:(?:it|this|the \w+)\s?)?{_STATING})?"
)
"""What a sentence begins with that states the words after it."""
DECLINES = cue(
    r"(?>[\W_]*)(?:i(?:['’]m| am)? |we |it |there |that |one )?"
    r"(?:(?:do|does|did|could|can|is|was|am|are)(?: ?n[o']t)|<declines>\b)"
)
"""What a line begins with that says that there is no answer."""


def is_affirmed(line: str, start: int, end: int) -> bool:
    """Whether nothing around a part of a line denies it or leaves it open.

    Examples
    --------
    >>> is_affirmed("It is not 42", 10, 12), is_affirmed("It is 42", 6, 8), is_affirmed("42 is wrong", 0, 2)
    (False, True, False)
    """
    before = line[max(0, start - 80) : start]
    if _NEGATION.search(before) or _UNSURE.search(before):
        return False
    return not (DENIED.match(line, end) or _OPEN_END.match(line, end))


def is_denied(line: str, start: int, end: int) -> bool:
    """Whether what stands before or behind a part of a line denies it."""
    return (_NEGATION.search(line[max(0, start - 80) : start]) or DENIED.match(line, end)) is not None


def is_stated(line: str, start: int) -> bool:
    """Whether a part of a line stands after an equals sign, a colon, "is" or the like."""
    return _STATED.search(line[max(0, start - 48) : start]) is not None


def breaks_off(text: str) -> bool:
    """Whether a text ends in the middle of a sentence."""
    return BROKEN_OFF.search(text[-60:]) is not None


NAMES = cue(r"(?:\b<called>|(?<![不勿能])[选選])[\s*_:`\"'(\[]{1,6}\Z")
"""What names a letter as an option's."""

# ---- before and behind a value in its line

_SIGNS = "\u2192\u21d2\u2705\u2714\u27a1\U0001f300-\U0001faff"
LEAD = cue(
    rf"(?>[\s,:;*_`\"'“‘«$\\(\[{{<>=~≈#|.!{_SIGNS}-]*)(?>(?:(?:<filler>|<days>"
    r"|on(?= (?:the |<days>|<months>|[0-9])))(?!['’\w-])(?>[\s,:;*_`\"'“‘«$\\(\[{<>=~≈|!-]*)){0,12})"
)
"""What may stand before a value that a line begins with."""
REASON = cue(r"[\s,(]<reason>\b")
"""Where a sentence turns to the reasons for what it said."""
WEAK_END = cue(
    r"(?>[\"'`*_$”’})\]\\>|\s]*)(?:\Z|\(|[.,;:!<](?!\d)|-{1,3}\s|[^\x00-\x7f\w]"
    r"|\s?(?:instead|now|rather than|is (?:right|correct|what|the))\b)"
)
GAP = cue(
    r"(?>(?:(?>[\s\"'`*.,;:()\[\]$_“”‘’?!{}<>\\…–—-]+)|[/|±→⇒]|\+/-|[a-z]\s?=|(?:<or>\b|<other_words>)(?![\w'’]))*)"
)
ALTERNATIVE = cue(r"\b<or>\b|[/|±→⇒]|[-=]>")
OR_ELSE = cue(r"\s<either_or>\s(?![0-9$\\])")
"""What a value is followed by that is an alternative to words: "1 or undefined"."""
EQUATES = late(r"\bis\b|,\s(?:the|an?)\b", re.IGNORECASE)
"""What says that two values are one thing: "position 3 is the red one", "3, the red car"."""
CHANGED = cue(r"\b(?:now|but|wait|actually|then again|changed|correction)\b")
"""What makes another value later in a line more than an aside."""

# ---- what follows an answer

SENTENCE_END = late(r"(?<![.!?;。])[.!?;。]+[\"'`*_)\]]*(?=\s|\Z)|\n")
TURNS = cue(
    r"\b(?:h+m+|o+ps|no(?=\s?[,.;:!\u2014\u2013-]|\s(?:no|wait|it|the|sorry)\b)|<turns>)\b"
    r"|更正|修正|訂正|等等|等一下|いや|待って|不对|不對|错|錯|間違|정정|아니|تصحيح|सुधार"
)
"""A cue of a correction: beside it, another value is the answer."""
WITHDRAWS = cue(
    r"\b(?:(?:(?:the|my|our|this|that) (?:\w{2,9} ){0,2}<above>(?: (?:above|before|line|given))?|verification|something"
    r"|(?P<pronoun>that|this|it|which))(?:(?:['’]s| (?:\w+ly |just )?<looks>) (?!not\b|n['’]t|impossible (?:to|for)\b)"
    r"(?:\w{2,9} )?<wrong>\b"
    r"|(?:['’]s| <can>)? ?(?:n['’]?t|not|never|hardly) (?:\w{2,9} ){0,2}?<holds>\b|(?: \w+ly)? <conflicts>\b)"
    r"|do(?:es)?(?: not|n['’]?t) <trusts> (?:that|this|it|(?:the|my) answer)\b(?! (?:\w+ ){0,3}<wrong>)"
    r"|(?<!n['’]t )(?<!not )<drops> (?:that|this|it|(?:the|this|my|all of the) (?:\w{2,9} )?<above>"
    r"|my|the previous|everything(?! else)|what i)\b"
    r"|I(?:(?:['’]m| am) (?:not|no longer) (?:\w+ )?<sure>\b(?! (?:why|how|what|who|when|where|in|if you)\b)"
    r"(?! whether (?!this|that|it\b|my|the answer))| (?:\w+ ){0,2}(?<!no )doubts?\b"
    r"| (?:was|am|['’]m) (?:wrong|mistaken|off)\b(?! about (?!this|that))| (?:\w+ ){0,2}<mistook>\b)"
    r"|<withdrawals>\b|\Anot (?:quite |really |at all )?(?:right|correct|true)\b)"
    r"|\A\W*(?:(?:actually|wait|oh|hmm),? )?no\W*\Z"
    r"|\A,\Z|\A\W*(?:placeholder|dummy(?: value| answer)?|todo|tbd)\b(?=\W*(?:[—:,;)\]-]|so\b|\Z))"
    rf"|撤回|取り消しま|收回|취소합니다|(?P<cross>[{CROSSES}]|不对|不對|错了|錯了|間違い)"
)
"""What takes back what stands before it; a pronoun stands for the value that was named last, a cross or its like for
those of its sentence."""
_I = r"\b(?-i:I)(?:['’](?:m|ve|d|ll))? (?:(?!(?:he|she|it|we|you|they|one|that)\b)\w+ ){0,2}?"
_CANNOT = r"(?:can|could)(?:n['’]?t| ?not)|can['’]?t|not able to|unable to"
_STOP = r"\W*\Z|[.,;:!)]|\s[—–-]"
LACKS = cue(
    rf"{_I}(?:(?:{_CANNOT}) (?:\w+ )?<settle>|(?:do|did)(?:n['’]?t| not) (?:know|choose|agree(?: with)?|decide)"
    rf"|have no(?:thing (?:better|to (?:put|offer|give))| (?:\w+ ){{0,2}}<lacking>))"
    rf"(?={_STOP}|\s(?:there|for|of|about (?:that|it|this)|<answer_words>)\b)(?!, but\b)"
    rf"|\b(?:I['’]ve (?:\w+ )?no idea (?:what|which)|I(?: am|['’]m) at a loss|I(?:, \w+,)? lack"
    rf"|I(?:['’]ll)? (?:leave|pass)(?={_STOP}| (?:it|this|the choice) (?:open|blank|un\w+|to you))"
    rf"|<foreign_cannot>\s(?:l[ea]s?\s)?<foreign_resolve>(?={_STOP})|<no_answer>"
    r"|(?:(?:please|kindly|could you|can you) <requests>|<requests> me)\b"
    r"(?! (?:\w+ ){0,2}(?:next|another|more|other|further|any|feedback|if|what)\b)"
    r"|let me know (?:which (?:of|one|it)(?! you['’ ])|when you(?:['’]re| are) ready))\b"
    r"|[無无]法(?:[确確]定|[给給]出|回答|[计計]算|判断|得出|知道)(?!其他|别的)|[请請](?:重新)?(?:上传|提供|发)(?!更多|其他|反馈)"
    r"|(?:(?:計算|回答|答え|判断|特定)でき|[わ分]かり|られてい)ません(?!が)|(?:답|알|구|계산|판단)\w{0,4} 수 없습니다"
)
"""What says that there is no answer: it cannot be found or told, or something that it takes is missing or asked for."""
GIVES_UP = cue(
    rf"{_I}(?:{_CANNOT}|(?:do|did)(?:n['’]?t| not) know)\b"
    r"(?! (?:\w+ )?<caveats>\b)(?![^.!?\n]*(?:\bbut\b|, so (?!please\b)))"
)
"""What says so where nothing comes after it."""
DROPS = cue(r"\b<drops> (?:(?:the|that|my|this) )?\Z")
"""What takes back the value right after it, of an answer that was given."""
REOPENS = cue(r"\b<lets_me> (?:\w+ )?<reopens>\b|\b(?:<pauses>(?! (?:for|until|time)\b)|h+mm+|oh no)\b")
"""What leaves open whether what stands before it stands, until something more is said."""
HEDGE = cue(r"\b(?:<hedges>|(?<!only )possib\w+|may(?!,? (?:the )?[0-9]))\b")
"""What makes a statement after it in its clause none of the answer."""
RESULT = cue(r"[,;]\s<result>\b|\b<pauses>\b\W{1,4}(?:no\W{1,4})?(?=(?:it|that|this|the)\b)")
"""Where a sentence turns from what is not the answer to what is."""
CONDITION = cue(r"\b<condition>\b")
"""What makes all that its sentence states none of the answer."""
DOUBT = cue(
    rf"(?!(?<=\bi )said\b|(?<=at )said){HEDGE.pattern}|\b(?:<doubt>|would(?! <would_state>\b))\b"
    rf"|{CONDITION.pattern}|\(\?\)|[{CROSSES}]"
    r"|如果|もし|만약|可能|也许|或许|无法|不确定|かもしれ|たぶん|아마"
    r"|(?:\A|[.!?]\s)(?:next|now|then),? (?:we|i) (?:need|must|have)\b"
)
"""What leaves open whether a value that has no mark is the answer."""
ASKS = cue(r"[\"'“‘`](?:final )?answer:")
"""The asked form as a prompt has it."""
BROKEN_OFF = cue(
    r"(?:\b<unfinished>(?: then| now)?(?:[,\s\u2026]|\.\.)*|[:=→⇒][\s*_$]*|(?:\s[-+/÷×]|[0-9]-)\s*)\Z"
)
"""An end that is none."""
CONFIRMS = cue(
    rf"[{TICKS}]|\bno (?:mistake|error|problem)s?\b"
    r"|\b(?:<confirms>(?! on\b| corrected)|(?:is|was|['’]s|are|all) (?:\w{2,9} )?<fine>)\b"
)
RIGHTLY = cue(
    r"[\s\"'`*_)\]}”’»$]*\s(?:<rightly>|it is(?=\W*\Z|\W*,)|is (?:\w+ )?(?:the|my) \w*\s?<right>)\b(?! only)"
)
"""What says of the value before it that it is the answer."""
ENDS = cue(
    r"(?>[\s\"'`*_)\]}”’»$€£¥₹~/^]*)(?:\Z|:\W*\Z|[.,;!?…\u2014\u2013\u2192-]|\((?![^()\n]{1,40}\)\s\w)|<-|[^\x00-\x7f\w]|<ends>\b|(?:is|does|did|has|sein)"
    r"(?: not)?\W*\Z)"
)
"""What follows a value that ends its clause."""
SHARES = cue(
    r"[\s\"'`*_)\].]{0,6}\s(?:<is> <equally> <fine>\b|<equally> <rightly>|<rightly> (?:too|as well)\b)"
)
"""What says of a value that it is an answer beside another one."""
RANGE = cue(r"\b(?:from\s[^,;]{1,30}\sto|between\s[^,;]{1,30}\sand)\W*\Z")
"""What stands before the end of a range."""
RELATES = cue(rf"\b<relates>\W*(?:the\s)?\Z|{RANGE.pattern}")
"""What makes a value a circumstance."""
NEARLY_RELATES = cue(
    rf"{RELATES.pattern}|\b<relates>\W+\w+\W*\Z|\b(?:the|these|those|all|his|her|its|their)\s\Z"
)
CONCLUDES = cue(r"\W*<conclusion>(?!\w)|[^\n]{0,200}\b(?:in total|altogether|in all)\b")
"""What a sentence begins with that ends a solution; its only number is the answer."""
CAUSE = cue(r"\b(?:<causes>|where|which|given)\b|\s[\u2014\u2013-]\s(?:[^\W\d]\w*\W+){3}")
"""What begins a reason in a clause of its own; a dash, an aside of some words."""
RESULTS = cue(r"\b(?:<results>|<adverbs>)\b")
"""What makes the values before it steps to the one after it."""
SUBJECT = cue(r"\b<subject>\b|[是为為は]|\A\W*(?:\w+\W+)?\Z")
"""What may be the answer."""
SAYS_NOTHING = cue(r"\s*(?:all |still |indeed |that )?<says_nothing>\b")
"""What follows "it is" where that states no answer."""
