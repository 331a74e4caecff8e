r"""Finds the places of a reply where its final answer may stand, the strongest first.

All readers of answers share these places, so that none is less lenient than another. A line that begins with the
form that was asked for (``Answer: 7``) beats everything else, the last such line first. Then come ``\boxed{7}``,
``<answer>7</answer>``, ``{"answer": 7}`` and their like, then statements in running text (``the answer is 7``), fenced
blocks and bold passages, and at the end the last sentences.

A reply is hostile: nothing here raises, and all takes linear time, as repetitions in patterns and places are bounded.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from enum import Enum
from html import unescape
from itertools import islice
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple
from unicodedata import decimal

from evalcube.stages.generate.answers.cues import phrases
from evalcube.stages.generate.answers.wording import CONDITION, CONFIRMS, HEDGE, SAYS_NOTHING, cue, late

SEGMENT = 300
"""Characters of an answer of one line that are read."""
CANDIDATES = 20
"""Places of one kind that are tried, from the last one backwards."""
TAIL = 6000
"""Characters after the mark of an answer of several lines that are read."""


class Rank(Enum):
    """How firmly a place states the answer."""

    ASKED = "answer line"
    """A line that begins with the asked form."""
    MARKED = "box, tag or field"
    """A box, a tag or a field of a JSON document."""
    SAID = "statement"
    """A statement in running text."""


class Passage(NamedTuple):
    """What follows a mark of an answer, at most `TAIL` characters."""

    text: str
    rank: Rank
    boxed: bool
    """Whether it stands in a LaTeX box, which ends with a brace."""
    start: int
    """Where it begins in the text."""


# ---- one way of writing

_PLAIN = (
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63", "-")
    | {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    | {chr(0x24B6 + i): letter for i, letter in enumerate(ascii_uppercase + ascii_lowercase)}
    | dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u2061\u2062\u2063\ufe0f\u20e3", "")
    | dict(zip("\u3000\r\u2028\u2029।「」", ' \n\n\n.""', strict=True))
    | dict(zip("ᵈᵉʰⁿʳˢᵗ", "dehnrst", strict=True))
    | {"\u2047": "??", "。": ". ", "、": ", "}
)
"""Minus signs, full-width forms, letters in circles, line ends and invisible characters."""
_ODD = late(f"[{''.join(map(re.escape, _PLAIN))}]")  # ten times as fast as str.translate
_END_TOKENS = late(
    r"<\|[\w\u2581]{1,60}\|>|</?(?:s|bos|eos)>|<(?:start|end)_of_turn>|\[/?(?:INST|EOS)\]|\[[^\[\]\n]{0,40}\btruncated\b[^\[\]\n]{0,40}\]"
)
_STRUCK = late(
    r"(?<![~\\])~~(?=[^\s~])(?>[^~\n]{1,6000})~~(?!~)|<(del|strike)>(?>[^<]{1,6000})</\1>"
    r"|\\(?:sout|[bx]?cancel|st)\{(?>[^{}\n]{1,6000})\}",
    re.IGNORECASE,
)
_HTML = cue(r"</?<html>(?:\s[\w:-]{1,40}\s?=[^<>]{0,200})?\s?/?>")
_ENTITY = late(r"&(?:[A-Za-z]{2,8}|#[0-9]{2,6});")
_LATEX_TEXT = late(rf"\\{phrases('latex_text')}\s{{0,3}}\{{((?>[^{{}}\\\n]*))\}}")
_SCRIPT = "[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]"
_JOINED = late(
    rf"(?<=[A-Za-z])(?={_SCRIPT})|(?<={_SCRIPT})(?=[A-Za-z])|(?<=[0-9])(?=[\u3040-\u30ff\uac00-\ud7a3])"
)
"""Where a script without spaces touches a letter or number."""
_LATEX_COMMA = late(r"\{,\}|\\[,!;:](?!\s?\\[dtc]?frac)")
_LATEX_SPACE = late(r"\\(?:[()\[\],]|(?:q?quad|displaystyle|left|right|rm|bf|tt)\b| (?<!\\\\ ))")
_LATEX_SIGN = late(r"\\(?:(approx|simeq)|Rightarrow|implies)(?![A-Za-z])")


def clean(text: str) -> str:
    """The text with one kind of minus sign, line end and width, without tokens that end a turn and without HTML.

    Examples
    --------
    >>> clean("Answer：４２<|im_end|>").strip()
    'Answer:42'
    """
    text = text.replace("\r", "\n") if text.isascii() else _ODD.sub(lambda match: _PLAIN[match[0]], text)
    opens = "<" in text  # one character is found forty times as fast as several
    if opens or "[" in text:
        text = _END_TOKENS.sub("\n", text)
    struck = ("~" in text and "~~" in text) or (opens and "</" in text)
    if struck or ("{" in text and ("cancel{" in text or "sout{" in text)):
        text = _STRUCK.sub("", text)
    # a tag by itself may be an answer
    if opens and ("</" in text or "<br" in text):
        text = _HTML.sub(_break, text)
    return _ENTITY.sub(lambda match: unescape(match[0]), text) if "&" in text else text


def _break(match: re.Match[str]) -> str:
    tag = match[0].strip("</> ").lower().split(maxsplit=1)[0]
    return "\n" if tag in ("br", "p", "div") or tag[0] == "h" else ""


def normalise(text: str) -> str:
    """The text `clean`, and without LaTeX around words and in numbers."""
    text = clean(text)
    if "\\" in text or "{,}" in text:
        text = _LATEX_SPACE.sub(" ", _LATEX_COMMA.sub(",", _LATEX_TEXT.sub(r"\1", text)))
        text = _LATEX_SIGN.sub(lambda name: "≈" if name[1] else "⇒", text)
    return text


_WHOLE = late(r"(?<![\w.,/-])(-?(?>[0-9]{1,40}))(?:\.0{1,9}|(?<!(?<![0-9])[01])/1)(?![\w/^]|[.,][0-9]|,-)")
_DIGIT = late(r"[^\D0-9]|[\u066b\u066c]")
_SIGNS = {"\u066b": ".", "\u066c": ","}


def plain_digits(text: str) -> str:
    """The text with the decimal digits of every script as ASCII ones, and 24.0 and 24/1 as 24.

    Examples
    --------
    >>> plain_digits("٢٤ or २४/१")
    '24 or 24'
    """
    if not text.isascii():
        text = _JOINED.sub(" ", text)
        text = _DIGIT.sub(lambda match: _SIGNS.get(match[0]) or str(decimal(match[0])), text)
    return _WHOLE.sub(r"\1", text) if ("/" in text and "/1" in text) or ".0" in text else text


# ---- marks

_MARK = late(
    r"\\(?:boxed|fbox)\s{0,3}\{(?P<box>)"
    r"|(?:####|[<\[]\s?(?:[A-Za-z]{1,12}[_ -]?)?(?:[aA]nswers?|ANSWERS?)\s?[>\]]|<final>)(?P<tag>)"
    r"|[\"'](?:\w{1,20}[_ -])?[aA]nswer(?:[_ -]\w{1,20})?[\"']\s{0,4}:\s{0,9}(?P<field>)"
    r"|(?:[aA]nswer|ANSWER)(?P<word>)"
)
_FOREIGN = cue(
    r"(?:\b<foreign_answers>\b(?: (?!(?:n[ãa]o|non|nicht|niet) )\w{3,12}){0,2}?\s{0,2}"
    r"(?:\*\*)?\s{0,2}(?P<said><foreign_is>\b)?"
    r"|<answers_of_scripts>(?: \w{3,12})?(?:\*\*)?\s{0,2}(?P<links><is_of_scripts>)?)"
    r"\s{0,2}(?(said):?|(?(links):?|(?:[:=\u2192\u27f6\u27a1\U0001f449]|[-\u2014]\s|\*\*:?|\n)))"
)
"""Marks of answers in other languages, which are looked for where there is none in English."""
_HEAD = 60
"""Characters before the word "answer" in which its line begins, where that is an asked form."""
_BEFORE = cue(r"(?>[\W_\d]*)(?>(?:<before>(?![^\W_])(?>[\W_]*))*)")
_AFTER_ASKED = cue(
    r"s?[*_`\"'\])>~ \t]{0,8}(?:\((?:final|[a-z]{2,20})\)[*_ \t]{0,4})?(?:=>|[:=|]|-{1,3}>?(?![0-9])"
    r"|[\u2014\u2192\u21d2\u27f6\u279c\u27a1\U0001f449]|\n)[*_ \t\u2192\u21d2]{0,8}(?:is\b:?)?"
)
_QUOTED = late(r"\s[\"'`“‘][^\"'`”’]*\Z")
"""What stands before a mark that the line quotes, from its prompt or from somebody else, behind other words."""
_QUOTED_LINE = late(r"[\"“„«][^\"”“»\n]{0,300}[\"”“»]\W*\w")
"""A mark in quotes that something follows."""
_MARK_ITSELF = late(r"(?:Answer|ANSWER)[*_]{0,3}:")
"""The asked form to the letter, which may stand within a line too."""
_AFTER_SAID = cue(
    r"s?(?:\b[^\n:=]{0,60}?(?:[:=\u2192\u21d2]|->|=>|(?<!you )(?<!we )(?<!I )\b(?:is|are|was|equals|becomes|(?:comes"
    r"|turns) out(?: to be| as)?)\b:?(?! that\b:?)|\b(?:would|must|should|will|has to|can only|shall)(?: (?:therefore"
    r"|thus|then|hence|indeed|\w{2,9}ly))? be\b|['’]s\b)|\sof\b)"
)
_EXAMPLE = cue(
    r"(?:(?:\A|\n\n)[\W_]{0,6}<example>\b[^.\n]{0,20}:(?>(?:\n?[^\n])*)\n?|\b<layout>\b[^\n.!?]*:[\s>*_`]*)\Z"
)
_NO_EXAMPLE = cue(r"[^\n]*\n[^.!?]*\b<no_example>\b")
"""What stands before a mark that may only show how an answer looks, and behind it if it does."""
OTHER_TOPIC = cue(r"\b(?!confident (?:that|the|it)\b)(?:<other_topic>|sure(?! that))\b")
_CLAUSE = late(r"[.!?;:\n]|, (?:but|so|yet) ")
_IS_THE = cue(
    r"(?:,? (?:which|(?:and )?(?:that|this)))?(?:['’]s|\s(?:is|are|was)) (?:(?:then|thus|therefore|indeed|clearly) )?"
    r"(?:the|my|our) (?:(?:final|correct|right|only|best|overall|required|desired) )*answer\b"
)
_CLOSING_TAG = late(r"</|\[/|<\|")
_UNWRAPPED = late(
    r"(?:[\s*_`$>\"'“‘(\[|\\]{0,12}|\s*[^\n]{0,160}?)"
    r"(?:\\(?:boxed|fbox)\s{0,3}\{|<(?:[A-Za-z]{1,12}[_ -]?)?(?:answer|result|solution|output|final)>)"
)
_TABLE = late(r"[ \t|]{0,8}\n[ \t|:-]{3,}\n(?:[^\n|]*\|)*(?=[^\n|]+\|?[ \t]*(?:\n|\Z))")
"""The rest of a table's head, and its first row up to its last cell."""
_FENCE = late(
    r"[ \t*_]{0,8}(?:\n[ \t]{0,8}){0,2}```[\w+-]{0,12}[ \t]*(?:\n|$)"
    r"|[ \t]{0,8}```(?:json|text|plaintext|python|bash)?[ \t]"
)


def passages(text: str) -> Iterator[Passage]:
    r"""What follows each mark of an answer in a text, the strongest first, of equal ones the last first.

    Examples
    --------
    >>> [passage.text for passage in passages("The answer is 7.\nAnswer: 8")]
    ['8', ' 7.\nAnswer: 8']
    """
    spots = _places(text)
    for rank in Rank:
        for _, start, kind in islice((spot for spot in reversed(spots) if spot[0] is rank), CANDIDATES):
            yield _passage(text, rank, start, kind)


_OPTION = r"[ \t]{{0,4}}(?:Option )?\(?{}[).,、:][^\n]{{0,300}}"
_NEXT_QUESTION = late(
    r"\n[ \t#*]{0,8}(?:Question|Problem|Exercise|Q|Human|User|Instructions?|Example|Options|Choices)(?: ?[0-9]{1,3})?"
    r"[*_ ]{0,4}[:.]"
    rf"|\n{_OPTION.format('A')}\n{{1,2}}{_OPTION.format('B')}"
)
"""Where a reply begins to ask by itself: a section of prompts, or a list of options."""
_OPTIONS = late(rf"(?:\A|\n){_OPTION.format('A')}(?:\n{{1,2}}{_OPTION.format('[B-Z]')}){{1,26}}\Z")
"""A list of options at the end."""


def without_next_question(text: str) -> str:
    r"""A reply up to where it begins to ask the next question itself, after an answer.

    Examples
    --------
    >>> without_next_question("The answer is B.\n\nQuestion: And now?\nA. x\nB. y\nAnswer: A")
    'The answer is B.\n'
    """
    end = len(text.rstrip())
    if (options := _OPTIONS.search(text, max(0, end - 2 * TAIL), end)) and not CONFIRMS.search(options[0]):
        text = text[: options.start()]  # which state nothing
    asks = _NEXT_QUESTION.search(text)
    begin = min((at for _, at, kind in _places(text) if at and kind != "example"), default=-1) if asks else -1
    while begin >= 0 and asks and (asks.start() <= begin or not text[begin : asks.start()].strip(" *_\n:")):
        asks = _NEXT_QUESTION.search(text, asks.end())
    return text[: asks.start()] if asks and begin >= 0 else text


_Place = tuple[Rank, int, str]
"""Rank, begin and kind of what a mark announces."""


def _places(text: str) -> list[_Place]:
    """What the marks of a text announce, in order."""
    marks = list(_MARK.finditer(text))
    if not marks:
        return [(_foreign_rank(text, mark), mark.end(), "") for mark in _FOREIGN.finditer(text)]
    return [spot for mark in marks if (spot := _place(text, mark)) is not None]


def _foreign_rank(text: str, mark: re.Match[str]) -> Rank:
    lead = text[text.rfind("\n", 0, mark.start()) + 1 : mark.start()]
    begins = mark[0].rstrip("* ")[-1:] == ":" and len(re.findall(r"\w+", lead)) < 3
    return Rank.ASKED if begins else Rank.SAID


def _place(text: str, mark: re.Match[str]) -> _Place | None:
    kind, at, end = mark.lastgroup or "", mark.start(), mark.end()
    if kind in ("box", "tag", "field"):
        return Rank.MARKED, end, kind
    line = text.rfind("\n", max(0, at - _HEAD - 1), at) + 1
    before = text[line or max(0, at - _HEAD) : at]
    begins = (line > 0 or at <= _HEAD) and _BEFORE.fullmatch(before) is not None
    word = re.search(r"\w", before)
    quoted = (word and _QUOTED.search(before, word.end())) or _QUOTED_LINE.match(text, max(0, at - 1))
    if _NO_EXAMPLE.match(text, end, end + SEGMENT) and _EXAMPLE.search(text, max(0, at - SEGMENT), at):
        return Rank.ASKED, text.find("\n", end), "example"
    if quoted or (not begins and CONDITION.search(_CLAUSE.split(before)[-1])):
        return None
    spot = _subject(text, at, end)
    asked = spot is None and (begins or _MARK_ITSELF.match(text, at) or _TABLE.match(text, end))
    after = _AFTER_ASKED.match(text, end) if asked else None
    return spot or ((Rank.ASKED, after.end(), "") if after else _statement(text, at, end))


def _subject(text: str, at: int, end: int) -> _Place | None:
    """What stands before "is the answer"."""
    verb = _IS_THE.search(text, max(0, at - 48), end)
    if verb is None or verb.end() != end or text[end : end + 1] in (":", "="):
        return None
    low = max(0, verb.start() - TAIL)
    return Rank.SAID, max(low, text.rfind("\n", low, verb.start()) + 1), f"{verb.start()}"


def _statement(text: str, at: int, end: int) -> _Place | None:
    after, clause = _AFTER_SAID.match(text, end), _CLAUSE.split(text[max(0, at - 120) : at])[-1]
    near = clause.rpartition(",")[2]
    if after is None or HEDGE.search(near):
        return None
    off_topic = OTHER_TOPIC.search(after[0]) or OTHER_TOPIC.search(near[-24:])
    return None if off_topic or SAYS_NOTHING.match(text, after.end()) else (Rank.SAID, after.end(), "")


def _passage(text: str, rank: Rank, start: int, kind: str) -> Passage:
    if kind.isdigit():  # the end of what is the answer
        return Passage(re.split(r"[.!?;:]\s", text[start : int(kind)])[-1], rank, boxed=False, start=start)
    tail, boxed = "" if kind == "example" else text[start : start + TAIL], kind == "box"
    if kind == "field":
        return Passage(_field(tail), rank, boxed=False, start=start)
    tail = tail.lstrip("\n \t") if kind == "tag" else tail
    fence = None if boxed else _TABLE.match(tail) or _FENCE.match(tail)
    tail = tail[fence.end() :] if fence else tail
    inner = None if boxed else _UNWRAPPED.match(tail)
    if inner is not None:
        boxed, tail = inner[0].endswith("{"), tail[inner.end() :]
    if kind == "tag" or (inner is not None and not boxed):
        tail = _CLOSING_TAG.split(tail, maxsplit=1)[0]
    return Passage(tail, rank, boxed, start)


_DECODER = json.JSONDecoder()


def _field(tail: str) -> str:
    """The value of a JSON document's field: a text as it reads, anything else as it is written."""
    try:
        value, end = _DECODER.raw_decode(tail)
    except (ValueError, RecursionError):
        return tail.split("\n", 1)[0].rstrip(" \t,}")
    return value if isinstance(value, str) else tail[:end]


def in_box(tail: str) -> str:
    r"""What stands before the brace that closes a \boxed."""
    end = end_of_brackets(tail, 0, _BRACES, depth=1)
    return tail.split("\n", 1)[0] if end is None else tail[: end - 1]


def is_cut(passage: Passage) -> bool:
    """Whether a reply ends within a box."""
    tail = passage.text
    return passage.boxed and "\n" not in tail and end_of_brackets(tail, 0, _BRACES, depth=1) is None


_BRACES = late("[{}]")


def end_of_brackets(text: str, at: int, brackets: re.Pattern[str], depth: int = 0) -> int | None:
    """Where as many brackets are closed as are open; None if they are not."""
    for bracket in brackets.finditer(text, at):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(bracket[0], 0)
        if depth == 0:
            return bracket.end()
    return None


# ---- places without a mark

_FENCED = late(r"```[\w+-]{0,12}[ \t]*\n((?:(?!```)(?>[^\n]*)\n){1,200}?)[ \t]*```")
_CODE = late(r"```[\w+-]{0,12}[ \t]*\n(?:(?!```)[^\n]*\n){2,200}?[ \t]*```")


def without_code(text: str) -> str:
    """The end of a text without fenced blocks of two lines and more, whose lines are no sentences."""
    return _CODE.sub("", text[-4 * TAIL :]) if "```" in text else text


_BOLD = late(r"\*\*([^*\n]{1,200})\*\*|__([^_\n]{1,200})__")
CHATTER = cue(
    r"(?>[\W_]*)(?:i )?(?:<chatter>|i(?: am|'m) (?:(?!not\b)\w+ )?(?:confident|sure|certain)(?! (?:that|it)))\b"
)
BULLET = late(r"\A(?:[-*•+>]|1[.)]) (?=\S)")
"""The mark of an item in a list; a minus sign that stands apart is none where a value is asked for on its line."""
_NEXT_ITEM = late(r"\n[ \t]*(?:[-*•+]|[2-9][.)]) (?=\S)")


def on_one_line(tail: str, joint: str) -> str:
    """A place without what is in front of its value; of a list that begins on the next line, all items on one."""
    inner = tail.lstrip(" \t*_`")
    item = BULLET.match(inner.lstrip()) if inner[:1] == "\n" else None
    return _NEXT_ITEM.sub(joint, inner.lstrip()[item.end() :]) if item else inner.lstrip(" \t\n*_`")


_LAST_LINES = 12


def last_lines(text: str) -> Iterator[str]:
    """The last lines that say something, the last one first; polite endings and talk about confidence are left out."""
    lines = (line[-TAIL:].strip() for line in reversed(text.split("\n")))
    speaking = (line for line in lines if any(map(str.isalnum, line[:SEGMENT])) or line.strip(" \t`*_-"))
    for line in islice(speaking, _LAST_LINES):
        if not CHATTER.match(line):
            yield BULLET.sub("", line, count=1)


def bold_passages(line: str) -> Iterator[str]:
    """Bold passages of a line, the last one first."""
    for match in reversed(deque(_BOLD.finditer(line), maxlen=CANDIDATES)):
        yield (match[1] or match[2]).strip()


def fenced_block(text: str) -> str | None:
    """What stands in a fenced block that ends the text, but for polite words after it; None if there is none."""
    tail = text[-TAIL:]
    last = deque(_FENCED.finditer(tail), maxlen=1)
    after = tail[last[0].end() :].strip() if last else ""
    return last[0][1] if last and (not after or CHATTER.match(after)) else None
