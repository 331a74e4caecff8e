"""Reads lines of no known tool, JSONL or Parquet, by a mapping that says which field has what."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from evalcube.flows.errors import SweepError
from evalcube.flows.imports.bounded import (
    finite,
    flattened,
    items,
    lines,
    mapping,
    parse,
    refused,
    text,
    unreadable,
)
from evalcube.flows.imports.samples import (
    MOST_REPEATS,
    Answer,
    Question,
    Run,
    Sample,
    Wanted,
    canonical,
    named,
)
from evalcube.stages.generate.dataset.rows import lookup
from evalcube.stages.reply.body import token_count

TOOL = "rows"
FIELDS = (
    *("prompt", "reference", "options", "id", "response", "reasoning", "finish", "correct", "answer"),
    *("model", "task", "repeat", "tokens", "prompt_tokens", "latency", "error"),
)
"""What a field may be mapped to."""
_NEEDED = ("prompt", "id", "model", "task", "repeat", "correct")
"""Without any of these it is not known what a line says: NaN there is a mistake, and no way to leave it out."""
_BATCH = 256
_FINISH = {"length": "length", "max_tokens": "length", "content_filter": "refused", "refusal": "refused"}


def parse_map(given: str) -> dict[str, str]:
    """A mapping written ``prompt=question,correct=score``, or the YAML file that has it.

    Raises
    ------
    SweepError
        If it is neither, names something unknown, or lacks what must be known of a trial.
    """
    pairs: dict[str, str]
    if "=" not in given:
        pairs = _from_yaml(Path(given))
    else:
        parts = [part.partition("=") for part in given.split(",") if part.strip()]
        pairs = {name.strip(): field.strip() for name, _, field in parts}
    unknown = [name for name in pairs if name not in FIELDS]
    if unknown or not all(pairs.values()):
        bad = unknown[0] if unknown else next(name for name, field in pairs.items() if not field)
        raise SweepError(
            f"`map`: '{bad}' cannot be mapped", f"Write NAME=FIELD with these names: {', '.join(FIELDS)}"
        )
    if "correct" not in pairs:
        raise SweepError("`map`: nothing says which field has the score", "Add correct=FIELD")
    if not {"prompt", "id"} & pairs.keys():
        raise SweepError("`map`: nothing says which question a line is about", "Add prompt=FIELD or id=FIELD")
    return pairs


def _from_yaml(path: Path) -> dict[str, str]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        document = YAML(typ="safe", pure=True).load(path.read_bytes()[:100_000])
    except (OSError, YAMLError, ValueError, RecursionError) as error:
        raise SweepError(
            f"`map`: '{path}' is neither a mapping nor a YAML file with one: {' '.join(str(error).split())[:200]}",
            "Write it like prompt=question,response=output,correct=score",
        ) from None
    found = mapping(document)
    if not found or not all(isinstance(part, str) for pair in found.items() for part in pair):
        raise SweepError(
            f"`map`: '{path}' must hold lines such as prompt: question", f"Names are: {', '.join(FIELDS)}"
        )
    return found


def read_rows(path: Path, wanted: Wanted) -> Iterator[Sample]:
    """The samples of a file.

    Raises
    ------
    SweepError
        If it cannot be read, or a line lacks what the mapping says.
    """
    reader = _Rows(wanted, path)
    rows = _parquet(path) if path.suffix in (".parquet", ".pq") else _jsonl(path)
    for where, row in rows:
        yield reader.sample(row, where)
    reader.note()


def _jsonl(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in lines(path):
        where = f"{path}, line {number}"
        row = parse(line, where)
        if not isinstance(row, dict):
            raise refused(where, "it is no JSON object", "Give a file with one object on each line")
        yield where, row


def _parquet(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        raise SweepError(
            "a Parquet file needs the extra `parquet`, which is not installed",
            "Run: pip install 'evalcube[parquet]'",
        ) from error
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_BATCH):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}, row {number}", row
    except SweepError:
        raise
    except Exception as error:  # noqa: BLE001 - pyarrow has errors of its own for each way to be damaged
        raise unreadable(path, error) from None


class _Rows:
    def __init__(self, wanted: Wanted, path: Path) -> None:
        self._wanted, self._fields, self._name = wanted, wanted.fields, path.name
        self._empty = set(wanted.fields) - {"error"}  # a log without failures need not have that one
        self._prompts: dict[tuple[str, str, str], int] = {}
        """By model, task and id of a question, the hash of the prompt that came with it first."""
        self._other: dict[str, str] = {}
        """Ids with which one model was asked several prompts -> a line that says another one."""

    def note(self) -> None:
        """Say what of the mapping looks as if it was not meant; when all rows were read."""
        for name in sorted(self._empty):
            self._wanted.note(f"{self._name}: no line has '{self._fields[name]}', which is to be the {name}")
        if self._other:
            name, where = next(iter(self._other.items()))
            self._wanted.note(
                f"{len(self._other)} ids stand for several prompts to the same model, such as '{name}' ({where}): "
                "they count as one question; if they are several, map no id"
            )

    def sample(self, row: Mapping[str, Any], where: str) -> Sample:
        """The sample of a row."""
        get = self._value(row)
        self._empty -= {name for name in self._empty if get(name) is not None}
        failure = "error in the log" if get("error") not in (None, "", False) else ""
        self._refuse_no_numbers(get, where, failure)
        remedy = "Say which field has it with `map`, or name it with `{}`"
        model = named(self._wanted.model or get("model"), "model", where, remedy.format("model"))
        task = self._wanted.task or get("task") or self._name.partition(".")[0]
        task = named(task, "task", where, remedy.format("task"))
        score = get("correct")
        if score is None and not failure:
            failure = "not scored"
        run, question = Run(TOOL, task, self._fields["correct"], model), self._question(row, where)
        if question.id is not None and question.prompt:
            prompt = hash(question.prompt)
            if self._prompts.setdefault((model, task, question.id), prompt) != prompt:
                self._other.setdefault(question.id, where)
        return Sample(run, question, self._answer(row, score, failure, where), where)

    def _value(self, row: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a function of a name
        return lambda name: lookup(row, self._fields[name]) if name in self._fields else None

    def _refuse_no_numbers(self, get: Callable[[str], Any], where: str, failure: str) -> None:
        named = {"model": self._wanted.model, "task": self._wanted.task}
        for name in (name for name in _NEEDED if not named.get(name)):
            value = get(name)
            if isinstance(value, float) and not math.isfinite(value) and not (failure and name == "correct"):
                raise refused(
                    f"{where}, {self._fields[name]}",
                    f"{json.dumps(value)} is no value",
                    "Correct the line or leave it out; an answer that nobody scored has null there"
                    if name == "correct"
                    else "Correct the line, leave it out, or map another field",
                )

    def _question(self, row: Mapping[str, Any], where: str) -> Question:
        get = self._value(row)
        identity, prompt = get("id"), get("prompt")
        said = flattened(prompt) if isinstance(prompt, (str, list)) else "" if prompt is None else str(prompt)
        if identity is None and not said:
            field = self._fields.get("prompt") or self._fields.get("id")
            raise refused(f"{where}, {field}", "there is no value", "Fill it in, or map another field")
        options, reference = tuple(map(str, items(get("options")))), _plain(get("reference"))
        name = None if identity is None else str(identity)
        # Where questions have names, prompts may differ: chat templates do, between models.
        key = {"id": name} if name is not None else {"prompt": said}
        return Question(canonical({**key, "target": reference}), said, reference, name, options)

    def _answer(self, row: Mapping[str, Any], score: object, failure: str, where: str) -> Answer:
        get = self._value(row)
        repeat = self._repeat(get("repeat"), where)
        if failure:
            return Answer(repeat, failure=failure)
        counts = [token_count(_whole(get(name))) for name in ("prompt_tokens", "tokens")]
        prompt, completion = (-1 if count is None else count for count in counts)
        response, latency, answer = get("response"), finite(get("latency")), get("answer")
        if isinstance(response, list):
            response = next(iter(response), "")
        return Answer(
            repeat,
            _plain(response) if "response" in self._fields else None,
            text(get("reasoning")),
            _FINISH.get(text(get("finish")).lower(), "stop"),
            score,
            None if answer is None else _plain(answer),
            prompt,
            completion,
            float("nan") if latency is None or latency < 0 else latency,
        )

    def _repeat(self, value: object, where: str) -> int | None:
        if "repeat" not in self._fields:
            return None
        number = _whole(value)
        if type(number) is not int or not 0 <= number <= MOST_REPEATS:
            raise refused(
                f"{where}, {self._fields['repeat']}",
                f"a repeat must be a whole number from 0 to {MOST_REPEATS}",
                "Correct it, or map another field; without one, lines about a question are numbered as they come",
            )
        return number


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _plain(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
