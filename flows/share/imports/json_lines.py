"""Reads logs of JSON lines: samples of lm-eval, and a user's own rows."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalcube.flows.errors import SweepError
from evalcube.flows.share.imports.bounded import (
    finite,
    flatten,
    items,
    lines,
    log_error,
    mapping,
    parse,
    text,
    whole,
)
from evalcube.flows.share.imports.samples import (
    MOST_REPEATS,
    Answer,
    LogHints,
    Question,
    Run,
    Sample,
    as_text,
    canonical,
    clean,
)
from evalcube.stages.generate.dataset.rows import lookup
from evalcube.stages.reply.body import token_count

TOOL = "lm-eval"
_UNREAD = "[invalid]"
"""What its filters put in the place of an answer that they do not find."""
SAMPLES = re.compile(r"samples_(?P<task>.+?)_(?P<date>\d{4}-\d\d-\d\dT[\d.\-]+)\.jsonl(\.gz)?")
_MOST_RESULTS = 64 * 2**20
_IDENTITY = """
    revision dtype peft delta load_in_4bit load_in_8bit gguf_file quantization max_length max_gen_toks
    add_bos_token enable_thinking think_end_token subfolder
""".split()
"""Arguments of models that make other answers; the rest may be addresses and keys."""
_REMEDY = "Put the results_*.json of the run beside it, or name it with `{}`"


def read_lm_eval(path: Path, wanted: LogHints) -> Iterator[Sample]:
    """The samples of a log.

    Of several filters, and of several metrics, the first counts, or the one asked for. The harness scores one answer to
    each question, so that there are no repeats.
    """
    match = SAMPLES.fullmatch(path.name)
    results = _results(path, match["date"] if match else None)
    reader = _Lines(path, match["task"] if match else "", results, wanted)
    for number, line in lines(path):
        where = f"{path}, line {number}"
        with wanted.sparing():
            yield from reader.samples(mapping(parse(line, where)), where)
    reader.conclude()


def _results(path: Path, date: str | None) -> dict[str, Any]:
    """The results file of the same run: the one of the same time, or the only one there."""
    beside = sorted(path.parent.glob("results_*.json"))
    same = [file for file in beside if date is not None and file.name == f"results_{date}.json"]
    chosen = same or (beside if len(beside) == 1 else [])
    return mapping(parse(whole(chosen[0], _MOST_RESULTS), str(chosen[0]))) if chosen else {}


class _Lines:
    """What is known of all lines of a log."""

    def __init__(self, path: Path, task: str, results: Mapping[str, Any], wanted: LogHints) -> None:
        self._path, self._wanted = path, wanted
        where = str(path)
        config = mapping(results.get("config"))
        label = clean(wanted.task or task, "task", where, _REMEDY.format("task"))
        version = mapping(results.get("versions")).get(task)
        versioned = version not in (None, "", "N/A", 0, 0.0)
        self._task = label if wanted.task or not versioned else f"{label}@{version}"
        model = wanted.model or results.get("model_name") or config.get("model")
        self._model = clean(model, "model", where, _REMEDY.format("model"))
        self._settings = canonical(_settings(results, config))
        shots = mapping(results.get("n-shot")).get(task)
        self._shots = shots if type(shots) is int else None
        self._better = mapping(mapping(results.get("higher_is_better")).get(task))
        self._metric, _, asked = (wanted.score or "").partition(",")
        self._asked = self._filter = asked
        self._seen: dict[str, None] = {}
        self._taken = 0

    def samples(self, line: Mapping[str, Any], where: str) -> list[Sample]:
        """The samples of a line; none if it is another filter's."""
        if "resps" not in line or "arguments" not in line:
            raise log_error(
                where,
                "it lacks `resps` and `arguments`",
                "Give the samples that lm_eval --log_samples writes",
            )
        name = text(line.get("filter")) or "none"
        self._seen[name] = None
        self._filter = self._filter or name
        if name != self._filter:
            return []
        self._taken += 1
        metric, score = self._score(line, where)
        asked = _Asked.of(line, where)
        setup = canonical({"num_fewshot": self._shots, "arguments": asked.settings})
        scorer = metric if self._filter == "none" else f"{metric},{self._filter}"
        shots = "" if self._shots is None else f"{self._shots}-shot"
        run = Run(TOOL, self._task, scorer, self._model, self._settings, setup, shots)
        target = line.get("target")
        reference = target if isinstance(target, str) else json.dumps(target, ensure_ascii=False)
        identity = None if line.get("doc_id") is None else str(line["doc_id"])
        document = text(line.get("doc_hash")) or canonical({"doc": line.get("doc")})
        content = canonical({"doc": document, "target": reference})
        cluster = self._wanted.cluster(mapping(line.get("doc")), line)
        question = Question(content, asked.prompt, reference, identity, asked.options, cluster)
        return [Sample(run, question, _answer(line, asked, score), where)]

    def _score(self, line: Mapping[str, Any], where: str) -> tuple[str, object]:
        metrics = [name for name in items(line.get("metrics")) if isinstance(name, str)]
        name = self._metric or next(iter(metrics), "")
        if name not in line:
            names = ", ".join(metrics) or "none"
            raise log_error(where, f"it has no score '{name}'", f"Take one of these with `score`: {names}")
        if self._better.get(name) is False:
            raise log_error(
                f"{where}, score '{name}'",
                "less of it is better",
                "Take a score of which more is better with `score`",
            )
        if not self._metric and len(metrics) > 1:
            alternatives = ", ".join(metric for metric in metrics if metric != name)
            self._wanted.note(f"task {self._task}: score '{name}' is taken; there is also {alternatives}")
        value = line[name]
        return name, None if isinstance(value, float) and finite(value) is None else value

    def conclude(self) -> None:
        """Say which filter was taken."""
        if self._asked and self._seen and not self._taken:
            raise log_error(
                str(self._path),
                f"no line has the filter '{self._asked}'",
                f"Take one of these with `score`, as METRIC,FILTER: {', '.join(self._seen)}",
            )
        filters = ", ".join(name for name in self._seen if name != self._filter)
        if filters and not self._asked:
            self._wanted.note(
                f"task {self._task}: answers as filter '{self._filter}' reads them; there is also {filters}"
            )


class _Asked:
    """What was asked in a line, and what came of it."""

    def __init__(self, prompt: str, reply: str | None, options: tuple[str, ...], settings: object) -> None:
        self.prompt, self.reply, self.options, self.settings = prompt, reply, options, settings
        """Whether the model wrote nothing: the likeliest of given answers is taken for its reply."""

    @classmethod
    def of(cls, line: Mapping[str, Any], where: str) -> _Asked:
        """What stands in a line: one request with its reply, or one for each option with its likelihood."""
        requests = [mapping(request) for request in mapping(line.get("arguments")).values()]
        replies = items(line.get("resps"))
        if not requests or not replies:
            raise log_error(where, "it has no request, or no reply", "Take the log from a copy")
        prompt = _prompt(requests[0].get("arg_0"))
        first, asked = next(iter(items(replies[0])), None), requests[0].get("arg_1")
        if isinstance(first, str) or isinstance(asked, dict):
            return cls(prompt, text(first), (), asked)  # a request that failed has null for its reply
        options = tuple(str(request.get("arg_1", "")) for request in requests)
        likelihoods = [_likelihood(reply) for reply in replies]
        logarithms = [number for number in likelihoods if number is not None]
        if len(options) != len(likelihoods) or len(logarithms) < len(likelihoods):
            return cls(prompt, None, (), None)
        best = max(range(len(logarithms)), key=logarithms.__getitem__)
        return cls(prompt, options[best], options if len(options) > 1 else (), None)


def _answer(line: Mapping[str, Any], asked: _Asked, score: object) -> Answer:
    """The answer that the harness scored."""
    filtered = next(iter(items(line.get("filtered_resps"))), None)
    read = filtered if isinstance(filtered, str) and filtered != _UNREAD and not asked.options else None
    failure = "" if score is not None else "not scored by lm-eval"
    unread = filtered == _UNREAD or asked.reply == ""
    return Answer(0, asked.reply, score=score, parsed=read, unread=unread, failure=failure)


def _likelihood(replies: object) -> float | None:
    """The logarithm of a reply's likelihood, which the harness writes as a text."""
    value = next(iter(items(next(iter(items(replies)), None))), None)
    try:
        return finite(float(value)) if isinstance(value, (str, int, float)) else None
    except ValueError:
        return None


def _prompt(context: object) -> str:
    """A prompt as one text; with a chat template it is a JSON text of messages, or a list that holds one."""
    if isinstance(context, list):
        context = next(iter(context), "")
    if isinstance(context, str) and context.startswith('[{"role"'):
        try:
            return flatten(parse(context, "prompt"))
        except SweepError:
            return context
    return context if isinstance(context, str) else ""


def _settings(results: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    arguments = config.get("model_args")
    if isinstance(arguments, str):
        pairs = (pair.partition("=") for pair in arguments.split(","))
        arguments = {key.strip(): value for key, _, value in pairs}
    model_args = mapping(arguments)
    return {
        **{name: model_args.get(name) for name in _IDENTITY},
        "gen_kwargs": config.get("gen_kwargs"),
        "chat_template_sha": results.get("chat_template_sha"),
        "system_instruction_sha": results.get("system_instruction_sha"),
        "fewshot_as_multiturn": results.get("fewshot_as_multiturn") or None,
    }


_OWN_LINES = "rows"
FIELDS = (
    *("prompt", "id", "reference", "response", "reasoning", "finish", "correct", "model", "task", "repeat"),
    *("tokens", "prompt_tokens", "latency", "error", "cluster"),
)
"""What a line may say."""
_FINISH = {"length": "length", "max_tokens": "length", "content_filter": "refused", "refusal": "refused"}


def parse_map(names: str | Mapping[str, str]) -> dict[str, str]:
    """Fields with other names than ours, written ``prompt=question,correct=score``, or as a mapping."""
    if isinstance(names, str):
        parts = [part.partition("=") for part in names.split(",") if names]
        names = {name: field for name, _, field in parts}
    fields = {name.strip(): field.strip() for name, field in names.items()}
    for name, field in fields.items():
        if name not in FIELDS or not field:
            raise SweepError(
                f"`map`: '{name}' cannot be mapped", f"Write NAME=FIELD with these names: {', '.join(FIELDS)}"
            )
    return fields


def read_rows(path: Path, wanted: LogHints) -> Iterator[Sample]:
    """The samples of a file."""
    fields = {name: wanted.fields.get(name, name) for name in FIELDS}
    absent = set(wanted.fields) - {"cluster"}
    for number, line in lines(path):
        where = f"{path}, line {number}"
        with wanted.sparing():
            row = parse(line, where)
            if not isinstance(row, dict):
                raise log_error(where, "it is no JSON object", "Give a file with one object on each line")
            values = {name: _value(lookup(row, field)) for name, field in fields.items()}
            if values["response"] is None and fields["response"] in row:
                values["response"] = ""  # an empty reply, and not a log without texts
            absent -= {name for name in absent if values[name] is not None}
            remedy = "Name the field with `map`, or what it is with `{}`"
            model = clean(wanted.model or values["model"], "model", where, remedy.format("model"))
            task = wanted.task or values["task"] or path.name.partition(".")[0]
            run = Run(_OWN_LINES, clean(task, "task", where, remedy.format("task")), fields["correct"], model)
            yield Sample(
                run, _question_in_row(values, fields, where), _answer_in_row(values, fields, where), where
            )
    for name in sorted(absent):
        wanted.note(f"{path.name}: no line has '{fields[name]}', which is to be the {name}")


def _value(value: object) -> object:
    """What a line says; NaN and the like say nothing."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _question_in_row(values: Mapping[str, Any], fields: Mapping[str, str], where: str) -> Question:
    name, prompt = values["id"], values["prompt"]
    asked = flatten(prompt) if isinstance(prompt, (str, list)) else as_text(prompt)
    if name is None and not asked:
        raise log_error(
            f"{where}, {fields['prompt']}",
            "nothing says which question it is about",
            "Fill it in, or name a field with `map`, such as prompt=question or id=number",
        )
    # Where questions have names, prompts may differ: chat templates do, between models.
    key = {"prompt": asked} if name is None else {"id": str(name)}
    reference, cluster = as_text(values["reference"]), as_text(values["cluster"])
    content, identity = canonical({**key, "target": reference}), None if name is None else str(name)
    return Question(content, asked, reference, identity, cluster=cluster)


def _answer_in_row(values: Mapping[str, Any], fields: Mapping[str, str], where: str) -> Answer:
    repeat = _whole(values["repeat"])
    if repeat is not None and not (type(repeat) is int and 0 <= repeat <= MOST_REPEATS):
        raise log_error(
            f"{where}, {fields['repeat']}",
            f"a repeat must be a whole number from 0 to {MOST_REPEATS}",
            "Correct it, or leave it out: lines about a question are numbered as they come then",
        )
    if values["error"] not in (None, "", False):
        return Answer(repeat, failure="error in the log")
    if values["correct"] is None:
        return Answer(repeat, failure="not scored")
    counts = [token_count(_whole(values[name])) for name in ("prompt_tokens", "tokens")]
    prompt, completion = (-1 if count is None else count for count in counts)
    latency = finite(values["latency"])
    return Answer(
        repeat,
        None if values["response"] is None else as_text(values["response"]),
        text(values["reasoning"]),
        _FINISH.get(text(values["finish"]).lower(), "stop"),
        values["correct"],
        prompt_tokens=prompt,
        completion_tokens=completion,
        latency=math.nan if latency is None or latency < 0 else latency,
    )


def _whole(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    return int(value) if isinstance(value, float) and value.is_integer() else value
