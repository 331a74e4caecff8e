"""Reads logs of Inspect, `.eval` and `.json`.

Not by Inspect's own package: it loads all samples with their events into objects of its own (a millisecond or more
each), trusts sizes in the ZIP, and ties us to its releases. What is needed here are a dozen fields of the documented
format, which a test compares with what the package reads.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalcube.flows.share.imports.bounded import (
    Archive,
    content_text,
    finite,
    flatten,
    items,
    log_error,
    mapping,
    open_log,
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
    canonical,
    clean,
)
from evalcube.stages.reply.body import token_count

TOOL = "inspect_ai"
VERSION = 2
"""The newest version of the format that is read."""
_HEADERS = ("header.json", "_journal/start.json")
_SAMPLE = re.compile(r"samples/[^/]+\.json")
_CHUNKED = re.compile(r"samples/[^/]+/sample\.json")
_FINISH = {"max_tokens": "length", "model_length": "length", "content_filter": "refused"}
_NO_SETTINGS = "extra_headers extra_body max_connections max_retries timeout attempt_timeout cache".split()
"""Fields of a generation that make no other answers, or may hold a key."""
_LATER = "Write the log as Inspect writes short ones: inspect log convert --to json --output-dir DIR FILE"


def read_inspect(path: Path, wanted: LogHints) -> Iterator[Sample]:
    """The samples of a log."""
    with open_log(path) as file:
        packed = file.read(2) == b"PK"
    if not packed:
        document = mapping(parse(whole(path), str(path)))
        header = _Header(document, path, wanted)
        for number, sample in enumerate(items(document.get("samples")), 1):
            with wanted.sparing():
                yield header.sample(mapping(sample), f"{path}, sample {number}")
        return
    with Archive(path) as archive:
        names = archive.names
        first = next((name for name in _HEADERS if name in names), None)
        if first is None:
            raise log_error(
                str(path), "it has neither header.json nor _journal/start.json", "Give a log of Inspect"
            )
        header = _Header(mapping(parse(archive.read_member(first), f"{path}, {first}")), path, wanted)
        if first != _HEADERS[0]:
            wanted.note(f"{path.name}: the run was not finished; what it had written is imported")
        for name in names:
            if _SAMPLE.fullmatch(name):
                where = f"{path}, {name}"
                with wanted.sparing():
                    yield header.sample(mapping(parse(archive.read_member(name), where)), where)
            elif _CHUNKED.fullmatch(name):
                raise log_error(f"{path}, {name}", "samples in parts are not read by this version", _LATER)


class _Header:
    """What a log says of all its samples."""

    def __init__(self, document: Mapping[str, Any], path: Path, wanted: LogHints) -> None:
        version, spec = document.get("version"), mapping(document.get("eval"))
        if not spec:
            raise log_error(str(path), "it has no `eval`, as logs of Inspect have", "Give a log of Inspect")
        if isinstance(version, int) and version > VERSION:
            raise log_error(
                str(path),
                f"it has version {version} of the format, and {VERSION} is the newest known",
                "Update evalcube",
            )
        where = str(path)
        self._wanted, self._name = wanted, path.name
        self._model = clean(wanted.model or spec.get("model"), "model", where, "Name it with `model`")
        task = clean(wanted.task or spec.get("task"), "task", where, "Name it with `task`").rpartition("/")[2]
        version_of_task = spec.get("task_version")
        self._task = f"{task}@{version_of_task}" if version_of_task not in (None, 0, "") else task
        self._said = text(spec.get("model"))
        self._settings = canonical(_settings(spec, mapping(document.get("plan"))))
        self._setup, self._setup_name = _setup(spec, mapping(document.get("plan")))
        self._scorers = _scorers(spec, mapping(document.get("results")))
        status = document.get("status")
        if status in ("cancelled", "error"):
            wanted.note(
                f"{path.name}: the run ended with status '{status}'; what it had measured is imported"
            )

    def sample(self, sample: Mapping[str, Any], where: str) -> Sample:
        """One sample of the log."""
        epoch = sample.get("epoch", 1)
        if type(epoch) is not int or not 1 <= epoch <= MOST_REPEATS:
            raise log_error(f"{where}, epoch", "it must be a whole number from 1", "Take the log from a copy")
        name, value = self._score(mapping(sample.get("scores")), where)
        run = Run(TOOL, self._task, name, self._model, self._settings, self._setup, self._setup_name)
        question = _question(sample, self._wanted.cluster(mapping(sample.get("metadata")), sample))
        return Sample(run, question, self._answer(sample, value, epoch - 1), where)

    def _score(self, scores: Mapping[str, Any], where: str) -> tuple[str, Mapping[str, Any]]:
        """The score that counts: the one asked for, or the log's first; of one with several parts, a part."""
        parts, asked = dict(_parts(scores)), self._wanted.score
        order = list(dict.fromkeys([*(name for name in self._scorers if name in parts or not parts), *parts]))
        names = [name for name in order if not asked or name == asked or name.endswith(f".{asked}")]
        if parts and not names:
            raise log_error(where, f"it has no score '{asked}'", f"Take one of: {', '.join(order)}")
        name = asked if asked in names else next(iter(names), asked or "score")
        if not asked and len(parts) > 1:
            alternatives = ", ".join(label for label in order if label != name)
            self._wanted.note(f"task {self._task}: score '{name}' is taken; there is also {alternatives}")
        return str(name), parts.get(str(name), {})

    def _answer(self, sample: Mapping[str, Any], score: Mapping[str, Any], repeat: int) -> Answer:
        failure = _failure(sample)
        if not failure and score.get("value") is None:
            failure = "not scored by inspect_ai"
        if failure:
            return Answer(repeat, failure=failure)
        output = mapping(sample.get("output"))
        choice = mapping(next(iter(items(output.get("choices"))), None))
        content = mapping(choice.get("message")).get("content")
        reply = content_text(content) if content is not None else text(output.get("completion"))
        usage = mapping(output.get("usage"))
        prompt, completion = _tokens(mapping(mapping(sample.get("model_usage")).get(self._said)) or usage)
        # The time of the one call; of several, what the sample took without waiting.
        latency = finite(output.get("time")) if _tokens(usage) == (prompt, completion) else None
        latency = finite(sample.get("working_time")) if latency is None else latency
        answer = score.get("answer")
        parts = (mapping(part) for part in items(content))
        return Answer(
            repeat,
            reply,
            "\n".join(text(part.get("reasoning")) for part in parts if part.get("type") == "reasoning"),
            _FINISH.get(text(choice.get("stop_reason")), "stop"),
            score["value"],
            answer if isinstance(answer, str) else None,
            prompt,
            completion,
            float("nan") if latency is None or latency < 0 else latency,
            # evalcube says it of what it has exported.
            unread=mapping(score.get("metadata")).get("status") == "invalid",
        )


def _question(sample: Mapping[str, Any], cluster: str) -> Question:
    target = sample.get("target")
    reference = (
        "\n".join(map(str, target)) if isinstance(target, list) else str("" if target is None else target)
    )
    options = tuple(map(str, items(sample.get("choices"))))
    prompt = flatten(sample.get("input"))
    identity = None if sample.get("id") is None else str(sample["id"])
    content = canonical({"input": prompt, "target": reference, "choices": list(options)})
    return Question(content, prompt, reference, identity, options, cluster)


def _failure(sample: Mapping[str, Any]) -> str:
    if sample.get("error") is not None:
        return "error in inspect_ai"
    return "" if sample.get("invalidation") is None else "invalidated in inspect_ai"


def _tokens(usage: Mapping[str, Any]) -> tuple[int, int]:
    """Tokens of prompt and completion, what was read from or written to a cache included; -1 where not said."""
    completion = token_count(usage.get("output_tokens"))
    counts = [token_count(usage.get(f"input_tokens{kind}")) for kind in ("", "_cache_read", "_cache_write")]
    reported = [count for count in counts if count is not None]
    return sum(reported) if reported else -1, -1 if completion is None else completion


def _settings(spec: Mapping[str, Any], plan: Mapping[str, Any]) -> dict[str, Any]:
    """What requests to the model have in common in all its tasks."""
    arguments = {key: value for key, value in mapping(spec.get("model_args")).items() if value is not None}
    # A digest only: an argument may be a key.
    digest = hashlib.sha256(canonical(arguments).encode()).hexdigest()[:16] if arguments else None
    settings = {**mapping(plan.get("config")), **mapping(spec.get("model_generate_config"))}
    relevant = {name: value for name, value in settings.items() if name not in _NO_SETTINGS}
    return {**relevant, "model_args_sha256": digest}


def _setup(spec: Mapping[str, Any], plan: Mapping[str, Any]) -> tuple[str, str]:
    """How the task was put, and its name: the solvers."""
    steps = [mapping(step) for step in items(plan.get("steps"))]
    names = [text(step.get("solver")) for step in steps]
    listed = [[text(step.get("solver")), mapping(step.get("params"))] for step in steps]
    setup = canonical({"steps": listed, "task_args": mapping(spec.get("task_args"))})
    return setup, "+".join(name.rpartition("/")[2] for name in names if name)[:80]


def _scorers(spec: Mapping[str, Any], results: Mapping[str, Any]) -> list[str]:
    """Names of the scores as `_parts` has them, the one that leads first."""
    head = mapping(results.get("headline"))
    listed = [{**head, "name": head.get("score")}, *items(results.get("scores")), *items(spec.get("scorers"))]
    pairs = [(text(mapping(entry).get("scorer")), text(mapping(entry).get("name"))) for entry in listed]
    parted = {scorer for scorer, name in pairs if scorer not in ("", name)}
    names = [f"{scorer}.{name}" if scorer in parted else name for scorer, name in pairs]
    return [name for name in dict.fromkeys(names) if name not in ("", *parted)]


def _parts(scores: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The scores of a sample by name, and the parts of one that is an object by ``NAME.PART``."""
    for name, score in scores.items():
        value = mapping(score).get("value")
        if isinstance(value, dict):
            yield from ((f"{name}.{part}", {**score, "value": value[part]}) for part in value)
        else:
            yield str(name), mapping(score)
