"""Measures how much the length of answers moves a cube's judges: they are asked again, without being told to ignore it.

That is a sweep like any other, with a cube of its own beside the first: the same answers, which come from the cache,
and the same judges, whose prompt lacks one sentence. So it can be priced before it is run, stopped and resumed, and is
never asked twice.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from evalcube.deploy.clusters import Cluster
from evalcube.flows.config.load import as_config
from evalcube.flows.config.models import SweepConfig
from evalcube.flows.cubes.reader import Reader
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.acting import acting_config
from evalcube.flows.plan.blocks import Block, window_of
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.estimate import SweepEstimate, estimate
from evalcube.flows.plan.evaluations import Evaluation
from evalcube.flows.plan.grading import read_stored
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.requests import prepare_trials
from evalcube.flows.plan.store import existing_store
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.run.events import Subscriber
from evalcube.flows.run.summary import RunSummary
from evalcube.flows.run.sweep import run
from evalcube.stages.analyze.verdict.lengthbias import LengthBias, length_bias
from evalcube.storage.cache.cache import Cache, open_cache
from evalcube.storage.cube.cube import Cube

_AT_ONCE = 256
"""Answers in memory at once, whose lengths are counted."""


@dataclass(frozen=True)
class JudgeLengthBias:
    """How much length moves one judge of one variant's answers."""

    judge: str
    variant: str
    measured: LengthBias
    """Of the readings without the sentence against those with it."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; what is not a finite number is None."""
        plain = _finite(asdict(self.measured))
        return {"judge": self.judge, "variant": self.variant, **plain, "biased": self.measured.biased}


@dataclass(frozen=True)
class LengthBiasCheck:
    """A check that can be priced and run."""

    config: SweepConfig
    """Of the sweep that asks the judges again."""
    cube: str
    """The cube that is checked."""
    variants: tuple[int, ...]
    """Its evaluations, in the order of those in `config`."""
    tasks: tuple[str, ...]

    def price(self) -> SweepEstimate:
        """What it would ask and cost; nothing is asked."""
        return estimate(self.config)

    def run(
        self,
        *,
        scheduler: str | None = None,
        workers: int | None = None,
        cluster: Cluster | None = None,
        subscribers: Sequence[Subscriber] = (),
    ) -> RunSummary:
        """Ask the judges; arguments as for `evalcube.flows.run.sweep.run`."""
        return run(
            self.config, scheduler=scheduler, workers=workers, cluster=cluster, subscribers=subscribers
        )

    def measure(self) -> list[JudgeLengthBias]:
        """What came of it, by judge and variant, once it has run."""
        before, after = Reader(self.cube), Reader(self.config.cube)
        first, second = _readings(before.cube), _readings(after.cube)
        rows = [list(before.plan.task_names).index(name) for name in self.tasks]
        own = [list(after.plan.task_names).index(name) for name in self.tasks]
        shape = tuple(min(a, b) for a, b in zip(first.shape[2:5], second.shape[2:5], strict=True))
        part = tuple(slice(size) for size in shape)
        alpha = 0.05 / (len(self.variants) * len(before.plan.judges))  # any wrong one of them: 5 %
        lengths = _lengths(after.plan, after.cube, open_cache(self.config.cache, writable=False))
        found = []
        for place, variant in enumerate(self.variants):
            long = lengths[place][own][(slice(None), *part)]
            for number, judge in enumerate(before.plan.judges):
                told = first[variant][rows][(slice(None), *part)][..., number, :]
                untold = second[place][own][(slice(None), *part)][..., number, :]
                found.append(
                    JudgeLengthBias(
                        judge.name, before.plan.labels[variant], _compared(untold, told, long, alpha)
                    )
                )
        return found


def length_bias_check(
    cube: str | Path,
    control: str | None = None,
    treatments: Sequence[str] = (),
    *,
    tasks: Sequence[str] = (),
    cache: str | Path | None = None,
    config: SweepConfig | Mapping[str, Any] | str | Path | None = None,
    endpoints: Mapping[str, str] | str = MappingProxyType({}),
    key_envs: Mapping[str, str] | str = MappingProxyType({}),
) -> LengthBiasCheck:
    """The check of a cube's judges.

    Parameters
    ----------
    cube
        The cube's address; the readings come to lie beside it.
    control, treatments, tasks
        Whose answers to what, as for `evalcube.flows.cubes.verdict.cube_verdict`.
    cache, config, endpoints, key_envs
        Who is asked, as for `evalcube.flows.run.upsample.upsample`.

    Raises
    ------
    SweepError
        If the cube has no judges, a name is not in it, or it is not said whom to ask.
    """
    reader = Reader(cube)
    plan = reader.plan
    judged = [name for name, task in zip(plan.task_names, plan.tasks, strict=True) if task.graded]
    if not plan.judges or not judged:
        raise SweepError(
            f"cube '{cube}' has no judges whose readings could be checked", "Leave the check out"
        )
    unknown = [name for name in tasks if name not in judged]
    if unknown:
        raise SweepError(f"`tasks`: '{unknown[0]}' is not judged here", f"Give one of: {', '.join(judged)}")
    models = [reader.evaluation_index("0" if control is None else control, "control")]
    models += [reader.evaluation_index(name, "treatments") for name in treatments]
    settings = acting_config(cube, cache=cache, config=config, endpoints=endpoints, key_envs=key_envs)
    existing_store(build_plan(settings), str(cube))  # refuses a config that is not the cube's
    chosen = tuple(name for name in judged if not tasks or name in tasks)
    return LengthBiasCheck(
        _derived(settings, plan, models, chosen, str(cube)), str(cube), tuple(models), chosen
    )


def _derived(
    settings: SweepConfig, plan: Plan, models: Sequence[int], tasks: Sequence[str], cube: str
) -> SweepConfig:
    """The config of the sweep that asks a config's judges again about some evaluations' answers."""
    fields = settings.model_dump(mode="json", exclude_unset=True)
    for name in ("precision", "spend", "views"):
        fields.pop(name, None)
    chosen = [plan.evaluations[model] for model in models]
    names = {judge.name for judge in plan.judges}
    return as_config(
        {
            **fields,
            "name": f"{settings.name}, length bias of its judges",
            "cube": f"{cube.rstrip('/').removesuffix('.zarr')}.length-bias-{_digest(chosen, tasks)}.zarr",
            "trials": settings.trials,
            "evaluations": [
                {
                    "models": [one.model],
                    "templates": [one.template.name],
                    "samplers": [one.sampler.name],
                }
                for one in chosen
            ],
            "tasks": {label: task for label, task in fields["tasks"].items() if label in tasks},
            "judges": [
                {**judge, "length_debias": False}
                for judge, known in zip(fields["judges"], settings.judges, strict=True)
                if known.name in names
            ],
        }
    )


def _digest(evaluations: Sequence[Evaluation], tasks: Sequence[str]) -> str:
    """A name for what is checked: each selection has a cube of its own, and all share the replies."""
    text = json.dumps([[one.eval_id for one in evaluations], list(tasks)])
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _readings(cube: Cube) -> npt.NDArray[np.float64]:
    """Readings (model, task, params, trial, repeat, judge, judge's repeat), NaN where there is none."""
    return np.asarray(cube.dataset()["judge_readings"].to_numpy(), dtype=np.float64)


def _lengths(plan: Plan, cube: Cube, cache: Cache) -> npt.NDArray[np.float64]:
    """Characters of the answers (model, task, params, trial, repeat), NaN where the cache has none."""
    sizes, chunks = cube.sizes, cube.chunks
    found = np.full([sizes[dim] for dim in ("model", "task", "params", "trial", "repeat")], np.nan)
    targets = SampleTargets(cube.read_planned("trial"), cube.read_planned("repeat"))
    for region in cube.regions():
        window = window_of(sizes, region, chunks)
        counts = np.full(window.shape, np.nan)
        positions = np.flatnonzero(targets.mask(window))
        for begin in range(0, len(positions), _AT_ONCE):
            some = positions[begin : begin + _AT_ONCE]
            prepared = prepare_trials(plan, Block(window, 0, 0, some))
            replies = map(read_stored, cache.get_many([item.request.digest for item in prepared]))
            counts.flat[some] = [math.nan if reply is None else len(reply.answer) for reply in replies]
        at = slice(window.first_trial, window.first_trial + window.shape[2])
        found[region.model, :, :, at, window.first_repeat : window.first_repeat + window.shape[3]] = counts
    return found


def _compared(
    untold: npt.NDArray[np.float64],
    told: npt.NDArray[np.float64],
    lengths: npt.NDArray[np.float64],
    alpha: float,
) -> LengthBias:
    """One judge's readings (task, params, trial, repeat, judge's repeat), a question being one unit."""
    both = ~np.isnan(untold) & ~np.isnan(told) & (lengths > 0)[..., np.newaxis]
    pairs = both.sum(axis=(3, 4))
    used = pairs > 0
    means = [np.where(both, values, 0.0).sum(axis=(3, 4))[used] / pairs[used] for values in (untold, told)]
    long = np.where(both, lengths[..., np.newaxis], 0.0).sum(axis=(3, 4))[used] / pairs[used]
    return length_bias(means[0], means[1], long, alpha=alpha)


def _finite(value: Any) -> Any:  # noqa: ANN401 - JSON values
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
