"""A command that serves HTTP in; a running server for the length of a `with` block out."""

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
from types import TracebackType
from typing import IO, Self
from urllib.parse import urlsplit

import deploy
from deploy.errors import DeployError

READY = "listening on "
TAIL_LINES = 30
TAIL_COLUMNS = 300
STOP_SECONDS = 5.0
_POLL_SECONDS = 0.02


class ManagedServer:
    """A model server in a child process.

    The child must print ``listening on http://HOST:PORT`` and answer ``GET /health`` with 200. It runs in a
    session of its own, so that Ctrl-C in the terminal reaches evalcube only, and holds the end of a pipe as
    standard input: it has to exit when that ends, which it does even when evalcube is killed.

    Parameters
    ----------
    command
        Program and arguments; `python_module` makes one for a module of evalcube.
    name
        What error messages call the server.
    env
        Environment variables to add.
    log
        File that gets the child's output; its last lines are kept for error messages in any case.
    start_timeout
        Seconds until the server must be ready.
    remedy
        What a user should do when the server does not start.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        name: str,
        env: Mapping[str, str] | None = None,
        log: Path | None = None,
        start_timeout: float = 60.0,
        remedy: str = "",
    ) -> None:
        self.name = name
        self._command = list(command)
        self._env = dict(env or {})
        self._log_path = log
        self._log: IO[bytes] | None = None
        self._timeout = start_timeout
        self._remedy = remedy
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._writing = threading.Lock()
        self._listening = threading.Event()
        self._address = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._readers: list[threading.Thread] = []

    @property
    def base_url(self) -> str:
        """Address of the API, ``http://HOST:PORT/v1``.

        Raises
        ------
        DeployError
            The server is not running.
        """
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
    def log_tail(self) -> str:
        """Last lines of the child's output."""
        with self._writing:
            return "\n".join(self._tail)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the child and wait until it is healthy.

        Raises
        ------
        DeployError
            It runs already, cannot be started, exits at once or is not ready in time.
        """
        if self._process is not None:
            raise DeployError(
                f"{self.name} is running already", remedy="Start another one, or stop it first."
            )
        try:
            self._spawn()
            deadline = time.monotonic() + self._timeout
            while not (self._listening.wait(_POLL_SECONDS) and self._healthy()):
                self._check(deadline)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the child: ask, wait, kill. Does nothing when there is none."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)
            for reader in self._readers:
                reader.join(STOP_SECONDS)
        self._readers.clear()
        self._listening.clear()
        if self._log is not None:
            self._log.close()
            self._log = None

    def _spawn(self) -> None:
        if self._log_path is not None:
            try:
                self._log = self._log_path.open("ab", buffering=0)
            except OSError as error:
                message = f"cannot write the log of {self.name}, {self._log_path}: {error.strerror}"
                raise DeployError(message, remedy="Choose another file.") from error
        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **self._env},
                start_new_session=True,
            )
        except OSError as error:
            message = f"cannot start {self.name}: {self._command[0]}: {error.strerror}"
            raise DeployError(message, remedy=self._remedy) from error
        self._process = process
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                reader = threading.Thread(target=self._read, args=(stream,), daemon=True)
                reader.start()
                self._readers.append(reader)

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            while line := stream.readline(1 << 16):
                text = line.decode(errors="replace").rstrip()
                if text.startswith(READY + "http://") and not self._listening.is_set():
                    self._address = text.removeprefix(READY).rstrip("/")
                    self._listening.set()
                self._keep(line, text)

    def _keep(self, line: bytes, text: str) -> None:
        with self._writing:
            if text:
                self._tail.append(text[:TAIL_COLUMNS])
            if self._log is not None:
                with suppress(OSError, ValueError):  # a full disk must not block the server
                    self._log.write(line)

    def _check(self, deadline: float) -> None:
        code = None if self._process is None else self._process.poll()
        if code is not None:
            for reader in self._readers:
                reader.join(1.0)
            raise DeployError(f"{self.name} stopped with code {code}", remedy=self._remedy, log=self.log_tail)
        if time.monotonic() > deadline:
            message = f"{self.name} was not ready within {self._timeout:g} seconds"
            raise DeployError(message, remedy=self._remedy, log=self.log_tail)

    def _healthy(self) -> bool:
        parts = urlsplit(self._address)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=5.0)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    with suppress(OSError):
        process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def python_module(module: str, *arguments: str) -> list[str]:
    """Write the command that runs a module of evalcube with this interpreter.

    The current directory stays out of the module path (``-P``): a folder named ``deploy`` in it must not win.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def module_path() -> dict[str, str]:
    """Environment in which a child finds evalcube's modules, also where evalcube is not installed."""
    root = Path(deploy.__file__).resolve().parents[1]
    if root.name in ("site-packages", "dist-packages"):
        return {}
    inherited = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": f"{root}{os.pathsep}{inherited}" if inherited else str(root)}
