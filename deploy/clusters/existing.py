"""A Dask cluster that somebody else runs: reached by its scheduler's address, brought our code, and left running."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distributed import Client
from distributed.security import Security

from evalcube.deploy.clusters.base import PATIENCE_SECONDS, Cluster, ClusterError, Connection
from evalcube.deploy.clusters.carried import CarriedCode
from evalcube.deploy.clusters.code import EVERYBODY, Choice

_CERTIFICATES = (
    "name them in the cluster's `tls` ({ca: ..., cert: ..., key: ...}), or in a file of Dask's own configuration "
    "(distributed.comm.tls) that the variable DASK_CONFIG names"
)


@dataclass(frozen=True)
class Certificates:
    """Files that prove to a cluster who is talking, and to this process that it is the cluster."""

    ca: str
    """PEM file of the authority that signed the cluster's certificates."""
    cert: str
    """PEM file of this process's certificate."""
    key: str
    """PEM file of its private key; it may be in the certificate's file."""

    def security(self) -> Security:
        """As Dask has it; what travels is encrypted.

        Raises
        ------
        ClusterError
            A file cannot be read, or holds no certificate.
        """
        for field in ("ca", "cert", "key"):
            path = Path(getattr(self, field)).expanduser()
            try:
                path.open("rb").close()
            except OSError as error:
                raise ClusterError(
                    f"cluster.tls.{field}: {path} cannot be read ({error.strerror}). Give a PEM file."
                ) from None
        files = {field: str(Path(getattr(self, field)).expanduser()) for field in ("ca", "cert", "key")}
        found = Security(
            tls_ca_file=files["ca"],
            tls_client_cert=files["cert"],
            tls_client_key=files["key"],
            require_encryption=True,
        )
        try:
            found.get_connection_args("client")
        except OSError as error:  # among them ssl.SSLError
            raise ClusterError(
                f"cluster.tls: these files are no certificates that belong together "
                f"({getattr(error, 'reason', None) or error}). Give those of an authority, a certificate and its key."
            ) from None
        return found


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
    tls: Certificates | None = None
    """Certificates for an address that begins with ``tls://``; default: those of Dask's own configuration."""
    choice: Choice = EVERYBODY
    """Which of its workers are used, and how urgent the run is."""

    def connect(self) -> AbstractContextManager[Connection]:
        """A context with a connection; workers are brought this process's evalcube while a run lasts.

        Raises
        ------
        ClusterError
            There is no scheduler at the address, or it wants certificates.
        """
        return self._connect()

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        client = self._client()
        # Quiet until the client is closed: closing, too, logs a scheduler that has died.
        with _quiet(), client:
            yield Connection(client, CarriedCode(client, self.choice))

    def _client(self) -> Client:
        security: dict[str, Any] = {} if self.tls is None else {"security": self.tls.security()}
        try:
            with _quiet():
                return Client(self.address, timeout=self.timeout, set_as_default=False, **security)
        except (TypeError, RuntimeError) as error:
            # What Dask says of an address with TLS, and of one without where encryption is required.
            if self.address.startswith("tls:") and self.tls is None:
                raise ClusterError(
                    f"scheduler '{self.address}' needs certificates: {_CERTIFICATES}."
                ) from None
            raise ClusterError(f"scheduler '{self.address}' cannot be used: {error}.") from None
        except ValueError:  # no port, another protocol
            raise ClusterError(
                f"scheduler '{self.address}' is no address of a scheduler. Write it like tcp://host:8786."
            ) from None
        except (OSError, TimeoutError) as error:
            raise ClusterError(
                f"scheduler '{self.address}' cannot be reached within {self.timeout:g} s "
                f"({type(error).__name__}). Check the address, and that `dask scheduler` runs there."
            ) from None  # a traceback of Dask's says no more than that


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
