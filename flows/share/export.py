"""Export of a cube as records of Every Eval Ever, the EvalEval Coalition's schema: aggregates and their samples.

Fields as of schema 0.3.0 (https://github.com/evaleval/every_eval_ever, arXiv:2606.14516). A sample has no field for
repeats: trial and repeat stand in its metadata, whose values are texts.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalcube import __version__, known_as
from evalcube.flows.config.secrecy import mask
from evalcube.flows.cube_like import OneCube, need_address
from evalcube.flows.errors import SweepError, need_path
from evalcube.flows.plan.evaluations import Evaluation, Judge, token_limit
from evalcube.flows.plan.plan import TaskPlan
from evalcube.flows.read.outputs import new_folder
from evalcube.flows.read.trials.open_cube import split_where
from evalcube.flows.share.export_source import (
    ACCURACY,
    CONFIDENCE,
    Mean,
    Row,
    SampleNames,
    Source,
    file_name,
    public_params,
    question,
    trial_details,
)
from evalcube.stages.process.judging import judge_messages
from evalcube.stages.reply.status import OUTCOMES

SCHEMA = "0.3.0"
UNKNOWN = "unknown"
_SENT = ("temperature", "top_p", "top_k")
_MEANINGS = {
    ACCURACY: "Share of right answers; truncated, refused and unreadable ones count as wrong.",
    "fact": "Mean score of the fact assertions, 1 to 5.",
    "behavior": "Mean score of the behavior assertions, 1 to 5.",
    "judge": "Mean score of the judges by a rubric, 1 to 5.",
}


@known_as("evalcube.results")
@dataclass(frozen=True)
class Exported:
    """What an export wrote."""

    output: str
    """The folder."""
    trials: int
    files: tuple[str, ...]
    """Paths in the folder."""
    notes: tuple[str, ...]
    """What a reader of the files should know, a sentence each."""


def export(
    cube: OneCube,
    *,
    output: str | Path,
    where: Mapping[str, object] | Sequence[str] = (),
    cache: str | Path | None = None,
    organization: str = "unknown",
    now: float | None = None,
) -> Exported:
    """Write the finished trials of a cube as records of Every Eval Ever.

    Of each evaluation there are ``data/<collection>/<developer>/<model>/<uuid>.json`` and ``<uuid>_samples.jsonl``.

    Nothing secret is written: cubes hold neither addresses of endpoints nor keys, and what looks like one is left out.

    Parameters
    ----------
    cube
        A cube: its address, or the result of a function that made it.
    output
        The folder to write; it must not exist yet.
    where
        Conditions on evaluations and points, as for `Part.where`; default: all.
    cache
        Address of the response cache; default: that of your own run, or one beside the cube. Without a cache, replies
        are missing.
    organization
        Name of the organization that measured.
    now
        Time of writing, in seconds since the epoch; default: now.

    Returns
    -------
    Exported
        The files that were written.

    Raises
    ------
    StorageError
        If there is no cube, it cannot be read, or the folder cannot be written.
    SweepError
        If something is at `output`, or nothing is to be exported.

    Examples
    --------
    >>> import evalcube as ec
    >>> ec.export("results/sweep.zarr", output="exported").trials
    64
    """
    _, measured = split_where(where)
    if measured:  # intervals of part of a cell's trials would be of trials that were chosen by how they went
        raise SweepError(
            f"`where`: {', '.join(measured)} chooses single trials, and whole points are exported",
            "Give conditions on models, tasks and points; single trials are listed by evalcube trials",
        )
    source = Source(need_address(cube), where, cache, organization, time.time() if now is None else now)
    with new_folder(Path(need_path("output", output)), "export the cube") as folder:
        files = [
            path.as_posix()
            for model, evaluation in source.evaluations()
            for path in _EvaluationRecord(source, model, evaluation).write(folder)
        ]
        if not files:
            raise SweepError("there is no finished trial to export", "Run the sweep first, or widen `where`")
    return Exported(str(output), source.rows_written, tuple(sorted(files)), tuple(source.notes))


class _EvaluationRecord:
    """One evaluation's aggregate and samples."""

    def __init__(self, source: Source, model: int, evaluation: Evaluation) -> None:
        self._source, self._model, self._evaluation = source, model, evaluation
        identity = source.identity(evaluation)
        self._model_id = model_id(evaluation.request_model)
        # Of what was asked and not of when it is exported: a record that is made again takes the place of the first.
        self._id = f"{source.name}/{self._model_id}/{identity}"
        self._uuid = uuid.UUID(bytes=hashlib.sha256(self._id.encode()).digest()[:16], version=4)
        self._means: dict[tuple[int, str], Mean] = {}

    def write(self, folder: Path) -> Iterator[Path]:
        """Write both files, and yield their paths in the folder; none where no trial is finished."""
        developer, _, name = self._model_id.partition("/")
        target = Path("data", self._source.name, file_name(developer), file_name(name.replace("/", "-")))
        (folder / target).mkdir(parents=True, exist_ok=True)
        samples = target / f"{self._uuid}_samples.jsonl"
        digest, rows = hashlib.sha256(), 0
        with (folder / samples).open("xb") as file:
            for sample in self._samples():
                line = json.dumps(sample, allow_nan=False).encode() + b"\n"
                digest.update(line)
                file.write(line)
                rows += 1
        if not rows:
            (folder / samples).unlink()
            return
        yield samples
        detailed = {
            "format": "jsonl",
            "file_path": samples.as_posix(),
            "hash_algorithm": "sha256",
            "checksum": digest.hexdigest(),
            "total_rows": rows,
        }
        aggregate = target / f"{self._uuid}.json"
        text = json.dumps(self._aggregate(detailed), indent=2, allow_nan=False)
        (folder / aggregate).write_text(text + "\n", encoding="utf-8")
        yield aggregate

    def _samples(self) -> Iterator[dict[str, Any]]:
        """A line for each trial and result that it is part of."""
        for number, task in self._source.tasks():
            names = SampleNames(task)
            for row in self._source.rows(self._model, number):
                for metric, value in self._source.scores(row).items():
                    self._means.setdefault((number, metric), Mean()).add(question(row), value)
                    yield self._sample(row, names.name_of(row), task, metric, value)

    def _sample(self, row: Row, name: str, task: TaskPlan, metric: str, value: float) -> dict[str, Any]:
        reference = [row["reference"]] if row["reference"] else []
        asked = {"raw": row["prompt"], "reference": reference}
        formatted = "\n\n".join(message["content"] for message in row["messages"])
        answer = {
            "turn_idx": 0,
            "source": "output.raw",
            "extracted_value": row["answer"],
            "extraction_method": f"evalcube {task.task.name}",
            "is_terminal": True,
        }
        sample: dict[str, Any] = {
            "schema_version": SCHEMA,
            "evaluation_id": self._id,
            "model_id": self._model_id,
            "evaluation_name": task.label,
            "evaluation_result_id": self._result_id(task, metric),
            "sample_id": name,
            "sample_hash": hashlib.sha256(
                json.dumps(asked, sort_keys=True, separators=(",", ":")).encode()
            ).hexdigest(),
            "interaction_type": "single_turn",
            "input": {
                **asked,
                **({"formatted": formatted} if formatted != row["prompt"] else {}),
                **({"choices": row["options"]} if row["options"] else {}),
            },
            "output": {
                "raw": [] if row["response"] is None else [row["response"]],
                **({"reasoning_trace": [row["reasoning"]]} if row["reasoning"] else {}),
            },
            "answer_attribution": [] if row["answer"] is None else [answer],
            "evaluation": {"score": value, "is_correct": row["status"] == "correct"},
            "metadata": _texts(trial_details(row)),
        }
        if row["tokens"] is not None and row["prompt_tokens"] is not None:
            read, written = row["prompt_tokens"], row["tokens"]
            sample["token_usage"] = {
                "input_tokens": read,
                "output_tokens": written,
                "total_tokens": read + written,
            }
        if row["latency"] is not None:
            first = row["first_token"]
            sample["performance"] = {
                "latency_ms": 1000 * row["latency"],
                **({} if first is None else {"time_to_first_token_ms": 1000 * first}),
            }
        if row["status"] in OUTCOMES and row["status"] not in ("correct", "incorrect"):
            sample["error"] = row["status"]
        return sample

    def _result_id(self, task: TaskPlan, metric: str) -> str:
        return f"{self._id}/{task.label}/{metric}"

    def _aggregate(self, detailed: dict[str, Any]) -> dict[str, Any]:
        source, evaluation = self._source, self._evaluation
        last = source.measured_at(self._model)
        return {
            "schema_version": SCHEMA,
            "evaluation_id": self._id,
            "retrieved_timestamp": str(int(source.now)),
            **({"evaluation_timestamp": str(int(last))} if last else {}),
            "source_metadata": {
                "source_name": source.name,
                "source_type": "evaluation_run",
                "source_organization_name": source.organization,
                "evaluator_relationship": "other",
            },
            "eval_library": {
                "name": "evalcube",
                "version": __version__,
                "additional_details": _texts({"graders": list(source.graders)}),
            },
            "model_info": self._model_info(evaluation),
            "evaluation_results": [self._result(number, metric) for number, metric in self._means],
            "detailed_evaluation_results": detailed,
        }

    def _model_info(self, evaluation: Evaluation) -> dict[str, Any]:
        prompt, completion = self._source.opened.prices[self._model].tolist()
        return {
            "name": evaluation.model,
            "id": self._model_id,
            "developer": self._model_id.partition("/")[0],
            "additional_details": {
                "deployment_type": UNKNOWN,
                "model_availability": UNKNOWN,
                **_texts(
                    {
                        "eval_id": evaluation.eval_id,
                        "template": evaluation.template.name,
                        "sampler": evaluation.sampler.name,
                        "revision": evaluation.revision or None,
                        "price_prompt_usd_per_million": None if math.isnan(prompt) else prompt,
                        "price_completion_usd_per_million": None if math.isnan(completion) else completion,
                    }
                ),
            },
        }

    def _result(self, number: int, metric: str) -> dict[str, Any]:
        task, mean = self._source.plan.tasks[number], self._means[number, metric]
        interval = self._source.intervals.get((self._model, number)) if metric == ACCURACY else None
        uncertainty: dict[str, Any] = {"num_samples": mean.rows}
        if not math.isnan(mean.error):
            uncertainty["standard_error"] = {"value": mean.error, "method": "analytic, by question"}
        if interval is not None:
            uncertainty["confidence_interval"] = {
                "lower": interval["lower"],
                "upper": interval["upper"],
                "confidence_level": CONFIDENCE,
                "method": interval["method"],
            }
        return {
            "evaluation_result_id": self._result_id(task, metric),
            "evaluation_name": task.label,
            "source_data": _source_data(task),
            "metric_config": self._metric(metric),
            "score_details": {
                "score": mean.value if interval is None else interval["point"],
                "details": _texts({"questions": mean.questions, "trials": mean.rows}),
                "uncertainty": uncertainty,
            },
            "generation_config": _generation(self._evaluation),
        }

    def _metric(self, metric: str) -> dict[str, Any]:
        right = metric == ACCURACY
        judged = metric == "judge" and self._source.plan.judges
        return {
            "evaluation_description": _MEANINGS[metric],
            "metric_id": ACCURACY if right else f"evalcube.{metric}",
            "metric_name": metric.capitalize(),
            "metric_kind": ACCURACY if right else "score",
            "metric_unit": "proportion" if right else "points",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0.0 if right else 1.0,
            "max_score": 1.0 if right else 5.0,
            **({"llm_scoring": _llm_scoring(self._source.plan.judges)} if judged else {}),
        }


def model_id(name: str) -> str:
    """A model's name behind its developer's; one without a slash has an unknown developer."""
    parts = [file_name(part) for part in mask(name).split("/")]
    parts = [part for part in parts if part] or ["model"]
    return "/".join(parts) if len(parts) > 1 else f"{UNKNOWN}/{parts[0]}"


def _source_data(task: TaskPlan) -> dict[str, Any]:
    params = [public_params(planned.cell.plain_params) for planned in task.cells]
    files = {str(point["file"]): str(point.get("sha256", "")) for point in params if "file" in point}
    details = {
        "generator": task.task.name,
        "generator_version": task.task.version,
        "points": len(task.cells),
        "seed": task.cells[0].cell.seed,
        "sha256": sorted(files.values()) or None,
    }
    return {
        "dataset_name": ", ".join(sorted(files)) or task.task.name,
        "source_type": "other",
        "additional_details": _texts(details),
    }


def _generation(evaluation: Evaluation) -> dict[str, Any]:
    sampler, limit = evaluation.sampler.params, token_limit(evaluation.sampler.params)
    return {
        "generation_args": {
            **{name: sampler[name] for name in _SENT if isinstance(sampler.get(name), int | float)},
            **({"max_tokens": limit} if limit else {}),
            "prompt_template": json.dumps(evaluation.template.source),
        },
        "additional_details": _texts(
            {
                name: value
                for name, value in public_params(sampler).items()
                if name not in (*_SENT, "max_tokens")
            }
        ),
    }


def _llm_scoring(judges: tuple[Judge, ...]) -> dict[str, Any]:
    messages = judge_messages("{rubric}", "{prompt}", "{output}")
    return {
        "judges": [_judge(judge) for judge in judges],
        "input_prompt": "\n\n".join(message["content"] for message in messages),
        "aggregation_method": "average",
    }


def _judge(judge: Judge) -> dict[str, Any]:
    temperature = judge.sampler.get("temperature")
    return {
        "model_info": {
            "name": judge.name,
            "id": model_id(judge.request_model),
            "additional_details": {"deployment_type": UNKNOWN, "model_availability": UNKNOWN},
        },
        **({"temperature": temperature} if isinstance(temperature, int | float) else {}),
        "additional_details": _texts({"repeats": judge.repeats, "prompt": judge.prompt}),
    }


def _texts(values: dict[str, Any]) -> dict[str, str]:
    """Values as the schema has them: texts, others as JSON; absent ones left out."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in values.items()
        if value is not None
    }
