"""Reads lines of no known tool, JSONL: an object for each answer, with names of ours or names that a mapping says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalcube.flows.errors import SweepError
from evalcube.flows.share.imports.bounded import finite, flattened, lines, parse, refused, text
from evalcube.flows.share.imports.samples import (
    MOST_REPEATS,
    Answer,
    Question,
    Run,
    Sample,
    Wanted,
    as_text,
    canonical,
    named,
)
from evalcube.stages.generate.dataset.rows import lookup
from evalcube.stages.reply.body import token_count

TOOL = "rows"
FIELDS = (
    *("prompt", "id", "reference", "response", "reasoning", "finish", "correct", "model", "task", "repeat"),
    *("tokens", "prompt_tokens", "latency", "error", "cluster"),
)
"""What a line may say."""
_FINISH = {"length": "length", "max_tokens": "length", "content_filter": "refused", "refusal": "refused"}


def parse_map(given: str | Mapping[str, str]) -> dict[str, str]:
    """Fields with other names than ours, written ``prompt=question,correct=score``, or as a mapping.

    Raises
    ------
    SweepError
        If it is not written so, or names something unknown.
    """
    if isinstance(given, str):
        parts = [part.partition("=") for part in given.split(",") if given]
        given = {name: field for name, _, field in parts}
    found = {name.strip(): field.strip() for name, field in given.items()}
    for name, field in found.items():
        if name not in FIELDS or not field:
            raise SweepError(
                f"`map`: '{name}' cannot be mapped", f"Write NAME=FIELD with these names: {', '.join(FIELDS)}"
            )
    return found


def read_rows(path: Path, wanted: Wanted) -> Iterator[Sample]:
    """The samples of a file.

    Raises
    ------
    SweepError
        If it cannot be read, or a line lacks what must be known of an answer.
    """
    fields = {name: wanted.fields.get(name, name) for name in FIELDS}
    absent = set(wanted.fields) - {"cluster"}
    for number, line in lines(path):
        where = f"{path}, line {number}"
        row = parse(line, where)
        if not isinstance(row, dict):
            raise refused(where, "it is no JSON object", "Give a file with one object on each line")
        said = {name: _value(lookup(row, field)) for name, field in fields.items()}
        if said["response"] is None and fields["response"] in row:
            said["response"] = ""  # an empty reply, and not a log without texts
        absent -= {name for name in absent if said[name] is not None}
        yield _sample(said, fields, wanted, path, where)
    for name in sorted(absent):
        wanted.note(f"{path.name}: no line has '{fields[name]}', which is to be the {name}")


def _value(value: object) -> object:
    """What a line says; NaN and the like say nothing."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _sample(
    said: Mapping[str, Any], fields: Mapping[str, str], wanted: Wanted, path: Path, where: str
) -> Sample:
    remedy = "Name the field with `map`, or what it is with `{}`"
    model = named(wanted.model or said["model"], "model", where, remedy.format("model"))
    task = wanted.task or said["task"] or path.name.partition(".")[0]
    run = Run(TOOL, named(task, "task", where, remedy.format("task")), fields["correct"], model)
    return Sample(run, _question(said, fields, where), _answer(said, fields, where), where)


def _question(said: Mapping[str, Any], fields: Mapping[str, str], where: str) -> Question:
    name, prompt = said["id"], said["prompt"]
    asked = flattened(prompt) if isinstance(prompt, (str, list)) else as_text(prompt)
    if name is None and not asked:
        raise refused(
            f"{where}, {fields['prompt']}",
            "nothing says which question it is about",
            "Fill it in, or name a field with `map`, such as prompt=question or id=number",
        )
    # Where questions have names, prompts may differ: chat templates do, between models.
    key = {"prompt": asked} if name is None else {"id": str(name)}
    reference = as_text(said["reference"])
    return Question(
        canonical({**key, "target": reference}),
        asked,
        reference,
        None if name is None else str(name),
        cluster=as_text(said["cluster"]),
    )


def _answer(said: Mapping[str, Any], fields: Mapping[str, str], where: str) -> Answer:
    repeat = _whole(said["repeat"])
    if repeat is not None and not (type(repeat) is int and 0 <= repeat <= MOST_REPEATS):
        raise refused(
            f"{where}, {fields['repeat']}",
            f"a repeat must be a whole number from 0 to {MOST_REPEATS}",
            "Correct it, or leave it out: lines about a question are numbered as they come then",
        )
    if said["error"] not in (None, "", False):
        return Answer(repeat, failure="error in the log")
    if said["correct"] is None:
        return Answer(repeat, failure="not scored")
    counts = [token_count(_whole(said[name])) for name in ("prompt_tokens", "tokens")]
    prompt, completion = (-1 if count is None else count for count in counts)
    latency = finite(said["latency"])
    return Answer(
        repeat,
        None if said["response"] is None else as_text(said["response"]),
        text(said["reasoning"]),
        _FINISH.get(text(said["finish"]).lower(), "stop"),
        said["correct"],
        prompt_tokens=prompt,
        completion_tokens=completion,
        latency=math.nan if latency is None or latency < 0 else latency,
    )


def _whole(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    return int(value) if isinstance(value, float) and value.is_integer() else value
