"""How a run's plugin and tasks reach workers that can import evalcube already, and what its scheduler is told of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from distributed import Client, WorkerPlugin
from distributed import Future as DaskFuture

from evalcube.deploy.clusters import registrar
from evalcube.deploy.clusters.asking import SERVING, Question, ask_scheduler, is_gone
from evalcube.deploy.clusters.sent import SentFunction, SentRegistrar

Future = DaskFuture[Any]

_REGISTRATIONS = 3
_REGISTRATION_SECONDS = 60.0
_REMOVAL_SECONDS = 5.0
_RANKS = 100
"""Between two priorities of runs, so that all stages of one come before all of another."""


class Choice(NamedTuple):
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


EVERYBODY = Choice()


class Queue(NamedTuple):
    """A run's tasks beside those of others."""

    running: int = 0
    """Of the run, those that are under way on a worker."""
    waiting: int = 0
    """Of the run, those that wait for a worker."""
    others: int = 0
    """Tasks of others that are under way or wait."""


class View(NamedTuple):
    """A cluster as its scheduler sees it."""

    workers: Mapping[str, str]
    """Workers that serve: address -> name."""
    shares: Mapping[str, tuple[int, int]]
    """For each endpoint that runs on the scheduler may share, by digest: how many do, and this one's place."""
    seen: Mapping[str, float] = {}
    """By address, when the worker was last heard of; on the scheduler's clock, so that only changes mean something."""
    paused: frozenset[str] = frozenset()
    """Those that Dask gives no tasks, as their memory is nearly full."""
    queue: Queue = Queue()
    others: Sequence[str] = ()
    """Names of some workers that are there and that the run may not use."""


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
    time: float | None = None
    """Seconds since the epoch by the worker's clock."""
    cut_off: Mapping[str, str] = {}
    """Addresses of endpoints that it cannot connect to, and why."""


class Code:
    """Evalcube as workers have it: the same as here, installed or inherited.

    Parameters
    ----------
    client
        A connected client.
    choice
        Which workers are used, and how urgent the run is.
    """

    carried = False
    """Whether it is brought to the workers, who are asked whether they can take part."""

    def __init__(self, client: Client, choice: Choice = EVERYBODY) -> None:
        self.client = client
        self.choice = choice
        self._name = ""

    def install(
        self, name: str, plugin: WorkerPlugin, *, owner: str, group: str, endpoints: Sequence[str]
    ) -> None:
        """Give all workers, those that join later too, the plugin of a run.

        Parameters
        ----------
        name, plugin
            The plugin, and its name.
        owner
            Whose run it is, for people.
        group
            What the names of the run's task groups end with.
        endpoints
            Digests of the endpoints that the run asks.

        Raises
        ------
        OSError
            The cluster cannot be reached.
        """
        del owner
        self._announce(name, group, endpoints)
        self._register(name, plugin)

    def _announce(self, name: str, group: str, endpoints: Sequence[str]) -> None:
        """Have the scheduler know the run."""
        self._name = name
        sent = SentRegistrar(
            name, self.client.id, group, list(endpoints), list(self.choice.names), self.choice.resource
        )
        registration = self.client._register_scheduler_plugin(  # noqa: SLF001 - the public one has no time limit
            plugin=sent, name=sent.name, idempotent=False
        )
        Question.within(self.client, registration).answer()

    def _register(self, name: str, plugin: WorkerPlugin, seconds: float = _REGISTRATION_SECONDS) -> None:
        """Register a plugin; once more if a worker died meanwhile, since Dask gives the whole call up then."""
        for attempt in range(_REGISTRATIONS):
            # The public one has no time limit.
            registering = self.client._register_worker_plugin(plugin=plugin, name=name, idempotent=False)  # noqa: SLF001
            registration = Question(self.client, registering)
            try:
                registration.answer(seconds)
            except TimeoutError:
                # The scheduler has it, and all workers but those that hang, which hear of it when they go on.
                return
            except OSError:
                if attempt == _REGISTRATIONS - 1:
                    raise
                time.sleep(1.0)
            else:
                return

    def remove(self, name: str) -> None:
        """Take a run's plugin away; a cluster that is gone needs no cleaning, and one worker holds nothing up."""
        with suppress(Exception):
            Question(self.client, self._removal(name)).answer(_REMOVAL_SECONDS)
        with suppress(Exception):
            scheduler: Any = self.client.scheduler
            removal = scheduler.unregister_scheduler_plugin(name=f"{name}-registrar")
            Question.within(self.client, removal).answer()

    async def _removal(self, name: str) -> None:
        await self.client._unregister_worker_plugin(name)  # noqa: SLF001

    def submit(
        self,
        function: Callable[..., Any],
        *args: Any,  # noqa: ANN401 - those of the function
        key: tuple[str, int],
        priority: int,
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
        return self.client.submit(function, *args, key=key, priority=self._rank(priority), pure=False)

    def _rank(self, priority: int) -> int:
        return priority + _RANKS * self.choice.priority

    def fetch(self, future: Future) -> Question[Any]:
        """Ask for what a task returned. One that is lost with its worker is computed again before the answer comes."""
        return Question(self.client, self._fetched(future))

    async def _fetched(self, future: Future) -> Any:  # noqa: ANN401 - that of the task
        return await future._result()  # noqa: SLF001 - the public one is for threads that can wait

    @property
    def gone(self) -> bool:
        """Whether the scheduler is away for good."""
        return is_gone(self.client)

    def look(self) -> Question[View]:
        """Ask the scheduler who is there, and how the run stands."""

        async def ask() -> View:
            found = await ask_scheduler(
                self.client,
                SentFunction(registrar.look),
                self._name,
                list(self.choice.names),
                self.choice.resource,
            )
            workers = {
                address: (name, status, seen)
                for address, (name, status, seen) in sorted(found["workers"].items())
                if status in SERVING
            }
            return View(
                {address: name for address, (name, _, _) in workers.items()},
                found["shares"],
                {address: seen for address, (_, _, seen) in workers.items()},
                frozenset(address for address, (_, status, _) in workers.items() if status == "paused"),
                Queue(*found["queue"]),
                found["others"],
            )

        return Question.within(self.client, ask())

    def states(self, name: str, workers: Sequence[str]) -> Question[Mapping[str, State]]:
        """Ask workers how far they are with a run's plugin; the answer lacks those that did not answer in time.

        Parameters
        ----------
        name
            Of the plugin.
        workers
            Addresses.
        """

        async def ask() -> Mapping[str, State]:
            return {address: State(ready=True) for address in workers}

        del name
        return Question(self.client, ask())

    def bar(self, name: str, addresses: Sequence[str], silent: Sequence[str] = ()) -> Question[None]:
        """Keep a run's tasks away from some workers, and move those that are there; replaces what was said before.

        Parameters
        ----------
        name
            Of the run's plugin.
        addresses
            Of the workers.
        silent
            Those of them that do not answer: what they have of the run is made again elsewhere.
        """
        function = SentFunction(registrar.bar)
        return Question.within(
            self.client, ask_scheduler(self.client, function, name, list(addresses), list(silent))
        )
