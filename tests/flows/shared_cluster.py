"""Worker processes that all sweeps of a test process share, so that each of them need not wait for its own."""

from contextlib import ExitStack, contextmanager

from distributed import Client

from evalcube.deploy.clusters import Cluster, Connection, LocalProcesses


class SharedCluster(Cluster):
    """Two local workers, started by the first sweep; for runs that kill nothing and change no environment."""

    environment = "inherited"

    def __init__(self):
        self._started = ExitStack()
        self._owner = None

    def connect(self):
        return self._connect()

    @contextmanager
    def _connect(self):
        if self._owner is None:
            self._owner = self._started.enter_context(
                LocalProcesses(workers=2, dashboard=False).connect()
            ).client
        with Client(self._owner.cluster, set_as_default=False) as client:
            yield Connection(client)

    def close(self):
        """End the workers, if any were started."""
        self._owner = None
        self._started.close()


SHARED = SharedCluster()
