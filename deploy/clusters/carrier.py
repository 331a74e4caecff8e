"""What travels to nodes that may have none of our code, or another version of it.

This module is sent as text and run there (`evalcube.deploy.clusters.carried`), by whatever Python a node has. So it
imports nothing of ours, and at its head nothing but the standard library and Dask.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.metadata
import importlib.util
import io
import os
import pickle
import socket
import sys
import threading
import time
import types
import zipimport
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from distributed import Reschedule, WorkerPlugin

PACKAGE = "evalcube"

_REGISTRY = "_evalcube_runs"
_RESULT_SECONDS = 5.0
"""So long a task waits for a worker that is still getting ready; then it goes elsewhere."""
_PAUSE_SECONDS = 0.3
"""Before a task leaves a worker that cannot do it, so that the two do not keep the scheduler busy."""
_WATCH_SECONDS = 20.0
"""Between two looks whether the run is still there: what took its plugin away may not have reached this worker."""
_AWAITED_SECONDS = 60.0
"""So long a run that ends waits for what it began on a worker."""


def source_files(root: Path) -> list[Path]:
    """The files of our package in a folder, in an order that is the same everywhere."""
    files = [
        Path(folder) / name
        for folder, _, names in os.walk(root / PACKAGE, followlinks=True)  # a checkout links to its rooms
        for name in names
        if not name.endswith(".pyc")
    ]
    return sorted(files, key=lambda path: path.relative_to(root).parts)


def source_digest(root: Path) -> str:
    """What distinguishes this source from any other."""
    digest = hashlib.sha256()
    for path in source_files(root):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def find_code() -> tuple[Path | None, Path | None]:
    """The folder from which this process would import evalcube, and the path of what hides it; None for neither."""
    spec = importlib.util.find_spec(PACKAGE)
    # A folder without `__init__.py` has no origin, and never wins over a package further down the path.
    if spec is None or spec.origin is None:
        return None, None
    inside = spec.submodule_search_locations
    place = Path(inside[0] if inside else spec.origin)
    if place.is_file() or (place.is_dir() and not (place / "flows").is_dir()):
        return None, place
    return place.parent, None


def unfit(requirements: list[str], python: str) -> list[str]:
    """What this process lacks, in words; nothing if it has all.

    Parameters
    ----------
    requirements
        As the package's own metadata name them.
    python
        Which versions of Python will do.
    """
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

    lacks = []
    here = ".".join(map(str, sys.version_info[:3]))
    if not SpecifierSet(python).contains(here):
        lacks.append(f"Python {here} does not do (needs {_spaced(python)})")
    for requirement in map(Requirement, requirements):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        needs = _spaced(str(requirement.specifier))
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            lacks.append(f"{requirement.name} is not installed (needs {needs})")
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            old = all(each.operator in (">=", ">") for each in requirement.specifier)
            lacks.append(
                f"{requirement.name} {version} {'is too old' if old else 'does not do'} (needs {needs})"
            )
    return lacks


def _spaced(specifier: str) -> str:
    for operator in (">=", "<=", "==", "!=", "~="):
        specifier = specifier.replace(operator, f"{operator} ")
    return specifier.replace(",", ", ") or "any version"


class _Finder:
    """Imports our packages from an archive, whatever else this process would import under their names."""

    def __init__(self, archive: str) -> None:
        self.archive = archive
        self._importer = zipimport.zipimporter(archive)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ANN401, ARG002
        """As of any finder."""
        head, _, rest = name.partition(".")
        if head != PACKAGE:
            return None
        return PathFinder.find_spec(name, path) if rest else self._importer.find_spec(name)


def _registry() -> Any:  # noqa: ANN401 - a module made here
    """What this process knows of the runs that use it, of whatever version of evalcube each is."""
    # Among the modules: the text of this one is run once for each run, and has no variables in common with the others.
    found: Any = sys.modules.get(_REGISTRY)
    if found is None:
        made: Any = types.ModuleType(_REGISTRY)
        made.lock, made.users, made.finder, made.ours = threading.Lock(), {}, None, False
        found = sys.modules.setdefault(_REGISTRY, made)
    return found


def use_code(user: str, digest: str, owner: str, archive: bytes, folder: str) -> str:
    """Make this version of evalcube the one that this process imports, until `leave_code`; why not, if that cannot be.

    Parameters
    ----------
    user
        Who asks, unique in this process.
    digest
        Of the source.
    owner
        Whose run it is, for people.
    archive
        The source.
    folder
        Where the archive may be written.
    """
    registry = _registry()
    with registry.lock:
        for other, theirs in registry.users.values():
            if other != digest:
                return (
                    f"runs another version of evalcube at the moment, for {theirs}. Wait for that run to end, use the "
                    f"same version, or start workers of your own"
                )
        if not registry.users:
            root, hiding = find_code()
            if hiding is not None:
                # An archive that goes first would hide from other users of this worker what is theirs.
                return (
                    f"{hiding} hides evalcube's own '{hiding.stem}'. Rename it, or start the worker from another "
                    f"directory"
                )
            loaded = PACKAGE in sys.modules
            if root is None or root.suffix == ".zip" or source_digest(root) != digest:
                if loaded:
                    return f"has another version of evalcube loaded ({root}), and not for a run. Restart the worker"
                path = str(Path(folder) / f"{PACKAGE}-{digest}-{os.getpid()}.zip")
                Path(path).write_bytes(archive)
                registry.finder = _Finder(path)
                sys.meta_path.insert(0, registry.finder)
                importlib.invalidate_caches()
            # What was imported before, by somebody else, is his and stays.
            registry.ours = not loaded
        registry.users[user] = (digest, owner)
    return ""


def leave_code(user: str) -> None:
    """Leave nothing of evalcube in this process, if nobody uses it any more."""
    registry: Any = sys.modules.get(_REGISTRY)
    if registry is None:
        return
    with registry.lock:
        if registry.users.pop(user, None) is None or registry.users:
            return
        if registry.ours:
            # A copy, made in one step: other threads import meanwhile.
            for name in _ours_and_takers():
                sys.modules.pop(name, None)
        finder, registry.finder = registry.finder, None
        if finder is not None:
            sys.meta_path.remove(finder)
            for path in [path for path in list(sys.path_importer_cache) if path.startswith(finder.archive)]:
                sys.path_importer_cache.pop(path, None)
            with suppress(OSError):
                Path(finder.archive).unlink()
        del sys.modules[_REGISTRY]


def _ours_and_takers() -> set[str]:
    """Names of our modules, and of those that have taken a class, a function or a module of ours, as plugins do.

    The next run imports ours anew: a plugin that stayed would be made of classes which are ours no more.
    """
    found: set[str] = set()
    modules = {name: module for name, module in list(sys.modules.items()) if name != "__main__"}
    while True:
        more = {
            name
            for name, module in modules.items()
            if name not in found and (name.partition(".")[0] == PACKAGE or _takes(module, found))
        }
        if not more:
            return found
        found |= more


def _takes(module: Any, names: set[str]) -> bool:  # noqa: ANN401 - whatever stands among the modules
    """Whether something of these modules stands in a module under a name of its own."""
    for value in list(getattr(module, "__dict__", {}).values()):
        if isinstance(value, types.ModuleType):
            origin = value.__dict__.get("__name__")
        elif isinstance(value, (type, types.FunctionType)):
            origin = value.__module__
        else:
            continue
        if isinstance(origin, str) and origin in names:
            return True
    return False


class _Expected:
    """Asks the scheduler, which has none of this text, whether it has a run's plugin for its workers."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, ("lambda dask_scheduler: name in dask_scheduler.worker_plugins", {"name": self._name})


class Carrier(WorkerPlugin):
    """Brings a run's code to a worker, then the run's own plugin, which it stands for.

    It never fails to be set up: a worker that cannot take part in this run serves others. What it does takes place
    beside the worker's loop, so that no other run waits for it.

    Parameters
    ----------
    name
        Of the plugin.
    digest, archive
        The source.
    owner
        Whose run it is.
    inner
        The run's plugin, pickled. Off the loop its ``check`` says why the worker cannot take part, if so, and ``open``
        opens what it needs; on the loop ``start`` begins.
    requirements, python
        As of `unfit`.
    choice
        Names or addresses of the workers that the run uses, and a resource that they have; others do nothing.
    """

    def __init__(
        self,
        name: str,
        digest: str,
        archive: bytes,
        owner: str,
        inner: bytes,
        requirements: list[str],
        python: str,
        choice: tuple[list[str], str] = ([], ""),
    ) -> None:
        self.name = name
        self._digest, self._archive, self._owner = digest, archive, owner
        self._sent = inner
        self._requirements, self._python, self._choice = requirements, python, choice
        self.inner: Any = None
        """The run's own plugin, once it is there."""
        self.problem = ""
        """Why this worker cannot take part."""
        self.ready = threading.Event()
        """Set when either is known."""
        self._user = f"{name}-{id(self)}"
        self._beginning: Any = None
        self._watching: Any = None

    def setup(self, worker: Any) -> None:  # noqa: ANN401 - Dask's worker
        """Begin to get ready."""
        self._beginning = asyncio.ensure_future(self._begin(worker))
        self._watching = asyncio.ensure_future(self._watch(worker))

    async def _begin(self, worker: Any) -> None:  # noqa: ANN401
        try:
            # In a thread: it reads files, imports for a second, and asks the stores.
            inner = await asyncio.to_thread(self._load, worker)
            if inner is not None:
                inner.start(worker)
                self.inner = inner
        except Exception as error:  # noqa: BLE001 - a worker that cannot take part goes on without it
            self.problem = f"{type(error).__name__}: {error}"
        self.ready.set()

    async def _watch(self, worker: Any) -> None:  # noqa: ANN401
        """Leave when the run is over: one that joins, or hangs, while the run ends never hears that it does."""
        question = {"function": pickle.dumps(_Expected(self.name)), "args": pickle.dumps(()), "wait": True}
        while worker.plugins.get(self.name) is self:
            await asyncio.sleep(_WATCH_SECONDS)
            with suppress(OSError):  # a scheduler that is away says nothing of its runs
                answer = await worker.scheduler.run_function(**question, kwargs=pickle.dumps({}))
                if answer.get("result") is False and worker.plugins.get(self.name) is self:
                    self._watching = None
                    await worker.plugin_remove(name=self.name)
                    return

    def _load(self, worker: Any) -> Any:  # noqa: ANN401
        names, resource = self._choice
        if (names and str(worker.name) not in names and worker.address not in names) or (
            resource and resource not in worker.state.total_resources
        ):
            self.problem = "the run does not use this worker"
            return None
        lacks = unfit(self._requirements, self._python)
        if lacks:
            self.problem = f"{'; '.join(lacks)}. Install what evalcube requires on every worker"
            return None
        self.problem = use_code(self._user, self._digest, self._owner, self._archive, worker.local_directory)
        if self.problem:
            return None
        inner = pickle.loads(self._sent)  # noqa: S301 - from the driver, as all of Dask's tasks
        self.problem = inner.check(worker)
        if self.problem:
            return None
        inner.open()
        return inner

    def call(self, task: bytes, values: list[bytes]) -> bytes:
        """Do a task of the run.

        Parameters
        ----------
        task
            Pickled: a function and its arguments, with the places of results of other tasks.
        values
            These results, pickled.

        Returns
        -------
        bytes
            The result, pickled: only workers of this run, which have the code, look into it.

        Raises
        ------
        Reschedule
            This worker cannot do it, or not yet.
        """
        if not self.ready.wait(_RESULT_SECONDS) or self.problem:
            time.sleep(_PAUSE_SECONDS)
            raise Reschedule

        class Unpickler(pickle.Unpickler):
            def persistent_load(self, place: int) -> object:
                return pickle.loads(values[place])  # noqa: S301

        function, args = Unpickler(io.BytesIO(task)).load()
        return pickle.dumps(function(*args), protocol=pickle.HIGHEST_PROTOCOL)

    def transition(self, key: Any, start: str, finish: str, **kwargs: Any) -> None:  # noqa: ANN401
        """Pass on what happens to tasks."""
        if self.inner is not None:
            self.inner.transition(key, start, finish, **kwargs)

    async def teardown(self, worker: Any) -> None:  # noqa: ANN401
        """End the run's plugin, and leave nothing."""
        if self._watching is not None:
            self._watching.cancel()
        if self._beginning is not None:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._beginning), _AWAITED_SECONDS)
        self.problem = self.problem or "the run is over"
        inner, self.inner = self.inner, None
        try:
            if inner is not None:
                await inner.teardown(worker)
        finally:
            await asyncio.to_thread(leave_code, self._user)


def state_of(name: str, dask_worker: Any = None) -> dict[str, Any]:  # noqa: ANN401
    """Runs on workers: how far a run's carrier is."""
    carrier = dask_worker.plugins.get(name)
    there = carrier is not None
    return {
        "there": there,
        "ready": there and carrier.ready.is_set(),
        "problem": carrier.problem if there and carrier.ready.is_set() else "",
        "id": str(dask_worker.id),
        "host": socket.gethostname(),
        "time": time.time(),
        "cut_off": dict(getattr(carrier.inner, "cut_off", {})) if there else {},
    }
