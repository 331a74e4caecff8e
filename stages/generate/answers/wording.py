"""English words around an answer: what only announces it, what denies it, and what makes it one of two."""

from __future__ import annotations

import re


def any_of(phrases: str) -> str:
    """A pattern of alternatives out of phrases apart from each other by spaces; an underscore is a space in one."""
    return "(?:" + "|".join(phrase.replace("_", " ") for phrase in phrases.split()) + ")"


_QUIET = r"[\s\"'`*.,;:()\[\]$_“”‘’?!{}<>\\…–—-]"
_SOME_QUIET = r"[\s\"'`*_$“‘({\[<\\>|:]{0,8}"

_MONTH = "jan feb mar apr may june? july? aug sep oct nov dec"
_DAY = "mon(?:day)? tue(?:sday)? wed(?:nesday)? thu(?:rsday)? fri(?:day)? sat(?:urday)? sun(?:day)?"
_FILLER = any_of(
    "the a an my our its? it['’]s that['’]?s? this there he she they i we you so thus hence therefore then "
    "just simply exactly precisely clearly indeed now still also again finally equals? to given by as "
    "follows probably likely roughly approximately about say i['’]d working think believe guess get got "
    "have has conclude is are was be will would should must integer whole numbers? value result total "
    "count sum date word item title film movie shape colou?r car place option choice letter final correct "
    "right answers? best solution output boolean logical truth in at of expression position id row mean "
    "text boxed sure okay ok well holds holding actually really rather"
)
_DATED = f"on(?= (?:the |{any_of(_DAY)}|{any_of(_MONTH)}|[0-9]))"
LEAD = re.compile(
    rf"(?>[\s,:;*_`\"'“‘«$\\(\[{{<>=~≈#|.!-]*)"
    rf"(?>(?:(?:{_FILLER}|{any_of(_DAY)}|{_DATED})(?!['’\w-])(?>[\s,:;*_`\"'“‘«$\\(\[{{<>=~≈|!-]*)){{0,12}})",
    re.IGNORECASE,
)
"""What may stand before a value that a line begins with."""

_NOT = any_of(
    "not never neither nor no_longer rather_than instead_of without except(?:_for)? but_not other_than "
    "excluding isnt cannot doubt unlike far_from wrongly incorrectly anything_but by_no_means nothing_like"
)
_AFTER_NOT = any_of(
    "the an? be been being have has had holds? holding own get his her their longer with think believe it "
    "it['’]s is are to equals? that this really actually exactly necessarily possibly correct right answer "
    "value result option number in on at of say any sure certain convinced confident know tell determine "
    "if whether by position either as choose pick"
)
_NEGATION = re.compile(
    rf"(?:≠|!=|\\neq?\b|¬|\b{_NOT}|n['’]t)[\s,:]{{0,3}}"
    rf"(?:{_AFTER_NOT}[\s\"'`*“‘:$(]{{1,4}}){{0,6}}[\s\"'`*“‘$(\\\[]{{0,4}}$",
    re.IGNORECASE,
)
_WRONG = any_of(
    "not never no_longer wrong incorrect impossible ruled_out excluded mistaken an?_mistake an?_error "
    "unlikely too_high too_low too_large too_small"
)
_DENIED = re.compile(
    rf"[\s\"'`*”’)$.\]}}]{{0,6}}(?:(?:is|was|are|would be|seems|looks|must be)\s(?:\w{{1,9}}\s){{0,2}}?{_WRONG}\b"
    r"|(?:isn|wasn|aren|can|couldn|won|wouldn|doesn|don)['’]?t\b|can ?not\b|(?:wrong|incorrect|does not)\b"
    r"|\((?:wrong|incorrect|no\b|not (?:right|correct|it|the|an?|sure|certain|final|valid)\b)|was (?:my|the|"
    r"an?) (?:first|initial|previous|earlier|old)\b"
    rf"|(?<![.!])(?<![.!]\s)[^.\n(]{{0,40}}\bbut (?:it|that|this)(?:['’]s| is| was)?[^.\n]{{0,12}}\b{_WRONG}\b)",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b"
    + any_of(
        "maybe perhaps possibly might(?:_be)? may_be could(?:_also)?(?:_be)? either between at_least "
        "at_most (?:more|less|fewer|greater|higher|lower|larger|smaller)_than up_to no_more_than "
        "anything_from before after any_of one_of some(?:thing|where)?_(?:like|around|near|between)"
    )
    + r"[\s\"'`*$(\\:]{0,4}(?:the |a )?[\s\"'`*$(\\]{0,4}$"
    r"|\b(?:(?:first|second|one|another|other|possible|potential|initial|plausible|likely|tentative|"
    r"next) (?:\w{3,9} )?"
    r"(?:candidate|guess|possibility|attempt|idea|thought|option|choice|answer|value|try)|candidates|options|"
    r"choices|possibilities)"
    r"(?: (?:is|was|are|were|would be|might be|could be|include))?[\s\"'`*$(\\:]{1,4}$"
    r"|\b(?:if|suppose|supposing|assum(?:e|ing)|say|whether|imagine|start with|try|trying|consider|"
    r"considering|(?<!the )(?<!a )test|testing)\b"
    r"[^.!?;,\n]{0,30}?[\s\"'`*$(\\:]{1,4}$",
    re.IGNORECASE,
)
_OPEN_END = re.compile(
    r"[\s\"'`*)$]{0,4}(?:(?:,\s?)?or "
    + any_of("more less fewer higher lower greater something maybe possibly perhaps so another not")
    + r"\b|\s?\?|(?:,\s?)?(?:maybe|perhaps|possibly)\b|\s?(?:±|\+/-|\+-))",
    re.IGNORECASE,
)
_SWITCH = any_of("wait actually correction scratch_that i_mean make_that sorry")
_OR = (
    any_of("and/or or versus vs alternatively maybe perhaps possibly could might may otherwise unless")
    + rf"\b|{_SWITCH}\b"
)
_OTHER_WORDS = any_of(
    "and & to through until till then else also even either not no oh hm+ if more likely probably it "
    "it['’]s is be the an? option answer just as well but rather position number of"
)
_GAP = re.compile(rf"(?>(?:(?>{_QUIET}+)|[/|±]|\+/-|(?:{_OR}|{_OTHER_WORDS})(?![\w'’]))*)", re.IGNORECASE)
_GAP_OR = re.compile(rf"\b(?:{_OR})|[/|±]", re.IGNORECASE)
_GAP_AND = re.compile(r"\band\b|&", re.IGNORECASE)
_GAP_RANGE = re.compile(r"\b(?:to|through|until|till)\b|(?<![.\w])\.\.\.?", re.IGNORECASE)
_ALTERNATIVE = re.compile(
    rf"[\s\"'`*_)\]}}>.,;:$(…–—-]{{0,8}}(?:(?:(?:no|oh),? )?(?:{_OR})|[/|]\s?(?=\S))", re.IGNORECASE
)
_STATES = any_of(
    "is are equals? gives? yields? makes? totals? leaves? becomes? evaluates_to comes_to to_get we_get "
    "i_get holds? has have stands ends_up arrive_at i['’]d_say i_say find found conclude "
    "(?:is|be|was|falls?|lands?)_on but(?:_rather)?"
)
_BETWEEN = any_of(
    "the an? simply thus therefore exactly just now in at with position place number holding to be "
    "value date then colou?r"
)
_STATED = re.compile(
    rf"(?:[=≈→⇒:]|->|=>|\b(?:it|that|this)['’]s|\b{_STATES}){_SOME_QUIET}(?:{_BETWEEN}\s){{0,4}}{_SOME_QUIET}$",
    re.IGNORECASE,
)
REASON = re.compile(
    r"[\s,(](?:since|because|as|where|which|given|due|obtained|found|adding|after|when|if|for)\b",
    re.IGNORECASE,
)
"""Where a sentence turns to the reasons for what it said."""
REFERENCE = re.compile(
    r"\b(?:(?:step|line|question|problem|part|equation|formula|figure|note|example|list|section|rule|page"
    r"|row|column|term|item"
    r"|case|clue|condition|statement|requirement)s?|(?<!i )see|base|day|week|level|vitamin)\s{0,2}(?:no\.?\s?|#)?\Z",
    re.IGNORECASE,
)
"""What has a number that is no value."""
_DECLINES = re.compile(
    r"(?>[\W_]*)(?:i |we |it |there |that |one )?(?:(?:do|does|did|could|can|is|was|am|are)(?: ?n[o']t)|"
    + any_of(
        "cannot can't don't isn't unknown unclear undefined undetermined undecidable impossible not_ "
        "none\\b nothing n/a no_idea no_answer unsure sorry unfortunately unable"
    )
    + ")",
    re.IGNORECASE,
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


def denied_after(line: str, end: int) -> bool:
    """Whether what follows a part of a line denies it."""
    return _DENIED.match(line, end) is not None


def stated(line: str, start: int) -> bool:
    """Whether a part of a line stands after an equals sign, a colon, "is" or the like."""
    return _STATED.search(line[max(0, start - 48) : start]) is not None


def goes_on_to_another(line: str, end: int) -> bool:
    """Whether an alternative or a correction is announced right after a part of a line."""
    return _ALTERNATIVE.match(line, end) is not None


def declines(line: str) -> bool:
    """Whether a line says that there is no answer."""
    return _DECLINES.match(line) is not None


def makes_alternatives(gap: str, *, weak: bool, ranges: bool) -> bool:
    """Whether what stands between two different values makes them alternatives, or a pair.

    Parameters
    ----------
    gap
        The text between them.
    weak
        Whether one of the values is an ordinary word too: then only "or" and its like count.
    ranges
        Whether the values are numbers or dates, so that "to" makes a range of them.

    Examples
    --------
    >>> makes_alternatives(" or maybe ", weak=False, ranges=True)
    True
    >>> makes_alternatives(", since ", weak=False, ranges=True)
    False
    """
    if len(gap) > 60 or not _GAP.fullmatch(gap):
        return False
    if _GAP_OR.search(gap):
        return True
    if weak:
        return False
    return bool(
        _GAP_AND.search(gap) or (ranges and _GAP_RANGE.search(gap)) or gap.strip(" \"'`*$") in (",", ";")
    )
