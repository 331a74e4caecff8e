"""Brings this evalcube to a cluster for as long as a run lasts: the source, the run's plugin, and its tasks.

A worker may have no evalcube, or another version of it, and Dask sets up all plugins of a new worker at once, so that a
plugin cannot rely on another one that uploads files. So one plugin brings the source and only then unpickles the run's
own (`evalcube.deploy.clusters.carrier.Carrier`). The scheduler needs none of it: tasks reach it as bytes.
"""

from __future__ import annotations

import asyncio
import getpass
import importlib.metadata
import io
import pickle
import socket
import sys
import tomllib
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from distributed import Client, WorkerPlugin
from distributed import Future as DaskFuture

import evalcube
from evalcube.deploy.clusters import carrier
from evalcube.deploy.clusters.asking import ANSWER_SECONDS, Question, ask_each
from evalcube.deploy.clusters.code import EVERYBODY, Choice, Code, State
from evalcube.deploy.clusters.sent import Made, SentFunction

Future = DaskFuture[Any]

_STATE_SECONDS = 2.0
"""As short as it is asked often."""
_ROOT = Path(evalcube.__file__).parents[1]
_CALL = "__import__('distributed').get_worker().plugins[name].call(task, values)"
"""Unpickled by nodes without our code, and by any version of Python: so it is made of built-in functions alone."""


class _SentCarrier(Made, WorkerPlugin):
    """What becomes a `Carrier` on each worker."""

    def __init__(self, name: str, *arguments: object) -> None:
        super().__init__(carrier.Carrier, name, *arguments)
        self.name = name


class CarriedCode(Code):
    """Evalcube as this process has it, brought to workers for as long as a run lasts.

    Parameters
    ----------
    client, choice
        As of `Code`.
    """

    carried = True

    def __init__(self, client: Client, choice: Choice = EVERYBODY) -> None:
        super().__init__(client, choice)
        self._sent: WorkerPlugin | None = None

    def install(
        self, name: str, plugin: WorkerPlugin, *, owner: str, group: str, endpoints: Sequence[str]
    ) -> None:
        """As `Code.install`; workers get ready by themselves, and `states` says how far they are."""
        digest, archive = packed_source()
        requirements, python = requirements_here()
        self._sent = _SentCarrier(
            name,
            digest,
            archive,
            owner,
            pickle.dumps(plugin),
            list(requirements),
            python,
            (list(self.choice.names), self.choice.resource),
        )
        self._announce(name, group, endpoints)
        self._register(name, self._sent, ANSWER_SECONDS)

    def submit(
        self,
        function: Callable[..., Any],
        *args: Any,  # noqa: ANN401 - those of the function
        key: tuple[str, int],
        priority: int,
    ) -> Future:
        """As `Code.submit`, in a form that asks nothing of the scheduler."""
        task, futures = _packed(function, args)
        what = {"name": self._name, "task": task}
        rank = self._rank(priority)
        return self.client.submit(eval, _CALL, what, {"values": futures}, key=key, priority=rank, pure=False)

    async def _fetched(self, future: Future) -> Any:  # noqa: ANN401 - that of the task
        return pickle.loads(await super()._fetched(future))  # noqa: S301 - of a worker, as all of Dask's results

    def states(self, name: str, workers: Sequence[str]) -> Question[Mapping[str, State]]:
        """As `Code.states`; a worker that missed the plugin is given it once more."""

        async def ask() -> Mapping[str, State]:
            answers = await ask_each(
                self.client, SentFunction(carrier.state_of), name, workers=workers, seconds=_STATE_SECONDS
            )
            missed = [address for address, answer in answers.items() if not answer["there"]]
            if missed and self._sent is not None:
                await self._give(missed)
            return {
                address: State(
                    bool(answer["ready"]) and not answer["problem"],
                    answer["problem"],
                    answer["id"],
                    answer["host"],
                    answer["time"],
                    answer["cut_off"],
                )
                for address, answer in answers.items()
            }

        return Question(self.client, ask())

    async def _give(self, workers: Sequence[str]) -> None:
        """Add the plugin on workers that lack it: Dask gives a registration up when a worker dies meanwhile."""
        from distributed.protocol.pickle import dumps

        message = {"op": "plugin-add", "plugin": dumps(self._sent), "name": self._name}
        scheduler: Any = self.client.scheduler
        giving = scheduler.broadcast(msg=message, workers=list(workers), on_error="ignore")
        with suppress(OSError):
            await asyncio.wait_for(giving, ANSWER_SECONDS)


def _packed(function: Callable[..., Any], args: Sequence[object]) -> tuple[bytes, list[Future]]:
    """A call as bytes, with places for the futures that are among its arguments."""
    futures: list[Future] = []
    places: dict[int, int] = {}

    class Pickler(pickle.Pickler):
        def persistent_id(self, found: object) -> int | None:
            if not isinstance(found, DaskFuture):
                return None
            if id(found) not in places:
                places[id(found)] = len(futures)
                futures.append(found)
            return places[id(found)]

    buffer = io.BytesIO()
    Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump((function, tuple(args)))
    return buffer.getvalue(), futures


@cache
def packed_source() -> tuple[str, bytes]:
    """The packages of this installation: a digest of them, and an archive that can be imported."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        for path in carrier.source_files(_ROOT):
            target.write(path, path.relative_to(_ROOT))
    return carrier.source_digest(_ROOT), buffer.getvalue()


@cache
def requirements_here() -> tuple[tuple[str, ...], str]:
    """What evalcube requires, extras apart, and of which version of Python; from the package's own metadata."""
    # A checkout that is worked in has newer ones in its project file than those that it was installed with.
    project = _ROOT / "pyproject.toml"
    described = tomllib.loads(project.read_text("utf-8")).get("project", {}) if project.is_file() else {}
    if described.get("name") == carrier.PACKAGE:
        return tuple(described["dependencies"]), described["requires-python"]
    found = importlib.metadata.metadata(carrier.PACKAGE)
    required = importlib.metadata.requires(carrier.PACKAGE) or ()
    needed = tuple(text for text in required if "extra ==" not in text)
    return needed, found["Requires-Python"] or f">={sys.version_info.major}"


def owner_here(what: str) -> str:
    """Whose run this is, for people on other machines."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "somebody"  # in a container without a list of users
    return f"{user}@{socket.gethostname()} ({what})"
