"""The files of lm-eval, EleutherAI's evaluation harness: results and samples as ``--log_samples`` writes them.

Fields as of lm-eval 0.4.13. A sample is a question; its ``resps`` are the replies of all repeats.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from evalcube.flows.formats.source import (
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
from evalcube.flows.plan.evaluations import Evaluation
from evalcube.flows.plan.plan import TaskPlan

METRICS = {"accuracy": "acc"}
"""What lm-eval calls our scores; others keep their names."""
FILTER = "none"
UNREAD = "[invalid]"
"""What stands for an answer that was not found."""
OWN = "evalcube"
"""Field of a sample with what lm-eval has no field for, a list with one entry for each of ``resps``."""


_MEASURED = ("tokens", "prompt_tokens", "latency", "reasoning")


@dataclass
class _Scored:
    """What was written of a task."""

    task: TaskPlan
    questions: int = 0
    means: dict[str, Mean] = field(default_factory=dict)

    def values(self) -> dict[str, object]:
        """Scores and standard errors as lm-eval has them."""
        found: dict[str, object] = {}
        for metric, mean in self.means.items():
            found[f"{metric},{FILTER}"] = mean.value
            found[f"{metric}_stderr,{FILTER}"] = "N/A" if math.isnan(mean.error) else mean.error
        return found


def write(source: Source, folder: Path) -> Iterator[Path]:
    """Write ``<model>/results_<date>.json`` and ``samples_<task>_<date>.jsonl`` of each evaluation.

    Parameters
    ----------
    source
        What is exported.
    folder
        Where to.

    Yields
    ------
    Path
        Each file.
    """
    for model, evaluation in source.evaluations():
        directory = folder / _directory(source, evaluation)
        directory.mkdir()
        last = source.measured_at(model)[1] or source.now
        date = datetime.fromtimestamp(last, UTC).strftime("%Y-%m-%dT%H-%M-%S.%f")
        scored: dict[str, _Scored] = {}
        for number, task in source.tasks():
            path = directory / f"samples_{file_name(task.label)}_{date}.jsonl"
            done = _Scored(task)
            with path.open("x", encoding="utf-8") as file:
                for sample in _samples(source, model, number, evaluation, done):
                    file.write(json.dumps(sample) + "\n")
            if not done.questions:
                path.unlink()
                continue
            scored[task.label] = done
            yield path
        if not scored:
            directory.rmdir()
            continue
        path = directory / f"results_{date}.json"
        document = _results(source, model, evaluation, scored, last)
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        yield path


def _directory(source: Source, evaluation: Evaluation) -> str:
    """The model's name as lm-eval writes it, with the evaluation's digest where several have it."""
    name = sanitized(evaluation.request_model)
    twins = [row for _, row in source.evaluations() if sanitized(row.request_model) == name]
    return name if len(twins) == 1 else f"{name}__{evaluation.eval_id[:8]}"


def sanitized(name: str) -> str:
    """A model's name as a folder's."""
    return "__".join(filter(None, (file_name(part) for part in name.split("/")))) or "model"


def _samples(
    source: Source, model: int, number: int, evaluation: Evaluation, done: _Scored
) -> Iterator[dict[str, Any]]:
    names = Names(done.task)
    for place, group in groupby(source.rows(model, number), key=question):
        rows = list(group)
        scores = [source.scores(row) for row in rows]
        for score in scores:
            for metric, value in score.items():
                done.means.setdefault(METRICS.get(metric, metric), Mean()).add(place, value)
        yield _sample(done.questions, names.of(rows[0]), rows, scores, evaluation)
        done.questions += 1


def _sample(
    doc_id: int, name: str, rows: list[Row], scores: list[dict[str, float]], evaluation: Evaluation
) -> dict[str, Any]:
    first = rows[0]
    doc = {
        "id": name,
        "question": first["prompt"],
        "answer": first["reference"],
        **({"choices": first["options"]} if first["options"] else {}),
    }
    prompt = json.dumps(first["messages"])
    answers = [UNREAD if row["answer"] is None else row["answer"] for row in rows]
    metrics = dict.fromkeys(metric for score in scores for metric in score)
    return {
        "doc_id": doc_id,
        "doc": doc,
        "target": first["reference"],
        "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": shared(evaluation.sampler.params)}},
        "resps": [[row["response"] or "" for row in rows]],
        "filtered_resps": answers if len(answers) == 1 else [answers],
        "filter": FILTER,
        "metrics": [METRICS.get(metric, metric) for metric in metrics],
        "doc_hash": _hash(json.dumps(doc, indent=2, ensure_ascii=False)),
        "prompt_hash": _hash(prompt),
        "target_hash": _hash(str(first["reference"])),
        **{METRICS.get(metric, metric): _mean(metric, scores) for metric in metrics},
        OWN: [{**described(row), **{name: row[name] for name in _MEASURED}} for row in rows],
    }


def _mean(metric: str, scores: list[dict[str, float]]) -> float:
    values = [score[metric] for score in scores if metric in score]
    return math.fsum(values) / len(values)


def _results(
    source: Source,
    model: int,
    evaluation: Evaluation,
    scored: dict[str, _Scored],
    last: float,
) -> dict[str, Any]:
    labels = list(source.plan.task_names)
    return {
        "results": {
            label: {
                "name": label,
                "alias": label,
                "sample_len": done.questions,
                **done.values(),
                **_interval(source, model, labels.index(label)),
            }
            for label, done in scored.items()
        },
        "group_subtasks": {},
        "configs": {label: _config(evaluation, done, source) for label, done in scored.items()},
        "versions": {label: done.task.task.version for label, done in scored.items()},
        "n-shot": dict.fromkeys(scored, 0),
        "higher_is_better": {label: dict.fromkeys(done.means, True) for label, done in scored.items()},
        "n-samples": {
            label: {"original": done.questions, "effective": done.questions} for label, done in scored.items()
        },
        "config": {
            "model": evaluation.api,
            "model_args": {"model": evaluation.request_model},
            "batch_size": 1,
            "batch_sizes": [],
            "device": None,
            "use_cache": None,
            "limit": None,
            "bootstrap_iters": 0,
            "gen_kwargs": shared(evaluation.sampler.params),
            "random_seed": source.plan.seed,
            "numpy_seed": None,
            "torch_seed": None,
            "fewshot_seed": None,
        },
        "git_hash": None,
        "date": last,
        "lm_eval_version": f"exported by evalcube {source.version}",
        "task_hashes": {
            label: _hash("".join(planned.cell.id for planned in done.task.cells))
            for label, done in scored.items()
        },
        "model_source": "evalcube",
        "model_name": evaluation.request_model,
        "model_name_sanitized": sanitized(evaluation.request_model),
        "system_instruction": None,
        "system_instruction_sha": None,
        "fewshot_as_multiturn": None,
        "chat_template": None,
        "chat_template_sha": None,
        OWN: {
            "label": evaluation.model,
            "template": evaluation.template.name,
            "sampler": evaluation.sampler.name,
            "eval_id": evaluation.eval_id,
            "measured": iso(last),
        },
    }


def _config(evaluation: Evaluation, done: _Scored, source: Source) -> dict[str, Any]:
    task = done.task
    return {
        "task": task.label,
        "output_type": "generate_until",
        "doc_to_text": "{{question}}",
        "doc_to_target": "{{answer}}",
        "num_fewshot": 0,
        "metric_list": [
            {"metric": metric, "aggregation": "mean", "higher_is_better": True} for metric in done.means
        ],
        "generation_kwargs": shared(evaluation.sampler.params),
        "repeats": source.plan.repeats,
        "metadata": {"version": task.task.version, "generator": task.task.name},
    }


def _interval(source: Source, model: int, task: int) -> dict[str, float]:
    found = source.intervals.get((model, task))
    if found is None:
        return {}
    metric = METRICS["accuracy"]
    return {f"{metric}_lower,{FILTER}": found.lower, f"{metric}_upper,{FILTER}": found.upper}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
