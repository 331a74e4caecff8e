"""Reads results of NeMo Evaluator: `results.jsonl`, with the `eval-*.json` that stands beside it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalcube.flows.imports.bounded import (
    finite,
    flattened,
    items,
    lines,
    mapping,
    parse,
    refused,
    text,
    whole,
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

TOOL = "nemo_evaluator"
_MOST_BUNDLE = 64 * 2**20
_SETTINGS = ("temperature", "top_p", "top_k", "max_tokens", "seed", "reasoning_effort")
_SETUP = ("endpoint_type", "harbor_agent", "num_fewshot", "prompt_template", "solver")
_REMEDY = "Put the eval-*.json of the run beside it, or name it with `{}`"


def read_nemo(path: Path, wanted: Wanted) -> Iterator[Sample]:
    """The samples of a log.

    Raises
    ------
    SweepError
        If it is no such log, its model or benchmark is not known, or a line lacks what it must have.
    """
    bundle = _bundle(path)
    config, benchmark = mapping(bundle.get("config")), mapping(bundle.get("benchmark"))
    where = str(path)
    task = named(wanted.task or benchmark.get("name"), "benchmark", where, _REMEDY.format("task"))
    model = named(wanted.model or config.get("model"), "model", where, _REMEDY.format("model"))
    system = text(config.get("system_prompt"))
    settings = {name: config.get(name) for name in _SETTINGS}
    settings["system_prompt_sha256"] = (
        hashlib.sha256(system.encode("utf-8", "replace")).hexdigest()[:16] if system else None
    )
    setup = canonical({name: config.get(name) for name in _SETUP})
    for number, line in lines(path):
        place = f"{path}, line {number}"
        sample = mapping(parse(line, place))
        name, score = _score(sample, wanted, place)
        run = Run(TOOL, task, name, model, canonical(settings), setup, text(config.get("solver")))
        yield Sample(run, _question(sample, place), _answer(sample, score, place), place)


def _bundle(path: Path) -> dict[str, Any]:
    beside = sorted(path.parent.glob("eval-*.json"))
    if len(beside) != 1:
        return {}
    return mapping(parse(whole(beside[0], _MOST_BUNDLE), str(beside[0])))


def _score(sample: Mapping[str, Any], wanted: Wanted, where: str) -> tuple[str, object]:
    if wanted.score is None or wanted.score == "reward":
        if "reward" not in sample:
            raise refused(where, "it has no `reward`", "Give a results.jsonl of NeMo Evaluator")
        return "reward", sample["reward"]
    rewards = mapping(sample.get("scorer_rewards"))
    if wanted.score not in rewards:
        raise refused(
            where,
            f"it has no score '{wanted.score}'",
            f"Take one of: {', '.join(['reward', *map(str, rewards)])}",
        )
    return wanted.score, rewards[wanted.score]


def _question(sample: Mapping[str, Any], where: str) -> Question:
    index = sample.get("problem_idx")
    if isinstance(index, bool) or not isinstance(index, (int, str)):
        raise refused(where, "it has no `problem_idx`", "Give a results.jsonl of NeMo Evaluator")
    prompt = flattened(sample.get("prompt")) if items(sample.get("prompt")) else text(sample.get("prompt"))
    expected = sample.get("expected_answer")
    reference = expected if isinstance(expected, str) else "" if expected is None else json.dumps(expected)
    # Problems have equal numbers in all runs, and a prompt may have another template: the number is the question.
    return Question(canonical({"problem": str(index), "target": reference}), prompt, reference, str(index))


def _answer(sample: Mapping[str, Any], score: object, where: str) -> Answer:
    repeat = sample.get("repeat", 0)
    if type(repeat) is not int or not 0 <= repeat < MOST_REPEATS:
        raise refused(f"{where}, repeat", "it must be a whole number from 0", "Take the log from a copy")
    details = mapping(sample.get("scoring_details"))
    # NeMo counts these as wrong; that nobody answered says nothing of the model.
    if "infra_error" in (details.get("error_category"), details.get("method")):
        return Answer(repeat, failure="infra error in nemo_evaluator")
    extracted, milliseconds = sample.get("extracted_answer"), finite(sample.get("latency_ms"))
    response = sample.get("model_response")
    return Answer(
        repeat,
        response if isinstance(response, str) else None,
        score=score,
        parsed=extracted if isinstance(extracted, str) else None,
        # `tokens` are those of prompt and answer together, of which nothing follows for either; 0 is not known.
        latency=milliseconds / 1000 if milliseconds is not None and milliseconds > 0 else float("nan"),
        failure="not scored by nemo_evaluator" if score is None else "",
    )
