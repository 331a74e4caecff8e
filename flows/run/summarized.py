"""What a run came to: its summary, from the cube as the run left it and from what the run's events told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from evalcube.flows.config.models import SweepConfig
from evalcube.flows.plan.blocks import RegionWork
from evalcube.flows.plan.part import Only
from evalcube.flows.plan.refused import refusal_lines
from evalcube.flows.plan.store import SweepStore
from evalcube.flows.plan.unnamed import unnamed
from evalcube.flows.run.batch_notes import requests_in_batches
from evalcube.flows.run.limit_use import found_limits, limit_use
from evalcube.flows.run.not_found import CAUSE, not_found_lines
from evalcube.flows.run.spending import Spending
from evalcube.flows.run.summary import ModelSummary, RunSummary, Saved, Tracker
from evalcube.stages.infer.endpoint import Endpoint


def summarized(
    reason: str,
    store: SweepStore,
    settings: SweepConfig,
    tracker: Tracker,
    spending: Spending,
    stopped_by: str,
    endpoints: Mapping[str, Endpoint],
    only: Only | None,
) -> RunSummary:
    """The summary of a run that has ended.

    Parameters
    ----------
    reason
        "complete", or "stopped" if somebody or something stopped it.
    store
        The sweep as the run left it.
    settings
        Its config.
    tracker, spending
        What the run's events told, and what it spent.
    stopped_by
        Who wanted it to stop; empty if nobody did.
    endpoints
        By model, those that were asked.
    only
        The part of the plan that was asked; None for all of it.
    """
    models, transport, counts, unrated = [], store.transport_errors(), store.targets.counts, 0
    finished: list[int] = []
    for i, label in enumerate(store.plan.labels):
        pairs = list(map(left_of, store.unfinished(i)))
        left, unrated = sum(pair[0] for pair in pairs), unrated + sum(pair[1] for pair in pairs)
        finished.append(counts[i] - left)
        if store.plan.named is None or store.plan.named.evaluations[i]:
            models.append(ModelSummary(label, counts[i], counts[i] - left, min(left, transport[i])))
    done = sum(model.done for model in models)
    traffic = tracker.traffic()
    bound = spending.reached if reason == "stopped" else ""
    if done == sum(counts) and not unrated and (bound or reason != "stopped"):
        reason, bound = "complete", ""
    elif reason == "complete":
        reason = "incomplete"
    causes = _causes(store)
    lost = {store.plan.evaluations[place].model for place, named in causes.items() if CAUSE in named}
    return RunSummary(
        reason=reason,
        cube=settings.cube,
        cache=settings.cache,
        seconds=tracker.seconds,
        trials=sum(counts),
        done=done,
        transport=sum(model.transport for model in models),
        cached=tracker.cached,
        found_again=tracker.found_again,
        sent=traffic.sent,
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
        asking_seconds=tracker.asking_seconds,
        limits=limit_use(endpoints, traffic),
        found_limits=found_limits(endpoints, traffic),
        saved=_saved(store, settings, tracker),
        refused=(
            *refusal_lines(store.plan.evaluations, causes),
            *not_found_lines(
                (one for one in settings.models if one.name in lost and CAUSE in tracker.causes), endpoints
            ),
        ),
        models=tuple(models),
        in_batches=requests_in_batches(
            store.cube.records,
            store.plan,
            [done < count for done, count in zip(finished, counts, strict=True)],
        ),
        unrated=unrated,
        unnamed=unnamed(store.plan, store.counters()),
        pending=0 if only is None else _pending(store, settings, only) - (sum(counts) - done),
    )


def _saved(store: SweepStore, settings: SweepConfig, tracker: Tracker) -> Saved | None:
    """What the cache saved this run."""
    if not tracker.cached:
        return None
    prices = {model.name: model.prices for model in settings.models if model.priced}
    prompts = completions = dollars = 0.0
    for place, (prompt, completion) in tracker.saved().items():
        prompts, completions = prompts + prompt, completions + completion
        if (price := prices.get(store.plan.evaluations[place].model)) is not None:
            dollars += (prompt * price.prompt + completion * price.completion) / 1e6
    return Saved(round(prompts), round(completions), dollars if prices else None)


def _causes(store: SweepStore) -> dict[int, list[str]]:
    """Why trials failed, by evaluation."""
    causes: dict[int, list[str]] = {}
    for receipt in store.receipts:
        causes.setdefault(receipt.region.model, []).extend(receipt.causes)
    return causes


def left_of(work: RegionWork) -> tuple[int, int]:
    """How many trials of a region are to be asked, and how many recorded ones to be rated."""
    return len(work.positions), len(work.unrated)


def _pending(store: SweepStore, settings: SweepConfig, only: Only) -> int:
    """Trials of the whole plan that are not done."""
    whole = SweepStore(store.cube, store.plan, only.whole(settings, store.plan), store.found)
    models = range(len(whole.plan.evaluations))
    return sum(len(work.positions) for model in models for work in whole.unfinished(model))
