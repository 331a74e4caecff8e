"""Measures some cells of a sweep further, from its config or from its cube."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from evalcube.flows.config.models import Sweep
from evalcube.flows.config.precision import LEVELS, Precision
from evalcube.flows.errors import SweepError, need_number, no_bare_text
from evalcube.flows.nouns import OneCube, is_dataset, need_address
from evalcube.flows.plan.acting import acting_config, what_is_asked
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.records import read_notes
from evalcube.flows.plan.sampling import Adaptive, Fixed, Sampling, Selection
from evalcube.flows.plan.spending_budget import Amount, Budget, resumed, spent
from evalcube.flows.plan.store import existing_store
from evalcube.flows.plan.targets import MOST_REPEATS, MOST_TRIALS
from evalcube.flows.run.events import Noted, Subscriber
from evalcube.flows.run.summary import RunSummary
from evalcube.flows.run.sweep import Graders, run
from evalcube.stages.analyze.formulas.allocation import Purpose


def upsample(
    source: Sweep | Mapping[str, Any] | OneCube,
    *,
    trials: int | None = None,
    repeats: int | None = None,
    precision: Precision | str | None = None,
    budget: Amount | str | None = None,
    purpose: Purpose = "ranking",
    models: Sequence[str] = (),
    tasks: Sequence[str] = (),
    tiers: Sequence[str] = (),
    where: Sequence[str] = (),
    cube: str | Path | None = None,
    cache: str | Path | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
    cluster: Any = None,  # noqa: ANN401 - a cluster of anybody's
    subscribers: Sequence[Subscriber] = (),
    config: Sweep | Mapping[str, Any] | str | Path | None = None,
    endpoints: Mapping[str, str] | str = MappingProxyType({}),
    key_envs: Mapping[str, str] | str = MappingProxyType({}),
    grader: Graders = "current",
    stop: threading.Event | None = None,
) -> RunSummary:
    """Measure some cells of a sweep further; what is recorded or cached is not asked again.

    Parameters
    ----------
    source
        A config in any form that `run` takes, or a cube. Who is asked for more of a cube is never the
        cube's to say: it follows from the config that you ran it with on this machine, from `config`, or from
        `endpoints`.
    trials, repeats
        How many each selected cell has in the end; cells that have more keep them. None leaves them as they are.
    precision
        As many trials as each selected cell needs instead: ``low``, ``medium``, ``high`` or your own.
    budget, purpose
        Tokens or dollars to spend, such as ``2M`` or ``5USD``, where they settle the ``ranking`` or narrow the
        ``intervals`` most; what the cube has is the guide.
    models, tasks, tiers
        Names of what is selected; empty means all.
    where
        Further conditions ``NAME=VALUE`` on evaluations and points, such as ``param_length=8..`` or ``family=a``.
    cube, cache, scheduler, workers, cluster, subscribers
        As for `run`.
    config
        The config of a cube that you did not run yourself.
    endpoints, key_envs
        Or, by model, the address to ask and the environment variable with its key; one text for all models.
    grader, stop
        As for `run`.

    Returns
    -------
    RunSummary
        What was done, and what is left.

    Raises
    ------
    SweepError
        If nothing is asked for, it is not said whom to ask, a name is unknown, or the cube does not say how it
        was made.

    Examples
    --------
    >>> import evalcube as ec
    >>> ec.upsample("results/sweep.zarr", trials=12, models=["small"]).sent
    16
    """
    known: Any = source
    if is_dataset(source) or not isinstance(source, Sweep | Mapping | str):
        known = need_address(source, "source")
    given = [
        f"`{n}`"
        for n, v in (("trials", trials), ("precision", precision), ("budget", budget))
        if v is not None
    ]
    if not given and repeats is None:
        raise SweepError("nothing to add was asked for", "Give `trials`, `repeats`, `precision` or `budget`")
    if len(given) > 1 or (budget is not None and repeats is not None):
        others = ", ".join([*given, *(["`repeats`"] if repeats is not None else [])])
        raise SweepError(f"{others} exclude each other", "Give one of them")
    no_bare_text(models=models, tasks=tasks, tiers=tiers, where=where)
    _refuse_numbers(("trials", trials, MOST_TRIALS), ("repeats", repeats, MOST_REPEATS))
    settings = acting_config(
        known, cube=cube, cache=cache, config=config, endpoints=endpoints, key_envs=key_envs
    )
    selection = Selection(tuple(models), tuple(tasks), tuple(tiers), tuple(where))
    sampling: Sampling = Fixed(trials, repeats, selection)
    if precision is not None:
        sampling = Adaptive.of(_named(precision), repeats or 1, selection)
    if budget is not None:
        sampling = _budget(settings, budget, purpose, selection)
    if not isinstance(known, Sweep | Mapping) and not Path(known).expanduser().is_file():
        for line in what_is_asked(settings):
            for subscriber in subscribers:
                subscriber(Noted(f"asks {line}"))
    return run(
        settings,
        scheduler=scheduler,
        workers=workers,
        cluster=cluster,
        sampling=sampling,
        grader=grader,
        subscribers=subscribers,
        stop=stop,
    )


def _refuse_numbers(*given: tuple[str, int | None, int]) -> None:
    for parameter, number, most in given:
        if number is not None:
            need_number(parameter, number, whole=True)
        if number is not None and not 1 <= number <= most:
            raise SweepError(f"`{parameter}`: must be a whole number from 1 to {most:,}, got {number}")


def _budget(settings: Sweep, amount: Amount | str, purpose: Purpose, selection: Selection) -> Budget:
    if purpose not in get_args(Purpose):
        raise SweepError(f"`purpose`: '{purpose}' is none", f"Give one of: {', '.join(get_args(Purpose))}")
    wanted = Amount.parse(amount) if isinstance(amount, str) else amount
    store = existing_store(build_plan(settings), settings.cube)
    if store is None:
        raise SweepError(
            f"`budget`: there is no cube '{settings.cube}' yet that would tell where to spend",
            "Run the sweep with a few trials per cell first, such as trials: 16",
        )
    before = float(spent(store.counters(), wanted.unit).sum())
    return resumed(Budget(wanted, purpose, selection, before), read_notes(store.cube.records).get("budget"))


def _named(precision: Precision | str) -> Precision:
    if isinstance(precision, Precision):
        return precision
    if precision not in LEVELS:
        raise SweepError(f"`precision`: '{precision}' is none", f"Give one of: {', '.join(LEVELS)}")
    return LEVELS[precision]
