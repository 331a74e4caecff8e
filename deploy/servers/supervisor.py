"""Looks after a model server while it is used: starts it again when it ends or hangs, so many times."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from evalcube.deploy.errors import DeployError
from evalcube.deploy.servers.managed import ManagedServer

_POLL_SECONDS = 0.1
_PROBE_SECONDS = 30.0
"""Between two probes of its health."""
_HUNG = 3
"""Probes in a row that a server which still runs may leave unanswered."""
_ANSWER_SECONDS = 10.0
_NOTE_LINES = 5
"""Of the server's output, in what is said of a failure that is no error yet."""

Note = Callable[[str, str], None]


class Supervisor:
    """Keeps one server running between `start` and `stop`.

    Parameters
    ----------
    server
        The server; nobody else starts or stops it.
    given_up
        File that is written, with the reason, when it is not started any more: for whoever waits for it elsewhere.
    note
        Called with what happens to it and with its last lines, from any thread.
    """

    restarts = 3
    """How often the server is started again, over all its times between `start` and `stop`."""

    def __init__(
        self, server: ManagedServer, *, given_up: Path | None = None, note: Note = lambda _, __: None
    ) -> None:
        self.server = server
        self.over = ""
        """Why it is not started any more; empty while it is."""
        self._left = self.restarts
        self.given_up = given_up
        self._note = note
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the server, wait until it is healthy, and look after it from then on."""
        self._stop.clear()
        self.server.start()
        self._thread = threading.Thread(target=self._look_after, name="evalcube-server", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the server; without one do nothing."""
        # Before the server ends: the thread must not take that end for a crash and start it again.
        self._stop.set()
        if self._thread is not None:
            # It may be in the midst of a start, which takes minutes: the server's end ends that, too.
            while self._thread.is_alive():
                self.server.stop()
                self._thread.join(_POLL_SECONDS)
            self._thread = None
        self.server.stop()

    def _look_after(self) -> None:
        unanswered, due = 0, time.monotonic() + _PROBE_SECONDS
        while not self._stop.wait(_POLL_SECONDS):
            problem = self.server.exit_notice
            if not problem and time.monotonic() >= due:
                due = time.monotonic() + _PROBE_SECONDS
                unanswered = 0 if self.server.is_healthy(_ANSWER_SECONDS) else unanswered + 1
                # One probe may come while the server is busy with a long prompt.
                if unanswered >= _HUNG:
                    problem = f"{self.server.name} does not answer any more"
            if problem and not self._stop.is_set():
                unanswered = 0
                if not self._start_again(problem):
                    return
                due = time.monotonic() + _PROBE_SECONDS

    def _start_again(self, problem: str) -> bool:
        """Whether the server runs again."""
        while not self._stop.is_set():
            self.server.stop()  # first, since its last lines may still be on their way
            last_lines = " | ".join(self.server.log_tail.splitlines()[-_NOTE_LINES:])
            if not self._left:
                self._give_up(f"{problem}, and {self.restarts} restarts are used up", last_lines)
                return False
            self._left -= 1
            left = f"{self._left} of {self.restarts} restarts left"
            self._note(f"{problem} and is started again ({left})", last_lines)
            try:
                self.server.start()
            except DeployError as error:
                problem = error.message
            else:
                self._note(f"{self.server.name} is back", "")
                return True
        return False

    def _give_up(self, problem: str, said: str) -> None:
        self.over = reason = f"{problem}: {said}" if said else problem
        self._note(f"{problem}: no further restart", said)
        if self.given_up is not None:
            with suppress(OSError):  # those who wait do so in vain, and only for some time
                # Whole or not at all: whoever reads it reads the reason.
                draft = self.given_up.with_suffix(".draft")
                draft.write_text(reason, encoding="utf-8")
                draft.replace(self.given_up)
