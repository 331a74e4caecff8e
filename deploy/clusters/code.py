"""How a run's plugin and tasks reach workers, what its scheduler is told of it, and whether both have this evalcube."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import os
import pickle
import platform
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from distributed import Client, WorkerPlugin
from distributed import Future as DaskFuture
from packaging.requirements import Requirement

import evalcube
from evalcube.deploy.clusters import registrar
from evalcube.deploy.clusters.asking import PendingAnswer, ask_each, ask_scheduler, is_gone
from evalcube.deploy.clusters.registrar import ClusterView, Registrar

_ROOT = Path(evalcube.__file__).parents[1]
_PACKAGE = "evalcube"


@cache
def source_digest() -> str:
    """What distinguishes this source from any other."""
    files = [
        Path(folder) / name
        for folder, _, names in os.walk(_ROOT / _PACKAGE, followlinks=True)  # a checkout links to its rooms
        for name in names
        if not name.endswith(".pyc")
    ]
    digest = hashlib.sha256()
    for path in sorted(files, key=lambda path: path.relative_to(_ROOT).parts):
        digest.update(path.relative_to(_ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def line_to_type(python: str) -> str:
    """What installs this process's evalcube for another Python, which sees the same files where it is a checkout."""
    checkout = (_ROOT / "pyproject.toml").is_file()
    return f"{python} -m pip install {_ROOT if checkout else f'evalcube=={evalcube.__version__}'}"


def unlike(digest: str) -> str:
    """Why this process cannot stand in for one with another source; empty if it can.

    Parameters
    ----------
    digest
        Of the other's source; where it is empty, the two share one environment.
    """
    if not digest:
        return ""
    if source_digest() != digest:
        return f"has another version of evalcube ({_ROOT})"
    lacks = _lacks()
    return f"{'; '.join(lacks)}. Install what evalcube requires" if lacks else ""


def _lacks() -> list[str]:
    """What evalcube requires, by its own metadata, and this process has not."""
    lacks = []
    try:
        required = importlib.metadata.requires(_PACKAGE) or ()
    except importlib.metadata.PackageNotFoundError:
        required = ()  # a checkout on a path, which says nothing of itself
    for requirement in map(Requirement, required):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        version = ""
        with suppress(importlib.metadata.PackageNotFoundError):
            version = importlib.metadata.version(requirement.name)
        if not version or not requirement.specifier.contains(version, prereleases=True):
            lacks.append(f"{requirement.name} {version or 'is missing'} (needs {requirement.specifier})")
    return lacks


Future: TypeAlias = "DaskFuture[Any]"

_RANKS = 100
"""Between two priorities of runs, so that all stages of one come before all of another."""


class WorkerChoice(NamedTuple):
    """Which of a cluster's workers a run uses, and how its tasks rank among those of others."""

    names: tuple[str, ...] = ()
    """Names or addresses; empty for all."""
    resource: str = ""
    """Dask resource that they have; empty for any."""
    priority: int = 0
    """The higher, the sooner its tasks are done."""

    def __str__(self) -> str:
        """Whom it chooses, in words."""
        named = f"named {' or '.join(self.names)}" if self.names else ""
        having = f"with the resource {self.resource}" if self.resource else ""
        return " ".join(filter(None, (named, having)))


EVERYBODY = WorkerChoice()


class State(NamedTuple):
    """How far a worker is with a run's plugin."""

    ready: bool
    """Whether it can take part."""
    problem: str = ""
    """Why it never will; empty if it may still get ready."""
    id: str = ""
    """Unique name of the worker's process."""
    host: str = ""
    """Name of its machine."""
    cut_off: Mapping[str, str] = {}
    """Addresses of endpoints that it cannot connect to, and why."""
    there: bool = True
    """Whether it has the plugin."""


class Code:
    """How a run reaches the workers of a cluster, and what its scheduler is told of it.

    The scheduler and the workers need evalcube, as they need every package that their tasks use. A worker gets the
    run's plugin from the driver, once it is known to have the same evalcube: one that has none, or another, could not
    even unpickle it, and Dask would end it.

    Parameters
    ----------
    client
        A connected client.
    choice
        Which workers are used.
    digest
        Of the source that scheduler and workers have to have; empty where they share this process's environment.
    """

    def __init__(self, client: Client, choice: WorkerChoice = EVERYBODY, digest: str = "") -> None:
        self.client = client
        self.choice = choice
        self.elsewhere = bool(digest)
        """Whether workers have an environment of their own."""
        self._digest = digest
        self._name = ""
        self._plugin = b""

    def unfit_scheduler(self) -> str:
        """Why the scheduler cannot hold a run's tasks, and what to do; empty if it can."""
        try:
            asking = ask_scheduler(self.client, unlike, self._digest)
            problem = PendingAnswer.within(self.client, asking).answer()
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it stumbles over, it is not this evalcube
            problem = _strangeness(error)
        return f"{problem}. Type there, and start it again: {line_to_type('python')}" if problem else ""

    def install(self, name: str, plugin: WorkerPlugin, *, group: str, endpoints: Sequence[str]) -> None:
        """Have the scheduler know a run, whose plugin workers get as soon as they are asked for their states.

        Parameters
        ----------
        name, plugin
            The plugin, and its name. On workers it has a `state`.
        group
            What the names of the run's task groups end with.
        endpoints
            Digests of the endpoints that the run asks.

        Raises
        ------
        OSError
            The cluster cannot be reached.
        """
        self._name, self._plugin = name, pickle.dumps(plugin)
        names, resource = list(self.choice.names), self.choice.resource
        registrar = Registrar(name, self.client.id, group, list(endpoints), names, resource)
        registration = self.client._register_scheduler_plugin(  # noqa: SLF001 - the public one has no time limit
            plugin=registrar, name=registrar.name, idempotent=False
        )
        PendingAnswer.within(self.client, registration).answer()

    def remove(self, name: str) -> None:
        """Take a run away; a cluster that is gone needs no cleaning, and one worker holds nothing up."""
        scheduler: Any = self.client.scheduler
        with suppress(Exception):
            removal = scheduler.broadcast(msg={"op": "plugin-remove", "name": name}, on_error="ignore")
            PendingAnswer.within(self.client, removal).answer()
        with suppress(Exception):
            removal = scheduler.unregister_scheduler_plugin(name=f"{name}-registrar")
            PendingAnswer.within(self.client, removal).answer()

    def submit(
        self, function: Callable[..., Any], *args: object, key: tuple[str, int], priority: int
    ) -> Future:
        """Submit a task of a run.

        Parameters
        ----------
        function, args
            What is called; arguments may be futures of such tasks, and sequences of them.
        key
            Of the task.
        priority
            The higher, the sooner.
        """
        rank = priority + _RANKS * self.choice.priority
        return self.client.submit(function, *args, key=key, priority=rank, pure=False)

    def fetch(self, future: Future) -> PendingAnswer[Any]:
        """Ask for what a task returned. One that is lost with its worker is computed again before the answer comes."""
        return PendingAnswer(self.client, future._result())  # noqa: SLF001 - the public one is for threads

    @property
    def address(self) -> str:
        """The scheduler's."""
        scheduler: Any = self.client.scheduler
        return str(scheduler.address)

    @property
    def gone(self) -> bool:
        """Whether the scheduler is away for good."""
        return is_gone(self.client)

    def look(self) -> PendingAnswer[ClusterView]:
        """Ask the scheduler who is there, and how the run stands."""
        names, resource = self.choice.names, self.choice.resource
        return PendingAnswer.within(
            self.client, ask_scheduler(self.client, registrar.look, self._name, names, resource)
        )

    def states(self, name: str, workers: Sequence[str]) -> PendingAnswer[Mapping[str, State]]:
        """Ask workers how far they are with a run's plugin; the answer lacks those that did not answer in time.

        Those that have it not, and could, are given it.
        """

        async def ask() -> Mapping[str, State]:
            said: dict[str, Any] = await ask_each(
                self.client, state_of, name, self._digest, workers=workers, failures=True
            )
            found = {one: state for one, state in said.items() if isinstance(state, State)}
            new = [one for one, state in found.items() if not state.there and not state.problem]
            await ask_each(self.client, give, name, self._plugin, workers=new)
            strange = {one: error for one, error in said.items() if not isinstance(error, State | OSError)}
            return found | await self._strangers(strange)

        return PendingAnswer(self.client, ask())

    async def _strangers(self, workers: Mapping[str, Exception]) -> dict[str, State]:
        """Workers that cannot even be asked, as they have no evalcube or quite another one."""
        folders = await ask_each(self.client, sysconfig.get_path, "scripts", workers=list(workers))
        hosts = await ask_each(self.client, platform.node, workers=list(workers))
        found = {}
        for one, error in workers.items():
            line = line_to_type(f"{folders.get(one, sys.prefix)}/python")
            problem = f"{_strangeness(error)}. Type there, and start the worker again: {line}"
            found[one] = State(False, problem, one, hosts.get(one, ""))
        return found

    def allow(self, name: str, addresses: Sequence[str], silent: Sequence[str] = ()) -> PendingAnswer[None]:
        """Let a run's tasks go to some workers only, and move those that are elsewhere; replaces what was said before.

        Parameters
        ----------
        name
            Of the run's plugin.
        addresses
            Of the workers.
        silent
            Others that do not answer: what they have of the run is made again elsewhere.
        """
        asking = ask_scheduler(self.client, registrar.allow, name, list(addresses), list(silent))
        return PendingAnswer.within(self.client, asking)


def _strangeness(error: BaseException) -> str:
    # What cannot even be unpickled comes back as a text in a plain exception.
    if "No module named 'evalcube'" in str(error):
        return "has no evalcube"
    return f"has another version of evalcube, or lacks what it requires ({error})"


async def state_of(name: str, digest: str, dask_worker: Any = None) -> State:  # noqa: ANN401 - Dask's own worker
    """Runs on workers: how far one is with a run's plugin, or why it cannot be given it."""
    plugin = dask_worker.plugins.get(name)
    if plugin is not None:
        state: State = plugin.state(dask_worker)
        return state
    # In a thread: it reads all of the source, and other runs' tasks go on meanwhile.
    problem = await asyncio.to_thread(unlike, digest)
    if problem:
        problem += f". Type there, and start the worker again: {line_to_type(sys.executable)}"
    return State(False, problem, str(dask_worker.id), platform.node(), there=False)


async def give(name: str, plugin: bytes, dask_worker: Any = None) -> None:  # noqa: ANN401
    """Runs on workers: set up a run's plugin, whose modules are imported in a thread."""
    made = await asyncio.to_thread(pickle.loads, plugin)
    if name not in dask_worker.plugins:
        await dask_worker.plugin_add(plugin=made, name=name)
