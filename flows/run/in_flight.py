"""How many requests go into a block, how many blocks are in flight, and which come next."""

from __future__ import annotations

import heapq
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from distributed import Future as DaskFuture

from evalcube.flows.plan.targets import Block, Kept, RegionWork, cut_blocks
from evalcube.flows.run.worker.poison import raise_unless_workers_died
from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.infer.rates import Quota
from evalcube.storage.cube.ledger import Receipt, most_fingerprints

SMALLEST, LARGEST = 16, 256
LARGE_SWEEP = 100_000
"""Requests of one evaluation from which on the number of tasks matters more than seeing them end."""
LARGE = 1024
MOST = 4096
"""Where answers are fast: then a thousand trials or more come to each of Dask's tasks."""
_SHARED_OUT = 16
"""Blocks of the largest size that each worker gets at least, so that all workers end at about the same time."""
_MOMENT_SECONDS, _LONG_SECONDS = 10.0, 30.0
"""What a block takes below which the next ones are larger, and above which they are smaller."""
_MOST_CAUSES = 8
"""Causes of transport errors that a receipt names, the most frequent ones."""


def initial_size(left: int, connections: int, workers: int, largest: int = LARGEST) -> int:
    """Requests in the first blocks: enough to be worth a task, few enough to share out and to see progress."""
    if left > LARGE_SWEEP:
        return LARGE
    several_rounds, shared_out = 8 * connections // workers, left // (4 * workers)
    return max(SMALLEST, min(largest, several_rounds, shared_out))


_MOST_QUEUED = 64
"""Bound on the blocks under way, in rounds of requests on all connections."""
_UNBOUND = 4096
"""Connections of a model whose requests go in batches: none of them waits for one."""


@dataclass(eq=False)
class AddressLoad:
    """Blocks under way of all models at one address, which share its connections."""

    in_flight: int = 0
    spare: int = 0
    """Blocks beyond what answers of one length need, as some wait for a few late answers only."""


@dataclass(eq=False)
class InFlightLimit:
    """How many blocks may be in flight at a model's address; the model's evaluations share it."""

    connections: int
    """Limit of the endpoint, for the whole cluster and all runs on it."""
    block_size: int
    """Trials in a block, about."""
    bounds: tuple[int, int] = (0, 0)
    """Between which `block_size` may change."""
    workers: int = 1
    runs: tuple[int, int] = (1, 0)
    """Number of runs that share the endpoint, and this one's place among them."""
    in_flight: int = 0
    """Blocks of this model."""
    stopped: bool = False
    model: str = ""
    """Label."""
    gathered: int = 0
    """Requests that each worker should have at once, to make batches of them."""
    address: AddressLoad = field(default_factory=AddressLoad, repr=False)

    @property
    def own(self) -> int:
        """Connections of this run: its part of the limit, none where there are more runs."""
        # Of many models each is looked at whenever a block is done.
        return (
            self.connections if self.runs[0] == 1 else Quota(self.connections).of_run(*self.runs).connections
        )

    @property
    def depth(self) -> int:
        """Enough blocks that the connections never wait for the driver."""
        if self.stopped:
            return 0
        if self.own < self.workers:
            # Only so many workers have a connection then: on others blocks would wait for these to end.
            return self.own
        gathered = self.workers * -(-self.gathered // self.block_size)
        return max(gathered, 2 * self.workers + 2 * -(-self.own // self.block_size) + self.address.spare)

    def begin(self) -> None:
        """Note a block that is submitted."""
        self.in_flight += 1
        self.address.in_flight += 1

    def end(self) -> None:
        """Note a block that is done."""
        self.in_flight -= 1
        self.address.in_flight -= 1

    def block_took(self, trials: int, seconds: float) -> None:
        """Adapt the size of the next blocks to how long one took.

        Blocks grow where one is over in a moment, as a task costs the same whatever its size, and shrink where one
        takes so long that nobody sees progress. A block of quite another size than the present one says nothing of it.
        """
        size, (least, most) = self.block_size, self.bounds
        if seconds < _MOMENT_SECONDS and size // 2 < trials and 2 * size <= most:
            self.block_size *= 2
        elif seconds > _LONG_SECONDS and trials < 2 * size and size // 2 >= least > 0:
            self.block_size //= 2

    def grow(self) -> None:
        """Allow half as many blocks again, because connections wait for requests.

        A block is in flight until its last answer. Where one answer in a thousand takes 30 times as long as most do,
        nearly every block waits for one, and new blocks must keep the connections busy meanwhile.
        """
        if self._under_way >= self.depth > 0 and self.own >= self.workers:
            most = -(-_MOST_QUEUED * self.own // self.block_size)
            self.address.spare = min(self.address.spare + max(1, self.depth // 2), most)

    @property
    def has_room(self) -> bool:
        """Whether one more may go."""
        return self._under_way < self.depth

    @property
    def _under_way(self) -> int:
        # A batch takes hours, and so each model gathers its own; else models share, or blocks would be as many as
        # models times workers.
        return self.in_flight if self.gathered and self.own >= self.workers else self.address.in_flight


class JudgeLimit(InFlightLimit):
    """How many blocks of all models may be in flight because of a model that judges them.

    It bounds nothing where each worker has a connection.
    """

    @property
    def depth(self) -> int:
        """As many as there are connections, if the workers are more."""
        return self.own if self.own < self.workers else sys.maxsize


def make_limits(
    names: Sequence[str],
    endpoints: Mapping[str, Endpoint],
    left: Sequence[int],
    workers: int,
    judges: Sequence[str] = (),
) -> list[InFlightLimit]:
    """The limit of each evaluation; those of one model have one in common, and models at one address its blocks."""
    limits: dict[str, InFlightLimit] = {}
    addresses: dict[object, AddressLoad] = {}
    connections = shared_connections(endpoints)
    places = {name: _place(name, endpoints.get(name)) for name in names}
    # Of all models there: they share what is in flight, and few blocks of each are enough work for everybody.
    there: Counter[object] = Counter()
    for name, count in zip(names, left, strict=True):
        there[places[name]] += count
    for name, account in places.items():
        own = connections.get(name, 1)
        address = addresses.setdefault(account, AddressLoad())
        gathered = max(_batch_size(endpoints.get(sharer)) for sharer in (name, *judges))
        size = initial_size(there[account], own, workers, LARGE if gathered else LARGEST)
        limits[name] = InFlightLimit(
            own,
            size,
            (size, max(size, min(MOST, there[account] // (_SHARED_OUT * workers)))),
            model=name,
            gathered=gathered,
            address=address,
        )
    return [limits[name] for name in names]


def make_judge_limits(judges: Sequence[str], endpoints: Mapping[str, Endpoint]) -> list[JudgeLimit]:
    """A limit for each model that judges and is asked in this run."""
    connections = shared_connections(endpoints)
    return [JudgeLimit(connections[name], 1, model=name) for name in judges if name in endpoints]


def shared_connections(endpoints: Mapping[str, Endpoint]) -> dict[str, int]:
    """By label of the model, connections to its address: the fewest that any of the models there allows."""
    accounts, fewest = {name: each.account for name, each in endpoints.items()}, dict[object, int]()
    for name, account in accounts.items():
        fewest[account] = min(endpoints[name].connections, fewest.get(account, _UNBOUND))
    batched = {name for name, each in endpoints.items() if each.batch is not None}
    return {name: _UNBOUND if name in batched else fewest[account] for name, account in accounts.items()}


def _batch_size(endpoint: Endpoint | None) -> int:
    return 0 if endpoint is None or endpoint.batch is None else endpoint.batch.requests


def _place(name: str, endpoint: Endpoint | None) -> object:
    """What models have in common that share blocks; batches are nobody else's."""
    return name if endpoint is None or endpoint.batch is not None else endpoint.account


Future: TypeAlias = "DaskFuture[Any]"


@dataclass(eq=False)
class RegionProgress:
    """A region while its blocks are in flight."""

    work: RegionWork
    generation: int
    kept: Kept
    open_blocks: int = 0
    all_submitted: bool = False
    graded: list[tuple[Block, Future]] = field(default_factory=list)
    writing: Future | None = None
    written_at: float = field(default_factory=time.monotonic)
    causes: Counter[str] = field(default_factory=Counter)
    """Transport errors of this run, by cause."""
    deaths: int = 0
    """How often workers died with the task that writes it."""
    unrated: int = 0
    """Recorded trials that not all judges have rated, as of the last writing."""
    fingerprints: Mapping[str, int] = field(default_factory=dict)
    """Of all that is in it, as of the last writing; see `evalcube.storage.cube.ledger.Receipt`."""

    def settle(self, results: list[tuple[Block, Future]]) -> None:
        """Take in what became of an open block, whose parts may have had tasks of their own."""
        self.open_blocks -= 1
        for _, future in results:
            raise_unless_workers_died(future)
        self.graded += results

    def begin_write(self) -> list[tuple[Block, Future]]:
        """Begin the next generation; returns the blocks that it adds to what is stored."""
        self.generation += 1
        graded, self.graded = self.graded, []
        return graded

    def end_write(self, receipt: Receipt) -> Receipt:
        """Take in what was written; returns its receipt with what this run and the ledger know beside it."""
        self.writing, self.unrated = None, receipt.unrated
        self.causes.update(receipt.causes)
        self.fingerprints = most_fingerprints([self.fingerprints, receipt.fingerprints])
        return replace(
            receipt,
            causes=dict(self.causes.most_common(_MOST_CAUSES)),
            grader=self.work.grader_of(receipt.grader),
            fingerprints=self.fingerprints,
        )

    @property
    def is_finished(self) -> bool:
        """Nothing in flight and nothing unwritten."""
        return self.all_submitted and not self.open_blocks and not self.graded and self.writing is None


class BlockQueue:
    """The blocks of one evaluation still to submit, made as they are needed."""

    def __init__(self, regions: Iterator[RegionWork], limit: InFlightLimit) -> None:
        self.limit = limit
        self._regions = regions
        self._blocks: Iterator[Block] = iter(())
        self._region: RegionProgress | None = None
        self.opened: list[RegionProgress] = []
        self.over = False
        """Whether all are submitted."""

    def take(self) -> tuple[RegionProgress, Block] | None:
        """The next block and its region; None when all are submitted."""
        while True:
            block = next(self._blocks, None)
            if block is not None and self._region is not None:
                return self._region, block
            if self._region is not None:
                self._region.all_submitted = True
                self._region = None
            work = next(self._regions, None)
            if work is None:
                self.over = True
                return None
            self._region = RegionProgress(work, work.generation, work.kept)
            # As recorded so far: the next receipt replaces the last one, and must say as much.
            self._region.unrated, self._region.fingerprints = len(work.unrated), work.fingerprints
            self.opened.append(self._region)
            # Cut when the region is opened, so that the size is what the blocks before it taught.
            self._blocks = cut_blocks(work, self.limit.block_size)

    def stop(self) -> None:
        """Give out no further block."""
        self._blocks, self._regions = iter(()), iter(())
        self.take()


def blocks_to_submit(
    queues: Sequence[BlockQueue], others: Sequence[InFlightLimit] = ()
) -> Iterator[tuple[InFlightLimit, RegionProgress, Block]]:
    """Blocks of the model with the fewest under way first, until every address has its depth.

    Whoever takes one has its limits count it before asking for the next.
    """
    starved = [
        (blocks.limit.in_flight, order, blocks)
        for order, blocks in enumerate(queues)
        if not blocks.over and blocks.limit.has_room
    ]
    # Among equals by the order of the queues, which the driver turns each time.
    heapq.heapify(starved)
    while starved:
        _, order, blocks = heapq.heappop(starved)
        room = all(limit.has_room for limit in (blocks.limit, *others))
        taken = blocks.take() if room else None
        if taken is not None:
            yield blocks.limit, *taken
            heapq.heappush(starved, (blocks.limit.in_flight, order, blocks))
