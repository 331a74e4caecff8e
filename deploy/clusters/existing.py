"""A Dask cluster that somebody else runs, which is left running: reached by its scheduler's address, or given."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from distributed import Client
from distributed.comm.addressing import get_address_host_port

from evalcube.deploy.clusters.base import PATIENCE_SECONDS, Cluster, ClusterError, Connection
from evalcube.deploy.clusters.code import EVERYBODY, Choice, Code
from evalcube.deploy.clusters.silence import quiet
from evalcube.deploy.clusters.source import source_digest


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
    choice: Choice = EVERYBODY
    """Which of its workers are used, and how urgent the run is."""

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """A context with a connection.

        Raises
        ------
        ClusterError
            There is no scheduler at the address, or it wants certificates.
        """
        # Quiet until the client is closed: closing, too, logs a scheduler that has died.
        with quiet(), self._client() as client:
            yield connection_elsewhere(client, self.choice)

    def _client(self) -> Client:
        try:
            get_address_host_port(
                self.address, strict=True
            )  # before a client starts a thread for what is no address
            return Client(self.address, timeout=self.timeout, set_as_default=False)
        except (TypeError, RuntimeError) as error:
            # What Dask says of an address with TLS, and of one without where encryption is required.
            if self.address.startswith("tls:"):
                raise ClusterError(
                    f"scheduler '{self.address}' needs certificates: name them in a file of Dask's own configuration "
                    f"(distributed.comm.tls) that the variable DASK_CONFIG names."
                ) from None
            raise ClusterError(f"scheduler '{self.address}' cannot be used: {error}.") from None
        except ValueError:  # no port, another protocol
            raise ClusterError(
                f"scheduler '{self.address}' is no address of a scheduler. Write it like tcp://host:8786."
            ) from None
        except OSError as error:
            raise ClusterError(
                f"scheduler '{self.address}' cannot be reached within {self.timeout:g} s "
                f"({type(error).__name__}). Check the address, and that `dask scheduler` runs there."
            ) from None  # a traceback of Dask's says no more than that


def connection_elsewhere(client: Client, choice: Choice, kind: type[Connection] = Connection) -> Connection:
    """A connection to a cluster that has an environment of its own.

    Raises
    ------
    ClusterError
        Its scheduler cannot hold a run's tasks.
    """
    code = Code(client, choice, source_digest())
    if problem := code.unfit_scheduler():
        raise ClusterError(f"the cluster's scheduler {problem}")
    return kind(client, code)
