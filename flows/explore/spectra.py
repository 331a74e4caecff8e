"""A fingerprint of the prompts of each task: the spectrum of their token ids, if a tokenizer's file is given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from evalcube.flows.errors import SweepError
from evalcube.flows.explore.endpoint import Endpoint, Json, each_model
from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.groups import chosen
from evalcube.flows.explore.query import Query
from evalcube.stages.analyze.formulas.forensics.spectrum import token_spectrum
from evalcube.stages.analyze.labelled import axes

PROMPTS = 128
"""Prompts of a task that are taken, as far as there are."""
_LONGEST = 400_000
"""Characters of a prompt that are turned into tokens, at most."""
_SIGNIFICANT = 3


def spectrum(explored: Explored, query: Query) -> Json:
    """The spectrum of each task's prompts as they were sent to one model, under the tokenizer that was given."""
    tokenizer = explored.tokenizer
    if tokenizer is None:
        raise SweepError(
            "no tokenizer is given, so that prompts have no token ids",
            "Start it with `evalcube explore --tokenizer FILE`, the tokenizer.json of a model",
        )
    opened = explored.part(query)
    dataset, labels = chosen(explored, query, opened.dataset)
    evaluation = axes.names(dataset, "eval_id")[0]
    tasks = [
        {"task": task, **_of_task(prompts, tokenizer)}
        for task in axes.names(dataset, "task")
        if (
            prompts := _prompts(
                explored, evaluation, task, int((dataset["cell_id"].sel(task=task) != "").sum())
            )
        )
    ]
    return {
        "model": labels[0],
        "tokenizer": explored.tokenizer_name,
        "window": "Hann",
        "mean_removed": True,
        "prompts": PROMPTS,
        "tasks": tasks,
        "warnings": list(opened.warnings),
    }


def _prompts(explored: Explored, evaluation: str, task: str, points: int) -> list[str]:
    """What was sent in the first trials of each point of a task, all messages of one together."""
    last = max(PROMPTS // max(points, 1), 1) - 1
    wanted: dict[str, object] = {"eval_id": evaluation, "task": task, "trial": (0, last), "repeat": 0}
    found = explored.trials(where=wanted, columns=["messages"], limit=PROMPTS)
    return ["\n".join(message["content"] for message in row["messages"]) for row in found.rows()]


def _of_task(prompts: list[str], tokenizer: Any) -> Json:  # noqa: ANN401 - of an optional package
    ids = [encoded.ids for encoded in tokenizer.encode_batch([text[:_LONGEST] for text in prompts])]
    found = token_spectrum(ids)
    lengths = [len(one) for one in ids]
    return {
        "prompts": found.series,
        "tokens": float(np.mean(lengths)),
        "frequency": np.round(found.frequency, 6),
        "mean": _rounded(found.mean),
        "spread": _rounded(found.spread),
    }


def _rounded(values: Any) -> list[float]:  # noqa: ANN401 - an array
    return [float(f"{value:.{_SIGNIFICANT}g}") for value in values.tolist()]


def _each_model(explored: Explored) -> Iterable[Query]:
    return each_model(explored) if explored.tokenizer_name else ()


ENDPOINTS = (Endpoint("spectrum", spectrum, _each_model),)
