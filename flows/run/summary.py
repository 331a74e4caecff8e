"""What a run came to: its summary, from the cube as it left it and from what its events told, and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from evalcube import known_as
from evalcube.flows.config.models import Sweep
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.part import Only
from evalcube.flows.plan.plan import Plan
from evalcube.flows.read.status import refusal_lines
from evalcube.flows.run.endpoint_use import (
    NOT_FOUND,
    FoundLimit,
    LimitUse,
    found_limits,
    limit_use,
    not_found_lines,
)
from evalcube.flows.run.follow.progress import Tracker
from evalcube.flows.run.spending import Spending
from evalcube.flows.state.beside_config import Unnamed, find_unnamed
from evalcube.flows.state.engines import unknown_ends
from evalcube.flows.state.open_trials import left_of, pending_beside
from evalcube.flows.state.store import SweepStore
from evalcube.stages.analyze.render.shown import Shown
from evalcube.stages.infer.batch.lines import Note
from evalcube.stages.infer.endpoint import Endpoint
from evalcube.stages.reply.body import UNKNOWN_END
from evalcube.storage.cube.batch_notes import BatchNotes
from evalcube.storage.cube.space import Space
from evalcube.storage.urls import MadeCube

if TYPE_CHECKING:
    from evalcube.stages.analyze.render.table import TableSpec

_SHOWN_LIMITS, _SHOWN_MODELS = 8, 4
_MOST = 0.9
"""Share of a run's seconds that counts as all of them."""
_LATE, _LIMITED = 0.05, 0.2
"""Share of the connections that waits for the CPU that asks, from which on it is worth a word, and is the limit."""


@dataclass(frozen=True)
class ModelSummary:
    """One evaluation after a run."""

    model: str
    trials: int
    """Trials of the target."""
    done: int
    """Recorded as finished."""
    transport: int
    """Transport errors, which the next run asks again."""


@known_as("evalcube.results")
@dataclass(frozen=True)
class RunSummary(Shown, MadeCube):
    """What a run did, and what is left."""

    reason: str
    """``complete``, ``incomplete`` (transport errors are left) or ``stopped``."""
    cube: str
    cache: str
    seconds: float
    trials: int
    """Trials of the target, repeats included."""
    done: int
    """Of these, finished; by this run or earlier ones."""
    transport: int
    cached: int
    """Answers from the cache in this run; after the death of a worker, of those that it had asked, too."""
    sent: int
    """Requests sent, retries included; what a killed worker sent in its last half second is not known."""
    prompt_tokens: int
    completion_tokens: int
    sent_exactly: bool = True
    """Whether `sent` counts all: not so where a worker was replaced, which may have sent more than it said."""
    retries: dict[str, int] = field(default_factory=dict)
    """Number of retries, by cause."""
    causes: dict[str, int] = field(default_factory=dict)
    """Transport errors of this run, by cause."""
    details: dict[str, str] = field(default_factory=dict)
    """One message of an endpoint for each cause."""
    usd: float | None = None
    """Cost of this run's requests at the config's prices; None if it declares none."""
    spent: dict[str, float] = field(default_factory=dict)
    """Tokens and USD of all runs so far; answers of the cache are free."""
    bound: str = ""
    """The bound under ``spend:`` that stopped the run."""
    ordered: str = ""
    """Who stopped the run with `evalcube stop`, in words."""
    graded: int = 0
    """Trials that this run finished, those from the cache included."""
    asking_seconds: float = 0.0
    """From the first request to the last answer."""
    limits: tuple[LimitUse, ...] = ()
    """For each endpoint that was asked, the limit that was used most, and the share that was used."""
    found_limits: tuple[FoundLimit, ...] = ()
    """For each endpoint that rejected requests because of a limit, the limit as measured."""
    refused: tuple[str, ...] = ()
    """What to write in the config, for each evaluation whose parameters its endpoint refuses."""
    models: tuple[ModelSummary, ...] = ()
    in_batches: int = 0
    """Requests in batches that were not waited for."""
    unrated: int = 0
    """Recorded trials that not all judges have rated; the next run asks the judges again."""
    pending: int = 0
    """Trials of the plan that are not done and were not part of this run (`only`, `trials`)."""
    estimated_tokens: int = 0
    """Tokens of this run that no endpoint counted, estimated from bytes, or that workers had in flight as they died."""
    unknown_ends: dict[str, int] = field(default_factory=dict)
    """Finished trials of the cube by unknown finish reason; ``(none)`` if the endpoint gave none."""
    unnamed: Unnamed | None = None
    """What the cube has and the config does not name."""

    @property
    def efficiency(self) -> float | None:
        """Use of the limit that was used most, and for long, about from 0 to 1; None if nothing was asked."""
        most = max(self.limits, key=lambda use: use.used * use.seconds, default=None)
        return None if most is None else most.used

    @property
    def trials_per_second(self) -> float:
        """Trials that this run finished, by its whole duration."""
        return self.graded / self.seconds if self.seconds else 0.0

    @property
    def left(self) -> int:
        """Trials still to do."""
        return self.trials - self.done

    def raise_for_status(self) -> Self:
        """Raise unless all that was asked for is done, for scripts that must not go on with part of it.

        Returns
        -------
        RunSummary
            This one.

        Raises
        ------
        SweepError
            The run was stopped, or failed trials are left: with how many, and why.
        """
        if self.reason == "complete":
            return self
        named = (f"{cause} ×{count}" for cause, count in sorted(self.causes.items()))
        causes = (f"{cause}: {detail}" for cause, detail in sorted(self.details.items()))
        why = "; ".join(filter(None, (", ".join(named), *causes, *self.refused, self.bound, self.ordered)))
        raise SweepError(
            f"the run is {self.reason}: {self.left} of {self.trials} trials are left"
            + (f" ({why})" if why else ""),
            "Run it again: what is done is not asked again",
        )

    def _table(self) -> TableSpec:
        return table_of(self)

    def __str__(self) -> str:
        return "\n".join(lines_of(self))

    def records(self) -> list[dict[str, Any]]:
        """The evaluations: their trials, and how many of them are done."""
        return [asdict(model) for model in self.models]

    def to_dict(self) -> dict[str, Any]:
        """The summary as JSON values."""
        return {
            **asdict(self),
            "left": self.left,
            "efficiency": self.efficiency,
            "trials_per_second": self.trials_per_second,
        }


def _models(store: SweepStore, left: Sequence[int]) -> tuple[ModelSummary, ...]:
    """The evaluations that the config names, with what is left of each."""
    named, transport = store.plan.named, store.transport_errors()
    return tuple(
        ModelSummary(label, count, count - open_trials, min(open_trials, transport[i]))
        for i, (label, count, open_trials) in enumerate(
            zip(store.plan.labels, store.targets.counts, left, strict=True)
        )
        if named is None or named.evaluations[i]
    )


def summarize_run(
    reason: str,
    store: SweepStore,
    settings: Sweep,
    tracker: Tracker,
    spending: Spending,
    stopped_by: str,
    endpoints: Mapping[str, Endpoint],
    only: Only | None,
) -> RunSummary:
    """The summary of a run that has ended."""
    counts = store.targets.counts
    left, to_rate = zip(*(left_of(store, i) for i in range(len(store.plan.labels))), strict=True)
    unrated, models = sum(to_rate), _models(store, left)
    done = sum(model.done for model in models)
    whole = store.targets if only is None else only.whole(settings, store.plan).union(store.targets)
    traffic = tracker.traffic()
    spans = traffic.asked.values()
    bound = spending.reached if reason == "stopped" else ""
    if done == sum(counts) and not unrated and (bound or reason != "stopped"):
        reason, bound = "complete", ""
    elif reason == "complete":
        reason = "incomplete"
    return RunSummary(
        reason=reason,
        cube=settings.cube,
        cache=settings.cache,
        seconds=tracker.seconds,
        trials=sum(counts),
        done=done,
        transport=sum(model.transport for model in models),
        cached=tracker.cached,
        sent=traffic.sent,
        sent_exactly=not tracker.any_replaced,
        prompt_tokens=traffic.prompt_tokens,
        completion_tokens=traffic.completion_tokens,
        retries=dict(traffic.retries),
        causes=dict(tracker.causes),
        details=dict(tracker.details),
        usd=spending.of_run.usd if any(model.priced for model in settings.models) else None,
        spent=asdict(spending.spent),
        bound=bound,
        ordered=f"stopped by {stopped_by}" if stopped_by and reason == "stopped" else "",
        graded=sum(tracker.done().values()),
        asking_seconds=max((ended for _, ended in spans), default=0.0)
        - min((begun for begun, _ in spans), default=0.0),
        limits=limit_use(endpoints, traffic),
        found_limits=found_limits(endpoints, traffic),
        refused=_refused_models(store, settings, tracker, endpoints),
        models=models,
        in_batches=requests_in_batches(store.cube.records, store.plan, [count > 0 for count in left]),
        unrated=unrated,
        estimated_tokens=round(spending.of_run.tokens) - traffic.prompt_tokens - traffic.completion_tokens,
        unknown_ends=unknown_ends(store.receipts),
        unnamed=find_unnamed(store.plan, store.counters()),
        pending=pending_beside(store, whole, sum(counts) - done),
    )


def _refused_models(
    store: SweepStore, settings: Sweep, tracker: Tracker, endpoints: Mapping[str, Endpoint]
) -> tuple[str, ...]:
    """What endpoints refused, and which models they do not know, if that was so in this run."""
    causes: dict[int, list[str]] = {}
    for receipt in store.receipts:
        causes.setdefault(receipt.region.model, []).extend(receipt.causes)
    lost = {store.plan.evaluations[index].model for index, named in causes.items() if NOT_FOUND in named}
    lost = lost if NOT_FOUND in tracker.causes else set()
    return (
        *refusal_lines(store.plan.evaluations, causes),
        *not_found_lines((model for model in settings.models if model.name in lost), endpoints),
    )


def requests_in_batches(records: Space, plan: Plan, unfinished: Sequence[bool]) -> int:
    """How many requests of notes are of models, or of judges, with something left to answer."""
    models = {evaluation.model for evaluation, left in zip(plan.evaluations, unfinished, strict=True) if left}
    models |= {judge.model for judge in plan.judges if models}
    notes = BatchNotes(records)
    batches = [Note.decode(token, notes.read(token) or b"") for token in notes.tokens()]
    return sum(len(note.digests) for note in batches if note is not None and note.model in models)


def lines_of(summary: RunSummary) -> list[str]:
    """What a run did, a sentence or two on each line; texts of endpoints in them are as they came."""
    seconds, rate = summary.seconds, summary.trials_per_second
    done = f"{summary.graded:,} in {seconds:.1f} s, {rate:.1f}/s"
    sent = f"{summary.sent:,}" if summary.sent_exactly else f"at least {summary.sent:,}"
    paid = usd(summary.usd)
    if summary.estimated_tokens:
        paid += f" (and an estimated {summary.estimated_tokens:,} tokens that no endpoint counted)"
    lines = [
        f"{summary.done:,} of {summary.trials:,} trials done; this run: {done}",
        f"{sent} requests sent, {summary.cached:,} answers from the cache",
        f"{summary.prompt_tokens:,} prompt tokens, {summary.completion_tokens:,} completion tokens, {paid}",
    ]
    ends = {UNKNOWN_END + word: count for word, count in summary.unknown_ends.items()}
    for outcome, causes in (("retried", summary.retries), ("failed", summary.causes), ("ended", ends)):
        if causes:
            named = ", ".join(f"{cause} ×{count}" for cause, count in sorted(causes.items()))
            lines.append(f"{outcome}: {named}")
    for use in summary.limits[:_SHOWN_LIMITS]:
        limit = f"{use.value:g} {use.limit.replace('_', ' ')}"
        # One that was asked all the time needs no word about it.
        part = (
            ""
            if use.seconds > _MOST * summary.asking_seconds
            else f", in the {use.seconds:.1f} s it was asked"
        )
        lines.append(f"efficiency: {use.used:.0%} of {limit} ({_join(use.models)}{part}){_slow(use.late)}")
    lines += [_found_line(entry) for entry in summary.found_limits[:_SHOWN_LIMITS]]
    lines += summary.refused
    if summary.pending:
        asked_for = "done with the part that was asked for; " if summary.reason == "complete" else ""
        lines.append(f"{asked_for}{summary.pending:,} trials of the plan are pending")
    if summary.unnamed is not None:
        lines.append(f"{summary.unnamed}: kept{', and not asked' if summary.unnamed.unasked else ''}")
    return [*lines, f"cube: {summary.cube}"]


def _found_line(found: FoundLimit) -> str:
    names = _join(found.models)
    if found.limit == "requests_per_minute":
        setting = f"{found.limit}: {found.value}"
        return f"{names}: the endpoint limits the rate. Set `limits: {{{setting}}}` in the config"
    return f"concurrency: measured up to {found.value} requests at once in all ({names}){_slow(found.late)}"


def _slow(late: float) -> str:
    waited = "limited by" if late >= _LIMITED else "waited for"
    return f"; {waited} this machine's CPU {late:.0%} of the time" if late >= _LATE else ""


def table_of(summary: RunSummary) -> TableSpec:
    """The evaluations of a run, with its `lines_of` below."""
    from evalcube.stages.analyze.render.table import Column, TableSpec

    def share(row: ModelSummary) -> str:
        return f"{100 * row.done // row.trials}%" if row.trials else "–"

    columns = (
        Column("model", lambda row: row.model, right=False, name=True),
        Column("done", lambda row: f"{row.done:,}"),
        Column("trials", lambda row: f"{row.trials:,}"),
        Column("%", share),
        Column("without a reply", lambda row: f"{row.transport:,}", 1),
    )
    return TableSpec(columns, summary.models, tuple(lines_of(summary)), lambda row: row.done < row.trials)


def usd(amount: float | None) -> str:
    """An amount of money, with as many digits as it needs; None is one that nobody knows.

    Examples
    --------
    >>> usd(12.3), usd(0.0021), usd(None)
    ('12.30 USD', '0.0021 USD', 'cost unknown, as no prices are declared')
    """
    if amount is None:
        return "cost unknown, as no prices are declared"
    return f"{amount:.2f} USD" if amount >= 1 or not amount else f"{amount:.2g} USD"


def _join(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN_MODELS])
    return shown if len(names) <= _SHOWN_MODELS else f"{shown} and {len(names) - _SHOWN_MODELS} more"
