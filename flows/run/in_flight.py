"""An endpoint's connections and the number of workers in; how many blocks may be under way at once out. Pure."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stages.infer.endpoint import Endpoint

_SMALLEST_BLOCK, _LARGEST_BLOCK = 16, 256
_LARGE_SWEEP = 100_000
"""Trials of one evaluation from which on the number of tasks matters more than seeing them end."""
_LARGE_BLOCK = 1024
_MOMENT_SECONDS, _LONG_SECONDS = 2.0, 30.0
_MOST_QUEUED = 64
"""Bound on the blocks under way, in rounds of requests on all connections."""
_UNBOUND = 4096
"""Connections of a model whose requests go in batches: none of them waits for one."""


@dataclass(eq=False)
class Budget:
    """How many blocks of one model may be in flight; the model's evaluations share it."""

    connections: int
    """Limit of the endpoint, for the whole cluster."""
    block_size: int
    """Trials in a block, about."""
    bounds: tuple[int, int] = (0, 0)
    """Between which `block_size` may change."""
    workers: int = 1
    in_flight: int = 0
    stopped: bool = False
    model: str = ""
    """Label."""
    spare: int = 0
    """Blocks beyond what answers of one length need, as some wait for a few late answers only."""
    gathered: int = 0
    """Requests that each worker should have at once, to make batches of them."""
    peers: Sequence[Budget] = field(default_factory=tuple, repr=False)
    """The budgets of all models at the same address, which share its connections; this one, too."""

    @property
    def depth(self) -> int:
        """Enough blocks that the connections never wait for the driver."""
        if self.stopped:
            return 0
        if self.connections < self.workers:
            # Each worker has one connection then, so that the bound holds only over blocks.
            return self.connections
        gathered = self.workers * -(-self.gathered // self.block_size)
        return max(gathered, 2 * self.workers + 2 * -(-self.connections // self.block_size) + self.spare)

    def took(self, trials: int, seconds: float) -> None:
        """Make the next blocks larger where one is over in a moment, as a task costs the same whatever its size."""
        least, most = self.bounds
        if seconds < _MOMENT_SECONDS and self.block_size // 2 < trials and 2 * self.block_size <= most:
            self.block_size *= 2
        elif seconds > _LONG_SECONDS and trials < 2 * self.block_size and self.block_size // 2 >= least > 0:
            self.block_size //= 2

    def deepen(self) -> None:
        """Allow half as many blocks again, because connections wait for requests.

        A block is in flight until its last answer. Where one answer in a thousand takes 30 times as long as most do,
        nearly every block waits for one, and new blocks must keep the connections busy meanwhile.
        """
        if self.in_flight >= self.depth > 0 and self.connections >= self.workers:
            most = _MOST_QUEUED * -(-self.connections // self.block_size)
            self.spare = min(self.spare + max(1, self.depth // 2), most)

    @property
    def has_room(self) -> bool:
        """Whether one more may go."""
        if self.connections < self.workers and sum(peer.in_flight for peer in self.peers) >= self.connections:
            return False
        return self.in_flight < self.depth


class JudgeBudget(Budget):
    """How many blocks of all models may be in flight because of a model that judges them.

    It bounds nothing where the workers' shares of the connections do.
    """

    @property
    def depth(self) -> int:
        """As many as there are connections, if the workers are more."""
        return self.connections if self.connections < self.workers else sys.maxsize


def make_budgets(
    names: Sequence[str],
    endpoints: Mapping[str, Endpoint],
    left: Sequence[int],
    workers: int,
    judges: Sequence[str] = (),
) -> list[Budget]:
    """The budget of each evaluation; those of one model have one in common.

    Parameters
    ----------
    names
        Label of each evaluation's model.
    endpoints
        By label of the model; models without one have nothing to ask.
    left
        Trials to ask, by evaluation.
    workers
        Number of workers.
    judges
        Labels of the models that judge; where those are asked in batches, each block waits for these, too.
    """
    budgets: dict[str, Budget] = {}
    peers: dict[object, list[Budget]] = {}
    for name in dict.fromkeys(names):
        endpoint = endpoints.get(name)
        connections = 1 if endpoint is None else shared_connections(endpoint, endpoints)
        most = max(count for count, other in zip(left, names, strict=True) if other == name)
        mates = [] if endpoint is None else peers.setdefault(endpoint.account, [])
        gathered = max(_batch_size(endpoints.get(other)) for other in (name, *judges))
        size = block_size(most, connections, workers, _LARGE_BLOCK if gathered else _LARGEST_BLOCK)
        bounds = size, max(size, min(_LARGE_BLOCK, most // (4 * workers)))
        budgets[name] = Budget(connections, size, bounds, model=name, gathered=gathered, peers=mates)
        mates.append(budgets[name])
    return [budgets[name] for name in names]


def shared_connections(endpoint: Endpoint, endpoints: Mapping[str, Endpoint]) -> int:
    """Connections to an address: the fewest that any of its models allows."""
    if endpoint.batch is not None:
        return _UNBOUND
    return min(other.connections for other in endpoints.values() if other.account == endpoint.account)


def _batch_size(endpoint: Endpoint | None) -> int:
    return 0 if endpoint is None or endpoint.batch is None else endpoint.batch.requests


def block_size(left: int, connections: int, workers: int, largest: int = _LARGEST_BLOCK) -> int:
    """Trials in a block: enough to be worth a task, few enough to share out and to see progress."""
    if left > _LARGE_SWEEP:
        return _LARGE_BLOCK
    several_rounds, shared_out = 8 * connections // workers, left // (4 * workers)
    return max(_SMALLEST_BLOCK, min(largest, several_rounds, shared_out))
