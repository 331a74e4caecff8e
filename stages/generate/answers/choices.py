"""Read which of some options a model's text ends up with, by their texts or their labels; a truth value among them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from evalcube.stages.generate.answers import wording as words
from evalcube.stages.generate.answers.final import Mention
from evalcube.stages.generate.answers.passages import normalise, plain_digits
from evalcube.stages.generate.answers.values import Form, PatternForm, read_value


class ChoiceReader(Form):
    """Reads which of some options a text ends up with.

    Parameters
    ----------
    options
        Words or phrases; letter case and white space do not matter. An option that is part of another one is
        found only where the longer one is not.

    Examples
    --------
    >>> ChoiceReader(["drum", "drum kit", "lamp"]).read_option("Not the lamp. Answer: the Drum  Kit!")
    'drum kit'
    """

    def __init__(self, options: Sequence[str]) -> None:
        self._canonical = {_fold(option): option for option in options}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Made when first used: tasks have readers of many words, and each takes milliseconds."""
        ordered = sorted(self._canonical, key=len, reverse=True)
        words = "|".join(r"\s{1,3}".join(map(re.escape, option.split())) for option in ordered)
        return re.compile(rf"(?<!\w)(?<!\w-)(?:{words})(?!\w|-\w)", re.IGNORECASE)

    def mentions(self, line: str) -> Sequence[Mention]:
        """Every option in a line, in order."""
        if not any(map(_fold(line).__contains__, self._canonical)):  # which spares most of them a pattern
            return []
        # a pattern that ignores case takes a few letters, as the long s, that lower() leaves alone
        return [
            Mention(match.start(), match.end(), self._canonical.get(_fold(match[0])))
            for match in self._pattern.finditer(line)
        ]

    def read_option(self, text: str) -> str | None:
        """The option that a reply gives as its answer; see `read_value`."""
        return read_value(text, self)


def _fold(option: str) -> str:
    return " ".join(option.lower().split())


_TRUE = frozenset({"true", "t", "on", "1", "yes"})
_TRUTH = words.cue(
    r"(?<![\w.])(?<!\w['’-])(?:true|false|on|off|yes|no(?!,? (?:wait\b|it['’]?s\b))|[tf10])(?![\w]|[.,][0-9]|['’-]\w)"
)


def _truth(match: re.Match[str]) -> Mention:
    word = match[0].lower()
    return Mention(*match.span(), "true" if word in _TRUE else "false", word not in ("true", "false"))


_JOINS = words.cue(r"[\s\"'`*]{0,4}(?:and|or|xor|nor)\b|\s*=")
_TRUTHS = PatternForm(_TRUTH, _truth, word_operators=_JOINS)


def truth_value(text: str) -> str | None:
    r"""The truth value a text ends up with, "true" or "false", from any of five pairs of words.

    Read are True/False, T/F, on/off, 1/0 and yes/no. In running prose only "true" and "false" count; the
    others are ordinary words there, read only where they are a whole clause or end a statement ("... is on").

    Examples
    --------
    >>> truth_value("So the value is off.\nAnswer: off")
    'false'
    >>> truth_value("on reflection, no idea") is None
    True
    """
    return read_value(text, _TRUTHS)


_LABEL = words.late(
    r"(?<![\w.+°-])(?<![0-9+]\s)(?<!N/)(?<!\w['’])(?:(?P<called>(?i:option|choice|letter|number|alternative)(?i:\s{1,3}is"
    r"|\s?:)?\s{1,3}[(\[\"'`*]{0,4})(?P<named>[A-Za-z]|[0-9]{1,3})(?![\w'’])|(?P<open>[(\[])(?P<inside>[A-Za-z]"
    r"|[0-9]{1,3})[)\]]|(?P<nth>first|second|third|fourth|fifth)\s(?:option|choice|alternative)\b|(?P<upper>[A-Z]|[0-9]{1,3})"
    r"(?!['’]?\w|[.,][0-9]|\s?[+#]|-(?:[A-Z]\b|[a-z]))|(?P<lower>[a-z])(?=[)\].:][*_`]{0,2}\s"
    r"|[\s*_`\"').\]]{0,6}(?:\n|\Z)))"
)
_ARTICLE = words.late(
    r"\s{1,3}(?!(?:and|or|to|because|since|as|is|was|not|instead|rather|by|but|fits|works|remains|must|can|it)\b)[a-z]"
)
"""What follows a label that is a word or a number of its sentence, as "A lamp" has."""
_ITS_TEXT = words.late(r"[\s)\].:,*_`\"'“\u2013\u2014=(-]{1,8}(?:(?:the|an?)\s)?\Z")
_ITEM = words.late(
    rf"(?m)^[\W_]{{0,8}}(?:[Oo]ption )?([A-Z])(?:\b[^\n]{{0,200}}([{words.TICKS}{words.CROSSES}])"
    r"|[*_]{0,2}[.):|\]][^\n]*\w)[^\n]*"
)
"""An option in a list, and its tick or cross."""
_LONGEST = 2000
"""Characters of options, altogether, up to which a mention in running text is searched for."""


def read_choice(text: str, labels: Sequence[str], options: Sequence[str]) -> str | None:
    r"""The label of the option that a reply chooses; None if it chooses none, or hedges between two.

    An answer may give the label, the option's text, or both, if they belong together.

    Examples
    --------
    >>> read_choice("It is heavy.\nAnswer: (B)", "AB", ["drum", "lamp"])
    'B'
    >>> read_choice("The answer is the Drum.", "AB", ["drum", "lamp"])
    'A'
    """
    return read_value(text, _OptionReader(labels, options))


class _OptionReader(Form):
    """Some options, by their labels and their texts."""

    name = "choice"
    labels = True
    longest = 2000

    def __init__(self, labels: Sequence[str], options: Sequence[str]) -> None:
        self._known = {label: label for label in labels} | {label.lower(): label for label in labels}
        self._known |= dict(zip("first second third fourth fifth".split(), labels, strict=False))
        self._exact = dict(zip(options, labels, strict=True))
        self._folded: dict[str, str | None] = {}
        for label, option in zip(labels, options, strict=True):
            key = _undress(option)
            self._folded[key] = None if key in self._folded else label  # two alike: neither by its text

    def mentions(self, line: str) -> Sequence[Mention]:
        """Every label and every option's text; a label goes before a text beside it and within one."""
        plain = len(line) <= self.longest and line not in self._known
        # letter case tells two apart only where it has to
        whole = (self._exact.get(line) or self._folded.get(_undress(line))) if plain else None
        if whole is not None:
            return [Mention(0, len(line), whole)]
        mentions = []
        for match in _LABEL.finditer(line):
            label = self._known.get(match[match.lastgroup or 0])
            if label is not None:
                weak = match["upper"] is not None and _ARTICLE.match(line, match.end()) is not None
                begin = match.start("named") if match["named"] else match.start()
                mentions.append(Mention(begin, match.end(), label, weak))
        labels = {mention.start for mention in mentions}
        texts = [] if self._texts is None else self._texts.mentions(line)
        mentions += [
            m._replace(value=self._folded[m.value], weak=_ARTICLE.match(line, m.end) is not None)
            for m in texts
            if m.value
        ]
        merged: list[Mention] = []
        for mention in sorted(mentions, key=lambda m: (m.start, -m.end)):
            last = merged[-1] if merged else Mention(-1, -1, None)
            if mention.start <= last.end:
                continue
            named = last.start in labels and mention.start not in labels
            if named and _ITS_TEXT.fullmatch(line, last.end, mention.start):
                # a sentence that begins with the option's text is a reason, whatever it denies
                reason = "." in line[last.end - 1 : mention.start] and words.DENIED.match(line, mention.end)
                value = last.value if mention.value == last.value else None
                merged[-1] = last if reason else last._replace(end=mention.end, value=value, weak=False)
            else:
                merged.append(mention)
        return merged

    def text_of(self, value: str) -> str:
        """An option's text."""
        return next((text for text, label in self._exact.items() if label == value), "")

    def later(self, text: str, value: str) -> Sequence[Mention]:  # noqa: ARG002 - it does not matter
        """Every label, and every option's text but for those that are denied: reasons speak of options so."""
        return [
            m for m in self.mentions(text) if _LABEL.match(text, m.start) or words.is_affirmed(text, *m[:2])
        ]

    def at_end(self, text: str) -> str | None:
        """As of other forms, but behind a list of all options, which states nothing; else its only one with a tick."""
        parts = _ITEM.split(text, maxsplit=len(self._exact))
        signs = dict(zip(parts[1::3], parts[2::3], strict=True))
        if len(signs) < 3 or signs.keys() != {*self._exact.values()}:
            return super().at_end(text)
        ticked = [label for label, sign in signs.items() if sign and sign in words.TICKS]
        sure = len(ticked) == 1 and not words.DOUBT.search(parts[-1])
        return super().at_end(parts[-1]) or (ticked[0] if sure else None)

    @cached_property
    def _texts(self) -> ChoiceReader | None:
        """The reader of the options' texts; None where they are alike, or long."""
        usable = [key for key, label in self._folded.items() if label is not None and key]
        long = len(usable) < len(self._folded) or sum(map(len, usable)) > _LONGEST
        return None if long else ChoiceReader(usable)


def _undress(option: str) -> str:
    """An option without the differences that do not matter."""
    return " ".join(plain_digits(normalise(option)).casefold().split()).strip(" .!*_`\"'“”‘’$")
