"""A Dask cluster that somebody else runs: reached by its scheduler's address, given our code, and left running."""

from __future__ import annotations

import hashlib
import logging
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import cloudpickle
from distributed import Client

from deploy.clusters.asking import ask_workers
from deploy.clusters.base import PATIENCE_SECONDS, Cluster, ClusterError, Connection

T = TypeVar("T")

PACKAGES = ("flows", "stages", "storage", "deploy")
_FACE = "evalcube"
_REQUIREMENTS = (
    "numpy",
    "scipy",
    "xarray",
    "zarr",
    "aiohttp",
    "uvloop",
    "pydantic",
    "jinja2",
    "zstandard",
    "ruamel.yaml",
)


@dataclass(frozen=True)
class ExistingScheduler(Cluster):
    """The address of a running Dask cluster, which is left running."""

    address: str
    """The scheduler's address, such as ``tcp://host:8786``."""
    timeout: float = 10.0
    """Seconds to wait for the scheduler, and then as many for a first worker."""
    patience: float = PATIENCE_SECONDS
    """Seconds without any worker after which a run gives up."""
    minimum: int = 1
    """Workers to wait for before the first request."""

    def connect(self) -> AbstractContextManager[Connection]:
        """A context with a connection; nodes without evalcube have been sent it.

        Raises
        ------
        ClusterError
            There is no scheduler at the address, it has no workers, or a node cannot run our code.
        """
        return self._connect()

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        try:
            client = Client(self.address, timeout=self.timeout, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterError(
                f"scheduler '{self.address}' cannot be reached within {self.timeout:g} s "
                f"({type(error).__name__}). Check the address, and that `dask scheduler` runs there."
            ) from None  # a traceback of Dask's says no more than that
        # Quiet until the client is closed: closing, too, logs a scheduler that has died.
        with _quiet(), client:
            self._wait_for_worker(client)
            ensure_code(client)
            yield Connection(client)

    def _wait_for_worker(self, client: Client) -> None:
        deadline = time.monotonic() + self.timeout
        # Workers often start with the scheduler and register a few seconds after it.
        while not client.scheduler_info(n_workers=-1)["workers"]:
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"scheduler '{self.address}' has no workers. Start some: `dask worker {self.address}`."
                )
            time.sleep(0.2)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask from logging tracebacks of a lost connection: the driver reports that, once."""
    loggers = [logging.getLogger(name) for name in ("distributed.client", "distributed.batched")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def ensure_code(client: Client) -> None:
    """Make this evalcube importable on the scheduler and on every worker, now and later joining ones.

    Where a node has no evalcube, this installation's source is uploaded as one archive. What the source needs
    (numpy, zarr, ...) must be installed there.

    Raises
    ------
    ClusterError
        If a node lacks a package that evalcube needs, has another version of evalcube, or has a folder of the
        user's where one of our packages would be imported from.
    """
    with tempfile.TemporaryDirectory() as folder:
        archive = pack_source(Path(folder))
        if None in _versions(client).values():
            _require_packages(client)
            client.upload_file(str(archive))
        # Asked again after the upload, which does not prove that the archive is what each node imports.
        here, _ = _evalcube_there()
        for node, there in _versions(client).items():
            if there not in {archive.name, here}:
                raise ClusterError(
                    f"{node} has another evalcube ({there}) than this process ({here or archive.name}). "
                    f"Install the same version there, or restart that node if the other was uploaded by a sweep."
                )


def _versions(client: Client) -> dict[str, str | None]:
    """Which evalcube each node would import; None where there is none."""
    found = _on_each_node(client, _evalcube_there)
    for node, (_, hiding) in found.items():
        if hiding is not None:
            # Checked before the upload, too: an archive at the head of the module path would win, and so hide from
            # other users of that node what is theirs.
            raise ClusterError(
                f"{hiding} hides evalcube's own '{Path(hiding).stem}' on {node}. "
                f"Rename it, or start that node from another directory."
            )
    return {node: version for node, (version, _) in found.items()}


def _require_packages(client: Client) -> None:
    """Raise a ClusterError if a node lacks a package that our source imports."""
    for package in _REQUIREMENTS:

        def importable(name: str = package) -> bool:
            import importlib.util
            import sys

            try:
                return importlib.util.find_spec(name) is not None or (
                    name == "uvloop" and sys.platform == "win32"
                )
            except ModuleNotFoundError:
                return False

        nodes = [node for node, there in _on_each_node(client, importable).items() if there is not True]
        if nodes:
            raise ClusterError(
                f"package '{package}' is not installed on {', '.join(nodes[:3])}"
                f"{' and others' if len(nodes) > 3 else ''}. Install evalcube's requirements on every node."
            )


def _evalcube_there() -> tuple[str | None, str | None]:
    """Which evalcube this process would import, and the path of what hides a part of it; None for neither.

    The first is the name of an uploaded archive, or the installed version.
    """
    import importlib.metadata
    import importlib.util
    from pathlib import Path

    places = {}
    for name in (_FACE, *PACKAGES):
        spec = importlib.util.find_spec(name)
        # A folder without `__init__.py` has no origin, and never wins over a package further down the path.
        if spec is not None and spec.origin is not None:
            inside = spec.submodule_search_locations
            places[name] = Path(inside[0] if inside else spec.origin).resolve()
    face = places.pop(_FACE, None)
    roots = {place.parent for place in places.values()}
    if face is not None and len(places) == len(PACKAGES) and len(roots) == 1 and face.parent not in roots:
        return None, str(face)  # the packages stand together: somebody else's is the module
    for place in places.values():
        if face is None or place.parent != face.parent:
            return None, str(place)
    if face is None or len(places) < len(PACKAGES):
        return None, None
    if face.parent.suffix == ".zip":
        return face.parent.name, None
    try:
        return "version " + importlib.metadata.version(_FACE), None
    except importlib.metadata.PackageNotFoundError:
        return "a source checkout", None


def _on_each_node(client: Client, function: Callable[[], T]) -> dict[str, T]:
    """What a function without arguments returns on every worker and on the scheduler.

    It is sent by value, so that it also runs where none of our code is.
    """
    # By reference the nodes would import this module to find the function, and that is what is to be found out.
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    try:
        return {**ask_workers(client, function), "the scheduler": client.run_on_scheduler(function)}
    except OSError as error:
        raise ClusterError(
            f"the cluster's scheduler ended while it was asked what it has: {error}"
        ) from error
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def pack_source(folder: Path) -> Path:
    """Path of an importable archive of this installation's packages, which is written into `folder`.

    Its name carries a digest of the content, so that the name alone says which source a node has.
    """
    root = Path(__file__).resolve().parents[2]
    files = [path for path in (root / f"{_FACE}.py", root / f"{_FACE}.pyi") if path.exists()]
    for package in PACKAGES:
        files += sorted(
            path for path in (root / package).rglob("*") if path.is_file() and path.suffix != ".pyc"
        )
    digest = hashlib.sha256()
    for path in files:
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    archive = folder / f"evalcube-{digest.hexdigest()[:12]}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for path in files:
            target.write(path, path.relative_to(root))
    return archive
