"""Any cluster of Dask's: made of its class for a sweep, given by whoever made it, or reached at an address."""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib
import inspect
import os
import platform
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, cast

import dask
from distributed import Client, SpecCluster, SSHCluster, Status, default_client
from distributed.comm.addressing import get_address_host_port
from distributed.security import Security

from evalcube._together import Together
from evalcube.deploy.clusters.base import PATIENCE_SECONDS, Cluster, Connection, quiet
from evalcube.deploy.clusters.code import EVERYBODY, Code, WorkerChoice, source_digest
from evalcube.deploy.clusters.local import settled
from evalcube.deploy.errors import ClusterError
from evalcube.deploy.fork_server import interrupts_blocked
from evalcube.deploy.slurm import printable


@dataclass(frozen=True)
class ExistingScheduler(Cluster):
    """The address of a running Dask cluster, which is left running."""

    address: str
    """The scheduler's address, such as ``tcp://host:8786``."""
    timeout: float = 10.0
    """Seconds to wait for the scheduler."""
    patience: float = PATIENCE_SECONDS
    """Seconds without any worker after which a run gives up."""
    minimum: int = 1
    """Workers to wait for before the first request."""
    choice: WorkerChoice = EVERYBODY
    """Which of its workers are used, and how urgent the run is."""

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """A context with a connection."""
        # Quiet until the client is closed: closing, too, logs a scheduler that has died.
        with quiet(), self._client() as client:
            yield connection_elsewhere(client, self.choice)

    def _client(self) -> Client:
        try:
            # Before a client starts a thread for what is no address.
            get_address_host_port(self.address, strict=True)
            return Client(self.address, timeout=self.timeout, set_as_default=False)
        except (TypeError, RuntimeError) as error:
            # What Dask says of an address with TLS, and of one without where encryption is required.
            file = "name them in a file of Dask's own configuration (distributed.comm.tls)"
            needs = f"needs certificates: {file} that the variable DASK_CONFIG names"
            trouble = needs if self.address.startswith("tls:") else f"cannot be used: {error}"
            raise ClusterError(f"scheduler '{self.address}' {trouble}.") from None
        except ValueError:  # no port, another protocol
            form = "Write it like tcp://host:8786"
            raise ClusterError(
                f"scheduler '{self.address}' is not the address of a scheduler. {form}."
            ) from None
        except OSError as error:
            problem = f"cannot be reached within {self.timeout:g} s ({type(error).__name__})"
            remedy = "Check the address, and that `dask scheduler` runs there."
            # A traceback of Dask's says no more than that.
            raise ClusterError(f"scheduler '{self.address}' {problem}. {remedy}") from None


def connection_elsewhere(
    client: Client, choice: WorkerChoice, kind: type[Connection] = Connection
) -> Connection:
    """A connection to a cluster that has an environment of its own."""
    code = Code(client, choice, source_digest())
    if problem := code.unfit_scheduler():
        raise ClusterError(f"the cluster's scheduler {problem}")
    code.want_worker()
    return kind(client, code)


_patient = Together(lambda: dask.config.set({"distributed.scheduler.allowed-failures": 10}))
"""Deaths of workers that a task may see before it is suspected: time limits end jobs that do no wrong."""
_GONE_SECONDS = 10.0
"""So long no worker of a job is there until another job is begun: a nanny starts its worker again within seconds."""
_AGAIN_SECONDS = 60.0
"""Between two attempts to begin others, where the first one failed."""
_LIVING_SECONDS = 10.0
"""In which the loop of a client or a cluster answers, if it runs at all."""
_ORPHANED = "60s"
"""Without a client a scheduler ends after that long, and without a scheduler a worker."""
_LONGEST = 600
"""Characters of a cluster's own words that are passed on."""


@dataclass(frozen=True)
class MadeCluster(Cluster):
    """A cluster of Dask's that is made for a sweep and ends with it."""

    name: str
    """Of its class, such as ``dask_jobqueue.SLURMCluster``."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the class."""
    scale: int | None = None
    """Workers that it is scaled to."""
    encrypted: bool = True
    """Whether its connections are encrypted, where the class can."""
    patience: float = 3600.0
    """Seconds without any worker after which a run gives up."""
    minimum: int = 1
    """Workers to wait for before the first request."""
    choice: WorkerChoice = EVERYBODY
    """Which of its workers are used, and how urgent the run is."""

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """A context with a connection; leaving it ends the cluster."""
        kind = _import_class(self.name)
        with ExitStack() as stack:
            stack.enter_context(quiet())
            # They hold for as long as the cluster: workers that are added later read them, too.
            stack.enter_context(settled())
            stack.enter_context(_patient())
            options = self._options(kind, stack)
            try:
                with interrupts_blocked():
                    cluster = stack.enter_context(kind(**options))
                    stack.callback(_drop_keys, cluster)
                    if self.scale is not None and not isinstance(cluster, SpecCluster):
                        cluster.scale(self.scale)
                if self.scale is not None and isinstance(cluster, SpecCluster):
                    cluster.sync(_scale_to, cluster, self.scale)
                client = stack.enter_context(Client(cluster, set_as_default=False))
            except Exception as error:
                raise ClusterError(f"{self.name} cannot be made: {_words(error)}") from error
            yield connection_elsewhere(client, self.choice, _Tended)

    def _options(self, kind: Callable[..., Any], stack: ExitStack) -> dict[str, Any]:
        """Its own, and those that encrypt connections and keep Dask's dashboard on its machine."""
        options = dict(self.options)
        parameters = inspect.signature(kind).parameters
        if "scheduler_options" in parameters:
            local = {"dashboard_address": "127.0.0.1:0", **(options.get("scheduler_options") or {})}
            options["scheduler_options"] = local
        elif "dashboard_address" in parameters:
            options.setdefault("dashboard_address", "127.0.0.1:0")
        if kind is SSHCluster:
            # Nothing else ends what runs on other hosts once this process is killed.
            options["scheduler_options"] = {"idle_timeout": _ORPHANED, **options["scheduler_options"]}
            options["worker_options"] = {"death_timeout": _ORPHANED, **(options.get("worker_options") or {})}
        if not self.encrypted or "security" in options:
            return options
        if kind is SSHCluster:
            # It takes no `security`: what it starts has this process's settings of Dask.
            own = _temporary().get_tls_config_for_role("client")
            protocol = {
                "distributed.comm.default-scheme": "tls",
                "distributed.comm.require-encryption": True,
                "distributed.comm.tls.ca-file": own["ca_file"],
            }
            for role in ("client", "scheduler", "worker"):
                protocol |= {f"distributed.comm.tls.{role}.{part}": own[part] for part in ("cert", "key")}
            stack.enter_context(dask.config.set(protocol))
            options["scheduler_options"] = {"protocol": "tls://", **options["scheduler_options"]}
        elif "security" in parameters:
            options |= {"security": _temporary()}
            if "protocol" in parameters:
                options.setdefault("protocol", "tls://")
            if "shared_temp_directory" in parameters:
                parent = os.path.expandvars(options.get("shared_temp_directory") or ".")
                options["shared_temp_directory"] = str(stack.enter_context(_key_folder(Path(parent))))
        return options


@dataclass(frozen=True)
class GivenCluster(Cluster):
    """A cluster or a client of Dask's that somebody made, and that is left as it is."""

    given: Any
    patience: float = PATIENCE_SECONDS
    """Seconds without any worker after which a run gives up."""
    found: bool = False
    """Whether nobody named it: it is the client that is open here, which Dask's own functions use, too."""

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """A context with a connection."""
        cluster = self.given
        if getattr(cluster, "asynchronous", False):
            raise ClusterError("`cluster` is asynchronous, and a run is not. Make it with asynchronous=False")
        # A client of our own, also where one is given: what it is subscribed to ends with it.
        target: Any = cluster
        security = None
        if isinstance(cluster, Client):
            scheduler: Any = cluster.scheduler
            target, security = cluster.cluster or scheduler.address, cluster.security
        _refuse_dead(cluster)
        with quiet():
            try:
                client = Client(target, security=security, set_as_default=False)
            except (OSError, RuntimeError, TypeError, ValueError) as error:
                raise ClusterError(f"`cluster` cannot be reached: {_words(error)}") from error
            with client:
                try:
                    connection = connection_elsewhere(client, EVERYBODY, _Tended)
                except ClusterError as error:
                    here = "To work without the Client that is open here, give `workers`" * self.found
                    raise ClusterError(error.message, remedy=here) from None
                yield connection


class _Tended(Connection):
    """A connection that begins jobs or processes anew whose workers have gone, such as at a time limit.

    Clusters that keep a list of what they start do not do so by themselves; others look after their workers.
    """

    replaces = True

    def __init__(self, client: Client, code: Code | None = None) -> None:
        super().__init__(client, code)
        self._seen: dict[Any, float] = {}
        """When a worker of each job was there last."""
        self._beginning: concurrent.futures.Future[None] | None = None
        self._next_at = 0.0

    def tend(self, present: Mapping[str, str]) -> Sequence[str]:
        """Begin again what ended; says so, and once that failed."""
        cluster: Any = self.client.cluster
        if not isinstance(cluster, SpecCluster) or getattr(cluster, "_adaptive", None) is not None:
            return ()
        now = monotonic()
        self._seen |= {key: now for key in cluster.worker_spec if _is_there(key, present)}
        if self._beginning is not None:
            if not self._beginning.done():
                return ()
            error, self._beginning = self._beginning.exception(), None
            if error is not None:
                self._next_at = now + _AGAIN_SECONDS
                return (f"no others could be started for workers that ended: {_words(error)}",)
        # Those that never came may wait in a queue.
        late = [key for key, seen in self._seen.items() if now - seen > _GONE_SECONDS]
        gone = [key for key in late if key in cluster.worker_spec]
        if (not gone and not set(cluster.worker_spec).difference(cluster.workers)) or now < self._next_at:
            return ()
        for key in gone:
            del self._seen[key]
        self._beginning = asyncio.run_coroutine_threadsafe(_begin_anew(cluster, gone), _loop_of(self.client))
        notice = f"{len(gone)} jobs ended, as at a time limit: others are started in their place"
        return (notice,) if gone else ()


def open_client() -> GivenCluster | None:
    """The cluster of the client that is open in this process, which Dask's own functions use; None without one."""
    try:
        client = default_client()
    except ValueError:
        return None
    return None if client.asynchronous else GivenCluster(client, found=True)


def _refuse_dead(given: Any) -> None:  # noqa: ANN401 - a cluster of anybody's
    """Refuse what has no loop any more: a fork has its parent's objects without the threads that serve them."""
    loop = getattr(getattr(given, "loop", None), "asyncio_loop", None)
    if loop is None:
        return
    alive = threading.Event()
    with suppress(RuntimeError):  # it is closed
        loop.call_soon_threadsafe(alive.set)
        alive.wait(_LIVING_SECONDS)
    if not alive.is_set():
        problem = "the Dask client or cluster is closed, or was made before this process was forked"
        raise ClusterError(f"{problem}. Make one here")


def _loop_of(client: Client) -> asyncio.AbstractEventLoop:
    return cast("asyncio.AbstractEventLoop", cast("Any", client.loop).asyncio_loop)


def _is_there(key: Any, present: Mapping[str, str]) -> bool:  # noqa: ANN401 - any key
    return any(name == str(key) or name.startswith(f"{key}-") for name in present.values())


@contextmanager
def _key_folder(parent: Path) -> Iterator[Path]:
    """Make a folder for the files with a run's key, and remove those of runs that were killed on this machine."""
    prefix = f".evalcube-keys-{platform.node()}-"
    parent = parent.expanduser().absolute()
    for folder in parent.glob(f"{prefix}*"):
        # Only this machine knows whether a process of its own still runs.
        with suppress(ValueError, PermissionError):
            try:
                os.kill(int(folder.name.removeprefix(prefix)), 0)
            except ProcessLookupError:
                shutil.rmtree(folder, ignore_errors=True)
    folder = parent / f"{prefix}{os.getpid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ClusterError(f"{folder}: the run's key cannot be kept there: {error.strerror}") from None
    try:
        yield folder
    finally:
        with suppress(OSError):  # another run of this process still has its key there
            folder.rmdir()


def _drop_keys(cluster: Any) -> None:  # noqa: ANN401 - of any class
    """Take away the files with a run's key that dask-jobqueue leaves to Python's collector of garbage."""
    for name in ("ca_file", "cert", "key"):
        file = getattr(cluster, f"_job_{name}", None)
        if file is not None:
            file.close()


async def _scale_to(cluster: SpecCluster, workers: int) -> None:
    """Start workers, and raise what a batch system refuses, which else stands in a log only."""
    cluster.scale(workers)
    await _start_missing(cluster)


async def _begin_anew(cluster: SpecCluster, gone: Sequence[Any]) -> None:
    for key in gone:
        worker = cluster.workers.pop(key, None)
        if worker is not None:
            await worker.close()
    await _start_missing(cluster)


async def _start_missing(cluster: SpecCluster) -> None:
    """Begin what is missing; what could not be begun is missing again, which Dask takes for there."""
    try:
        await cluster._correct_state()  # noqa: SLF001 - what `scale` begins, and nobody hears of
    except Exception:
        for key, worker in list(cluster.workers.items()):
            if worker.status == Status.created:
                worker.status = Status.failed
                del cluster.workers[key]
        raise


def _import_class(name: str) -> Callable[..., Any]:
    """A class of clusters, or a function that makes one."""
    module, _, last = name.rpartition(".")
    handler = signal.getsignal(signal.SIGINT)
    try:
        constructor = getattr(importlib.import_module(module), last)
    except (ImportError, AttributeError, ValueError) as error:
        form = "Write the class with its module, such as dask_jobqueue.SLURMCluster, and install its package"
        raise ClusterError(f"cluster.class: {name} cannot be imported here ({error}). {form}") from None
    if signal.getsignal(signal.SIGINT) is not handler:
        # dask-jobqueue takes Ctrl-C as it is imported, and ends with 0 then.
        signal.signal(signal.SIGINT, handler)
    if not callable(constructor):
        raise ClusterError(f"cluster.class: {name} is not a class. Give the class of a Dask cluster")
    return cast("Callable[..., Any]", constructor)


def _temporary() -> Security:
    """What encrypts all connections with a key of this run.

    Whoever reaches a Dask scheduler may run code in its user's name, and the network of a cluster is everybody's.
    """
    try:
        return cast("Security", Security.temporary())
    except ImportError:
        problem = "clusters that are made encrypt their connections, for which the package cryptography is missing here"
        raise ClusterError(f"{problem}: pip install cryptography, or write `tls: false`") from None


def _words(error: BaseException) -> str:
    """What a cluster or a batch system says: of dask-jobqueue's account of a command, that command's own words."""
    words = printable(str(error).rpartition("stderr:\n")[2], sys.maxsize)
    return words[-_LONGEST:] or type(error).__name__  # the reason stands at the end
