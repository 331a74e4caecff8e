"""Read and compare answers by their kind: a number, a text or a JSON value."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import pairwise

from evalcube.stages.generate.answers import wording as words
from evalcube.stages.generate.answers.final import NEAR, REFUSED, SENTENCES, Mention, instead, read_final
from evalcube.stages.generate.answers.numbers import (
    NUMBER,
    NUMBERS,
    number,
    plain_numbers,
    with_whole_numbers,
)
from evalcube.stages.generate.answers.passages import (
    BULLET,
    CHATTER,
    Passage,
    Rank,
    fenced_block,
    in_box,
    last_lines,
    normalised,
    passages,
)
from evalcube.stages.generate.answers.values import Form, read_value
from evalcube.stages.generate.dataset.params import Comparison


def lines_after_marks(text: str) -> Iterator[str]:
    r"""The first line of each explicit answer with something on it, the last answer first, without mark-up.

    Brackets and quotes stay.

    Examples
    --------
    >>> list(lines_after_marks("**Answer:** *(a, b]*. \n Done."))
    ['(a, b]']
    """
    return map(line_of, passages(text))


def line_of(passage: Passage) -> str:
    """The first line of a place with something on it, without mark-up."""
    line = BULLET.sub("", passage.text.lstrip(" \t\n\r*_`").split("\n", 1)[0], count=1)
    return _bare(in_box(line) if passage.boxed else line)


def _bare(line: str) -> str:
    """A line without mark-up around it and without a full stop at its end."""
    line = line.strip()
    while True:
        stripped = line.strip(" \t*_`").removesuffix(".").strip(" \t*_`")
        if stripped == line:
            return line
        line = stripped


# ---- numbers


def read_number(text: str, comparison: Comparison | None = None) -> str | None:  # noqa: ARG001 - as the others
    r"""The number a text ends up with, as a plain decimal or a fraction in lowest terms; None if there is none.

    Understood are signs, thousands separators, decimals, exponents, fractions, their LaTeX, and a currency
    before or a unit after the number.

    Examples
    --------
    >>> read_number("Answer: $1,234.50"), read_number("so it is **\\frac{2}{6}**"), read_number("1.5 × 10^3 m")
    ('1234.5', '1/3', '1500')
    """
    return read_value(plain_numbers(text), NUMBERS)


def only_number(text: str) -> str | None:
    """The number in a text that holds one and no other; None otherwise.

    Examples
    --------
    >>> only_number("18 dollars"), only_number("48/2 = 24")
    ('18', None)
    """
    found = [number(match) for match in NUMBER.finditer(plain_numbers(text)) if not match["word"]]
    return found[0] if len(found) == 1 else None


def same_number(answer: str, reference: str, comparison: Comparison) -> bool:
    """Whether two numbers, as `read_number` gives them, differ by no more than the tolerance; exact."""
    if answer == reference:
        return True
    if not comparison.tolerance and not comparison.relative:
        return False  # of each number there is one form
    right = Fraction(reference)
    allowed = max(comparison.tolerance, comparison.relative * abs(right))
    return abs(Fraction(answer) - right) <= allowed


# ---- texts

LONGEST_TEXT = 300
"""Characters of a text that can be an answer."""
_HOLDER = re.compile(r"<(?:text|number|letter|json|value|answer|your answer)>", re.IGNORECASE)
"""What the prompts have in the answer's place."""
_DECLINES = re.compile(r"(?:i|we|sorry|unfortunately|no idea|can(?:no|')t|unknown|not sure)\b", re.IGNORECASE)
_ASIDE = re.compile(
    r"[*_`]*[.!]\s(?:Is|Would|Do|Let|Can|Shall|Feel|I\shope)\s[^\n]*$|(?:,\s|\s\()(?:(?:and\s)?not|nicht|niet|pas"
    r"|as\sopposed\sto)\s[^()]{1,200}\)?$|\s(?:rather\sthan|instead\sof|and\snot)\s[^\n]{1,200}$|,\s(?:as\s(?:required"
    r"|requested|asked)|of\scourse|indeed|no\sdoubt|for\ssure|I\s(?:believe|think)|sorry|then)$|</\w{1,20}>$"
    r"|\s(?:\((?:final|checked|see|by)\b[^()]{0,40}\)|[\u2014-]\s(?:final|I['’]m\s[^\n]{1,40}))$"
    r"|\s*[\u2600-\u27bf\U0001f000-\U0001faff]+$|\sis\s(?:right|correct|what\s(?:I|we|it)\s[^\n]{1,60})$"
    r"|;\s[^\n]{1,200}$|\s+instead$|,?\sand\s(?:(?:we|I)(?:\sa|['’])[rm]e?\s(?:done|finished)|that\s?['’i]s\s(?:it|all))$"
    r"|\s[\u2014-]\s(?:that is|this is) my [^\n]{1,40}$|(?<=\w\w)\.\s(?=(?:This|That|It|I"
    r"|Because|Checked|Verified)\s)[^\n]{1,250}$|(?<=\w{4})\.\s(?=[A-Z]\S*\s\S+\s)[^\n]{1,250}$|\s\((?:[Ii]|[Ww]e"
    r"|rather|instead|although|but|since|because)\s[^()]{1,200}\)$|,\s(?:since|because)\s[^\n]{1,250}$"
)
_ADVERB = words.cue(
    r"(?:(?:therefore|thus|hence|actually|really|indeed|clearly|simply|still|now|in fact|of course|donc|also"
    r"|daher)\b,?\s+)+"
)
_SAYS_SO = words.cue(
    r"(?:(?:so )?(?:the|my) )?(?:final |correct )?answer(?: (?:is|was)\b:?|:)\s*[*_]*"
    r"|\A[\s*_]*[\u2192\u21d2\u27a1>|]+\s"
)
_MATHS = re.compile(
    r"\A(?:The (?:final )?answer is:?)?\s*\$+\s*(?:\\boxed\{)?([^$\n]{1,300}?)\}?\s*\$+(?:[.!]\s[^\n]*)?\Z"
)
_CAPITAL = re.compile(r"\s(?=[A-Z])")
_STOP = re.compile(r"[^\W\d_]{2}[.!?;]\s")
_NOT_BUT = words.cue(
    r"\A(?:[^.\n]{0,60}\s)?(?:not|nicht|niet|pas|no\ses|n[ãa]o\s[eé]|non\s[eè])\s[^.\n]{1,100}?\s(?:but|sondern|sino"
    r"|mais|mas?|maar|e\ssim)\s(?:rather\s)?"
)
_BOLD = re.compile(r"\*\*[^*\n]+\*\*")
_MOST_WORDS = 8
"""Words that a statement may have at the end of a reply."""
_HEAD = 40
"""Characters of a sentence that may begin with a cue of a correction."""
_TAG = re.compile(
    r"</?(?:[a-z]|[bh]r|h[1-6]|[uo]l|li|d[ldt]|t[dhr]|em|div|nav|pre|img|\w*(?:head|body|foot)(?:er)?|code|span|form"
    r"|link|meta|html|title|label|input|table|video|strong|script|button|select|iframe|section)\s?/?>"
)
_ASKED = re.compile(r"(?:what|who|where|when|which|why|how)\b", re.IGNORECASE)
"""What follows an answer on its line and is no part of it."""
_INTRODUCED = words.cue(
    r"(?=\S)(?:(?:so|therefore|thus|hence|in (?:short|summary|conclusion|the end)|to summari[sz]e|tl;?dr|altogether"
    r"|putting it all together)[\s,:]{1,3}){0,2}(?:(?:it|this|that|we|i|what [a-z ]{1,30}?|(?:the |my )?(?:final "
    r"|only )?(?:result|solution|output|conclusion|final|choice|verdict|answer|one|word|name))?\s?"
    rf"{words.STATING}|(?<=[,:\s])(?=[\w*]+(?:\s[\w*]+){{0,2}}\W*\Z))\s*[*_]*"
)
_BETWEEN_WORDS = re.compile(r"(?<=[^\W\d_]{2})[-\u2010-\u2015/](?=[^\W\d_]{2})")
_NAMED = re.compile(r"(?<!\w)[A-Z][\w'’-]*\Z")
_NAME = re.compile(
    r"(?<![\w'’-])(?!(?:It|That|This|The|So|But|And|No|I)\b)[A-Z][\w'’-]*(?:\s(?:of\s|the\s|d[aeiu]\s|v[ao]n\s"
    r"|la\s)?[A-Z0-9][\w'’-]*){0,5}"
)
_STOPS = re.compile(r"(?<![0-9])[.,]|[.,](?![0-9])|[;:!?\"“”„«»…¿¡'’‘`]")
_ARTICLE = re.compile(r"\b(?:the|an|a)\s+(?=[^\W\d_])", re.IGNORECASE)


def read_text(
    text: str, comparison: Comparison | None = None, *, most_words: int | None = None
) -> str | None:
    r"""The text a reply gives as its answer, in the form that is compared; None if there is none.

    That is the line after the last mark of an answer; without one, a reply of a single line of at most `most_words`, or
    the few words that its last sentence states.

    Examples
    --------
    >>> read_text("I think so.\nAnswer: The  **Eiffel** Tower!")
    'eiffel tower'
    >>> read_text("I do not know.") is None
    True
    """
    exact = (comparison or Comparison()).exact
    text = normalised(text)

    def end(text: str) -> str | None:
        line = _bare(fenced_block(text) or text)
        if next(passages(text), None) is not None or not re.search(r"[^\W_]", line):
            return None
        if "\n" in line or len(line) > LONGEST_TEXT or _INTRODUCED.match(line) or _STOP.search(line):
            return _said_at_end(text.strip(), exact)
        if most_words is not None and len(line.split()) > most_words:
            return _said_at_end(text.strip(), exact)
        return None if _DECLINES.match(line) else _text_in(Passage(line, Rank.ASKED, False, 0), exact)

    return read_final(
        text, partial(_text_in, exact=exact), end, partial(_names, exact=exact), partial(_worded, exact=exact)
    )


def _names(text: str, exact: frozenset[str]) -> list[Mention]:
    """Every name in a text."""
    return [Mention(name.start(), name.end(), comparable(name[0], exact)) for name in _NAME.finditer(text)]


def _text_in(passage: Passage, exact: frozenset[str]) -> str | None:
    """The text that a place gives."""
    line = _uncorrected(_MATHS.sub(r"\1", line_of(passage)))
    line = _NOT_BUT.sub("", _SAYS_SO.sub("", line, count=1))
    line = _ASIDE.sub("", _bare(line.rstrip("|")))
    line = line.removesuffix("$") if line.count("$") == 1 else line
    line = line[1:-1] if line[:1] + line[-1:] == "()" else line
    line = line.removesuffix("}") if line.count("}") > line.count("{") else line
    if passage.rank is Rank.SAID:
        for introduction in (_INTRODUCED, _ADVERB):
            found = introduction.match(line)
            line = line[found.end() :] if found else line
        line = _bare(line)
        if words.SAYS_NOTHING.match(line):
            return None
    if line.endswith("?") and not _ASKED.match(line):
        return REFUSED
    if not line or len(line) > LONGEST_TEXT or _HOLDER.fullmatch(line):
        return None
    bracketed = line[0] + line[-1] in ("<>", "[]") and not _TAG.fullmatch(line) and "," not in line
    return comparable(line[1:-1] if bracketed else line, exact) or None


def _worded(tail: str, value: str, before: str, exact: frozenset[str]) -> str | None:
    """As `instead`, of an answer of any words: what follows a cue and a statement is one."""
    named = _NAMED.search(before) is not None

    def stated_or_named(text: str) -> list[Mention]:
        found: list[Mention] = []
        stops = [0, *(stop.end() for stop in words.SENTENCE_END.finditer(text)), len(text)]
        for low, high in list(pairwise(stops))[-SENTENCES:]:
            sentence = text[low : min(high, low + 2 * NEAR)]
            if CHATTER.match(sentence):
                continue
            names = [m for m in _names(sentence, exact) if _is_name(sentence, m)]
            at = max((frame.end() for frame in words.FRAME.finditer(sentence)), default=0)
            at += len(sentence[at:]) - len(sentence[at:].lstrip(" *_")) if at else 0
            states = at and not named and not words.SAYS_NOTHING.match(sentence, at)
            if states and all(name.start < at for name in names):
                other = _text_in(Passage(sentence[at:], Rank.SAID, boxed=False, start=0), exact)
                again = re.search(rf"\s{re.escape(value)}(?=\W*\Z)", sentence[at:], re.IGNORECASE)
                other, at = (value, at + again.start() + 1) if again else (other, at)
                if other and len(other.split()) <= _MOST_WORDS:
                    names = [Mention(at, len(sentence.rstrip()), other)]
            found += [m._replace(start=low + m.start, end=low + m.end) for m in names]
        return found

    return instead(tail, value, stated_or_named, free=True)


def _is_name(sentence: str, at: Mention) -> bool:
    """Whether a capital is more than the one that a sentence begins with."""
    after = sentence[at.end :]
    if any(map(str.isalnum, sentence[: at.start])) or " " in sentence[at.start : at.end]:
        return True
    cue = words.BARE.fullmatch(sentence, at.start, at.end) or words.TURNS.fullmatch(
        sentence, at.start, at.end
    )
    return not cue and bool(words.ENDS.match(after) or words.RIGHTLY.match(after))


def _said_at_end(text: str, exact: frozenset[str]) -> str | None:
    """The text that a reply of several sentences ends with, by itself in bold or after words that introduce it."""
    first, _, rest = text.partition("\n\n")
    heads = words.HEADING.match(rest) and first[-1:] not in (".", ":", "?")
    if (heads or (rest and _BOLD.fullmatch(first))) and len(first.split()) <= _MOST_WORDS:
        return comparable(_bare(first), exact) or None
    last = next(last_lines(text), "")[-LONGEST_TEXT:]
    sentence = re.split(r"(?<=\w[.!?])\s|;\s", last)[-1]
    begin = sentence.lstrip("*_# ")
    introduced = _INTRODUCED.match(begin) or words.STATEMENT.match(begin)
    said = _NOT_BUT.sub("", sentence)
    said = said if said != sentence else begin[introduced.end() :] if introduced else sentence
    apart = sentence == last and text.endswith(f"\n\n{last}") and last[-1:] not in (":", "?")
    stated = (said != sentence or apart or _BOLD.fullmatch(sentence)) and len(said.split()) <= _MOST_WORDS
    sure = words.affirmed(begin, max(0, len(begin) - len(said)), len(begin)) and not words.DOUBT.search(
        sentence
    )
    return _text_in(Passage(said, Rank.SAID, False, 0), exact) if stated and sure else None


def _uncorrected(line: str) -> str:
    """A line without the correction that follows on it, with no stop between."""
    for capital in _CAPITAL.finditer(line[:LONGEST_TEXT]):
        rest = line[capital.end() : capital.end() + LONGEST_TEXT]
        if (words.TURNS.search(rest[:_HEAD]) or words.REDOES.search(rest[:_HEAD])) and (
            words.FRAME.search(rest) or re.search("[:,\u2014]", rest[:_HEAD])
        ):
            return line[: capital.start()]
    return line


def comparable(line: str, exact: frozenset[str]) -> str:
    """A text without the differences that do not matter.

    Examples
    --------
    >>> comparable("The U.S. Post-Office,  3.5 km", frozenset())
    'us post office 3.5 km'
    """
    for _ in range(8):  # each step may lay bare something for another one
        before, line = line, _less(line, exact)
        if line == before:
            break
    return line


def _less(line: str, exact: frozenset[str]) -> str:
    original = line
    if "unicode" not in exact:
        line = unicodedata.normalize("NFKC", line)
    if "case" not in exact:
        line = line.casefold()
    if "punctuation" not in exact:
        line = _STOPS.sub("", _BETWEEN_WORDS.sub(" ", line.replace("**", "")))
    if "articles" not in exact:
        line = _ARTICLE.sub("", line)
    if "whitespace" not in exact:
        line = " ".join(line.split())
    line = _bare(line)
    return line or original  # an answer of nothing but punctuation is compared as it is


# ---- JSON

_WINDOW = 6000
"""Characters at the end of a reply in which a JSON value is looked for."""
LONGEST_JSON = 5000
"""Characters of a JSON value that can be an answer."""
_ATTEMPTS = 300
_HOLDS = 0xE000
"""The first of the private characters that stand for arrays and objects while their sentence is read."""
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_SCALAR = re.compile(
    r"[\ue000-\uf8ff]|\{|\"(?:[^\"\\\n\ue000-\uf8ff]|\\.){0,300}\"|(?<![\w.-])-?(?:0"
    r"|[1-9][0-9]{0,300})(?:\.[0-9]{1,300})?(?:[eE][-+]?[0-9]{1,3})?(?![\w.]\w)(?!\w)|(?<![\w-])(?:true|false"
    r"|null)(?![\w-])"
)
_ANSWER_KEY = re.compile(r"(?:\w{1,20}[_ -])?answer(?:[_ -]\w{1,20})?", re.IGNORECASE)


def _refuse(word: str) -> object:
    raise ValueError(word)


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def json_text(value: object, *, parse: bool = False) -> str | None:
    """A JSON value in one form: sorted keys, 1.0 as 1; None for what is no JSON.

    Examples
    --------
    >>> json_text({"b": 1.0, "a": [True]}), json_text('{"a":2}', parse=True)
    ('{"a": [true], "b": 1}', '{"a": 2}')
    """
    try:
        if parse and isinstance(value, str):
            value = json.loads(value, parse_constant=_refuse)
        return json.dumps(with_whole_numbers(value), sort_keys=True, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return None


def read_json(text: str, comparison: Comparison | None = None) -> str | None:  # noqa: ARG001 - as the others
    """The JSON value a reply gives as its answer, in one form; None if there is none.

    It stands after the last mark of an answer; without one it is the whole reply, or the last object or array
    in it.

    Examples
    --------
    >>> read_json('Answer: {"b": 1, "a": 2.0}')
    '{"a": 2, "b": 1}'
    """
    plain, values = _with_holders(_PRIVATE.sub(" ", text[-_WINDOW:]))
    bare = plain.strip("` \n").removeprefix("json").strip()
    if len(bare) == 1 and values:
        return _field_of(values[0])
    whole = json_text(bare, parse=True) if not values else None
    found = whole or read_value(plain, _JsonValues(values))
    if found is None and not any(passages(plain)) and values:
        # a document, and nothing that denies it
        tail = plain.rstrip()
        at = max(tail.rfind(chr(_HOLDS + i)) for i in range(len(values)))
        return _field_of(values[ord(tail[at]) - _HOLDS]) if words.affirmed(tail, at, at + 1) else None
    return found


def _with_holders(text: str) -> tuple[str, list[object]]:
    """A text with one character for each of its outermost arrays and objects, and these."""
    parts: list[str] = []
    values: list[object] = []
    done = at = 0
    for _ in range(_ATTEMPTS):
        starts = [i for i in (text.find("{", at), text.find("[", at)) if i >= 0]
        if not starts:
            break
        at = min(starts)
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        parts += [text[done:at], chr(_HOLDS + len(values))]
        values.append(value)
        at = done = end
    return "".join([*parts, text[done:]]), values


def _field_of(value: object) -> str | None:
    """A document as a text; where it has an answer among its fields, that."""
    fields = value if isinstance(value, dict) else {}
    named = [item for key, item in fields.items() if _ANSWER_KEY.fullmatch(key)]
    return json_text(named[-1] if named else value)


class _JsonValues(Form):
    counts = True

    def __init__(self, values: Sequence[object]) -> None:
        self._texts = [json_text(value) for value in values]

    def mentions(self, line: str) -> Sequence[Mention]:
        return [self._mention(match) for match in _SCALAR.finditer(line)]

    def _mention(self, match: re.Match[str]) -> Mention:
        place = ord(match[0][0]) - _HOLDS
        known = self._texts[place] if 0 <= place < len(self._texts) else json_text(match[0], parse=True)
        return Mention(match.start(), match.end(), known, match[0] in ("true", "false", "null"))


READERS: dict[str, Callable[[str, Comparison], str | None]] = {
    "number": read_number,
    "text": read_text,
    "json": read_json,
}
"""Kind of answer -> its reader."""
