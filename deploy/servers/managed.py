"""Model servers in child processes, which end with their `with` block and with this process, even if it is killed."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Self
from urllib.parse import urlsplit

import evalcube
from evalcube.deploy.errors import DeployError

READY = "listening on "
"""What the child's line with its address begins with."""
TAIL_LINES = 30
TAIL_COLUMNS = 300
STOP_SECONDS = 5.0
"""Seconds that a child has to end by itself."""
_POLL_SECONDS = 0.02
_FIRST_DELAY, _LONGEST_DELAY = 0.2, 2.0
"""Seconds between questions whether it is ready: at first, and at most."""
_HEALTH_SECONDS = 5.0
HEALTH = "/health"
"""Path that tells whether requests are taken; a server that knows none such answers that, too."""
_SERVER_ERRORS = 500


class ManagedServer:
    """A model server in a child process.

    The child must exit when its standard input ends (see `evalcube.deploy.servers.guard`), and answer a ``GET`` of
    ``/health`` with no error of its own once it is ready. Unless its `address` is given, it must print ``listening on
    http://HOST:PORT``. The server may be started again after it was stopped.

    Parameters
    ----------
    command
        Program and arguments; `python_module` has those of a module of evalcube.
    name
        What error messages call the server.
    env
        Environment variables to add.
    start_timeout
        Seconds until the server must be ready.
    remedy
        What a user should do when the server does not start.
    address
        ``http://HOST:PORT``, where it is known before.
    hidden
        Secrets that the output must not show.
    stop_seconds
        Seconds that the child has to end by itself.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        name: str,
        env: Mapping[str, str] | None = None,
        start_timeout: float = 60.0,
        remedy: str = "",
        address: str = "",
        hidden: Sequence[str] = (),
        stop_seconds: float | None = None,
    ) -> None:
        self.name = name
        self._command = list(command)
        self._env = dict(env or {})
        self._timeout = start_timeout
        self._remedy = remedy
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._writing = threading.Lock()
        self._listening = threading.Event()
        self.known_address = self._address = address
        """Where it will be while it does not run; empty where only the child knows."""
        self._answered = ""
        """What it answered last when it was asked whether it is ready, in words."""
        self._hidden = tuple(text.encode() for text in hidden)
        self._stop_seconds = stop_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._readers: list[threading.Thread] = []

    @property
    def base_url(self) -> str:
        """Address of the API, ``http://HOST:PORT/v1``."""
        return f"{self.address}/v1"

    @property
    def address(self) -> str:
        """Address of the server, ``http://HOST:PORT``."""
        if self._process is None:
            raise DeployError(f"{self.name} is not running", remedy="Use it inside its `with` block.")
        return self._address

    @property
    def pid(self) -> int:
        """Process id of the child, 0 when there is none."""
        return 0 if self._process is None else self._process.pid

    @property
    def exit_notice(self) -> str:
        """How the child ended by itself, in words; empty while it runs, and where there is none."""
        code = None if self._process is None else self._process.poll()
        return "" if code is None else f"{self.name} stopped with code {code}"

    def is_healthy(self, seconds: float = _HEALTH_SECONDS) -> bool:
        """Whether it answers that it is ready, within some seconds."""
        parts = urlsplit(self._address)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=seconds)
        try:
            connection.request("GET", HEALTH)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            self._answered = f"; {HEALTH} gave no answer ({type(error).__name__})"
            return False
        else:
            self._answered = f"; {HEALTH} answered {status} last"
            return status < _SERVER_ERRORS
        finally:
            connection.close()

    @property
    def log_tail(self) -> str:
        """Last lines of the child's output, at most `TAIL_LINES` of `TAIL_COLUMNS` printable characters."""
        with self._writing:
            return "\n".join(self._tail)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the child and wait until it is healthy."""
        if self._process is not None:
            raise DeployError(f"{self.name} is running already", remedy="Start another one, or stop it.")
        try:
            self._answered = ""
            self._spawn()
            deadline = time.monotonic() + self._timeout
            while not self._listening.wait(_POLL_SECONDS):
                self._check(deadline)
            # Listening is not enough: a socket may accept while the model is still being loaded.
            delay = _FIRST_DELAY
            while not self.is_healthy():
                self._check(deadline)
                self._rest(min(delay, max(deadline - time.monotonic(), 0.0)))
                delay = min(1.5 * delay, _LONGEST_DELAY)
        except BaseException:
            # Ctrl-C while a model loads, too: no `with` block has been entered that would stop it.
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the child: end its input and terminate it, wait `STOP_SECONDS`, then kill it. Without one do nothing."""
        # Taken first: `address` and `pid` are those of a running server, also while this one ends.
        process, self._process = self._process, None
        if process is not None:
            _end(process, STOP_SECONDS if self._stop_seconds is None else self._stop_seconds)
            # The readers end with the child's output. They are not waited for without limit: a process that the child
            # started may hold it open.
            for reader in self._readers:
                reader.join(STOP_SECONDS)
        self._readers.clear()
        self._listening.clear()

    def _spawn(self) -> None:
        try:
            process = subprocess.Popen(
                self._command,
                # Nothing is ever written into it. The kernel closes it with this process, and its end tells the child.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **self._env},
                # The terminal sends Ctrl-C to its group. A sweep that is to end finishes its requests first, for which
                # it needs the server.
                start_new_session=True,
            )
        except OSError as error:
            message = f"cannot start {self.name}: {self._command[0]}: {error.strerror}"
            raise DeployError(message, remedy=self._remedy) from error
        self._process = process
        if self.known_address:
            self._listening.set()
        # Both are read all the time: a child that fills a pipe nobody reads waits for ever.
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                reader = threading.Thread(target=self._read_output, args=(stream,), daemon=True)
                reader.start()
                self._readers.append(reader)

    def _read_output(self, stream: IO[bytes]) -> None:
        with stream:
            while line := stream.readline(1 << 16):  # a line without an end does not fill the memory
                for secret in self._hidden:
                    line = line.replace(secret, b"[key]")
                text = "".join(c if c.isprintable() else " " for c in line.decode(errors="replace")).rstrip()
                if text.startswith(READY + "http://") and not self._listening.is_set():
                    self._address = text.removeprefix(READY).rstrip("/")
                    self._listening.set()  # last: `start` reads the address from another thread
                if text:
                    with self._writing:  # two readers, and `log_tail` from a third thread
                        self._tail.append(text[:TAIL_COLUMNS])

    def _check(self, deadline: float) -> None:
        if self._process is None:
            raise DeployError(f"{self.name} was stopped before it was ready")
        if notice := self.exit_notice:
            # The exit is seen before the output: the last lines, which say why, may still be in the pipe.
            for reader in self._readers:
                reader.join(1.0)
            raise DeployError(notice, remedy=self._remedy, log=self.log_tail)
        if time.monotonic() > deadline:
            message = f"{self.name} was not ready within {self._timeout:g} seconds{self._answered}"
            raise DeployError(message, remedy=self._remedy, log=self.log_tail)

    def _rest(self, seconds: float) -> None:
        """Wait, but not longer than the child lives."""
        process = self._process
        if process is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(seconds)


def _end(process: subprocess.Popen[bytes], seconds: float) -> None:
    if process.stdin is not None:
        with suppress(OSError):
            # Both, as either may be missed: a child that still loads may not watch its input yet, or not heed a signal.
            process.stdin.close()
    with suppress(OSError):  # it may have gone by itself
        process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()  # a kill cannot be refused; without this wait a zombie would stay


def python_module(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module of evalcube with this interpreter.

    The current directory stays out of the module path (``-P``): a folder named ``deploy`` in it must not win.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def module_path() -> dict[str, str]:
    """Environment variables with which a child finds evalcube's modules, also where evalcube is not installed."""
    root = Path(evalcube.__file__).resolve().parents[1]
    if root.name in ("site-packages", "dist-packages"):
        return {}
    inherited = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": f"{root}{os.pathsep}{inherited}" if inherited else str(root)}


class Simulator(ManagedServer):
    """The simulated model's server. One serves any number of models: their profiles are in their names."""

    def __init__(self) -> None:
        super().__init__(
            python_module("evalcube.deploy.simulator", "--port", "0", "--follow-parent"),
            name="the simulated model",
            env=module_path(),
        )
