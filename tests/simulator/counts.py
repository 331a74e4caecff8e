"""What a simulated server counts of its requests, and the log of those that are finished."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from evalcube.deploy.errors import DeployError

REMEMBERED = 2_000_000
"""Most digests whose attempts are counted: a long run must not fill the memory."""


class Ticket(NamedTuple):
    """A chat request on its way through the server."""

    digest: bytes
    """The request's identity, 32 bytes."""
    model: str
    """Name of the simulated model."""
    good: bool
    """Whether the reply is a plain one, without a fault."""


class Counts:
    """Counts of one server since its start or its last reset.

    Parameters
    ----------
    remembered
        Most digests whose attempts are counted; a digest seen after that many is not among the distinct ones.
    """

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._attempts: dict[bytes, int] = {}
        self._models: dict[str, int] = {}
        self._requests = 0
        self._finished = 0
        self._abandoned = 0
        self._most_attempts = 0
        self._most_in_flight = 0
        self._in_flight = 0

    @property
    def in_flight(self) -> int:
        """Requests that arrived and did not leave."""
        return self._in_flight

    def arrive(self, digest: bytes, model: str) -> int:
        """Count a request in; the result is which attempt of it this is, from 1.

        Parameters
        ----------
        digest
            The request's identity, 32 bytes.
        model
            Name of the simulated model.
        """
        self._requests += 1
        self._models[model] = self._models.get(model, 0) + 1
        self._in_flight += 1
        self._most_in_flight = max(self._most_in_flight, self._in_flight)
        key = digest[:16]  # half of the memory, and still no two requests alike
        attempt = self._attempts.get(key, 0) + 1
        if attempt > 1 or len(self._attempts) < self._remembered:
            self._attempts[key] = attempt
        self._most_attempts = max(self._most_attempts, attempt)
        return attempt

    def leave(self, ticket: Ticket, *, delivered: bool) -> None:
        """Count a request out.

        Parameters
        ----------
        ticket
            The request.
        delivered
            Whether its reply was written; if not, its client went away before.
        """
        self._in_flight -= 1
        self._finished += delivered and ticket.good
        self._abandoned += not delivered

    def reset(self) -> None:
        """Start all counts anew, but for the requests that are in flight."""
        in_flight = self._in_flight
        self.__init__(self._remembered)  # type: ignore[misc]
        self._in_flight = self._most_in_flight = in_flight

    def summary(self) -> dict[str, object]:
        """Everything counted, as JSON has it.

        ``requests`` are complete chat requests, ``finished`` plain replies that were written, ``abandoned``
        requests whose client left first; ``most_attempts`` is how often the most frequent request came.
        """
        return {
            "requests": self._requests,
            "distinct": len(self._attempts),
            "most_attempts": self._most_attempts,
            "finished": self._finished,
            "abandoned": self._abandoned,
            "models": self._models,
            "in_flight": self._in_flight,
            "most_in_flight": self._most_in_flight,
        }


class Log:
    """Appends one line for each finished request: its digest in hex, a tab, its model's name as a Python literal.

    Parameters
    ----------
    path
        The file, which is created if it is not there.

    Raises
    ------
    DeployError
        The file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise DeployError(
                f"cannot write the log {path}: {error.strerror}", remedy="Choose another file with --log."
            ) from error

    def write(self, ticket: Ticket) -> None:
        """Append a line."""
        # One unbuffered write a line: whatever kills the process, the file ends with the last finished request.
        os.write(self._file, f"{ticket.digest.hex()}\t{ticket.model!a}\n".encode())

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
