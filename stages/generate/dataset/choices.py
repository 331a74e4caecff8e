"""Read which option a reply chooses, by its label or by its text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from evalcube.stages.generate.answers.choices import ChoiceReader
from evalcube.stages.generate.answers.final import REFUSED, Mention, read_final
from evalcube.stages.generate.answers.passages import Passage, fenced_block, normalised
from evalcube.stages.generate.answers.wording import LEAD, affirmed, declines
from evalcube.stages.generate.dataset.kinds import INTRODUCED, line_of, lines_after_marks

_LABEL = re.compile(
    r"(?i:(?:the |an? )?(?:option|choice|letter|number|no\.|alternative)\s{1,3}|#)?[(\[\"'`*]{0,4}([A-Za-z]"
    r"|[0-9]{1,3})"
    r"(?P<end>[)\]\"'`*.:”>]{0,6})(?:$|(?<=[)\].:])(?=\s)|\s?[-–—:=,;]|(?=\s\()|(?=\s(?:instead"
    r"|[^\x00-\x7f\w])))",
)
_SECOND = re.compile(
    r"[\s)\]\"'`*,(]{0,6}(?:\bor\b(?: maybe| perhaps)?|\band\b|/|,|&|\bnor\b)[\s(\[\"'`*]{0,6}([A-Za-z]"
    r"|[0-9]{1,3})\b(?![\w'’])"
)
_NAMED = re.compile(
    r"\b(?:option|choice|alternative)(?:\s{1,3}is|\s?:)?\s{1,3}[(\[\"'`*]{0,4}([A-Za-z]|[0-9]{1,3})(?![\w'’])",
    re.IGNORECASE,
)
_LETTER = re.compile(r"(?<![\w'’.-])(\()?([A-Z]|[0-9]{1,3})(?(1)\)|(?![\w'’]|[.,][0-9]))")
_IN_BRACKETS = re.compile(r"\(([A-Za-z]|[0-9]{1,3})\)")
_BOLD = re.compile(r"\*\*([^*\n]{1,300})\*\*")
_TAIL = 4000
"""Characters at the end of a reply that are read where no answer is marked."""
_LONGEST = 2000
"""Characters of options, altogether, up to which a mention in running text is searched for."""


def read_choice(text: str, labels: Sequence[str], options: Sequence[str]) -> str | None:
    r"""The label of the option that a reply chooses; None if it chooses none, or hedges between two.

    An answer may give the label, the label and the option, or the option's text. A label counts more than a
    text that belongs to another one.

    Parameters
    ----------
    labels, options
        What each option is called in the prompt, and its text.

    Examples
    --------
    >>> read_choice("It is heavy.\nAnswer: (B)", "AB", ["drum", "lamp"])
    'B'
    >>> read_choice("The answer is the Drum.", "AB", ["drum", "lamp"])
    'A'
    """
    text = normalised(text)
    reader = _OptionReader(labels, options)
    return read_final(text, reader.place, reader.end, reader.mentions)


class _OptionReader:
    """Finds one of some options in a line."""

    def __init__(self, labels: Sequence[str], options: Sequence[str]) -> None:
        self._labels = labels
        self._options = options
        self._known = {label: label for label in labels} | {label.lower(): label for label in labels}
        self._folded: dict[str, str | None] = {}
        for label, option in zip(labels, options, strict=True):
            key = _folded(option)
            self._folded[key] = None if key in self._folded else label  # two alike: neither by its text

    def place(self, passage: Passage) -> str | None:
        """The option that one place gives; `REFUSED` if it hedges between two, denies one or declines."""
        line = line_of(passage)
        found, certain = self.line(line)
        if found is None:
            return REFUSED if certain or declines(line) else None
        at = line.find(found)
        return found if affirmed(line, max(at, 0), max(at, 0) + len(found)) else REFUSED

    def mentions(self, text: str) -> list[Mention]:
        """Every label and every option's text in a text."""
        found = [
            Mention(match.start(), match.end(), self._known[match[2]], weak=match[0] in ("A", "I"))
            for match in _LETTER.finditer(text)
            if match[2] in self._known
        ]
        if (texts := self._texts) is not None:
            found += [
                mention._replace(value=self._folded[mention.value])
                for mention in texts.mentions(text)
                if mention.value
            ]
        return sorted(found)

    def end(self, text: str) -> str | None:
        """The option that a text without a mark that gives one ends up with."""
        tail = text[-_TAIL:]
        for bold in reversed(_BOLD.findall(tail)):
            if (found := self.whole(bold)) is not None:
                return found
        *_, last = tail.rstrip().split("\n")
        last = last.strip("|").rpartition("|")[2] if "|" in last else last
        marked = any(lines_after_marks(text))
        lead = LEAD.match(last)
        return (
            self.whole(last)
            or self.whole((fenced_block(text) or "").strip())
            or self.whole(INTRODUCED.sub("", last, count=1))
            or (self.whole(last[lead.end() :]) if lead else None)
            or (None if marked else self.named(tail))
            or self.mention(tail)
        )

    def line(self, line: str) -> tuple[str | None, bool]:
        """The option a marked answer gives, and whether the line is an answer even if it gives none."""
        line = line.lstrip("“<")
        match = _LABEL.match(line)
        label = self._known.get(match[1]) if match else None
        if match and label:
            second = _SECOND.match(line, match.end(1))
            other = self._known.get(second[1]) if second else None
            if other is not None and other != label:
                return None, True
            return label, True
        second = _SECOND.search(line[:20])
        if second and self._known.get(second[1]) and self._known.get(line[:1]):
            return None, True
        found = self.whole(line) or self._begins(line)
        return (found, True) if found else (self.mention(line), False)

    def whole(self, line: str) -> str | None:
        """The option that a line is: its label, its text, or both."""
        line = line.strip()
        if line in self._options:
            return self._labels[self._options.index(line)]
        match = _LABEL.match(line)
        label = self._known.get(match[1]) if match else None
        if match and label:
            rest = _folded(line[match.end() :])
            if not rest or rest == _folded(self._options[self._labels.index(label)]):
                return label
        return self._folded.get(_folded(line)) if _folded(line) else None

    def _begins(self, line: str) -> str | None:
        """The option whose label and text begin a line with nothing between them, as in "C lamp"."""
        label = self._known.get(line[:1])
        if label is None or not line[1:2].isspace():
            return None
        rest, own = _folded(line[1:]), _folded(self._options[self._labels.index(label)])
        return label if own and rest.startswith(own) else None

    def named(self, text: str) -> str | None:
        """The option that running text names last by its label, as "option C" or "(C)"."""
        found = [*_NAMED.finditer(text), *_IN_BRACKETS.finditer(text)]
        for match in sorted(found, key=lambda match: match.start(1), reverse=True):
            label = self._known.get(match[1])
            if label and affirmed(text, match.start(), match.end()):
                return label
        return None

    def mention(self, text: str) -> str | None:
        """The option whose text running text ends up with."""
        found = None if self._texts is None else self._texts.read(text.casefold())
        return None if found is None else self._folded[found]

    @cached_property
    def _texts(self) -> ChoiceReader | None:
        """The reader of the options' texts; None where they are alike, or long."""
        usable = [key for key, label in self._folded.items() if label is not None and key]
        long = len(usable) < len(self._options) or sum(map(len, usable)) > _LONGEST
        return None if long else ChoiceReader(usable)


def _folded(option: str) -> str:
    """An option without the differences that do not matter."""
    return " ".join(normalised(option).casefold().split()).strip(" .!*_`\"'“”‘’$")
