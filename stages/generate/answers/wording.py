"""The words around an answer, a list for each role: what announces, denies, explains or takes it back."""

from __future__ import annotations

import re


def any_of(phrases: str) -> str:
    """A pattern of alternatives: phrases apart from each other by spaces, with an underscore for a space in one."""
    return "(?:" + "|".join(phrase.replace("_", " ") for phrase in phrases.split()) + ")"


def _cue(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


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
LEAD = _cue(
    rf"(?>[\s,:;*_`\"'“‘«$\\(\[{{<>=~≈#|.!-]*)"
    rf"(?>(?:(?:{_FILLER}|{any_of(_DAY)}|{_DATED})(?!['’\w-])(?>[\s,:;*_`\"'“‘«$\\(\[{{<>=~≈|!-]*)){{0,12}})"
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
_NEGATION = _cue(
    rf"(?:≠|!=|\\neq?\b|¬|\b{_NOT}|n['’]t)[\s,:]{{0,3}}"
    rf"(?:{_AFTER_NOT}[\s\"'`*“‘:$(]{{1,4}}){{0,6}}[\s\"'`*“‘$(\\\[]{{0,4}}$"
)
_WRONG = any_of(
    "not never no_longer wrong incorrect impossible ruled_out excluded mistaken an?_mistake an?_error "
    "unlikely too_high too_low too_large too_small"
)
_DENIED = _cue(
    rf"[\s\"'`*”’)$.\]}}]{{0,6}}(?:(?:is|was|are|would be|seems|looks"
    rf"|must be)\s(?:\w{{1,9}}\s){{0,2}}?{_WRONG}\b"
    r"|(?:isn|wasn|aren|can|couldn|won|wouldn|doesn|don)['’]?t\b|can ?not\b|(?:wrong|incorrect|does not"
    r"|fails|violates|breaks|contradicts)\b"
    r"|\((?:wrong|incorrect|no\b|not (?:right|correct|it|the|an?|sure|certain|final|valid)\b)|was (?:my|the|"
    r"an?) (?:first|initial|previous|earlier|old)\b"
    rf"|(?<![.!])(?<![.!]\s)[^.\n(]{{0,40}}\bbut (?:it|that|this)(?:['’]s| is"
    rf"| was)?[^.\n]{{0,12}}\b{_WRONG}\b)"
)
_UNSURE = _cue(
    r"\b"
    + any_of(
        "maybe perhaps possibly might(?:_be)? may_be could(?:_also)?(?:_be)? either between at_least "
        "at_most (?:more|less|fewer|greater|higher|lower|larger|smaller)_than up_to no_more_than "
        "anything_from before after any_of one_of some(?:thing|where)?_(?:like|around|near|between)"
    )
    + r"[\s\"'`*$(\\:]{0,4}(?:the |a )?[\s\"'`*$(\\]{0,4}$"
    r"|\b(?:(?:first|second|one|another|other|possible|potential|initial|plausible|likely|tentative|"
    r"next) (?:\w{3,9} )?"
    r"(?:candidate|guess|possibility|(?<!second )attempt|idea|thought|option|choice|answer|value|try)"
    r"|candidates|options|"
    r"choices|possibilities)(?: (?:is|was|are|were|would be|might be|could be|include))?[\s\"'`*$(\\:]{1,4}$"
    r"|\b(?:if|suppose|supposing|assum(?:e|ing)|(?<![\w’'] )say|whether|imagine|start with|try|trying"
    r"|consider(?! my)|"
    r"considering|(?<!the )(?<!a )test|testing)\b[^.!?;,\n]{0,30}?[\s\"'`*$(\\:]{1,4}$"
)
_OPEN_END = _cue(
    r"[\s\"'`*)$]{0,4}(?:(?:,\s?)?or "
    + any_of("more less fewer higher lower greater something maybe possibly perhaps so another not")
    + r"\b|\s?\?|(?:,\s?)?(?:maybe|perhaps|possibly)\b|\s?(?:±|\+/-|\+-))"
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
_GAP = _cue(rf"(?>(?:(?>{_QUIET}+)|[/|±]|\+/-|(?:{_OR}|{_OTHER_WORDS})(?![\w'’]))*)")
_GAP_OR = _cue(rf"\b(?:{_OR})|[/|±]")
_GAP_AND = _cue(r"\band\b|&")
_GAP_RANGE = _cue(r"\b(?:to|through|until|till)\b|(?<![.\w])\.\.\.?")
_ALTERNATIVE = re.compile(
    rf"[\s\"'`*_)\]}}>.,;:$(…–—-]{{0,8}}(?:(?:(?:no|oh),? )?(?:{_OR})|[/|]\s?(?=\S))", re.IGNORECASE
)
_STATES = any_of(
    "is are equals? gives? yields? makes? totals? leaves? becomes? evaluates_to comes_to to_get we_get "
    "i_get holds? has have stands ends_up ends?_up_with arrive_at i['’]d_say i_say find found conclude "
    "(?:is|be|was|falls?|lands?)_on but(?:_rather)?"
)
_BETWEEN = any_of(
    "the an? simply thus therefore exactly just now in at with position place number holding to be "
    "value date then colou?r"
)
_STATED = _cue(
    rf"(?:[=≈→⇒:]|->|=>|\b(?:it|that|this)['’]s"
    rf"|\b{_STATES}){_SOME_QUIET}(?:{_BETWEEN}\s){{0,4}}{_SOME_QUIET}$"
)
REASON = _cue(r"[\s,(](?:since|because|as|where|which|given|due|obtained|found|adding|after|when|if|for)\b")
"""Where a sentence turns to the reasons for what it said."""
REFERENCE = _cue(
    r"\b(?:(?:step|line|question|problem|part|equation|formula|figure|note|example|list|section|rule|page"
    r"|row|column|term|item"
    r"|case|clue|condition|statement|requirement)s?|(?<!i )see|base|day|week|level"
    r"|vitamin)\s{0,2}(?:no\.?\s?|#)?\Z"
)
"""What has a number that is no value."""
_DECLINES = _cue(
    r"(?>[\W_]*)(?:i |we |it |there |that |one )?(?:(?:do|does|did|could|can|is|was|am|are)(?: ?n[o']t)|"
    + any_of(
        "cannot can't don't isn't unknown unclear undefined undetermined undecidable impossible not_ "
        "none\\b nothing n/a no_idea no_answer unsure sorry unfortunately unable"
    )
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


# ---- what follows an answer

SENTENCE_END = re.compile(r"(?<![.!?;。])[.!?;。]+[\"'`*_)\]]*(?=\s|\Z)|\n")
TURNS = _cue(
    r"\b(?:h+m+|o+ps|no(?=\s?[,.;:!\u2014\u2013-]|\s(?:no|wait|it|the|sorry)\b)|"
    + any_of(
        "wait take_(?:that|it|this)_back hold_on hang_on actually in_fact corrections? edit update "
        "errat(?:um|a) whoops sorry pardon "
        "apolog\\w+ my_(?:mistake|bad|error) i_mean nope nah err ahem rats reflection rather instead meant "
        "(?:second|fresh|further)_(?:thoughts?|eyes) make_(?:that|this|it) properly actual correct right "
        "revised corrected "
        "(?:new|true|real|better|updated|proper)_(?:\\w+_)?(?:answer|value|result|one|choice|option|"
        "outcome) updated better wrong incorrect "
        "mistaken? error should(?:_be|_have|['’]ve) ought let_me_(?:correct|fix|redo) mis\\w+ forg[eo]t "
        "overlook\\w* "
        "skipp\\w+ dropp\\w+ left_out mix\\w+_up swapped slip slipped typo careless\\w* hast[ey]\\w* "
        "silly chang\\w+ "
        "switch\\w* revis\\w+ amend\\w* replac\\w+ after_all all_along turns_out too_quick fix(?:ed|ing)? "
        "scra(?:tch|p) "
        "strike retract withdr[ae]w\\w* ignor\\w+ disregard stand_corrected vertan falsch quatsch "
        "korrektur moment nein "
        "entschuldigung tromp\\w+ non erreur equivoqu\\w+ correcci[oó]n perd[oó]n sbagliat\\w+ correzione "
        "anzi scusa errad\\w+ correção desculpe? aliás ошиб\\w+ нет исправление"
    )
    + r")\b|更正|修正|訂正|不对|不對|错|錯|間違|정정|아니|تصحيح|सुधार"
)
"""A cue of a correction: beside it, another value is the answer."""
REDOES = _cue(
    r"\b(?:(?<!then )again|"
    + any_of(
        "(?:second|closer|further|more_careful)_(?:looks?|pass|reading|inspection|count|attempt|run|try|"
        "check|time) review\\w* "
        "re-?(?:check|count|read|comput|calculat|evaluat|examin|consider|do|run|trac|work)\\w* "
        "double-?_?check\\w* (?:look|think|go)ing_(?:back|closer|over|through) once_more carefully"
    )
    + r")\b"
)
"""What is done once more, which may end otherwise than before."""
_ABOVE = (
    r"(?:that|this|it|(?:the|my) (?:(?:\w{2,9} ){0,2}(?:answer|result|line|value|statement|claim|solution)"
    r"(?: above| before)?|above)(?: (?:answer|line|result))?)"
)
_FALSE = r"(?:wrong|incorrect|mistaken|off|nonsense|flawed|an? (?:\w{3,10} )?(?:mistake|error|typo|slip)|false start)"
WITHDRAWS = _cue(
    r"[\W_]{0,6}(?:(?:"
    + any_of(
        "and but so oh ah okay ok h+m+ well yes wait actually no nope sorry oops however unfortunately "
        "i(?:['’]m_afraid|_think)"
    )
    + r")\b[\s,.!\u2026\u2014-]{1,5}){0,4}(?:"
    + rf"{_ABOVE}(?:['’]s| is| was| contains| has| must be) (?!not )(?:\w{{3,9}} )?{_FALSE}\b"
    + rf"|{_ABOVE}(?:['’]s| is| was)? ?(?:not|isn['’]?t|wasn['’]?t|can['’]?t be|can ?not be|does(?: not"
    rf"|n['’]t) \w+) "
    r"(?:\w{3,9} )?(?:right|correct|it|work)\b"
    r"|(?:please )?(?:scratch|scrap|strike|forget|ignore|disregard|discard|cancel|delete) (?:that|this|it"
    r"|the above|(?:the|this"
    r"|my) (?:\w{2,9} )?(?:line|answer|result)|my|the previous|everything|what i)|never ?mind\b"
    r"|i (?:was|am) (?:wrong|mistaken)(?! about (?!this|that))\b|i (?:take|retract|withdraw) (?:that|it"
    r"|this)\b|das (?:ist|war) falsch\b|c['’]est faux\b|es incorrecto\b|不对|不對|错了|錯了|間違い)"
)
"""A sentence that takes back what stands before it."""
CONFIRMS = _cue(
    r"\b(?:yes|yep|indeed|confirm(?:s|ed)?|checks? out|consistent|matches|holds|stands?(?! corrected)"
    r"|agrees|still|verified|unchanged|fine"
    r"|as (?:before|stated|expected)|(?:is|was|['’]s|are|all) (?:\w{2,9} )?(?:right|correct|fine|good"
    r"|valid))\b"
)
STRUCTURED = re.compile(
    r"^[^\S\n]{0,8}(?:\W{0,3}\||\W{0,3}[0-9]{1,2}[.)]\s|[-+*\u2022]\s|[\"'{}]\w*[\"']"
    r"|[^\W\d][\w ]{0,20}:[ *_]{1,4}\S{1,20}[ *_.]{0,4}$)",
    re.MULTILINE,
)
"""A row, an item or a field, which states nothing by itself where there are several."""
RIGHTLY = _cue(
    r"[\s\"'`*_)\]}”’»$]*\s(?:it is(?=\W*\Z|\W*,)|is (?:it|right|correct|meant|true|what (?:i|it)"
    r"|(?:actually |now |therefore |thus )?(?:the|my) \w*\s?"
    r"(?:right|correct|true|real|answer|one|choice|option|result))|must be|fits|works|makes more"
    r"|is richtig|ist richtig|does)\b(?! only)"
)
"""What says of the value before it that it is the answer."""
ENDS = _cue(
    r"[\s\"'`*_)\]}”’»$~/^]*(?:\Z|:\W*\Z|[.,;!?(…\u2014\u2013\u2192-]|<-|[^\x00-\x7f\w]|(?:です|だ|입니다|이다|예요"
    r"|이에요)|"
    + any_of(
        "now instead then actually really after_all all_along rather as_(?:my|the) altogether overall "
        "this_time "
        "in_(?:all|total|fact) of_course of_them(?!\\s\\w) and_not not rather_than instead_of because since"
    )
    + r"\b|(?:is|does|did|has|sein)(?: not)?\W*\Z)"
)
"""What follows a value that ends its clause."""
CUT = _cue(
    r"[;:\u2014\u2013\u2026](?:[*_]*\s|(?=[^\W\d]))|,\s(?:so|but|and|which|\w+ing)\s|\.\.\.|->|=>"
    r"|[\u2192\u21d2\u2794-\u27bf]"
)
"""Where a clause begins."""
SUPPOSES = _cue(
    r"\b"
    + any_of(
        "if had(?=_(?:i|we|it|the|you|one|they)\\b) (?<!i_)would could might may can can['’]t cannot "
        "suppose assum\\w+ unless without (?:should|were)_(?:you|it|we|one) "
        "initial\\w* original\\w* previous\\w* earlier first at_first first_glance someone some many most "
        "people everyone common\\w* typical\\w* frequent\\w* tempt\\w* naive\\w* hurry "
        "(?:i|we|also|briefly)_(?:\\w+_)?considered considering reject\\w* discard\\w* rul\\w+_out "
        "exclud\\w* "
        "eliminat\\w* avoid\\w* beware confus\\w* compar\\w* before today yesterday guess start\\w* "
        "begin\\w* easy easily (?:an?|the)_(?:incorrect|wrong|mistaken|careless)_\\w+ "
        "trap unlike per puede podría kann könnte peut pourrait"
    )
    + r"\b|['’]d\b(?! (?:say|go|now|choose|like|change|revise|correct|amend|put|pick|take|better))"
)
"""What makes a sentence speak of what is not, was, or others think."""
EXPLAINS = _cue(
    r"\b"
    + any_of(
        "because since than each one_of operands? input given reference contrast average mean half twice "
        "unsorted so_far expect\\w* includes? both opposed even"
    )
    + r"\b|n['’]t\b|\bn[ãa]o\b|\b(?:nearly|almost)\b|\b(?:nicht|pas)[^\w,]*\Z|\w \(\W*\Z"
    r"|\bnot(?: to \w+)?\W*\Z|不是\W*\Z|\b[a-z]\s?=\W*\Z"
)
"""What makes a value that ends a clause one of the reasons."""
RELATES = _cue(
    r"\b(?:of|from|in|than|after|before|over|about|until|between|like|by|with|at|on|for|against|and"
    r"|or)\W*(?:the\s)?\Z"
)
"""What makes a value a circumstance."""
ASSERTS = _cue(
    r"(?:\b(?:(?:so|thus|hence|therefore|but|meant?|nope|no|put|use|read|say|insert|get|got|find|have"
    r"|take|obtain|answer|write"
    r"|making|leaving|giving|is|are|ist|es|est|è|é|result|value|be|been|me|rather|becomes?|reads?|says?|reach"
    r"|arrive at|believe|think|becoming|being)"
    r"|(?:comes?|came|amounts?|changes?|leads?|leans?) (?:to|out (?:as|at|to))|ends? up with|settle for)\s"
    r"(?:(?:exactly|actually|instead|simply|the|an?|option|it|it['’]s|have|be|now)\s){0,2}|(?<!不)[是为為は])\W*\Z"
)
"""What asserts the value after it, beside `stated`."""
SUBJECT = _cue(
    r"\b"
    + any_of(
        "it it['’]s this that i we there the_(?:\\w+_)?one which what they answer result total sum count "
        "value number outcome solution choice option date order list sequence terms expression verdict "
        "final let_me figure letter item "
        "\\w*correct\\w* proper richtig\\w* please antwort r[eé]ponse respuesta risposta resposta es das "
        "ce? should must let['’]s make"
    )
    + r"\b|[是为為は]|\A\W*(?:\w+\W+)?\Z"
)
"""What may be the answer."""
PART = _cue(
    r"\bof which\b|\b(?:the|an?) (?!(?:answer|result|\w*correct\w*|right|final|actual|real|true|total"
    r"|whole|overall|proper|new"
    r"|revised|updated|only|same|required|requested|asked|missing|next|resulting|desired) )[a-z]{4,14} "
    r"(?:value|number|result|sum|total|count|date|word|item|figure|term|expression|list|sequence|order"
    r"|letter|state)s?\b"
)
"""What is another value than the one asked for, as it has a name of its own."""
EQUALS = _cue(r"(?:=|\b(?:is|equals))[^\w>]*\Z")
"""What follows the answer where it is said what that is."""
OPERATOR = _cue(
    r"(?:(?:[0-9)\]}]|\b[a-z])\s?(?:[-+*/×·÷^<>]|\\times|\\cdot)|\b(?:plus|minus|times|and"
    r"|or|(?:add|subtract|multiply|divide|remove|deduct)(?:s|ed|ing|ies|ied)?(?: \w{1,9})?(?: by)?))"
    r"\s?[\s*_`$(\[{]{0,3}\Z"
)
OPERATED = _cue(
    r"[\s)\]}$`*_]{0,4}(?:(?:[+*/×·÷^<>=-]|\\times|\\cdot)(?=\s?[(0-9a-z])|\b(?:plus|minus|times)\b)"
)
GLOSS = re.compile(r"[\"'`*_)]{0,4}\s?\([^()\n]{1,40}\)(?=\s\w)")
"""What a value is called as well, before its sentence goes on."""
HEADING = _cue(
    r"[\W_]*(?:(?:the |my |detailed |short |brief |full |key )*(?:explanations?|reason(?:s|ing)?|solution"
    r"|steps?(?: \d+)?"
    r"|step[- ]by[- ]step(?: \w+)?|working|work(?:ed)?|calculations?|derivation|justification|rationale"
    r"|break ?down|details?|method|approach|why|how|notes?|proof|verification|(?:quick |sanity )?check"
    r"|here(?:['’]s| is) (?:how|why|the|my|a)[^\n:]{0,60}))[*_]*\s?(?:[:\n])"
)
"""A heading under which values are reasons unless a sentence says more."""
SAYS_NOTHING = _cue(
    r"\s*(?:all |still |indeed |that )?(?:right|correct|incorrect|wrong|mistaken|fine|good|clear"
    r"|consistent|confirmed|what|why|how"
    r"|because|since|as|not|also|well|worth|important|possible|an? (?:mistake|error|typo|slip|common)|due"
    r"|in|obtained|derived|found|given|based|computed|calculated|reached|supported|explained|simply the)\b"
)
"""What follows "it is" where that states no answer."""
BARE = _cue(
    r"[\W_]*(?:(?:"
    + any_of(
        "and but so oh ah okay ok h+m+ well yes wait no nope nah sorry o+ps whoops err ahem rats actually "
        "rather or edit update "
        "corrections? typo thus hence therefore then of_course in_fact on_second_thoughts? "
        "my_(?:mistake|bad|apologies) "
        "make_(?:that|it) pardon_me no_wait i_mean scratch_that strike_that hold_on the grr quatsch "
        "anzi aliás nein moment"
    )
    + r")\b[\W_]*){0,5}"
)
"""Words before a value that say no more than that it follows."""
FRAME = _cue(
    r"(?:\b(?:it|this|that|answer|result|value|solution|one|option|choice|order|respuesta|r[eé]ponse"
    r"|antwort|risposta|resposta)\b"
    r"(?:\s\w{5,9}(?=\s\w{1,6}\s))?(?:['’]s|\s(?:is|was|are|becomes|ist|lautet|es|est|è|é)\b|\s(?:should|must"
    r"|would|ought to|has to)"
    r"(?:\s(?:really|actually|rather))?\s(?:have\s)?(?:be|been|read|say)\b)|\bI\s(?:now\s)?(?:get|got"
    r"|find|obtain(?:ed)?|mean|meant)\b(?:\sto\s(?:say"
    r"|write))?|\b(?:make|swap)\s(?:that|this)\b(?: for)?|\bfinal\s(?:answer|result|value)(?=\s\S)"
    r"|\bc['’]est\b|\bes ist\b|(?:答案|正解"
    r"|結果|结果|应)?(?:是|为|為|は)|\b(?:chang|replac|revis|correct|amend)\w* [^.\n]{0,30}\b(?:to|with)\b"
    r"|\b(?:go(?:ing)? with|i['’]d say)\b"
    r"|\A[^\n:.{}\[\]\"]{0,30}:)(?:\s(?:really|actually|rather|simply|in\sfact|now|then|therefore|the"
    r"|of\scourse)\b)*\s?[:,]?"
)
"""What states the words after it."""

CHANGES = _cue(
    r"\b(?:chang|replac|revis|correct|amend|swap|switch|updat|alter|go|going|went|stick|settl|read"
    r"|count)\w*\b[^\n]{0,120}?\b(?:to|with|for|by|into)\W*\Z"
)
"""What puts the value after it in another one's place."""
INTRODUCES = re.compile(r"\A[^,]{1,60},\W*\Z")
"""A phrase before a value that goes on after a comma."""

EQUATION = _cue(
    r"(?:[0-9a-z)\]}][\s$]?[-+*/×·÷^&|]\s?[^=\na-z]{1,60}|\b(?:and|or|xor|not|plus|minus"
    r"|times)\s[^=\n]{1,60})(?:=|≈|→|\\to|\b(?:is|gives|makes|equals|yields))\W*\Z"
)
"""The left side of a calculation before its result."""
LAST = _cue(
    r"[^,(\n]*(?:\Z|\(|,\s(?:(?:and )?not|of course|sorry|then\W*\Z|instead|i mean|as|since|because)\b)"
)
"""What follows a value that ends its sentence."""

LABEL = re.compile(
    r"^[\W_]{0,8}(?:(?:(?:so|thus|hence|therefore),? )?(?:the |my )?(?:final|overall|requested|required|desired"
    r"|resulting) (?:\w{4,8} )?(?:result|value|solution|outcome|number|date) (?:is|must be)\b:?"
    r"|(?:in (?:short|summary|conclusion|brief|total)|to (?:sum up|summari[sz]e)|tl;?dr|(?:the |my )?"
    r"(?:final |overall |end )?(?:result|solution|output|verdict|conclusion|value|outcome)|final)"
    r"(?: is)?[*_]{0,3}:[*_]{0,3}(?=[ \t]{0,4}\S(?:(?!\.\s)[^\n]){0,400}$))[ \t]{0,4}",
    re.IGNORECASE | re.MULTILINE,
)
"""What a line begins with that gives a result, in a reply without a mark of its answer."""

REPLACES = re.compile(r"\W*(?:-+>|=>|[\u2192\u21d2\u2794-\u27bf]|/)\W*")
"""What stands between a value and the one in its place."""

ARTICLE = _cue(r"\b(?:the|an?)\s\Z")
