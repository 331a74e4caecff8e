"""A scheduler that somebody else runs: its address in, a connected client whose workers have our code out."""

from __future__ import annotations

import importlib.metadata
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from distributed import Client

from deploy.clusters.base import Cluster, ClusterError

PACKAGES = ("flows", "stages", "storage", "deploy")
_FACE = "evalcube"


@dataclass(frozen=True)
class ExistingScheduler(Cluster):
    """A running Dask cluster. It is left running."""

    address: str
    """Such as ``tcp://host:8786``."""
    timeout: float = 20.0
    """Seconds to wait for the scheduler, and then for a first worker."""

    @property
    def inherits_environment(self) -> bool:
        """Workers have environments of their own."""
        return False

    def connect(self) -> AbstractContextManager[Client]:
        """Connect, wait for a worker, and bring the code where it is missing."""
        return self._connect()

    @contextmanager
    def _connect(self) -> Iterator[Client]:
        try:
            client = Client(self.address, timeout=self.timeout, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterError(
                f"scheduler '{self.address}' cannot be reached within {self.timeout:g} s "
                f"({type(error).__name__}). Check the address, and that `dask scheduler` runs there."
            ) from error
        with client:
            self._wait_for_worker(client)
            ensure_code(client)
            yield client

    def _wait_for_worker(self, client: Client) -> None:
        deadline = time.monotonic() + self.timeout
        while not client.scheduler_info(n_workers=-1)["workers"]:
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"scheduler '{self.address}' has no workers. Start some: `dask worker {self.address}`."
                )
            time.sleep(0.2)


def ensure_code(client: Client) -> None:
    """Make evalcube importable on the scheduler and on every worker, now and later joining ones.

    Where a node has no evalcube, this installation's source is uploaded as one archive. What the source needs
    (numpy, zarr, ...) must be installed there.

    Raises
    ------
    ClusterError
        If a node lacks a package that evalcube needs.
    """
    missing = _nodes_without(client, "flows")
    if missing:
        with tempfile.TemporaryDirectory() as folder:
            client.upload_file(str(pack_source(Path(folder))), load=False)
    for package in _requirements():
        nodes = _nodes_without(client, package)
        if nodes:
            raise ClusterError(
                f"package '{package}' is not installed on {', '.join(nodes[:3])}"
                f"{' and others' if len(nodes) > 3 else ''}. Install evalcube's requirements on every node."
            )


def _nodes_without(client: Client, module: str) -> list[str]:
    def importable() -> bool:
        # A nested function travels by value, so that it also runs on nodes that have none of our code.
        import importlib.util

        try:
            return importlib.util.find_spec(module) is not None
        except ModuleNotFoundError:
            return False

    found = client.run(importable, on_error="return")
    nodes = [str(address) for address, there in found.items() if there is not True]
    if client.run_on_scheduler(importable) is not True:
        nodes.append("the scheduler")
    return nodes


def _requirements() -> tuple[str, ...]:
    return ("numpy", "scipy", "xarray", "zarr", "aiohttp", "pydantic", "jinja2", "zstandard", "ruamel.yaml")


def pack_source(folder: Path) -> Path:
    """Write this installation's packages into one importable archive in `folder`; returns its path."""
    version = importlib.metadata.version("evalcube")
    archive = folder / f"evalcube-{version}.zip"
    root = Path(__file__).resolve().parents[2]
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        face = root / f"{_FACE}.py"
        if face.exists():
            target.write(face, face.name)
        for package in PACKAGES:
            for path in sorted((root / package).rglob("*")):
                if path.is_file() and path.suffix != ".pyc":
                    target.write(path, path.relative_to(root))
    return archive
