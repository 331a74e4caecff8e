"""Adds up what a sweep has spent over all its runs, and stops it at its bound."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from evalcube.flows.config.spend import Spend
from evalcube.flows.plan.records import SPENT, Spent, read_spent
from evalcube.flows.plan.sampling import Counters
from evalcube.flows.plan.spending_budget import spent as spent_on
from evalcube.flows.run.events import Event, Traffic
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import StorageError, guarded

_SAVE_SECONDS = 5.0
_MILLION = 1e6


class Spending:
    """Adds up what a sweep spends and remembers it beside the cube; stops the sweep at its bound.

    Parameters
    ----------
    records
        Of the cube: where the sum is kept between runs.
    counters
        Of the cube: what it has cost, where no sum was kept yet.
    prices
        By label of the model, USD per million tokens of prompts and of completions.
    bound
        Where to stop; None is nowhere.
    """

    def __init__(
        self,
        records: Space,
        counters: Counters,
        prices: Mapping[str, tuple[float, float]],
        bound: Spend | None,
    ) -> None:
        self._records = records
        self._prices = prices
        self.bound: dict[str, float | None] = {} if bound is None else bound.model_dump()
        """Where to stop, by unit: ``tokens`` and ``usd``; None is nowhere."""
        self._before = read_spent(records) or Spent(
            float(spent_on(counters, "tokens").sum()), float(spent_on(counters, "usd").sum())
        )
        self._workers: dict[str, Traffic] = {}
        self._saved_at = time.monotonic()
        self.stop: Callable[[], None] | None = None
        """Called when the bound is reached, perhaps more than once."""

    def __call__(self, event: Event) -> None:
        """Take an event in."""
        if not isinstance(event, Traffic):
            return
        self._workers[event.worker] = event
        if time.monotonic() - self._saved_at > _SAVE_SECONDS:
            with suppress(StorageError):  # the last attempt raises
                self.save()
        if self.stop is not None and self.reached:
            self.stop()

    @property
    def spent(self) -> Spent:
        """By all runs so far."""
        now = self.of_run
        return Spent(self._before.tokens + now.tokens, self._before.usd + now.usd)

    @property
    def of_run(self) -> Spent:
        """By this run so far."""
        tokens, usd = 0.0, 0.0
        for report in self._workers.values():
            for model, (prompts, completions) in report.usage.items():
                price = self._prices.get(model, (0.0, 0.0))
                tokens += prompts + completions
                usd += (prompts * price[0] + completions * price[1]) / _MILLION
        return Spent(tokens, usd)

    @property
    def reached(self) -> str:
        """The bound that is reached, for people; empty if none is."""
        tokens, usd, spent = self.bound.get("tokens"), self.bound.get("usd"), self.spent
        if tokens is not None and spent.tokens >= tokens:
            return f"spend.tokens: {spent.tokens:,.0f} of {tokens:,.0f} tokens are spent"
        if usd is not None and spent.usd >= usd:
            return f"spend.usd: {spent.usd:,.2f} of {usd:,.2f} USD are spent"
        return ""

    def save(self) -> None:
        """Keep the sum, so that a run that is killed loses no more than the last seconds of it.

        Raises
        ------
        StorageError
            If it cannot be written.
        """
        self._saved_at = time.monotonic()
        spent = self.spent
        with guarded(f"{self._records.address}/{SPENT}", "keep what the sweep has spent"):
            self._records.put(SPENT, json.dumps({"tokens": spent.tokens, "usd": spent.usd}).encode())
