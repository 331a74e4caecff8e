"""Any model server that a command starts, on a free port of this machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence

from evalcube.deploy.errors import DeployError
from evalcube.deploy.servers.guard import GRACE_SECONDS, OUTER_PATH
from evalcube.deploy.servers.managed import ManagedServer, module_path, python_module
from evalcube.deploy.servers.presets import HOST, filled


class CommandServer(ManagedServer):
    """A model server in processes of its own, which end with this one, even if that is killed.

    Parameters
    ----------
    command
        Program and arguments, with ``{host}``, ``{port}`` and other words in them.
    name
        What error messages call the server.
    words
        What stands for other words in the command and in `env`, such as ``model``.
    env
        Environment variables to add, with the same words in them.
    secrets
        Environment variable of the server -> variable of this process with the value, which is shown nowhere.
    start_timeout
        Seconds until it must be healthy.

    Raises
    ------
    DeployError
        A variable of `secrets` is not set.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        name: str,
        words: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        start_timeout: float = 1200.0,
    ) -> None:
        hidden = {variable: _secret(source, name) for variable, source in (secrets or {}).items()}
        self.port, self._reserved = _free_port()
        known = {**(words or {}), "host": HOST, "port": str(self.port)}
        plain = {variable: filled(text, known) for variable, text in (env or {}).items()}
        outer = os.environ.get("PYTHONPATH", "")
        super().__init__(
            python_module("evalcube.deploy.servers.guard", *(filled(word, known) for word in command)),
            name=name,
            env={**plain, **hidden, **module_path(), OUTER_PATH: plain.get("PYTHONPATH", outer)},
            start_timeout=start_timeout,
            remedy="Look at its output, correct the command under `serve:`, and run the same command again.",
            address=f"http://{HOST}:{self.port}",
            hidden=tuple(hidden.values()),
            stop_seconds=GRACE_SECONDS + 5.0,
        )

    @property
    def known_url(self) -> str:
        """Address of the API, ``http://HOST:PORT/v1``, also while the server does not run."""
        return f"http://{HOST}:{self.port}/v1"

    def start(self) -> None:
        """See `ManagedServer.start`; the port was kept free for it until now.

        Raises
        ------
        DeployError
            It runs already, cannot be started, ends at once or is not ready in time.
        """
        self.release()
        super().start()

    def release(self) -> None:
        """Keep the port free no longer."""
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None


def _secret(variable: str, name: str) -> str:
    value = os.environ.get(variable, "")
    if not value:
        raise DeployError(
            f"{name} needs the environment variable {variable}, which is not set",
            remedy="Export it in this shell, and run the same command again.",
        )
    return value


def _free_port() -> tuple[int, socket.socket | None]:
    """A port that nobody uses, and the socket that holds it until the server is started.

    On machines with many users the ports between two starts are taken by others; one that is bound is not given away.
    """
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind((HOST, 0))
    return int(held.getsockname()[1]), held
