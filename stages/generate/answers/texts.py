"""Read and compare answers of any words: what differs without a difference is folded in the comparison alone."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import partial

import regex

from evalcube.stages.generate.answers import passages as places
from evalcube.stages.generate.answers import wording as words
from evalcube.stages.generate.answers.final import LONGEST_SENTENCE, Mention, sentence_spans
from evalcube.stages.generate.answers.passages import Passage, Rank
from evalcube.stages.generate.answers.values import Form, read_final

LONGEST_TEXT = 2000
"""Characters of a text that can be an answer."""
_REASONS = 400
"""Characters behind a "yes" in which no other answer of that kind may stand."""
_MOST_WORDS = 8
"""Words that a statement may have at the end of a reply."""
_HOLDER = words.late(r"<(?:text|number|letter|json|value|answer|your answer)>", re.IGNORECASE)
"""What the prompts have in the answer's place."""
_LED = words.cue(r"(?:(?:it|that|this)(?:['’]s|\s(?:is|was))|<adverbs>,?|<led_by>)\s")
_POLAR = words.cue(r"(<polar>)(?=\s*[,.;:!—–-]|[，。！])(?!\W*(?:but|i can|i will|i['’](?:ll|d))\b)")
_UNPOLAR = words.cue(r"\b(?:<polar>|wait|actually|however|sometimes)\b")
_STOP = words.late(r"[^\W\d_]{2}[.!?;]\s")
_BOLD = words.late(r"\*\*[^*\n]+\*\*")
_PAIRS = (*zip("$\"“'`([<", "$\"”'`)]>", strict=True), ("\\(", "\\)"))
"""What may enclose a whole answer."""


def line_of(passage: Passage) -> str:
    r"""The first line of a place with something on it, without mark-up; brackets and quotes stay.

    Examples
    --------
    >>> from evalcube.stages.generate.answers.passages import passages
    >>> [line_of(place) for place in passages("**Answer:** *(a, b]*. \n Done.")]
    ['(a, b]']
    """
    line = places.BULLET.sub("", places.on_one_line(passage.text, ", ").split("\n", 1)[0], count=1)
    return without_markup(places.in_box(line) if passage.boxed else line)


def without_markup(line: str) -> str:
    """A line without mark-up around it and without a full stop at its end."""
    line = line.strip()
    while True:
        stripped = re.sub(r"(?<!\.)\.\Z", "", line.strip(" \t*_`")).strip(" \t*_`")
        if stripped == line:
            return line
        line = stripped


def without_fence(text: str) -> str:
    """A text without a fence around all of it."""
    fenced = text.startswith("```") and text.endswith("```") and "\n" in text
    return text.partition("\n")[2].removesuffix("```").strip() if fenced else text


class TextForm(Form):
    """Any words, which are the answer where a place or a statement gives them."""

    name = "text"
    free = True
    longest = LONGEST_TEXT

    def __init__(self, most_words: int | None = None) -> None:
        self._most_words = most_words

    def mentions(self, line: str) -> Sequence[Mention]:  # noqa: ARG002 - any words are none by themselves
        """None: words are values where they are stated."""
        return ()

    def in_place(self, passage: Passage) -> str | None:
        """The words that a place gives."""
        return _words_of_line(line_of(passage), stated=passage.rank is Rank.SAID)

    def later(self, text: str, value: str) -> Sequence[Mention]:
        """What sentences after a statement state, in a few words."""
        mentions: list[Mention] = []
        for low, high in sentence_spans(text):
            sentence = text[low : min(high, low + LONGEST_SENTENCE)]
            frame = words.STATEMENT.match(sentence)
            statement = _words_of_line(sentence[frame.end() :], stated=True) if frame else None
            confirms = words.CONFIRMS.search(sentence)
            if frame and statement and not confirms and len(statement.split()) <= _MOST_WORDS:
                at = low + max(sentence.find(statement, frame.end()), 0)
                again = fold(statement) == fold(value)
                mentions.append(Mention(at, low + len(sentence.rstrip()), value if again else statement))
        return mentions

    def at_end(self, text: str) -> str | None:
        """A reply that is nothing else; else the words in bold before an explanation, or of a short last statement."""
        line = without_markup(places.fenced_block(text) or text)
        if (polar := _polar(line)) is not None:
            return polar
        alone = "\n" not in line and not (_STOP.search(line) or words.STATEMENT.match(line))
        if alone and len(line) <= LONGEST_TEXT and len(line.split()) <= (self._most_words or LONGEST_TEXT):
            is_answer = re.search(r"[^\W_]", line) and not words.DECLINES.match(line)
            return _words_of_line(line) if is_answer else None
        first, _, explanation = text.strip().partition("\n\n")
        if explanation and _BOLD.fullmatch(first) and len(first.split()) <= _MOST_WORDS:
            return without_markup(first) or None
        last = next(places.last_lines(text), "")[-LONGEST_TEXT:]
        sentence = re.split(r"(?<=\w[.!?])\s|;\s", last)[-1].lstrip("*_# ")
        introduced = words.STATEMENT.match(sentence)
        statement = sentence[introduced.end() :] if introduced else sentence
        sure = words.is_affirmed(sentence, len(sentence) - len(statement), len(sentence))
        apart = introduced or (_BOLD.fullmatch(last) and sentence)
        stated = apart and sure and len(statement.split()) <= _MOST_WORDS and not words.DOUBT.search(sentence)
        return _words_of_line(statement, stated=True) if stated else None


def read_text(text: str, comparison: object = None, *, most_words: int | None = None) -> str | None:  # noqa: ARG001 - as the others
    r"""The text a reply gives as its answer, as it stands there; None if there is none.

    That is the line after the last mark of an answer; without one, a reply of a single line of at most `most_words`, or
    the few words that its last sentence states.

    Examples
    --------
    >>> read_text("I think so.\nAnswer: The **Eiffel** Tower!")
    'The **Eiffel** Tower!'
    >>> read_text("I do not know.") is None
    True
    """
    return read_final(places.normalise(text), TextForm(most_words))


def stated_in(answer: str, accepted: Sequence[str], exact: frozenset[str]) -> str:
    """What an answer states as a sentence, if that is accepted; else the answer."""
    statement = words.STATEMENT.match(answer)
    if statement is None or words.DOUBT.search(answer) or _STOP.search(answer):
        return answer
    if not words.is_affirmed(answer, statement.end(), len(answer)):
        return answer
    stated = answer[statement.end() :]
    return stated if any(same_text(stated, reference, exact) for reference in accepted) else answer


def _words_of_line(line: str, *, stated: bool = False) -> str | None:
    """The words of a line; behind a statement, without what only leads to them."""
    line = line.rstrip("|").strip()
    if stated:
        line = without_markup(line.lstrip(":=, "))
    return None if not line or len(line) > LONGEST_TEXT or _HOLDER.fullmatch(line) else line


def _polar(line: str) -> str | None:
    """The word that a text answers a question with, before a reason; None if it has another one of its kind."""
    match = _POLAR.match(line)
    later = _UNPOLAR.finditer(line, match.end(), match.end() + _REASONS) if match else ()
    return match[1] if match and all(word[0].lower() == match[1].lower() for word in later) else None


# ---- folding

_BETWEEN_WORDS = words.late(r"(?<=[^\W\d_]{2})[-\u2010-\u2015/](?=[^\W\d_]{2})")
_STOPS = words.late(r"(?<![0-9])[.,]|[.,](?![0-9])|[;:!?\"“”„«»…¿¡'’‘`]")
# "3, 5 and 7" is the list "3, 5, 7".
_LAST_ITEM = words.late(r"(,[^,\n]{1,40}?),?\s(?:and|&|und|et|y|e|и)\s(?=[^,\n]{1,40}\Z)")
_ARTICLE = words.late(r"\b(?:the|an|a)\s+(?=[^\W\d_])", re.IGNORECASE)


def fold(line: str, exact: frozenset[str] = frozenset()) -> str:
    """A text without the differences that do not matter.

    Examples
    --------
    >>> fold("The U.S. Post-Office,  3.5 km")
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
        line = unicodedata.normalize("NFKC", places.normalise(line))  # as replies are before they are read
    if "case" not in exact:
        line = line.casefold()
    if "punctuation" not in exact:
        line = _LAST_ITEM.sub(r"\1 ", _BETWEEN_WORDS.sub(" ", line.replace("**", "")))
        line = _STOPS.sub("", line)
    if "articles" not in exact:
        line = _ARTICLE.sub("", line)
    if "whitespace" not in exact:
        line = " ".join(line.split())
    # a table's row ends with a bar; an answer of nothing but punctuation is compared as it is
    return without_markup(line.rstrip("|")) or original


_REMARK = words.cue(
    r"\s*(?:(?:\s|(?<=[\u3040-\u9fff\uac00-\ud7a3]))\([^()]{1,300}\)|(?<=[\w*)\"'][\w*)\"'])[.!]\s+[^\W\d_][^\n]{0,400}"
    r"|<copulas>|,?\s<causes>\s[^\n]{1,300}|,?\s(?P<contrast><contrasts>\s[\w ]{1,60})"
    r"|,\s<asides>(?!\w)(?:(?!\bbut\b)[^\n]){0,300}|\s[\u2014\u2013-]\s[^\n]{1,200}|\s?[\u2190\u21d0\u2600-\u27bf\U0001f000-\U0001faff][\s\u2600-\u27bf\U0001f000-\U0001faff]*)\Z"
)
"""What may follow an answer on its line and leaves it as it is."""


_OTHERWISE = (words.TURNS, words.DOUBT, words.ALTERNATIVE)
"""What makes another answer of a remark."""
_OPEN = words.late(r"(?:\?|,\s?(?:\.\.\.|…))\Z")
"""What ends a text that asks, or goes on."""


def same_text(answer: str, reference: str, exact: frozenset[str]) -> bool:
    """Whether two texts are the same when both are folded, or are so without what surrounds the answer.

    Examples
    --------
    >>> same_text("Paris (the capital).", "paris", frozenset()), same_text("red; blue", "red", frozenset())
    (True, False)
    """
    wanted = fold(reference, exact)
    asks = places.normalise(reference).endswith("?")
    return any(fold(form, exact) == wanted and (asks or not _OPEN.search(form)) for form in _forms(answer))


def _forms(answer: str) -> Iterator[str]:
    """An answer as it stands, and without a pair around it and a remark behind it."""
    for _ in range(4):
        yield answer
        answer = without_markup(answer)
        # what opens before the mark closes behind the answer
        pairs = (p for p in _PAIRS if answer.endswith(p[1]) and answer.rstrip(p[1]).find(p[0]) < 1)
        pair = next(pairs, None) if len(answer) > 1 else None
        remark, led, polar = _REMARK.search(answer), _LED.match(answer), _polar(answer)
        if pair is not None:
            answer = answer.removeprefix(pair[0]).removesuffix(pair[1])
        elif remark and (remark["contrast"] or not any(cue.search(remark[0]) for cue in _OTHERWISE)):
            answer = answer[: remark.start()]
        else:
            answer = answer[led.end() :] if led else polar or answer


# ---- an answer within a text

_SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー"
_PIECE = words.late(rf"(?wV1s)[{_SPACELESS}]\p{{M}}*|.+?(?:\b|(?=[{_SPACELESS}]))", compiler=regex.compile)
"""What stands between two edges of words; of scripts without spaces, in which each character is a word, one."""
_HANGUL = words.late(r"\p{Hangul}*", compiler=regex.compile)
_OWNED = words.late(r"(?:\p{L}{1,4}['’](?=\p{L}{2}))?(.+?)(?:['’]s?)?", regex.IGNORECASE, regex.compile)
"""A word without an elided one before it and without its possessive."""
_SKIPPED = words.late(r"[\s.,;:!?\"“”„«»…¿¡'’‘`]+")
_CONTINUES, _GOES_ON = words.late(r"(?<=[^\W_]-)|(?<=-)(?=\d)"), words.late(r"[+#]|-[^\W_]")
"""What makes a longer name of a word: what stands before it, and behind it."""
_LONGEST_SEARCHED = 100_000


_Word = tuple[int, int, tuple[str, ...]]
"""Where a word begins and ends, as it is compared, and without its possessive."""


def _words(text: str, exact: frozenset[str]) -> list[_Word]:
    """The words and signs of a text between Unicode's word edges, as they are compared."""
    line_words: list[_Word] = []
    for match in _PIECE.finditer(text):
        (start, end), part = match.span(), match[0]
        between = part in ("-", "/", "‐") and (text[start - 1 : start] + text[end : end + 1]).isalpha()
        if (between or _SKIPPED.fullmatch(part)) and ("punctuation" not in exact or part.isspace()):
            continue
        owned = _OWNED.fullmatch(part)
        forms = dict.fromkeys((fold(part, exact), fold(owned[1] if owned else part, exact)))
        line_words.append((start, end, tuple(forms)))
    if "articles" not in exact and len(line_words) > 1:
        line_words = [w for w in line_words if w[2][0] not in ("the", "a", "an")] or line_words
    return line_words


def place_of_answer(text: str, answers: Sequence[str], exact: frozenset[str], *, first: bool) -> str | None:
    """The longest answer that stands in a text as whole words and is not denied; None if there is none.

    `first` says that the text has to begin with it.
    """
    compose = str if "unicode" in exact else partial(unicodedata.normalize, "NFKC")
    text = compose(text[-_LONGEST_SEARCHED:])
    line = _words(text, exact)
    for answer in sorted(answers, key=len, reverse=True):
        reference = compose(without_markup(places.normalise(answer)))
        wanted = [forms[0] for _, _, forms in _words(reference, exact)]
        for i in range(1 if first else len(line)) if wanted else ():
            run = line[i : i + len(wanted)]
            if len(run) == len(wanted) and all(map(_is_word, run, wanted)):
                start, end = run[0][0], run[-1][1]
                longer = _CONTINUES.match(text, start) or _GOES_ON.match(text, end)
                if not longer and words.is_affirmed(text, start, end):
                    return answer
    return None


def _is_word(word: _Word, wanted: str) -> bool:
    """Whether a word is another one, but for a particle behind it."""
    whole = word[2][0]
    return wanted in word[2] or (whole.startswith(wanted) and _HANGUL.fullmatch(whole) is not None)
