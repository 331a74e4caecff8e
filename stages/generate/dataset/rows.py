"""Turn a row of a file into a question: prompt, options, reference answers, and what is carried along."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, lru_cache

from evalcube.stages.generate.dataset.params import PLACEHOLDER, DatasetParams
from evalcube.stages.generate.dataset.tables import Ambiguous, Row, python_list
from evalcube.stages.generate.dataset.turns import turns_of

MOST_OPTIONS = 100
MOST_TEXT = 1_000_000
"""Characters of a prompt."""
MOST_ACCEPTED = 1000
"""Accepted answers of one row."""

_PLAIN = re.compile(r"0|-?[1-9][0-9]{0,14}")
"""Numbers, which are most references and an answer of any kind."""
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class RowError(ValueError):
    """What is wrong with a row; `param` and `path` name the field concerned."""

    def __init__(self, message: str, param: str | None = None, path: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.path = path


@dataclass(frozen=True, slots=True)
class Item:
    """A row as a question, before its options are put in order."""

    question: str
    options: tuple[str, ...]
    """Texts of the options in the file's order; empty unless one of them is to be chosen."""
    right: int
    """Place of the right option."""
    accepted: tuple[str, ...]
    """Accepted answers as the file has them; empty for a choice, or without a reference."""
    extras: Mapping[str, object]
    """What is carried along."""
    by_place: int | None = None
    """The index that the answer field held, if it was read as one that counts from 0 for want of a better way."""
    turns: tuple[Mapping[str, str], ...] = ()
    """What was said before the question."""

    @property
    def whole_question(self) -> str:
        """The question with what was said before it."""
        return json.dumps([*map(dict, self.turns), self.question]) if self.turns else self.question


def draw_digest(key: bytes, question: str, options: Sequence[str]) -> bytes:
    """32 bytes that follow from a key and what a model sees of a row, and not from the row's place or answer."""
    return hashlib.sha256(key + json.dumps([question, list(options)]).encode()).digest()


def lookup(row: Row, path: str) -> object:
    """The value of a field: a column of that name, else a dotted path; None if there is none.

    Examples
    --------
    >>> lookup({"a": {"b": [1, 2]}}, "a.b.1")
    2
    """
    value: object = row
    for step in [path] if path in row else path.split("."):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and step.isascii() and len(step) < 9:
            value = value[int(step)] if int(step) < len(value) else None
        else:
            return None
        if isinstance(value, Ambiguous):
            raise RowError(
                f"'{step}' stands twice, so that it is not sure which is meant; rename one", path=path
            )
    return _value(value)


def _value(value: object) -> object:
    """The value; None for an empty text, as an empty CSV field is the same as a missing one."""
    return None if isinstance(value, str) and not value.strip() else value


def plain(value: object) -> str | None:
    """A scalar as text; None if it is none.

    Examples
    --------
    >>> plain(7), plain(True), plain([1])
    ('7', 'true', None)
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, Decimal)):
        return str(value) if math.isfinite(value) else None
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else None


class RowReader:
    """Reads rows as a data set's params say.

    Parameters
    ----------
    params
        What the fields mean.
    texts_only
        Whether lists can only be texts, with JSON in them.
    """

    def __init__(self, params: DatasetParams, *, texts_only: bool) -> None:
        self.params = params
        self._texts_only = texts_only
        # A row is read four times, to be checked, asked, graded and compared with others, and parsing its answer costs
        # more than the rest of it. So many short ones take some 10 MB, and are all of most files.
        self._fits = lru_cache(maxsize=1 << 16)(self._takes_whole)

    @cached_property
    def fields(self) -> list[tuple[str, str]]:
        """Each needed field, with the param that names it."""
        p = self.params
        name = "template" if p.template else "messages" if p.messages else "prompt"
        fields = [(name, path) for path in p.template_fields()]
        if p.imported:  # the rest may be missing: another tool's questions need not have it
            return fields
        fields += [("answer", p.answer)] if p.answer else []
        names = (p.options,) if isinstance(p.options, str) else p.options
        fields += [("options", path) for path in names]
        fields += [
            (name, path) for name in ("id", "cluster", "assertions", "rubric") if (path := getattr(p, name))
        ]
        fields += [("fewshot", p.fewshot.by)] if p.fewshot and p.fewshot.by else []
        return list({path: (param, path) for param, path in reversed(fields)}.values())[::-1]

    def missing(self, row: Row) -> list[tuple[str, str]]:
        """The needed fields that a row lacks, with the params that name them."""
        padded = self.params.options if isinstance(self.params.options, tuple) else ()
        return [field for field in self.fields if lookup(row, field[1]) is None and field[1] not in padded]

    def item(self, row: Row, number: int) -> Item:
        """The question in a row."""
        for param, path in self.missing(row):
            raise RowError(f"no value in field '{path}'; fill it in or remove the row", param, path)
        item = self._item(row, number)
        return replace(item, turns=self._turns(row)[:-1]) if self.params.messages else item

    def _item(self, row: Row, number: int) -> Item:
        p = self.params
        question = self._question(row)
        if p.imported:
            return self._imported_item(row, number, question)
        options = self._options(row)
        extras = self._extras(row, number)
        if not p.answer:
            return Item(question, (), 0, (), extras)
        answers = self.answers(row)
        if not options:
            return Item(question, (), 0, self._accept_whole(answers), extras)
        places = [self._place(answer, options) for answer in answers]
        if p.kind != "choice":  # an open question with the options left out
            return Item(question, (), 0, self._accept_whole([options[i] for i, _ in places]), extras)
        if len({i for i, _ in places}) > 1:
            raise self._wrong("names several options; keep one right answer")
        right, by_place = places[0]
        return Item(question, options, right, (), extras, right if by_place else None)

    def draw(self, row: Row, key: bytes) -> bytes:
        """What a row draws by, see `draw_digest`; errors as of `item`."""
        question = self._question(row)
        if self.params.messages:
            question = Item(question, (), 0, (), {}, turns=self._turns(row)[:-1]).whole_question
        return draw_digest(key, question, self._options(row) if self.params.kind == "choice" else ())

    def _imported_item(self, row: Row, number: int, question: str) -> Item:
        """A question whose replies another tool graded: nothing is read as an answer here, and nothing refused."""
        p = self.params
        reference = plain(lookup(row, p.answer))
        listed = lookup(row, "options")
        options = tuple(map(str, listed)) if isinstance(listed, list) else ()
        extras: dict[str, object] = {"row": number, "question": plain(lookup(row, "question")) or ""}
        for carried in ("id", "cluster"):
            path = getattr(p, carried)
            if path and (name := plain(lookup(row, path))) is not None:
                extras[carried] = name
        return Item(question, options, 0, () if reference is None else (reference,), extras)

    # ---- the question

    def _question(self, row: Row) -> str:
        p = self.params
        if p.template:
            question = self.fill(row, p.template, "template")
        elif p.messages:
            question = self._turns(row)[-1]["content"]
        else:
            question = self._text(row, "prompt", p.prompt)
        if len(question) > MOST_TEXT:
            raise RowError(
                f"the question has {len(question):,} characters; at most {MOST_TEXT:,} are allowed"
            )
        return question.strip("\n")

    def fill(self, row: Row, template: str, param: str) -> str:
        """A template with a row's values; `RowError` names the param that it is of."""
        return PLACEHOLDER.sub(
            lambda match: self._text(row, param, match[1].strip()) if match[1] else match[0][0], template
        )

    def _turns(self, row: Row) -> tuple[Mapping[str, str], ...]:
        path = self.params.messages
        try:
            return turns_of(self._list(lookup(row, path)))
        except ValueError as error:
            raise self._problem("messages", path, str(error)) from None

    def _text(self, row: Row, param: str, path: str) -> str:
        return self._check_text(plain(lookup(row, path)), param, path)

    def _check_text(self, text: str | None, param: str, path: str) -> str:
        if text is None:
            raise self._problem(param, path, "must hold a text or a number")
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise self._problem(
                    param, path, "holds half of a surrogate pair, which is no character; correct the text"
                ) from None
        return text

    @staticmethod
    def _problem(param: str, path: str, message: str) -> RowError:
        return RowError(f"field '{path}' {message}", param, path)

    def _wrong(self, message: str) -> RowError:
        return self._problem("answer", self.params.answer, message)

    # ---- options

    def _options(self, row: Row) -> tuple[str, ...]:
        names = self.params.options
        if not names:
            return ()
        if isinstance(names, tuple):
            texts = ["" if lookup(row, path) is None else self._text(row, "options", path) for path in names]
            return self._distinct(texts, ", ".join(names))
        values = self._list(lookup(row, names), quoted=True)
        if values is None:
            raise self._problem(
                "options", names, f"must hold a list{_way_to_options(names, lookup(row, names))}"
            )
        plains = ("" if value is None else plain(value) for value in values)
        return self._distinct([self._check_text(text, "options", names) for text in plains], names)

    def _distinct(self, options: Sequence[str], path: str) -> tuple[str, ...]:
        texts = tuple(option.strip() for option in options)
        while texts and not texts[-1]:  # padding of questions with fewer options
            texts = texts[:-1]
        if not 2 <= len(texts) <= MOST_OPTIONS:
            raise self._problem(
                "options", path, f"must hold from 2 to {MOST_OPTIONS} options, not {len(texts)}"
            )
        # By its place an option is known even if another one reads the same, as it does in known sets.
        alike = len(set(texts)) < len(texts) and self.params.answer_is not in ("letter", "index", "number")
        if not all(texts) or alike:
            raise self._problem(
                "options",
                path,
                "holds an option that stands there twice, or is empty before others; take it out, or say which is "
                "right with answer_is: letter, index or number",
            )
        return texts

    def _list(self, value: object, *, quoted: bool = False) -> list[object] | None:
        """A list as such or, if only texts can be or it is wanted, in a text."""
        if isinstance(value, str) and (quoted or self._texts_only) and value.lstrip().startswith("["):
            text = value
            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                value = python_list(text) if quoted else None
        return value if isinstance(value, list) else None

    def _place(self, answer: str, options: Sequence[str]) -> tuple[int, bool]:
        """Which option an answer names, and whether it was taken for an index though no param says so."""
        way = self.params.answer_is
        places = _places(answer, options)
        if way == "auto":
            named = {places[each] for each in ("text", "letter", "index")} - {None}
            if len(named) > 1:
                raise self._wrong(
                    f"holds {_short(answer)}, which is one option's text and another's letter or "
                    "index; say which is meant with answer_is: text, letter, index (from 0) or number (from 1)"
                )
            position = next(iter(named), None)
            guessed = places["text"] is None and places["letter"] is None
        else:
            position, guessed = places[way], False
        if position is None:
            raise self._wrong(
                f"holds {_short(answer)}, which is none of the {len(options)} options"
                f"{' by ' + way if way != 'auto' else ''}; it may be an option's text, its letter, its index "
                "(from 0), or its number (from 1; say answer_is: number)"
            )
        return position, guessed

    # ---- answers

    def answers(self, row: Row) -> list[str]:
        """The reference answers as texts, at least one."""
        p = self.params
        value = lookup(row, p.answer)
        if p.kind == "json" and not p.options:
            return [self._json(value)]
        values = self._list(value)
        if values is not None and not 1 <= len(values) <= MOST_ACCEPTED:
            raise self._wrong(f"must hold from 1 to {MOST_ACCEPTED} answers")
        texts = [
            self._check_text(plain(_value(each)), "answer", p.answer)
            for each in (values if values is not None else [value])
        ]
        if p.answer_after:
            texts = [text.rpartition(p.answer_after)[2] for text in texts]
        return [text.strip() for text in texts]

    def _json(self, value: object) -> str:
        """A text as it stands; another value as JSON."""
        if not isinstance(value, str):
            from evalcube.stages.generate.answers.documents import json_text

            document = json_text(value)
            if document is None:
                raise self._wrong("must hold JSON values only: no dates, bytes or infinite numbers")
            return document
        mark = self.params.answer_after
        return value.rpartition(mark)[2] if mark else value

    def _accept_whole(self, answers: Sequence[str]) -> tuple[str, ...]:
        """The answers letter by letter; one that its kind's grammar does not take whole is refused."""
        for answer in answers:
            if not (_PLAIN.fullmatch(answer) or self._fits(answer)):
                from evalcube.stages.generate.dataset.kinds import NEEDED

                raise self._wrong(f"holds {_short(answer)}; {NEEDED[self.params.kind]}")
        return tuple(dict.fromkeys(answers))

    def _takes_whole(self, answer: str) -> bool:
        from evalcube.stages.generate.dataset.kinds import can_be_answered  # with all readers of answers

        return can_be_answered(answer, self.params)

    def _extras(self, row: Row, number: int) -> dict[str, object]:
        p = self.params
        extras: dict[str, object] = {"row": number}
        for name in ("id", "cluster"):
            if path := getattr(p, name):
                extras[name] = self._text(row, name, path)
        if p.rubric:
            extras["rubric"] = self._text(row, "rubric", p.rubric)
        if p.assertions:
            from evalcube.stages.generate.answers.documents import json_text

            listed = self._list(lookup(row, p.assertions))
            if not listed or not all(isinstance(each, dict) for each in listed) or json_text(listed) is None:
                raise self._problem("assertions", p.assertions, "must hold a list of JSON objects")
            extras["assertions"] = listed
        return extras


def _way_to_options(path: str, value: object) -> str:
    """How options are named that are no list, as the end of a sentence."""
    if not isinstance(value, Mapping):
        return " (to name one field per option in a grid, write [[A, B, C]])"
    lists = [name for name, part in value.items() if isinstance(part, list)]
    way = f"{path}.{lists[0]}" if lists else f"[{', '.join(f'{path}.{name}' for name in value)}]"
    return f", and is a mapping; write options: {way}"


def _places(answer: str, options: Sequence[str]) -> dict[str, int | None]:
    """The option that an answer names in each way."""
    text = answer.strip()
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else -1
    letter = _LETTERS.find(text.upper()) if len(text) == 1 else -1
    count = len(options)
    return {
        "text": options.index(text) if text in options else None,
        "letter": letter if 0 <= letter < count else None,
        "index": number if 0 <= number < count else None,
        "number": number - 1 if 1 <= number <= count else None,
    }


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def labels(options: Sequence[str]) -> tuple[str, ...]:
    """What the options are called: letters; numbers if letters would be mistaken for options, or do not do.

    Examples
    --------
    >>> labels(["drum", "lamp"]), labels(["B", "A"])
    (('A', 'B'), ('1', '2'))
    """
    letters = _LETTERS[: len(options)]
    if len(options) > len(letters) or any(option.upper() in letters for option in options):
        return tuple(str(i + 1) for i in range(len(options)))
    return tuple(letters)
