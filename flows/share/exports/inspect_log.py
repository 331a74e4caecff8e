"""Logs of Inspect, the UK AI Security Institute's framework: a ZIP with a header, and a file for each sample.

Fields as of inspect_ai 0.3.285, version 2 of the format. One log holds one evaluation's trials of one task; a repeat is
an epoch.
"""

from __future__ import annotations

import json
import math
import uuid
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from evalcube.flows.plan.evaluations import Evaluation, token_limit
from evalcube.flows.plan.plan import TaskPlan
from evalcube.flows.share.exports.source import (
    ACCURACY,
    Mean,
    Names,
    Row,
    Source,
    described,
    file_name,
    iso,
    question,
    shared,
)

VERSION = 2
SCORER = "evalcube"
HEADER, SUMMARIES, START = "header.json", "summaries.json", "_journal/start.json"
SAMPLE = "samples/{id}_epoch_{epoch}.json"
_STOPS = {"length": "max_tokens", "context": "model_length", "refused": "content_filter"}
_SHORT = 1000
"""Characters of a text in a summary, and of what is left out of its metadata."""
_NAMESPACE = uuid.UUID("6a1c3f3e-3b0a-5d3e-9a0e-5b8f6f0a4d11")
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def write(source: Source, folder: Path) -> Iterator[Path]:
    """Write a log for each evaluation and task.

    Yields
    ------
    Path
        Each file.
    """
    for model, evaluation in source.evaluations():
        for number, task in source.tasks():
            log = _Log(source, model, number, evaluation, task)
            path = folder / log.file_name
            if log.write(path):
                yield path
            else:
                path.unlink()


class _Log:
    """One log."""

    def __init__(
        self, source: Source, model: int, number: int, evaluation: Evaluation, task: TaskPlan
    ) -> None:
        self._source, self._model, self._number = source, model, number
        self._evaluation, self._task = evaluation, task
        self._id = uuid.uuid5(_NAMESPACE, f"{source.identity(evaluation)}/{task.label}").hex[:22]
        first, last = source.measured_at(model)
        self._started, self._ended = first or source.now, last or source.now
        self._model_name = evaluation.request_model
        self._names = Names(task)
        self._scores: dict[str, Mean] = {}
        self._tokens = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
        self._ids: dict[str, None] = {}
        self._epochs, self._samples = 1, 0

    @property
    def file_name(self) -> str:
        """As Inspect names logs: time, task, id."""
        when = datetime.fromtimestamp(self._started, UTC).strftime("%Y-%m-%dT%H-%M-%S-00-00")
        return f"{when}_{file_name(self._task.label)}_{self._id}.eval"

    def write(self, path: Path) -> int:
        """Write it; the number of its samples, which may be none."""
        with (
            zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as log,
            TemporaryFile("w+", encoding="utf-8", dir=path.parent) as summaries,
        ):
            for row in self._source.rows(self._model, self._number):
                sample = self._sample(row)
                _put(log, SAMPLE.format(id=sample["id"], epoch=sample["epoch"]), sample)
                summaries.write(",\n" if self._samples else "[")
                summaries.write(json.dumps(_summary(row, sample), allow_nan=False))
                self._count(row, sample)
            summaries.write("]" if self._samples else "[]")
            summaries.seek(0)
            with log.open(_member(SUMMARIES), "w", force_zip64=True) as file:
                for text in iter(partial(summaries.read, 1 << 20), ""):
                    file.write(text.encode())
            spec, plan = self._spec(), _plan(self._evaluation)
            _put(log, START, {"version": VERSION, "eval": spec, "plan": plan})
            _put(log, HEADER, self._header(spec))
        return self._samples

    def _count(self, row: Row, sample: dict[str, Any]) -> None:
        self._samples += 1
        self._ids[sample["id"]] = None
        self._epochs = max(self._epochs, sample["epoch"])
        for name in self._tokens:
            self._tokens[name] += sample["output"].get("usage", {}).get(name, 0)
        for name, value in self._values(row).items():
            self._scores.setdefault(name, Mean()).add(question(row), value)

    def _values(self, row: Row) -> dict[str, float]:
        """Scores of a trial by scorer."""
        found = self._source.scores(row)
        return {SCORER if name == ACCURACY else name: value for name, value in found.items()}

    def _sample(self, row: Row) -> dict[str, Any]:
        name = self._names.of(row)
        asked = [
            {"id": f"{row['digest'][:16]}-{place}", "source": "input", **message}
            for place, message in enumerate(row["messages"])
        ]
        usage = _usage(row)
        output = self._output(row, usage)
        replies = [choice["message"] for choice in output["choices"]]
        return {
            "id": name,
            "epoch": row["repeat"] + 1,
            "input": row["prompt"] if len(asked) == 1 and asked[0]["content"] == row["prompt"] else asked,
            **({"choices": row["options"]} if row["options"] else {}),
            "target": row["reference"],
            "messages": [*asked, *replies],
            "output": output,
            "scores": {
                scorer: {
                    "value": ("C" if value else "I") if scorer == SCORER else value,
                    **_reading(row, scorer),
                }
                for scorer, value in self._values(row).items()
            },
            "metadata": described(row),
            "model_usage": {self._model_name: usage} if usage else {},
            "started_at": iso(self._started),
            "completed_at": iso(self._ended),
            "total_time": row["latency"],
            "working_time": row["latency"],
            "uuid": uuid.uuid5(_NAMESPACE, f"{self._id}/{row['digest']}").hex[:22],
        }

    def _output(self, row: Row, usage: dict[str, int]) -> dict[str, Any]:
        """The reply; no choice where it is not known."""
        content: Any = row["response"]
        if row["reasoning"]:
            thought = {"type": "reasoning", "reasoning": row["reasoning"]}
            content = [thought, {"type": "text", "text": content}]
        message = {"id": row["digest"][:22], "content": content, "source": "generate", "role": "assistant"}
        message["model"] = self._model_name
        choice = {"message": message, "stop_reason": _STOPS.get(row["finish"], "stop")}
        return {
            "model": self._model_name,
            "choices": [] if row["response"] is None else [choice],
            "completion": row["response"] or "",
            **({"usage": usage} if usage else {}),
            **({} if row["latency"] is None else {"time": row["latency"]}),
        }

    def _spec(self) -> dict[str, Any]:
        evaluation, task = self._evaluation, self._task
        ids = list(self._ids)
        return {
            "eval_id": self._id,
            "run_id": self._source.identity(evaluation),
            "created": iso(self._started),
            "task": task.label,
            "task_id": self._id,
            "task_version": task.task.version,
            "dataset": {"name": task.task.name, "samples": len(ids), "sample_ids": ids, "shuffled": False},
            "model": self._model_name,
            "model_generate_config": _generate_config(evaluation),
            "config": {"epochs": self._epochs, "epochs_reducer": ["mean"]},
            "packages": {"evalcube": self._source.version},
            "scorers": [
                {"name": name, "metrics": [{"name": metric} for metric in _metrics(name)]}
                for name in self._scores
            ],
            "metadata": {
                "evalcube": {
                    "label": evaluation.model,
                    "template": evaluation.template.name,
                    "sampler": evaluation.sampler.name,
                    "sampler_params": shared(evaluation.sampler.params),
                    "eval_id": evaluation.eval_id,
                    **({"revision": evaluation.revision} if evaluation.revision else {}),
                    "generator": task.task.name,
                    "seed": self._source.plan.seed,
                    "points": [{"cell_id": one.cell.id, "tiers": list(one.tiers)} for one in task.cells],
                    "graders": list(self._source.graders),
                    "judges": [judge.name for judge in self._source.plan.judges],
                }
            },
        }

    def _header(self, spec: dict[str, Any]) -> dict[str, Any]:
        return {
            "version": VERSION,
            "status": "success",
            "eval": spec,
            "plan": _plan(self._evaluation),
            "results": {
                "total_samples": self._samples,
                "completed_samples": self._samples,
                "scores": [self._score(name, mean) for name, mean in self._scores.items()],
            },
            "stats": {
                "started_at": iso(self._started),
                "completed_at": iso(self._ended),
                "model_usage": {self._model_name: self._tokens},
            },
        }

    def _score(self, name: str, mean: Mean) -> dict[str, Any]:
        values = dict(zip(_metrics(name), (mean.value, mean.error), strict=True))
        interval = self._source.intervals.get((self._model, self._number)) if name == SCORER else None
        if interval is not None:
            values |= {"lower": interval["lower"], "upper": interval["upper"]}
        known = {metric: value for metric, value in values.items() if not math.isnan(value)}
        return {
            "name": name,
            "scorer": name,
            "scored_samples": mean.questions,
            "unscored_samples": len(self._ids) - mean.questions,
            "metrics": {metric: {"name": metric, "value": value} for metric, value in known.items()},
        }


def _metrics(scorer: str) -> tuple[str, str]:
    return ("accuracy" if scorer == SCORER else "mean"), "stderr"


_SETTINGS = "temperature top_p top_k frequency_penalty presence_penalty seed reasoning_effort".split()


def _generate_config(evaluation: Evaluation) -> dict[str, Any]:
    sampler, limit = evaluation.sampler.params, token_limit(evaluation.sampler.params)
    found = {name: sampler[name] for name in _SETTINGS if sampler.get(name) is not None}
    return {**found, **({"max_tokens": limit} if limit else {})}


def _plan(evaluation: Evaluation) -> dict[str, Any]:
    steps = [
        {"solver": "evalcube/template", "params": {"name": evaluation.template.name}},
        {"solver": "generate", "params": {}},
    ]
    return {"name": "plan", "steps": steps, "config": _generate_config(evaluation)}


def _usage(row: Row) -> dict[str, int]:
    if row["tokens"] is None or row["prompt_tokens"] is None:
        return {}
    read, written = row["prompt_tokens"], row["tokens"]
    return {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}


def _reading(row: Row, scorer: str) -> dict[str, Any]:
    if scorer == SCORER:
        answer = {} if row["answer"] is None else {"answer": row["answer"]}
        return {**answer, "explanation": row["status"], "metadata": {"status": row["status"]}}
    if scorer == "judge":
        said = [f"{one['judge']}: {one['reason']}" for one in row["opinions"] or () if one["reason"]]
        return {"explanation": "\n".join(said), "metadata": {"opinions": row["opinions"] or []}}
    return {}


def _summary(row: Row, sample: dict[str, Any]) -> dict[str, Any]:
    return {
        **{name: sample[name] for name in ("id", "epoch", "target", "model_usage", "total_time", "uuid")},
        "input": row["prompt"][:_SHORT],
        "metadata": _brief(sample["metadata"]),
        "scores": {name: _brief(score) for name, score in sample["scores"].items()},
        "completed": True,
        "message_count": len(sample["messages"]),
    }


def _brief(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if len(str(value)) < _SHORT}


def _member(name: str) -> zipfile.ZipInfo:
    """A member, with a time of its own that never changes: equal trials make equal files."""
    member = zipfile.ZipInfo(name, _ZIP_TIME)
    member.compress_type = zipfile.ZIP_DEFLATED
    return member


def _put(log: zipfile.ZipFile, name: str, document: dict[str, Any]) -> None:
    log.writestr(_member(name), json.dumps(document, allow_nan=False))
