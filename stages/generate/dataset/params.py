"""The params of a data set: which fields of the file hold what, and how answers are compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Literal

import regex
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from evalcube.stages.generate.base import TaskParams
from evalcube.stages.generate.errors import TaskError

Kind = Literal["choice", "number", "text", "json"]
Match = Literal["auto", "exact", "contains", "regex", "prefix", "number", "math", "judge"]
Strictness = Literal["case", "whitespace", "punctuation", "articles", "unicode"]

_LATER: dict[str, object] = {"match": "auto", "draws": "place", "fewshot": None}
_LATER |= dict.fromkeys(("pattern", "grader", "imported", "cluster", "messages"), "")
PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
"""The parts of a template: a doubled brace, a field in braces, or a stray brace."""

Condition = tuple[str, tuple[str | bool | int | float, ...]]


def _conditions(value: object) -> object:
    """A mapping of a field to a value or a list of values, as sorted pairs; anything else as it is."""
    if not isinstance(value, Mapping):
        return value
    pairs = {
        key: tuple(wanted) if isinstance(wanted, (list, tuple)) else (wanted,)
        for key, wanted in value.items()
    }
    return tuple(sorted(pairs.items(), key=lambda pair: str(pair[0])))


def _sorted_texts(value: object) -> object:
    if isinstance(value, str):
        return (value,)
    return tuple(sorted(set(value), key=str)) if isinstance(value, (list, tuple)) else value


Conditions = Annotated[
    tuple[Condition, ...],
    BeforeValidator(_conditions),
    PlainSerializer(lambda pairs: {field: list(values) for field, values in pairs}),
    WithJsonSchema({"type": "object"}),
]
Format = Literal["auto", "jsonl", "csv", "tsv", "parquet"]


def _checked_template(template: str) -> str:
    for match in PLACEHOLDER.finditer(template):
        if match[0] in ("{", "}") or (match[1] is not None and not match[1].strip()):
            raise ValueError("must have a field's name in each pair of braces; a brace itself is doubled")
    return template


class ExampleSource(BaseModel):
    """Where examples are from: by default the rows that the questions are from."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    file: str = ""
    split: str = ""
    where: Conditions = ()
    format: Format = "auto"
    sha256: str = Field("", pattern="^([0-9a-f]{64})?$")


class FewShot(BaseModel):
    """Examples before each question, see the param `fewshot`."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
    n: int = Field(5, ge=1, le=100, strict=True)
    source: ExampleSource = Field(default_factory=ExampleSource, alias="from")
    seed: int = 0
    by: str = ""
    form: Literal["text", "turns"] = Field("text", alias="as")
    reply: Annotated[str, AfterValidator(_checked_template)] = ""
    stop: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = Field((), max_length=4)

    def canonical(self) -> dict[str, object]:
        """As JSON, without stop sequences where there are none: cells of cubes that do not know them stay."""
        return self.model_dump(mode="json", by_alias=True, exclude=None if self.stop else {"stop"})

    def identity(self) -> dict[str, object]:
        """What decides which examples there are: of their file the digest, and not the path."""
        return {**self.canonical(), "from": self.source.model_dump(mode="json", exclude={"file"})}


class DatasetParams(TaskParams):
    """Params of `Dataset`. A field of the file is named by its column, or by a dotted path into nested JSON."""

    file: str = Field(
        "",
        description="Path of the file; relative to the config or the current directory. Not part of a cell's identity.",
    )
    format: Format = Field(
        "auto", description="Format of the file; auto goes by the name's ending, .gz included."
    )
    kind: Kind = Field(
        "text",
        description="How answers are read and compared; choice is the default where options are given.",
    )
    prompt: str = Field("prompt", min_length=1, description="Field with the question.")
    template: str = Field(
        "", description="Text with {fields} that makes the question; used instead of `prompt`."
    )
    messages: str = Field(
        "",
        description="Field with the turns of a conversation, a list of role and content, whose last is the question; "
        "used instead of `prompt`.",
    )
    answer: str = Field(
        "answer",
        description="Field with the reference answer, or a list of accepted ones; empty if rows are judged by "
        "assertions or a rubric alone.",
    )
    answer_after: str = Field(
        "", description="A mark in the answer field; the reference is what follows its last occurrence."
    )
    answer_is: Literal["auto", "text", "letter", "index", "number"] = Field(
        "auto", description="How the answer names an option; index counts from 0, number from 1."
    )
    options: str | tuple[str, ...] = Field(
        (), description="Field with the list of options, or the list of fields with one option each."
    )
    option_order: Literal["shuffled", "file"] = Field(
        "shuffled", description="Options in a new order for each trial, or as they are in the file."
    )
    instruction: str = Field(
        "auto", description="Last paragraph of the prompt; auto states the answer's format, empty adds none."
    )
    where: Conditions = Field((), description="Field -> value or list of values; other rows are left out.")
    fewshot: Annotated[
        FewShot | None,
        PlainSerializer(lambda shots: shots and shots.canonical()),
        WithJsonSchema({"type": "object"}),
    ] = Field(
        None,
        description="Examples before each question: {n: 5, from: {file, split, where}, seed, by: a field whose value "
        "they share with the question, as: text | turns, reply: a text with {fields}, stop: texts that end a reply}.",
    )
    order: Literal["shuffled", "file"] = Field(
        "shuffled", description="Order of the rows as trials: shuffled by the seed, or as in the file."
    )
    tolerance: float = Field(0.0, ge=0, le=1e9, description="Largest error of a right number.")
    relative_tolerance: float = Field(
        0.0, ge=0, le=1, description="The same, as a share of the reference; the larger of the two counts."
    )
    exact: Annotated[tuple[Strictness, ...], BeforeValidator(_sorted_texts)] = Field(
        (),
        description="Differences that make two texts unequal: case, whitespace, punctuation, articles, unicode.",
    )
    match: Match = Field(
        "auto",
        description="How a text answer is read: auto takes the answer line, exact the answer line or else the whole "
        "reply; contains and prefix look for an accepted answer; regex reads it with `pattern`; number is the same as "
        "kind: number; math compares what answers mean (extra `math`); judge leaves it to the sweep's judges.",
    )
    pattern: str = Field(
        "",
        max_length=1000,
        description="For match regex: the last match in the reply, or its first group, is the answer.",
    )
    grader: str = Field(
        "",
        description="A function (reply, context) that says whether a reply is right: an entry point of group "
        "evalcube.graders, or module:function.",
    )
    imported: str = Field(
        "",
        max_length=1000,
        description="Which tool, task and scorer graded the replies; only `evalcube import` writes it.",
    )
    id: str = Field("", description="Field with a name for the row, kept with its results.")
    cluster: str = Field(
        "",
        description="Field with what questions share, such as their passage, template or language: intervals "
        "count questions with the same value as one.",
    )
    assertions: str = Field("", description="Field with the row's own list of assertions.")
    rubric: str = Field("", description="Field with the row's own rubric for judges.")
    sha256: str = Field(
        "",
        pattern="^([0-9a-f]{64})?$",
        description="Digest of the file; computed when the sweep is planned, and checked if you give it.",
    )
    rows: int = Field(
        0, ge=0, le=10**12, description="Number of selected rows; counted when the sweep is planned."
    )
    draws: Literal["place", "row"] = Field(
        "place",
        description="What decides, with the seed, the order of rows and options: each row's content (row) or, in "
        "cells of earlier versions, the file and the row's place in it (place); set when the sweep is planned.",
    )

    @model_validator(mode="before")
    @classmethod
    def _options_make_a_choice(cls, values: object) -> object:
        if isinstance(values, Mapping) and "kind" not in values:
            if values.get("options"):
                return {**values, "kind": "choice"}
            if values.get("match") == "number":
                return {**values, "kind": "number"}
        return values

    @field_validator("file")
    @classmethod
    def _names_a_file(cls, file: str) -> str:
        if not file.strip() or "\0" in file:
            raise ValueError("must be the path of a JSONL, CSV or Parquet file")
        return file

    @field_validator("template")
    @classmethod
    def _braces_match(cls, template: str) -> str:
        return _checked_template(template)

    @field_validator("options")
    @classmethod
    def _options_are_named(cls, options: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if isinstance(options, str):
            return options or ()
        if len(options) == 1 or not all(options) or len(set(options)) < len(options):
            raise ValueError("must be one field with a list, or a list of two or more different fields")
        return options

    @field_validator("answer")
    @classmethod
    def _no_spaces_alone(cls, answer: str) -> str:
        return answer.strip()

    @field_validator("pattern")
    @classmethod
    def _is_a_pattern(cls, pattern: str) -> str:
        try:
            regex.compile(pattern)
        except regex.error as error:
            raise ValueError(f"is no regular expression: {error}") from error
        return pattern

    @model_validator(mode="after")
    def _parts_go_together(self) -> DatasetParams:
        if self.match not in ("auto", "number") and self.kind != "text":
            raise ValueError(f"match {self.match} is for kind text, and this is kind {self.kind}")
        if self.match == "number" and self.kind != "number":
            raise ValueError(f"match number is for kind number, and this is kind {self.kind}")
        if (self.match == "regex") != bool(self.pattern):
            raise ValueError("match regex needs a pattern, and a pattern needs match regex")
        if self.messages and self.template:
            raise ValueError("messages has the question, and so has template; remove one")
        if self.fewshot and not (self.answer or self.fewshot.reply):
            raise ValueError("fewshot needs answers: name their field with answer, or write fewshot.reply")
        if self.kind == "choice" and not self.options:
            raise ValueError("kind choice needs options: the field, or the list of fields, that hold them")
        if not self.answer and (self.kind == "choice" or not (self.assertions or self.rubric or self.grader)):
            raise ValueError(
                "answer may be empty only for rows with assertions, a rubric or a grader, and not for kind choice"
            )
        return self

    def canonical(self) -> dict[str, object]:
        """All params but the later ones that are not used: cells of cubes that do not know these stay.

        Of imported cells only what is not the default: how replies are read and compared is nothing to them.
        """
        if self.imported:
            return self.model_dump(mode="json", exclude_defaults=True)
        unused = {name for name, default in _LATER.items() if getattr(self, name) == default}
        return {name: value for name, value in super().canonical().items() if name not in unused}

    def identity(self) -> dict[str, object]:
        """All params but the file's path and number of rows: its digest stands for them."""
        identity = {name: value for name, value in self.canonical().items() if name not in ("file", "rows")}
        if self.fewshot:
            identity["fewshot"] = self.fewshot.identity()
        return identity | {"sha256": self.digest()}

    def of_examples(self) -> DatasetParams:
        """The params that select the rows which examples are from; resolved as these are."""
        if self.fewshot is None:
            return self
        source = self.fewshot.source
        own = {"file": source.file, "format": source.format, "sha256": source.sha256} if source.file else {}
        # of the questions' own file the questions' own rows, unless it is said which
        where = source.where or (() if own else self.where)
        return self.model_copy(update={"where": where, "fewshot": None, "rows": 0, **own})

    def drawn_by(self) -> dict[str, object]:
        """Nothing where each row draws for itself: a row that stays is asked the same in the next version of a file."""
        return {} if self.draws == "row" else self.identity()

    def redrawn(self) -> DatasetParams:
        """The params with each row drawing for itself, where anything is drawn."""
        drawn = self.order == "shuffled" or (self.kind == "choice" and self.option_order == "shuffled")
        return self.model_copy(update={"draws": "row" if drawn else "place"})

    def digest(self) -> str:
        """The file's SHA-256, 64 hex digits."""
        if not self.sha256:
            raise TaskError(
                f"the params of {self.file} have no digest yet; call Task.resolve before making a cell of them",
                field="sha256",
                value=self.sha256,
            )
        return self.sha256

    def template_fields(self) -> list[str]:
        """Fields that the question is made of."""
        named = (match[1].strip() for match in PLACEHOLDER.finditer(self.template) if match[1])
        return list(dict.fromkeys(named)) if self.template else [self.messages or self.prompt]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How strictly answers are compared."""

    exact: frozenset[str] = frozenset()
    tolerance: Fraction = Fraction(0)
    relative: Fraction = Fraction(0)

    @classmethod
    def of(cls, params: DatasetParams) -> Comparison:
        """What the params ask for; a tolerance is the decimal number that was written."""
        return _comparison(params.exact, params.tolerance, params.relative_tolerance)


@lru_cache(maxsize=64)
def _comparison(exact: tuple[str, ...], tolerance: float, relative: float) -> Comparison:
    # Asked twice for each reply, and the same for all of a task.
    return Comparison(frozenset(exact), Fraction(str(tolerance)), Fraction(str(relative)))
