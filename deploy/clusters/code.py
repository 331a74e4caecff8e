"""How a run's plugin and tasks reach workers that can import evalcube already."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from distributed import Client, WorkerPlugin
from distributed import Future as DaskFuture

from evalcube.deploy.clusters.asking import Question, serving

Future = DaskFuture[Any]

_REGISTRATIONS = 3
_REGISTRATION_SECONDS = 60.0
_REMOVAL_SECONDS = 5.0


class View(NamedTuple):
    """A cluster as its scheduler sees it."""

    workers: Mapping[str, str]
    """Workers that serve: address -> name."""
    shares: Mapping[str, tuple[int, int]]
    """For each endpoint that runs on the scheduler may share, by digest: how many do, and this one's place."""


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


class Code:
    """Evalcube as workers have it: the same as here, installed or inherited.

    Parameters
    ----------
    client
        A connected client.
    """

    carried = False
    """Whether it is brought to the workers, who are asked whether they can take part."""

    def __init__(self, client: Client) -> None:
        self.client = client

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
        del owner, group, endpoints
        self._register(name, plugin)

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
        return self.client.submit(function, *args, key=key, priority=priority, pure=False)

    def fetch(self, future: Future) -> Question[Any]:
        """Ask for what a task returned. One that is lost with its worker is computed again before the answer comes."""
        return Question(self.client, self._fetched(future))

    async def _fetched(self, future: Future) -> Any:  # noqa: ANN401 - that of the task
        return await future._result()  # noqa: SLF001 - the public one is for threads that can wait

    def look(self) -> Question[View]:
        """Ask who is there."""

        async def ask() -> View:
            return View(await serving(self.client), {})

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

    def bar(self, name: str, addresses: Sequence[str]) -> Question[None] | None:  # noqa: ARG002 - for subclasses
        """Keep a run's tasks away from some workers, and move those that are there; replaces what was said before."""
        return None
