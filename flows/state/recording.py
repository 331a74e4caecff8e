"""What is recorded of a region, and how regions are counted; the same for a run and for whoever makes one again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from evalcube.flows.plan.evaluations import Evaluation
from evalcube.flows.plan.grading import Prices
from evalcube.flows.plan.targets import SampleTargets, Window, window_of
from evalcube.stages.process.grading import GRADER, IMPORTED
from evalcube.stages.reply.status import COUNTERS, Status
from evalcube.stages.score.counters import FloatArray, add_counters, count_questions, count_trials
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Receipt
from evalcube.storage.cube.regions import Region
from evalcube.storage.cube.schema import VARIABLES

SUM_WIDTH = 16
"""Counters that are added at once, and so the order of additions."""

T = TypeVar("T")


def grader_of(evaluation: Evaluation) -> str:
    """The grader that receipts of an evaluation's regions name: today's, or that another tool graded."""
    return IMPORTED if evaluation.is_imported else GRADER


def receipt_of(
    window: Window,
    generation: int,
    planned: npt.NDArray[np.bool_],
    status: npt.NDArray[np.generic],
    digest: str,
    causes: Mapping[str, int],
    shape: int = 0,
    grader: str = GRADER,
) -> Receipt:
    """The receipt of a region that was just written."""
    transport = int((planned & (status == Status.TRANSPORT)).sum())
    missing = int((planned & (status == Status.MISSING)).sum())
    return Receipt(
        region=window.region,
        generation=generation,
        trials=window.shape[2],
        repeats=window.shape[3],
        planned=int(planned.sum()),
        complete=not transport and not missing,
        transport=transport,
        missing=missing,
        causes=dict(causes),
        digest=digest,
        grader=grader,
        shape=shape,
        at=int(time.time()),
    )


def prices_of(cube: Cube) -> list[Prices]:
    """USD per million prompt and completion tokens as a cube has them, by evaluation."""
    both = [cube.read_label(f"price_{kind}") for kind in ("prompt", "completion")]
    return [(float(prompt), float(completion)) for prompt, completion in zip(*both, strict=True)]


def count_region(cube: Cube, region: Region, planned: SampleTargets, prices: Prices) -> FloatArray:
    """Counters of a region, shape (task, params, counter), from what the cube holds."""
    return count_read(cube, region, cube.read_region(region, VARIABLES), planned, prices)


def count_read(
    cube: Cube, region: Region, arrays: Mapping[str, npt.NDArray[Any]], planned: SampleTargets, prices: Prices
) -> FloatArray:
    """Counters of a region whose arrays have been read."""
    window = window_of(cube.sizes, region, cube.chunks)
    flags = cube.read_duplicates(slice(window.first_trial, window.first_trial + window.shape[2]))[..., None]
    return count_arrays(arrays, flags, planned.mask(window), prices)


def count_arrays(
    arrays: Mapping[str, npt.NDArray[Any]],
    flags: npt.NDArray[np.uint8],
    planned: npt.NDArray[np.bool_],
    prices: Prices,
) -> FloatArray:
    """Counters of a region from its arrays, those of questions among them, shape (task, params, counter)."""
    counted = count_trials(
        {**{name: arrays[name] for name in VARIABLES}, "duplicate": flags, "planned": planned},
        price_prompt=prices[0],
        price_completion=prices[1],
    )
    return np.concatenate([counted, count_questions(arrays["status"])], axis=-1)


def split_questions(regions: Iterable[Region]) -> list[tuple[Region, ...]]:
    """Regions that share questions, in groups: several along repeat, of the same trials."""
    groups = (tuple(group) for _, group in groupby(sorted(regions), key=lambda region: region.trial))
    return [group for group in groups if len(group) > 1]


def count_split_questions(cube: Cube, regions: Sequence[Region]) -> FloatArray:
    """What the counters of questions of regions that share them lack to be those of whole questions.

    The square of a sum is not the sum of squares: these counters add over questions, and not over the repeats of one.
    All others are 0 here.
    """
    return lacking_questions([cube.read_region(region, ["status"])["status"] for region in regions])


def lacking_questions(parts: Sequence[npt.NDArray[np.uint8]]) -> FloatArray:
    """As `count_split_questions`, from the status of each region, shape (task, params, trial, repeat)."""
    more = count_questions(np.concatenate(parts, axis=-1)) - sum(count_questions(part) for part in parts)
    return np.concatenate([np.zeros((*more.shape[:-1], len(COUNTERS))), more], axis=-1)


def count_model(
    cube: Cube, model: int, recorded: Iterable[Region], planned: SampleTargets, prices: Prices
) -> FloatArray:
    """Return the counters of an evaluation, shape (task, params, counter), added in the order of a run."""
    ordered = sorted(region for region in recorded if region.model == model)
    return sum_regions(cube, ordered, [count_region(cube, region, planned, prices) for region in ordered])


def sum_regions(
    cube: Cube,
    ordered: Sequence[Region],
    counted: Sequence[FloatArray],
    count_shared: Callable[[Cube, Sequence[Region]], FloatArray] = count_split_questions,
) -> FloatArray:
    """Return the counters of an evaluation from those of its sorted regions."""
    # Whole numbers, and after all others: what was added without them keeps its bits.
    parts = [*counted, *(count_shared(cube, group) for group in split_questions(ordered))]
    if not parts:
        return np.zeros((cube.sizes["task"], cube.sizes["params"], cube.sizes["counter"]))
    return sum_pairwise(parts, add_counters)


def uncounted_models(newest: Mapping[Region, Receipt], counters: FloatArray) -> set[int]:
    """Return the models whose counters (model, task, params, counter) do not hold the trials that are recorded."""
    counted = counters[..., COUNTERS.index("trials")].sum(axis=(1, 2))
    recorded = np.zeros(len(counted))
    for region, receipt in newest.items():
        recorded[region.model] += receipt.finished
    return set(np.flatnonzero(recorded != counted).tolist())


def sum_pairwise(parts: Sequence[T], add: Callable[[list[T]], T]) -> T:
    """The sum of parts by a tree whose shape follows from their number: sums of floats depend on their order."""
    level = list(parts)
    while len(level) > 1:
        level = [add(level[i : i + SUM_WIDTH]) for i in range(0, len(level), SUM_WIDTH)]
    return level[0]
