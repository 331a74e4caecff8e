"""Asks each worker of a cluster whether it could take part in a sweep; no question is sent to any model."""

from __future__ import annotations

import importlib.metadata
import platform
import secrets
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from distributed import Worker, WorkerPlugin

from evalcube import EvalcubeError
from evalcube.deploy.clusters import Cluster, ClusterError, Connection, LocalProcesses
from evalcube.deploy.clusters.asking import Question, ask_each
from evalcube.deploy.clusters.carried import owner_here
from evalcube.deploy.clusters.code import State
from evalcube.flows.config.models import ModelConfig, SweepConfig
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.plan import Plan
from evalcube.flows.run.chosen_cluster import chosen_cluster
from evalcube.flows.run.proof import missing_key, unmade
from evalcube.flows.run.reach import unreached
from evalcube.flows.run.servers import SIMULATED, is_managed, keyed
from evalcube.flows.run.waiting import wait_for_workers
from evalcube.stages.infer.endpoint import Endpoint
from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.space import Space, When
from evalcube.storage.errors import StorageError, guarded
from evalcube.storage.reach import Token
from evalcube.storage.urls import absolute

CHECKS = ("versions", "cube", "cache", "tasks", "puts", "keys", "endpoints")
"""What is asked of each worker: its packages, whether it reaches the sweep's places, whether it can make its questions,
with their data files and plugins, whether of several that put one object only if it is absent one succeeds, whether it
has the models' keys, and whether it reaches their addresses."""

_READY_SECONDS = 90.0
_ANSWER_SECONDS = 60.0
_POLL_SECONDS = 0.2
_CLOCK_SECONDS = 60.0


@dataclass(frozen=True)
class WorkerCheck:
    """What one worker said."""

    address: str
    name: str
    host: str = ""
    python: str = ""
    dask: str = ""
    problems: Mapping[str, str] | None = None
    """By check, why the worker could not take part; those that are well are not in it. None if it did not answer."""
    warning: str = ""
    """What does not matter to a run, and should be known: a clock that is off."""

    @property
    def well(self) -> bool:
        """Whether it could take part."""
        return self.problems is not None and not self.problems

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "well": self.well}


@dataclass(frozen=True)
class _Place:
    """Where workers prove that they see the same cube: beside it, since it may not be there yet, or be in use."""

    cube: str
    url: str
    secret: str

    @property
    def space(self) -> Space:
        return space_of(self.url)

    def make(self) -> None:
        """Make it, with a token in it."""
        with guarded(self.cube, "write beside the sweep's cube"):
            self.space.assemble(lambda draft: _put_token(draft, self.secret))

    def remove(self) -> None:
        """Remove it with all that workers left there."""
        with suppress(OSError, StorageError):
            if not self.space.remove():
                self.space.clear("")

    def problem(self) -> str:
        """Runs on a worker: why it cannot use the place."""
        try:
            found = self.space.get("token", 1000)
            if found is None or found.data.decode(errors="replace") != self.secret:
                return (
                    f"does not see where the sweep's cube is ({self.cube}). Mount the same file system there, or give "
                    "the cube an address that all reach (such as s3://...)"
                )
        except (OSError, StorageError) as error:
            return f"cannot use the place of the sweep's cube ({self.cube}): {error}"
        return ""

    def puts(self, who: str) -> tuple[str, bool]:
        """Runs on a worker: why conditional writes cannot be relied upon, and whether it won the one of all workers.

        Two runs that take a cube's lease at once are told apart by such a write alone.
        """
        own = f"own-{who}"
        try:
            won = self.space.put("claim", who.encode(), when=When.ABSENT, durable=False) is not None
            first = self.space.put(own, b"1", when=When.ABSENT, durable=False)
            if first is None or self.space.put(own, b"2", when=When.ABSENT, durable=False) is not None:
                return "a put on the condition that nothing is there replaces what is there", won
            second = self.space.put(own, b"3", when=first, durable=False)
            if second is None or self.space.put(own, b"4", when=first, durable=False) is not None:
                return "a put on the condition that nothing has changed replaces what has", won
        except (OSError, StorageError) as error:
            return f"cannot write beside the sweep's cube ({self.cube}): {error}", False
        return "", won


def _put_token(draft: Space, secret: str) -> None:
    draft.put("token", secret.encode())


@dataclass(frozen=True)
class _Questions:
    """What a sweep asks, as its workers get it."""

    spec: Mapping[str, Any]
    trials: int
    repeats: int

    def problem(self) -> str:
        """Runs on a worker: why it cannot make the questions, such as for want of a data file."""
        try:
            return unmade(Plan.from_spec(self.spec, self.trials, self.repeats))
        except EvalcubeError as error:
            return str(error)


class CheckPlugin(WorkerPlugin):
    """Has every worker look at itself once; what it found is asked for afterwards."""

    def __init__(
        self, name: str, place: _Place, cache: Token, endpoints: Sequence[Endpoint], questions: _Questions
    ) -> None:
        self.name = name
        self._place, self._cache, self._endpoints = place, cache, tuple(endpoints)
        self._questions = questions
        self.report: dict[str, Any] | None = None

    def check(self, worker: Worker) -> str:
        """Look at this worker; finds nothing that keeps it from answering."""
        who = str(worker.id).replace("/", "-").replace(":", "-")
        problems = {
            "cube": self._place.problem(),
            "cache": self._cache.answer(who),
            "tasks": self._questions.problem(),
            "keys": missing_key(self._endpoints),
            "endpoints": "; ".join(filter(None, map(unreached, self._endpoints))),
        }
        won = False
        if not problems["cube"]:
            problems["puts"], won = self._place.puts(who)
        self.report = {
            "host": platform.node(),
            "python": platform.python_version(),
            "dask": importlib.metadata.version("distributed"),
            "problems": {name: problem for name, problem in problems.items() if problem},
            "won": won,
            "who": who,
        }
        return ""

    def open(self) -> None:
        """Nothing is kept open."""

    def start(self, worker: Worker) -> None:
        """Nothing goes on."""

    def setup(self, worker: Worker) -> None:
        """Look at a worker that has this process's code."""
        self.check(worker)

    async def teardown(self, worker: Worker) -> None:
        """Nothing is left."""


def check_cluster(
    settings: SweepConfig,
    *,
    cluster: Cluster | str | Path | None = None,
    scheduler: str | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> list[WorkerCheck]:
    """Ask each worker whether it could take part in a sweep.

    Parameters
    ----------
    settings
        The sweep's config.
    cluster, scheduler
        As for `evalcube.flows.run.sweep.run`; default: the config's, else one local worker.
    note
        Called with what the user should read while the cluster starts.

    Returns
    -------
    list of WorkerCheck
        One for each worker, by its address.

    Raises
    ------
    SweepError
        If there is no such cluster.
    StorageError
        If this process cannot write where cube and cache are.
    ClusterError
        If the cluster cannot be started or reached, or has no worker.
    """
    chosen = chosen_cluster(settings, cluster=cluster, scheduler=scheduler) or LocalProcesses(
        1, dashboard=False
    )
    number = uuid.uuid4().hex[:12]
    cube, cache = absolute(settings.cube), absolute(settings.cache)
    place = _Place(cube, f"{cube}.check-{number}", secrets.token_hex(16))
    open_cache(cache).close()
    token = Token("cache", cache, f"check-{number}", secrets.token_hex(16))
    endpoints = [endpoint for model in settings.models for endpoint in _endpoints(model)]
    plan = build_plan(settings)
    questions = _Questions(plan.spec(), plan.trials, plan.repeats)
    with ExitStack() as stack:
        stack.callback(place.remove)
        place.make()
        answered: list[str] = []
        stack.callback(token.remove, answered)
        token.leave()
        connection = stack.enter_context(chosen.connect())
        wait_for_workers(chosen, connection, None, note)
        name = f"evalcube-check-{number}"
        stack.callback(connection.code.remove, name)
        plugin = CheckPlugin(name, place, token, endpoints, questions)
        _install(connection, plugin, settings.name)
        return _collect(connection, name, answered)


def _endpoints(model: ModelConfig) -> list[Endpoint]:
    """Where a model is asked; none of one whose server a run starts itself."""
    if is_managed(model):
        return []
    return [keyed(model, address.removeprefix(SIMULATED)) for address in model.addresses]


def _install(connection: Connection, plugin: CheckPlugin, sweep: str) -> None:
    try:
        connection.code.install(
            plugin.name, plugin, owner=owner_here(f"check of {sweep}"), group=plugin.name, endpoints=()
        )
    except OSError as error:
        raise ClusterError(f"the cluster went away while it was asked ({type(error).__name__})") from error


def _collect(connection: Connection, name: str, answered: list[str]) -> list[WorkerCheck]:
    """What the workers say, those that do not answer in time too; `answered` gets the names of those that do."""
    there = dict(connection.code.look().answer().workers)
    states: dict[str, State] = {}
    apart: dict[str, float] = {}
    deadline = time.monotonic() + _READY_SECONDS
    while set(there) - set(states) and time.monotonic() < deadline:
        with suppress(OSError):
            answers = connection.code.states(name, sorted(set(there) - set(states))).answer()
            states |= {address: state for address, state in answers.items() if state.ready or state.problem}
            now = time.time()
            apart |= {address: (state.time or now) - now for address, state in answers.items()}
        time.sleep(_POLL_SECONDS)
    well = [address for address, state in states.items() if state.ready]
    asked = ask_each(connection.client, _report_of, name, workers=well, seconds=_ANSWER_SECONDS)
    reports = Question(connection.client, asked).answer() if well else {}
    said = {address: report for address, report in reports.items() if report is not None}
    answered += [report["who"] for report in said.values()]
    winners = [address for address, report in said.items() if report["won"]]
    for address in winners[1:]:
        said[address]["problems"]["puts"] = (
            f"put an object that {winners[0]} had put, both on the condition that nothing is there: the store does not "
            "keep to conditions, or they see different places"
        )
    return [
        _check_of(address, there[address], states.get(address), said.get(address), apart.get(address, 0.0))
        for address in there
    ]


def _check_of(
    address: str, name: str, state: State | None, report: dict[str, Any] | None, apart: float
) -> WorkerCheck:
    if report is None:
        unfit = {"versions": state.problem} if state is not None and state.problem else None
        return WorkerCheck(address, name, problems=unfit)
    off = abs(apart) > _CLOCK_SECONDS
    return WorkerCheck(
        address,
        name,
        report["host"],
        report["python"],
        report["dask"],
        report["problems"],
        f"its clock is {abs(apart) / 60:.1f} minutes off" if off else "",
    )


def _report_of(name: str, dask_worker: Any = None) -> dict[str, Any] | None:  # noqa: ANN401 - Dask's own worker
    """Runs on workers: what they found."""
    plugin = dask_worker.plugins.get(name)
    inner = getattr(plugin, "inner", plugin)
    return getattr(inner, "report", None)
