"""Where sweeps of tests ask: mostly in the process of the test, which need not wait for others."""

from contextlib import ExitStack, contextmanager

from distributed import Client

from evalcube.deploy.clusters import Cluster, Connection, LocalProcesses, ThisProcess


class SharedProcesses(Cluster):
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


SHARED = ThisProcess()
"""For runs that are asked wherever it is cheapest."""
PROCESSES = SharedProcesses()
"""For runs of several workers, or of workers that are not the driver."""
