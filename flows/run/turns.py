"""Which of the servers that a run started may be asked: all of them, or one after another where only some fit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from evalcube.deploy.errors import DeployError
from evalcube.deploy.servers.supervisor import Note, Supervisor, last_words


class Turns:
    """The servers of a run's models; those that take turns run a few at a time, as long as their models need them.

    Parameters
    ----------
    servers
        By label of the model; several models may have one server.
    taking_turns
        Labels of the models whose servers run only some at a time.
    keep
        How many of these.
    note
        Called with what happens and what a server said to that, from any thread.
    """

    def __init__(
        self,
        servers: Mapping[str, Supervisor],
        taking_turns: Sequence[str] = (),
        keep: int = 1,
        note: Note = lambda _, __: None,
    ) -> None:
        self._servers = dict(servers)
        self._in_turn = list(dict.fromkeys(servers[label] for label in taking_turns))
        self._keep = keep
        self._note = note
        self._up: set[Supervisor] = {server for server in servers.values() if server not in self._in_turn}
        self._changing: dict[Supervisor, Future[None]] = {}
        """Servers that are being started or stopped."""
        self._failed: dict[Supervisor, DeployError] = {}
        self._worked = False
        # Starting takes minutes, in which the driver has to keep its lease and the other models busy.
        self._pool = ThreadPoolExecutor(thread_name_prefix="evalcube-turns")

    @property
    def any(self) -> bool:
        """Whether there is anything to decide."""
        return bool(self._servers)

    def start(self) -> None:
        """Start all servers that take no turns, at once, and wait until they are healthy.

        Raises
        ------
        DeployError
            One of them does not start; the others are stopped.
        """
        starting = [self._pool.submit(server.start) for server in self._up]
        for future in starting:
            future.result()

    def stop(self) -> None:
        """Stop all servers, those that are being started too."""
        stopping = [threading.Thread(target=server.stop) for server in dict.fromkeys(self._servers.values())]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()
        self._pool.shutdown(wait=True, cancel_futures=True)
        # A start that had not begun when all were stopped.
        for server in dict.fromkeys(self._servers.values()):
            server.stop()

    def may_ask(self, label: str) -> bool:
        """Whether requests of a model may be sent now; one without a server of its own always may."""
        server = self._servers.get(label)
        return server is None or (server in self._up and server not in self._changing)

    def is_over(self, label: str) -> bool:
        """Whether a model's server was given up, so that nothing more is to be asked of it in this run."""
        server = self._servers.get(label)
        return server is not None and self._is_lost(server)

    def poll(self, needed: Callable[[str], bool]) -> None:
        """Give the turn on, where whoever has it needs it no more.

        Parameters
        ----------
        needed
            Returns whether a model has something to ask, or requests in flight.

        Raises
        ------
        DeployError
            If no server that takes turns could be started, and none is left to try.
        """
        self._take_changes()
        wanted = [
            server for server in self._in_turn if not self._is_lost(server) and self._wants(server, needed)
        ]
        waiting = [server for server in wanted if server not in self._up and server not in self._changing]
        if not waiting:
            self._raise_if_none(wanted)
            return
        for server in [server for server in self._in_turn if server in self._up and server not in wanted]:
            if server not in self._changing:
                self._change(server, server.stop)
        held = len([server for server in self._in_turn if server in self._up or server in self._changing])
        for server in waiting[: max(self._keep - held, 0)]:
            self._note(f"starting {server.server.name}", "")
            self._change(server, server.start)

    def _wants(self, server: Supervisor, needed: Callable[[str], bool]) -> bool:
        return any(own is server and needed(label) for label, own in self._servers.items())

    def _is_lost(self, server: Supervisor) -> bool:
        return bool(server.over) or server in self._failed

    def _change(self, server: Supervisor, change: Callable[[], None]) -> None:
        self._changing[server] = self._pool.submit(change)

    def _take_changes(self) -> None:
        """Note which servers have been started or stopped."""
        for server, future in list(self._changing.items()):
            if not future.done():
                continue
            del self._changing[server]
            if server in self._up:
                self._up.discard(server)
                with suppress(DeployError):
                    future.result()
                continue
            try:
                future.result()
            except DeployError as error:
                self._failed[server] = error
                self._note(f"{error.message}; its model is left out of this run", last_words(error.log))
            else:
                self._up.add(server)
                self._worked = True
        for server in [server for server in self._in_turn if server in self._up and server.over]:
            self._up.discard(server)

    def _raise_if_none(self, wanted: Sequence[Supervisor]) -> None:
        if self._failed and not self._worked and not wanted and not self._changing:
            raise next(iter(self._failed.values()))
