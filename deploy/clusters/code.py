"""How a run's plugin and tasks reach workers, what its scheduler is told of it, and whether both have this evalcube."""

from __future__ import annotations

import asyncio
import hashlib
import os
import pickle
import platform
import sys
import sysconfig
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from distributed import Client, WorkerPlugin
from distributed import Future as DaskFuture

import evalcube
from evalcube.deploy.clusters import registrar
from evalcube.deploy.clusters.asking import PendingAnswer, ask_each, ask_scheduler, is_gone
from evalcube.deploy.clusters.registrar import WANTED, ClusterView, Registrar

_ROOT = Path(evalcube.__file__).parents[1]


@cache
def source_digest() -> str:
    """What distinguishes this source from any other."""
    files = [
        Path(folder) / name
        for folder, _, names in os.walk(_ROOT / "evalcube", followlinks=True)  # a checkout links to its rooms
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
    """Return why this process cannot stand in for one whose source has another digest; empty if it can.

    Where `digest` is empty, the two share one environment.
    """
    return f"has another version of evalcube ({_ROOT})" if digest and source_digest() != digest else ""


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

    The scheduler and the workers need this evalcube. A worker gets the run's plugin from the driver, once it is known
    to have it: Dask's own registration of plugins ends a worker that cannot unpickle one.

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

    def install(
        self, name: str, plugin: Callable[[], WorkerPlugin], *, group: str, endpoints: Sequence[str]
    ) -> None:
        """Register a run with the scheduler; workers make its plugin as soon as they are asked for their states.

        On workers the plugin has a `state`. The names of the run's task groups end with `group`; `endpoints` are
        digests of those that the run asks.
        """
        # Pickled here once: Dask would do so for each worker, and end one that cannot unpickle it.
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
            # Each step by itself: the scheduler may be gone, and the run's outcome is not changed by that.
            removal = scheduler.broadcast(msg={"op": "plugin-remove", "name": name}, on_error="ignore")
            PendingAnswer.within(self.client, removal).answer()
        with suppress(Exception):
            removal = scheduler.unregister_scheduler_plugin(name=f"{name}-registrar")
            PendingAnswer.within(self.client, removal).answer()

    def submit(
        self, function: Callable[..., Any], *args: object, key: tuple[str, int], priority: int
    ) -> Future:
        """Submit a task of a run."""
        rank = priority + _RANKS * self.choice.priority
        # Not pure: a key that Dask still remembers would return what an earlier task of that key has returned.
        return self.client.submit(function, *args, key=key, priority=rank, pure=False)

    def want_worker(self) -> None:
        """Have the scheduler want a worker for as long as this client is there.

        A cluster that adapts starts none where there is no task, and ends all that have none: so one waits for a
        resource that nobody has.
        """
        key = (f"{WANTED}-{uuid.uuid4().hex}", 0)
        self._wanted = self.client.submit(os.getpid, key=key, resources={WANTED: 1}, pure=False)

    def fetch(self, future: Future) -> PendingAnswer[Any]:
        """Ask for what a task returned. One that is lost with its worker is computed again before the answer comes."""
        return PendingAnswer(self.client, future._result())  # noqa: SLF001 - the public one is for threads

    @property
    def address(self) -> str:
        """The scheduler's."""
        scheduler: Any = self.client.scheduler
        return str(scheduler.address)

    @property
    def is_gone(self) -> bool:
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
            answers: dict[str, Any] = await ask_each(
                self.client, state_of, name, self._digest, workers=workers, failures=True
            )
            states = {address: state for address, state in answers.items() if isinstance(state, State)}
            # A worker that joined late, or was restarted by its nanny, comes without the plugin.
            new = [address for address, state in states.items() if not state.there and not state.problem]
            problems: dict[str, Any] = await ask_each(self.client, give, name, self._plugin, workers=new)
            for address, problem in problems.items():
                states[address] = states[address]._replace(problem=problem)
            # Those that cannot even be asked have no evalcube, or quite another one.
            strangers = {
                address: error for address, error in answers.items() if not isinstance(error, State | OSError)
            }
            folders = await ask_each(self.client, sysconfig.get_path, "scripts", workers=list(strangers))
            for address, error in strangers.items():
                problem = _with_remedy(_strangeness(error), f"{folders.get(address, sys.prefix)}/python")
                states[address] = State(False, problem, address)
            return states

        return PendingAnswer(self.client, ask())

    def allow(self, name: str, addresses: Sequence[str], silent: Sequence[str] = ()) -> PendingAnswer[None]:
        """Restrict a run's tasks to some workers, and move those that are elsewhere."""
        asking = ask_scheduler(self.client, registrar.allow, name, list(addresses), list(silent))
        return PendingAnswer.within(self.client, asking)


def _with_remedy(problem: str, python: str) -> str:
    return f"{problem}. Type there, and start the worker again: {line_to_type(python)}"


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
        problem = _with_remedy(problem, sys.executable)
    return State(False, problem, str(dask_worker.id), platform.node(), there=False)


async def give(name: str, plugin: bytes, dask_worker: Any = None) -> str:  # noqa: ANN401
    """Runs on workers: make a run's plugin, whose modules are imported in a thread; return why that fails."""
    try:
        make = await asyncio.to_thread(pickle.loads, plugin)
    except Exception as error:  # noqa: BLE001 - a package that evalcube requires is missing, too old or broken
        return _with_remedy(f"cannot import evalcube ({type(error).__name__}: {error})", sys.executable)
    # Asked again: the import took its time, and another question may have given it meanwhile.
    if name not in dask_worker.plugins:
        await dask_worker.plugin_add(plugin=make(), name=name)
    return ""
