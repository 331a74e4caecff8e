"""A scheduler and workers in processes of their own; some workers have what evalcube requires, and not evalcube."""

import itertools
import json
import os
import signal
import site
import subprocess
import sys
import venv
from contextlib import contextmanager, suppress

from distributed import Client

from tests.waiting import PATIENCE, wait_until


def bare_python(folder):
    """A Python that imports what this one does, but for evalcube: files that say where it is installed are not read."""
    made = folder / "bare"
    if not made.exists():
        venv.create(made, with_pip=False, symlinks=True)
        (packages,) = made.glob("lib/python*/site-packages")
        packages.joinpath("here.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return made / "bin" / "python"


class BareCluster:
    """What a test does with such a cluster."""

    def __init__(self, folder, *, python=None, env=None, options=()):
        self.folder = folder
        self._python = python or sys.executable
        self._env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | (env or {})
        self._options = tuple(options)
        self._note = folder / "scheduler.json"
        self.processes = []
        self.address = ""

    def start(self, *arguments, prefix=(), cwd=None, python=None):
        """Start a program of Dask's in a session of its own."""
        command = [*prefix, str(python or self._python), "-m", "dask", *map(str, arguments)]
        log = self.folder / f"{arguments[0]}-{len(self.processes)}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                command,
                cwd=cwd or self.folder,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def start_scheduler(self, *arguments, host="127.0.0.1"):
        """Start it, and wait until it says where it is."""
        self._note.unlink(missing_ok=True)
        self.start(
            "scheduler",
            "--host",
            host,
            "--port",
            0,
            "--no-dashboard",
            *arguments,
            "--scheduler-file",
            self._note,
        )
        wait_until(self._read_note, told=self.logs)

    def _read_note(self):
        with suppress(OSError, ValueError):
            self.address = json.loads(self._note.read_text())["address"]
        return self.address

    def add_worker(self, *arguments, host="127.0.0.1", prefix=(), nanny=True, cwd=None, python=None):
        """Start one more worker."""
        options = ("--nthreads", 2, "--no-dashboard", "--host", host, *([] if nanny else ["--no-nanny"]))
        return self.start(
            "worker",
            self.address,
            *options,
            *self._options,
            *arguments,
            prefix=prefix,
            cwd=cwd,
            python=python,
        )

    def run(self, function, **options):
        """Run something on all workers."""
        with Client(self.address, set_as_default=False, **options) as client:
            return client.run(function)

    def left_behind(self, **options):
        """What is left of evalcube: plugins and files."""

        def plugins(dask_scheduler):
            return [*dask_scheduler.worker_plugins, *dask_scheduler.plugins]

        def files(dask_worker):
            return os.listdir(dask_worker.local_directory)  # noqa: PTH208

        with Client(self.address, set_as_default=False, **options) as client:
            names = [*client.run_on_scheduler(plugins), *itertools.chain(*client.run(files).values())]
            names += itertools.chain(*client.run(lambda dask_worker: list(dask_worker.plugins)).values())
        return [name for name in names if "evalcube" in name]

    def logs(self):
        """What all processes said."""
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("*.log")))

    def close(self):
        """End them all, and what they started."""
        for process in reversed(self.processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def bare_cluster(folder, workers=2, *, security=None, scheduler_options=(), **options):
    """Such a cluster, for as long as the context."""
    folder.mkdir(exist_ok=True)
    cluster = BareCluster(folder, **options)
    try:
        cluster.start_scheduler(*scheduler_options)
        for _ in range(workers):
            cluster.add_worker()
        with Client(cluster.address, set_as_default=False, security=security) as client:
            client.wait_for_workers(workers, timeout=PATIENCE)
        yield cluster
    finally:
        cluster.close()


def assert_nothing_is_left(cluster, **options):
    """Wait until it has nothing of evalcube any more, or fail."""
    # A worker that was getting ready while the run ended looks for itself now and then whether it is still there.
    left = []

    def gone():
        left[:] = ["a worker that went while it was asked"]
        with suppress(OSError):
            left[:] = cluster.left_behind(**options)
        return not left

    wait_until(gone, told=lambda: left, pause=0.5)
