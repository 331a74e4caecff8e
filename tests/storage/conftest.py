import multiprocessing
import os
import subprocess
import sys
import time
from multiprocessing import forkserver
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))

import storage_workers

from tests.waiting import wait_until


class Processes:
    """Runs functions of `storage_workers` in processes that import everything once."""

    def __init__(self):
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["storage_workers", "xarray.backends.zarr", "dask.array"])
        # Python 3.11's fork server does not take over sys.path, and skips a preload that it cannot import.
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
            forkserver.ensure_running()
        self._started = []

    def start(self, function, *args):
        process = self._context.Process(target=function, args=args, daemon=True)
        process.start()
        self._started.append(process)
        return process

    def join(self):
        for process in self._started:
            process.join()

    def end(self):
        for process in self._started:
            process.kill()
            process.join()
            process.close()
        self._started.clear()

    @staticmethod
    def lines(path):
        """Acknowledgements so far; a line cut by a kill is none."""
        path = Path(path)
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def wait_lines(self, path, count=1):
        def there():
            return len(self.lines(path)) >= count

        wait_until(there, told=lambda: f"{path} has {self.lines(path)}", pause=0.002)
        return self.lines(path)

    def killed(self, function, *args, acks, delay):
        """Acknowledgements of a process that got SIGKILL `delay` seconds after its first."""
        before = len(self.lines(acks))
        process = self.start(function, *args)
        self.wait_lines(acks, before + 1)
        time.sleep(delay)
        process.kill()
        process.join()
        return self.lines(acks)


@pytest.fixture
def processes():
    running = Processes()
    yield running
    running.end()


@pytest.fixture
def workers():
    return storage_workers


@pytest.fixture
def small_disk(tmp_path):
    """A function that mounts a real file system of so many bytes."""
    mounted = []

    def mount(size):
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
        if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
            pytest.skip("needs the right to mount a small tmpfs")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def below_a_file(tmp_path):
    """A path that nobody can create, not even root."""
    file = tmp_path / "file"
    file.write_text("x")
    return file / "inside"
