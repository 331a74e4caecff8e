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


@dataclass(eq=False)
class Budget:
    """How many blocks of one model may be in flight; the model's evaluations share it."""

    connections: int
    """Limit of the endpoint, for the whole cluster."""
    block_size: int
    """Trials in a block, about."""
    workers: int = 1
    in_flight: int = 0
    stopped: bool = False
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
        return 2 * self.workers + 2 * -(-self.connections // self.block_size)

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
    names: Sequence[str], endpoints: Mapping[str, Endpoint], left: Sequence[int], workers: int
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
    """
    budgets: dict[str, Budget] = {}
    peers: dict[object, list[Budget]] = {}
    for name in dict.fromkeys(names):
        endpoint = endpoints.get(name)
        connections = 1 if endpoint is None else shared_connections(endpoint, endpoints)
        most = max(count for count, other in zip(left, names, strict=True) if other == name)
        mates = [] if endpoint is None else peers.setdefault(endpoint.account, [])
        budgets[name] = Budget(connections, block_size(most, connections, workers), peers=mates)
        mates.append(budgets[name])
    return [budgets[name] for name in names]


def shared_connections(endpoint: Endpoint, endpoints: Mapping[str, Endpoint]) -> int:
    """Connections to an address: the fewest that any of its models allows."""
    return min(other.connections for other in endpoints.values() if other.account == endpoint.account)


def block_size(left: int, connections: int, workers: int) -> int:
    """Trials in a block: enough to be worth a task, few enough to share out and to see progress."""
    if left > _LARGE_SWEEP:
        return _LARGE_BLOCK
    several_rounds, shared_out = 8 * connections // workers, left // (4 * workers)
    return max(_SMALLEST_BLOCK, min(_LARGEST_BLOCK, several_rounds, shared_out))
