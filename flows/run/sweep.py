"""Brings a sweep to its end, or as far as it gets; `run` can be called again after any interruption."""

from __future__ import annotations

import multiprocessing
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evalcube.flows.config.kept_questions import mappings
from evalcube.flows.config.load import SCHEDULER_VARIABLE, as_config
from evalcube.flows.config.models import Model, Sweep
from evalcube.flows.config.recipes import unverified
from evalcube.flows.errors import SweepError, WrongTypeError, need_number, told
from evalcube.flows.events import Announcer, Subscriber
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.part import Fixed, Only, Sampling, as_configured
from evalcube.flows.plan.plan import Plan
from evalcube.flows.run.follow.records import to_logging
from evalcube.flows.run.servers import endpoint_of
from evalcube.flows.run.session import FLUSH_SECONDS, Session
from evalcube.flows.run.stopping import RunInterrupted
from evalcube.flows.run.summary import RunSummary
from evalcube.flows.run.worker.context import missing_key
from evalcube.flows.state.beside_config import KEY, find_unnamed
from evalcube.flows.state.growing import extend
from evalcube.flows.state.questions import keep_questions
from evalcube.flows.state.records import PACKAGES, read_notes
from evalcube.flows.state.rescoring import regrade_older
from evalcube.flows.state.shared_arrays import repair_shared
from evalcube.flows.state.store import SweepStore, relabel, sweep_cube
from evalcube.flows.state.trust import remember_run
from evalcube.stages.generate.dataset.hub.address import is_hub, lasting
from evalcube.stages.generate.dataset.kept import kept_version
from evalcube.storage.cache.cache import prepare_cache
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.lease import Lease
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import LeaseHeldError
from evalcube.storage.reach import clear_tokens
from evalcube.storage.urls import absolute, has_folders

if TYPE_CHECKING:
    from evalcube.deploy.clusters import Cluster


_WAIT_SECONDS = 1.0
MOST_WORKERS = 256
Graders = Literal["current", "pinned"]


def run(
    config: Sweep | Mapping[str, Any] | str | Path,
    *,
    cube: str | Path | None = None,
    cache: str | Path | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
    cluster: Any = None,  # noqa: ANN401 - a cluster of anybody's
    _sampling: Sampling | None = None,
    only: Sequence[str] = (),
    trials: str | None = None,
    repeats: int | None = None,
    grader: Graders = "current",
    fresh: bool = False,
    subscribers: Sequence[Subscriber] = (),
    flush_seconds: float = FLUSH_SECONDS,
    wait: float = 0.0,
    progress: bool | None = None,
    stop: threading.Event | None = None,
) -> RunSummary:
    """Run a sweep, or resume it.

    What is recorded is not asked again: run the same config again after any interruption, or with more ``trials``
    or ``repeats`` to extend it.

    Parameters
    ----------
    config
        A config: an `evalcube.Sweep`, a mapping of the same form, or the path of a YAML file.
    cube, cache
        Addresses of the results and of the response cache; default: those in the config.
    scheduler
        Address of a running Dask scheduler, such as tcp://host:8786. Default, if the config names no cluster: that of
        the Dask client that is open in this process, else that in the environment variable ``DASK_SCHEDULER_ADDRESS``,
        else none: the sweep runs on this machine.
    workers
        Number of local worker processes; default: if at most 100,000 trials are left, this process does the work;
        otherwise one per core, at most eight.
    cluster
        A Dask cluster or client, which stays open; the address of a scheduler; a value that `cluster` may have in a
        config; or the path of a YAML file with such a value. Cannot be combined with `scheduler` or `workers`. Default:
        as the config says.
    only
        Which part of the plan to ask now: conditions such as ``model=gpt``, ``task=sort,letters`` or ``tier=easy``, all
        of which must hold. The rest stays pending. Default: all of the plan.
    trials
        Which trials of each cell to ask now, counted from 0: ``16:32`` is trials 16 to 31, ``16`` the first 16. The end
        of the range becomes the planned number of trials of each cell. Default: as the config says.
    repeats
        How often each question is asked; default: as the config says.
    grader
        What to do with replies in the cube that another version of evalcube graded: ``current`` (default) grades them
        again from the cache; ``pinned`` keeps their grades, so that grades of two versions are mixed.
    fresh
        If true, use no reply from the cache: new ones go into a new cache beside it, and the cube must be a new one,
        too.
    subscribers
        Functions that are called with each event (see `evalcube.events`), one call at a time; default: none. Python's
        logger ``evalcube`` also receives messages and the end of the run.
    flush_seconds
        Unfinished regions (the units of writing) are written at least this often, in seconds.
    wait
        Seconds to wait if another run is working on the cube, such as that of a pod that is being replaced; default: 0,
        which refuses to run.
    progress
        Whether to show progress: below the cell in a notebook, else on standard error. Default: only in notebooks.
    stop
        An event that stops the run cleanly when any thread sets it, such as a thread of a dashboard or of a worker of
        Prefect or Airflow; `reason` in the summary is then ``stopped``. Default: none.

    Returns
    -------
    RunSummary
        What was done, and what is left.

    Raises
    ------
    ConfigError
        If the config has problems.
    SweepError
        If the sweep cannot run as configured.
    StorageError
        If the cube belongs to another config, another run is writing to it, or the disk is full or read-only.
    DeployError
        If the cluster or a managed server does not start.
    KeyboardInterrupt
        After Ctrl-C, SIGTERM or SIGHUP, once the run has stopped cleanly; the exception is an
        `evalcube.events.RunInterrupted`, whose `summary` says what was done. A second signal stops immediately.

    Examples
    --------
    >>> import evalcube as ec
    >>> summary = ec.run("sweep.yaml").raise_for_status()
    >>> summary.done, summary.cube
    (64, 'results/sweep.zarr')
    """
    announcer = Announcer(subscribers)
    _refuse_start(stop, workers)
    need_number("wait", wait)
    need_number("flush_seconds", flush_seconds)
    settings = as_config(config, cube=cube, cache=cache, repeats=repeats)
    if fresh:
        settings = as_config(settings, cache=fresh_cache(settings))
    address = _place(settings, workers, cluster=cluster, scheduler=scheduler)
    part = Only.of(only, trials)
    plan = build_plan(settings)
    asked = _asked_models(settings, plan, part)
    if address is None or address.environment == "inherited":
        _check_keys(asked)
    opened, created = _prepare_cube(settings, plan)
    with ExitStack() as stack:
        announcer = Announcer((announcer, to_logging, *_display(stack, progress)))
        for text in (*_files(plan), *unverified(settings.model_dump(include={"tasks"})["tasks"])):
            announcer.note(text)
        lease = stack.enter_context(_lease(opened.records, announcer.note, wait, stop))
        # Opened again: whoever held the lease a moment ago may have grown the cube and added to the ledger.
        opened, plan = sweep_cube(plan, settings.cube)
        clear_tokens(opened.space)
        # What this run has just made is whole, unless another one had the lease meanwhile.
        repaired = [] if created and not read_notes(opened.records) else _renew_shared_arrays(opened, plan)
        if grader == "current":
            regrade_older(opened, plan, settings.cache, announcer)
        urgently = partial(announcer.note, urgent=True)
        keep_questions(opened.records, plan, urgently)  # before anything is asked
        store = SweepStore(opened, plan)
        chosen = _sampling or (as_configured(settings) if part is None else part.sampling(settings))
        _note_exhausted(plan, _sampling, urgently)
        notes = _notes(settings, store)
        store.note({**notes, **chosen.notes()})
        remember_run(store.cube, notes["config"])
        for name in repaired:
            announcer.note(f"`{name}` of the cube was damaged; it is made again")
        session = Session(
            store, settings, chosen, address, workers, lease, announcer, flush_seconds, part, stop
        )
        summary = session.run()
        if summary.reason == "complete":
            store.note(notes)
    if session.was_interrupted:
        raise RunInterrupted(summary)
    return summary


def _prepare_cube(settings: Sweep, plan: Plan) -> tuple[Cube, bool]:
    """The sweep's cube, whether it was made just now as there was none, and beside it a cache that can be written."""
    if not (exists := Cube.exists(settings.cube)):
        prepare_cache(settings.cache)  # first, so that no empty cube is left where that is refused
    cube, merged = sweep_cube(plan, settings.cube)
    if exists:
        prepare_cache(settings.cache)  # fails now, not on a worker later
    return cube, merged is plan  # else it is one with what the cube had


def _renew_shared_arrays(cube: Cube, plan: Plan) -> list[str]:
    """Bring the arrays that regions share to what a plan is; names of those that were damaged and are made again."""
    repaired = repair_shared(cube)
    cube.restore_metadata()
    extend(cube, plan)
    relabel(cube, plan)
    return repaired


def _place(settings: Sweep, workers: int | None, **named: Any) -> Cluster | None:  # noqa: ANN401 - as `run` takes them
    """The cluster that is named, or that is open here; None where there is none but processes of this machine."""
    # Dask takes a quarter of a second, which a run with nothing to do does without.
    choices = (*named.values(), settings.cluster, os.environ.get(SCHEDULER_VARIABLE) or None)
    if "distributed" not in sys.modules and choices == (None,) * len(choices):
        return None
    from evalcube.flows.run.cluster import chosen_cluster

    return chosen_cluster(settings, workers=workers, **named)


def _refuse_start(stop: threading.Event | None, workers: int | None) -> None:
    """Refuse what keeps a run from beginning here, whatever its config is."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit  # a worker process that runs its parent's script: the parent says so, once
    if workers is not None:
        need_number("workers", workers, whole=True)
        if not 1 <= workers <= MOST_WORKERS:
            raise SweepError(
                f"`workers`: {workers} is not from 1 to {MOST_WORKERS}", "Leave it out for the default"
            )
    if stop is not None and not hasattr(stop, "is_set"):  # those of multiprocessing are events, too
        raise WrongTypeError(
            f"`stop`: {told(stop)} is no event", "Give a threading.Event, and set it to stop the run"
        )


def _files(plan: Plan) -> list[str]:
    files = sorted(filter(kept_version, plan.files.values()))
    gone = [f"{file} is gone: its questions are read from the copy that the cube keeps" for file in files]
    sources = dict.fromkeys(file.partition("?")[0] for file in plan.files.values() if is_hub(file))
    return [*gone, *(f"questions are those of {source}" for source in sources)]


def _note_exhausted(plan: Plan, sampling: Sampling | None, notify: Callable[[str], None]) -> None:
    wanted = (sampling.trials or 0) if isinstance(sampling, Fixed) else 0
    for task, there in zip(plan.task_names, plan.sources.max(axis=1).tolist(), strict=True):
        if there < wanted:
            notify(
                f"{task} has {there:,} different questions at most: {wanted:,} trials are more than there are"
            )


def _lease(records: Space, notify: Callable[[str], None], wait: float, stop: threading.Event | None) -> Lease:
    """The right to be the cube's only driver, which another one may give up in time."""
    deadline, warned = time.monotonic() + wait, False
    while True:
        try:
            return Lease.acquire(records, notify=notify)
        except LeaseHeldError as error:
            if time.monotonic() >= deadline or (stop is not None and stop.is_set()):
                raise
            if not warned:
                notify(f"waiting for up to {wait:g} s, as another run has the cube: {error.message}")
                warned = True
        time.sleep(_WAIT_SECONDS)


def _display(stack: ExitStack, wanted: bool | None) -> tuple[Subscriber, ...]:
    """Whoever shows the run, until the stack is closed."""
    # IPython is not imported to find that out.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    notebook = getattr(shell, "kernel", None) is not None
    if wanted is False or (wanted is None and not notebook):
        return ()
    from evalcube.flows.run.follow.display import Display, NotebookDisplay

    return (stack.enter_context(NotebookDisplay() if notebook else Display()),)


def _asked_models(settings: Sweep, plan: Plan, part: Only | None) -> Sequence[Model]:
    """The models that a run may ask, judges included; refuses a part that is none, before anything is written."""
    if part is None:
        return settings.models
    part.sampling(settings)
    chosen = np.flatnonzero(part.selection.mask(plan).any(axis=(1, 2)))
    names = {plan.evaluations[index].model for index in chosen}
    names |= {judge.model for judge in plan.judges}
    return [model for model in settings.models if model.name in names]


def _check_keys(models: Sequence[Model]) -> None:
    if problem := missing_key([endpoint_of(model) for model in models]):
        raise SweepError(problem)


def _notes(settings: Sweep, store: SweepStore) -> dict[str, Any]:
    """What whoever goes on with the cube needs: its config, which names secrets' variables only, and its data files."""
    # Where it works is nobody's business but this run's: a cube's notes must never decide where commands are started.
    config = settings.model_dump(mode="json", exclude_unset=True, exclude={"cluster"})
    config |= {"cube": absolute(settings.cube), "cache": absolute(settings.cache)}
    for params in mappings(config.get("tasks")):
        if isinstance(folder := params.get("include_path"), str) and isinstance(params, dict):
            params["include_path"] = lasting(folder)
    files = {digest: lasting(path) for digest, path in store.plan.files.items()}
    notes: dict[str, Any] = {"files": files} if files else {}
    if packages := store.plan.packages:
        notes[PACKAGES] = packages
    if (omitted := find_unnamed(store.plan, store.counters())) is not None:
        notes[KEY] = omitted.to_dict()
    return {"cache": config["cache"], "name": settings.name, "config": config, **notes}


def fresh_cache(settings: Sweep) -> str:
    """Return the address of a new cache beside the usual one, since a cache never replaces a reply."""
    if not has_folders(settings.cache):
        raise SweepError(
            "`fresh`: a Redis server has no folders for a newer cache", "Give `cache` another database of it"
        )
    if Cube.exists(settings.cube):
        records = Cube.open(settings.cube).records
        if Ledger(records).newest():
            used = read_notes(records).get("cache", settings.cache)
            raise SweepError(
                f"`fresh`: {settings.cube} has answers that are older, and no run asks for those again",
                f"Give another `cube`; or go on with this one by `cache` {used} in place of `fresh`",
            )
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return f"{settings.cache.rstrip('/')}.since/{stamp}-{secrets.token_hex(3)}"
