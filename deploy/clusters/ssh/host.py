"""One host that is reached over SSH: its workers are started there, watched, and started again when they end."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncssh

_REMOTE = Path(__file__).with_name("remote.py")
_CONNECT_SECONDS = 15.0
_KEEPALIVE_SECONDS, _KEEPALIVES = 10.0, 3
"""How often a silent connection is tried, and after how many tries without an answer it counts as gone."""
_CLOSING_SECONDS = 8.0
_LAST_LINES, _LINE_CHARACTERS = 12, 300


@dataclass(frozen=True)
class Host:
    """Where workers run."""

    address: str
    """Name or IP address; what ``~/.ssh/config`` says of it holds."""
    user: str | None = None
    """Login there; default: as ``~/.ssh/config`` says, else the same as here."""
    port: int | None = None
    """Of its SSH server; default: as ``~/.ssh/config`` says, else 22."""
    python: str = "python3"
    """Python there, which has what evalcube needs."""
    workers: int = 1
    """Worker processes there."""

    @property
    def name(self) -> str:
        """For people, and in the names of its workers."""
        return self.address if self.port is None else f"{self.address}:{self.port}"


@dataclass(frozen=True)
class Login:
    """How hosts are logged in to."""

    known_hosts: str | None = None
    """File with the hosts' keys; default: ``~/.ssh/known_hosts``."""
    identity: str | None = None
    """File with the private key; default: those of ``~/.ssh`` and of the agent."""
    check_host_keys: bool = True
    """Whether a host must have the key that is known of it."""


class RemoteWorkers:
    """The workers of one host, of one start after another; all calls are of one event loop.

    Parameters
    ----------
    host, login
        Where, and how it is reached.
    """

    def __init__(self, host: Host, login: Login) -> None:
        self.host = host
        self._login = login
        self._connection: asyncssh.SSHClientConnection | None = None
        self._process: asyncssh.SSHClientProcess[bytes] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._lines: deque[str] = deque(maxlen=_LAST_LINES)

    @property
    def running(self) -> bool:
        """Whether its workers are, as far as is known."""
        return self._process is not None and self._process.exit_status is None and not self._closed

    @property
    def _closed(self) -> bool:
        return self._connection is None or self._connection.is_closed()

    @property
    def said(self) -> str:
        """The last lines that they wrote."""
        return "\n".join(f"  {line}" for line in self._lines)

    @property
    def address_here(self) -> str:
        """The address of this machine on the way to the host."""
        if self._connection is None:
            return ""
        return str(self._connection.get_extra_info("sockname")[0])

    async def connect(self) -> str:
        """Log in; returns why that failed, empty if it did not."""
        import asyncssh

        if not self._closed:
            return ""
        try:
            self._connection = await asyncssh.connect(
                self.host.address,
                connect_timeout=_CONNECT_SECONDS,
                login_timeout=_CONNECT_SECONDS,
                keepalive_interval=_KEEPALIVE_SECONDS,
                keepalive_count_max=_KEEPALIVES,
                **self._options(),
            )
        except asyncssh.HostKeyNotVerifiable:
            return (
                f"its host key is not known here. Connect once by hand (`{self._by_hand}`) and accept it, or "
                f"name a file that has it as `known_hosts`"
            )
        except asyncssh.PermissionDenied:
            return "it refuses the login. Try `ssh` by hand; keys come from the agent, ~/.ssh, or `identity`"
        except asyncssh.KeyImportError as error:
            return f"the key cannot be used ({error})"
        except (OSError, asyncssh.Error, TimeoutError) as error:
            return f"it cannot be reached ({_why(error)})"
        return ""

    @property
    def _by_hand(self) -> str:
        port = "" if self.host.port is None else f"-p {self.host.port} "
        user = "" if self.host.user is None else f"{self.host.user}@"
        return f"ssh {port}{user}{self.host.address}"

    def _options(self) -> dict[str, Any]:
        """How it is logged in to; where an option is left out, ``~/.ssh/config`` decides."""
        login, host = self._login, self.host
        options: dict[str, Any] = {}
        if host.user is not None:
            options["username"] = host.user
        if host.port is not None:
            options["port"] = host.port
        if login.identity is not None:
            options["client_keys"] = [str(Path(login.identity).expanduser())]
        if not login.check_host_keys:
            options["known_hosts"] = None
        elif login.known_hosts is not None:
            options["known_hosts"] = str(Path(login.known_hosts).expanduser())
        return options

    async def start(self, words: Sequence[str], environment: Mapping[str, str]) -> str:
        """Start its workers; returns why that failed, empty if it did not.

        Parameters
        ----------
        words
            What Python is to run there, and its arguments.
        environment
            Variables that it gets, by name; they travel over the connection only.
        """
        import asyncssh

        if problem := await self.connect():
            return problem
        assert self._connection is not None  # noqa: S101 - made above
        self._lines.clear()
        command = f"exec {quote(self.host.python)} -P -u -c {quote(_REMOTE.read_text())}"
        try:
            self._process = await self._connection.create_process(
                command, encoding=None, stderr=asyncssh.STDOUT
            )
        except (OSError, asyncssh.Error) as error:
            return f"nothing can be started there ({_why(error)})"
        said = {"words": list(words), "environment": dict(environment)}
        self._process.stdin.write(json.dumps(said).encode() + b"\n")
        self._reading = asyncio.create_task(self._read(self._process))
        return ""

    async def _read(self, process: asyncssh.SSHClientProcess[bytes]) -> None:
        """Keep the last lines; a process whose output nobody takes would stand still."""
        import asyncssh

        with suppress(OSError, asyncssh.Error):
            while data := await process.stdout.read(65_536):
                text = data.decode(errors="replace")
                for line in text.splitlines():
                    shown = "".join(c for c in line if c.isprintable())
                    if shown.strip():
                        self._lines.append(shown[:_LINE_CHARACTERS])

    async def close(self) -> None:
        """End its workers, and log out."""
        if self._process is not None and not self._closed:
            self._process.stdin.write_eof()
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSING_SECONDS):
                    await self._process.wait_closed()
        if self._connection is not None:
            self._connection.abort()
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSING_SECONDS):
                    await self._connection.wait_closed()
        if self._reading is not None:
            self._reading.cancel()
        self._connection = self._process = None


def _why(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error)
    return str(text) or type(error).__name__
