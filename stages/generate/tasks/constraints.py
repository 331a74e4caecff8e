"""Task `constraints`: write a text that keeps several rules, each of which is checked by counting."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal

from pydantic import Field

from evalcube.stages.generate.answers.texts import without_fence
from evalcube.stages.generate.base import Task, TaskParams, Trial, param
from evalcube.stages.generate.material import wordings
from evalcube.stages.generate.material.words import ITEMS, WORDS
from evalcube.stages.generate.stream import Stream

Kind = Literal["words", "letters", "layout", "mixed"]

MOST_TEXT = 20_000
"""Characters of a reply's text that are looked at; more is no short text, whatever its rules."""

_FEWEST, _LENGTHS = 20, 40
"""Words of a text: the fewest, and how many lengths are equally frequent."""
_ANSWER = re.compile(r"^[ \t>*_#]*answer[*_]*[ \t]*:[*_]*", re.IGNORECASE | re.MULTILINE)
_AROUND = re.compile(r"^[\W_]+|[\W_]+$")

_SAY = wordings("constraints")
_ASKED_FORM = re.compile(r"<\w+>")

_KINDS: Mapping[Kind, tuple[str, ...]] = {
    "words": ("first", "last", "avoid", "twice"),
    "letters": ("without", "lower", "marks", "commas"),
    "layout": ("lines", "bullets", "quoted", "title"),
    "mixed": ("first", "last", "avoid", "twice", "without", "lower", "marks", "commas", "lines", "bullets"),
}
"""Rules of a kind; any of them can be kept together. Each text has a number of words and a word to use besides."""


class ConstraintsParams(TaskParams):
    """Params of `Constraints`."""

    rules: int = param(3, 2, 6, "Rules to keep at once; more to watch while writing.")
    kind: Kind = Field(
        "mixed", description="What the rules are about, beside the number of words and a word to use."
    )


class Constraints(Task[ConstraintsParams]):
    """Write a text by rules: how many words, with which, and more of some kind.

    The rules of a trial come from a text that keeps them all, which is the reference; any other text that does is
    right, too.
    """

    name = "constraints"
    version = 1
    summary = "a text that keeps several rules, each checked by counting"
    guess_rule = "with two rules 1/40, the chance of the right number of words; else 0"
    Params = ConstraintsParams

    def generate(self, params: ConstraintsParams, stream: Stream) -> Trial:
        """Draw the rules, then their values and a text that keeps them."""
        names = ["count", "topic", *stream.sample(_KINDS[params.kind], params.rules - 2)]
        values, text = _write(stream, names)
        rules = [(name, values[name]) for name in names]
        stream.shuffle(rules)
        listed = "\n".join(
            f"{i}. {_SAY.rules[name].format(value)}" for i, (name, value) in enumerate(rules, 1)
        )
        prompt = (
            f"{stream.choice(_SAY.openings)}\n\n{listed}\n\n{stream.choice(_SAY.closings)}\nAnswer: <text>"
        )
        guess = 1 / _LENGTHS if params.rules == 2 else 0.0
        return Trial(prompt, text, guess, extras={"rules": [list(rule) for rule in rules]})

    def parse(self, text: str) -> str | None:
        """Take all behind the last "Answer:" that begins a line, without a fence around it."""
        *_, begins = 0, *(mark.end() for mark in _ANSWER.finditer(text))
        answer = without_fence(text[begins:].strip()) if begins else ""
        return answer if 0 < len(answer) <= MOST_TEXT and not _ASKED_FORM.fullmatch(answer) else None

    def grade_reply(self, answer: str, params: ConstraintsParams, trial: Trial) -> bool:  # noqa: ARG002
        """Whether the text keeps every rule."""
        return not broken_rules(answer, trial)

    def fault(self, answer: str | None, params: ConstraintsParams, trial: Trial) -> str:  # noqa: ARG002
        """Name the rules that it breaks."""
        return "" if answer is None else ", ".join(broken_rules(answer, trial))

    def difficulty(self, params: ConstraintsParams) -> float:
        """A step for each word and rule."""
        return (_FEWEST + _LENGTHS / 2) * params.rules


def broken_rules(text: str, trial: Trial) -> list[str]:
    """Names of the rules of a trial of this task that a text breaks."""
    rules = trial.extras["rules"]
    return [name for name, value in rules if not _KEPT[name](text, value)]  # type: ignore[attr-defined]


def words_of(text: str) -> list[str]:
    """Words as they are counted: what stands between spaces, in lower case and without the signs around it."""
    return [word for item in text.lower().split() if (word := _AROUND.sub("", item))]


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if words_of(line)]


_KEPT: Mapping[str, Callable[[str, object], bool]] = {
    "count": lambda text, value: len(words_of(text)) == value,
    "topic": lambda text, value: value in words_of(text),
    "first": lambda text, value: words_of(text)[:1] == [value],
    "last": lambda text, value: words_of(text)[-1:] == [value],
    "avoid": lambda text, value: value not in words_of(text),
    "twice": lambda text, value: words_of(text).count(str(value)) == 2,
    "without": lambda text, value: str(value) not in text.lower(),
    "lower": lambda text, _: text == text.lower(),
    "marks": lambda text, value: text.count("!") == value,
    "commas": lambda text, value: text.count(",") == value,
    "lines": lambda text, value: len(_lines(text)) == value,
    "bullets": lambda text, value: sum(line.lstrip().startswith("- ") for line in _lines(text)) == value,
    "quoted": lambda text, _: len(text) > 1 and text[0] in '"“„' and text[-1] in '"”“',
    "title": lambda text, _: bool(_lines(text)) and _lines(text)[0] == _lines(text)[0].upper(),
}


def _write(stream: Stream, names: list[str]) -> tuple[dict[str, object], str]:
    """A value for each rule, and a text that keeps all of them."""
    topic, twice = stream.sample(ITEMS, 2)
    first, last, avoid = stream.sample([word for word in WORDS if word not in (topic, twice)], 3)
    fixed = {topic, twice} | {word for name, word in (("first", first), ("last", last)) if name in names}
    letters = [letter for letter in "etaoinsrlcdumpgh" if not any(letter in word for word in fixed)]
    without = stream.choice(letters or "jqxz")
    lines = stream.between(3, 6)
    values: dict[str, object] = {
        "count": _FEWEST + stream.below(_LENGTHS),
        "topic": topic,
        "first": first,
        "last": last,
        "avoid": avoid,
        "twice": twice,
        "without": without,
        "lower": "",
        "marks": stream.between(1, 5),
        "commas": stream.between(2, 6),
        "lines": lines,
        "bullets": stream.between(1, lines - 1),
        "quoted": "",
        "title": "",
    }
    return values, _compose(stream, values, set(names))


def _compose(stream: Stream, values: Mapping[str, object], names: set[str]) -> str:
    count, lines, bullets = (int(str(values[name])) for name in ("count", "lines", "bullets"))
    special = {str(values[name]) for name in ("topic", "first", "last", "avoid", "twice")}
    letter = str(values["without"]) if "without" in names else " "
    plain = [word for word in WORDS if word not in special and letter not in word]
    words = [stream.choice(plain) for _ in range(count)]
    places = stream.sample(range(1, count - 1), 3)
    for position, name in zip((*places, 0, -1), ("topic", "twice", "twice", "first", "last"), strict=True):
        if name in names:
            words[position] = str(values[name])
    marked = stream.sample(range(count), 11)
    commas, marks = (int(str(values[name])) if name in names else 0 for name in ("commas", "marks"))
    for i, position in enumerate(marked[: commas + marks]):
        words[position] += "," if i < commas else "!"
    ends = [count * (i + 1) // lines for i in range(lines)]
    rows = [" ".join(words[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
    if "title" in names:
        rows[0] = rows[0].upper()
    if "bullets" in names:
        rows = [f"- {row}" if i >= lines - bullets else row for i, row in enumerate(rows)]
    text = "\n".join(rows)
    return f'"{text}"' if "quoted" in names else text
