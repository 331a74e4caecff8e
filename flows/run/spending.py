"""What a sweep has spent over all its runs, the bound that stops it, and budgets for where they tell most."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from evalcube import known_as
from evalcube.flows.config.limits import Spend
from evalcube.flows.errors import SweepError
from evalcube.flows.events import Event, Traffic, address_of
from evalcube.flows.plan.part import Counters, Sampling, Selection
from evalcube.flows.plan.plan import Plan
from evalcube.flows.plan.targets import MOST_TRIALS, SampleTargets
from evalcube.flows.run.follow.progress import price_of
from evalcube.flows.state.records import SPENT, Spent, read_spent
from evalcube.stages.analyze.formulas.arguments import column
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import StorageError, guarded

if TYPE_CHECKING:
    from evalcube.stages.analyze.formulas.allocation import Purpose

Unit = Literal["tokens", "usd"]

_SHARE = 0.3
"""Of what is left of a budget, for one round: what its trials show decides on the next."""
_LEAST_SHARE = 0.05
"""Of the whole budget, so that there are not ever smaller rounds."""
_MOST: dict[Unit, float] = {"tokens": 1e15, "usd": 1e9}
"""As `spend` in a config."""
_SUFFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9}


@known_as("evalcube.results")
@dataclass(frozen=True)
class Amount:
    """An amount of tokens or USD, such as `Amount.parse("5USD")`."""

    value: float
    unit: Unit

    @classmethod
    def parse(cls, text: str) -> Amount:
        """Read an amount such as ``2M``, ``500k tokens`` or ``5USD``; a plain number is tokens.

        Examples
        --------
        >>> Amount.parse("2M"), Amount.parse("$1.50")
        (Amount(value=2000000.0, unit='tokens'), Amount(value=1.5, unit='usd'))
        """
        form = re.fullmatch(
            r"(?P<sign>\$?)\s*(?P<number>\d+(\.\d+)?)\s*(?P<suffix>[kmb]?)\s*(?P<unit>|tokens?|usd)",
            text.strip().lower(),
            re.ASCII,
        )
        value = float(form["number"]) * _SUFFIXES[form["suffix"]] if form else 0.0
        if form is None or not value > 0 or (form["sign"] and form["unit"].startswith("token")):
            raise SweepError(f"`budget`: '{text}' is no amount", "Write it like 2M (tokens), 500k or 5USD")
        unit: Unit = "usd" if form["sign"] or form["unit"] == "usd" else "tokens"
        if value > _MOST[unit]:
            raise SweepError(
                f"`budget`: '{text}' is more than {_MOST[unit]:,.0f} {unit}", "Give what may be spent"
            )
        return cls(value, unit)


@dataclass(frozen=True)
class Budget(Sampling):
    """Spends an amount on the selected cells where it narrows the ranking or the intervals most.

    In rounds, so that what the first trials show decides where the next ones go. Trials are paid by what the cell's
    trials have cost so far, so that the sum is met about, not exactly. Cells that cost nothing get nothing: no sum
    would bound them.
    """

    amount: Amount
    purpose: Purpose
    selection: Selection
    before: float
    """What the cube had cost, in the amount's unit, before the first trial of this budget."""

    def targets(self, plan: Plan, planned: SampleTargets, counters: Counters) -> SampleTargets:
        """Trials of the next round; what is planned already comes first."""
        chosen = self.selection.mask(plan) & (planned.trials > 0)
        here = SampleTargets(np.where(chosen, planned.trials, 0), np.where(chosen, planned.repeats, 0))
        trials = column(counters, "trials")
        if (trials != here.trials * here.repeats)[chosen].any():
            return here
        each = spent_on(counters, self.amount.unit) / np.maximum(trials, 1) * here.repeats
        paid = chosen & (each > 0)
        if not paid.any():
            raise SweepError(*_nothing_to_go_by(self.amount.unit, bool(chosen.any())))
        used = spent_on(counters, self.amount.unit).sum() - self.before
        left = self.amount.value - used
        most = np.minimum(plan.sources, MOST_TRIALS) * paid
        from evalcube.stages.analyze.formulas.allocation import allocate  # with `scipy`, which takes a while

        more = allocate(
            counters,
            here.trials,
            plan.ranked,
            budget=min(left, max(_SHARE * left, _LEAST_SHARE * self.amount.value)),
            cost=np.where(paid, each, 1.0),
            purpose=self.purpose,
            most=most,
            weights=plan.base,
        )
        if used <= 0 and not (more > here.trials).any():
            raise SweepError(*self._nothing_to_buy(each[paid & (most > here.trials)], len(planned.trials)))
        return SampleTargets(more.astype(np.int32), here.repeats)

    def _nothing_to_buy(self, prices: npt.NDArray[np.float64], evaluations: int) -> tuple[str, str]:
        """Why the whole budget adds no trial, and what would; `prices` of the cells that could have more."""
        if not prices.size:
            return (
                "`budget`: the selected cells have all the questions that there are",
                "Ask again with `repeats`",
            )
        if prices.min() > self.amount.value:
            return (
                f"`budget`: one more trial costs about {prices.min():.3g} {self.amount.unit}, which is more",
                "Give a larger one",
            )
        if evaluations < 2 and self.purpose == "ranking":
            return (
                "`purpose`: a ranking needs two models or more, and here is one, so nothing would be asked",
                "Give `purpose` as intervals, which narrows its intervals",
            )
        return (
            f"`budget`: no trial that it buys would change the {self.purpose}, so nothing would be asked",
            "Give `trials` or `precision` instead",
        )

    def notes(self) -> Mapping[str, object]:
        """The budget itself, so that an interrupted one goes on instead of beginning anew."""
        return {"budget": self.document()}

    def document(self) -> dict[str, Any]:
        """The budget as JSON values."""
        return {**asdict(self), "selection": {k: list(v) for k, v in asdict(self.selection).items()}}


def resume(budget: Budget, noted: object) -> Budget:
    """The budget, or the interrupted one that it repeats, which remembers what was spent before."""
    if isinstance(noted, dict) and isinstance(noted.get("before"), (int, float)):
        same = Budget(budget.amount, budget.purpose, budget.selection, float(noted["before"]))
        if same.document() == noted:
            return same
    return budget


def spent_on(counters: Counters, unit: Unit) -> npt.NDArray[np.float64]:
    """What each cell has cost, in tokens (prompt and completion) or dollars."""
    if unit == "usd":
        return column(counters, "cost_sum")
    return column(counters, "prompt_tokens_sum") + column(counters, "tokens_sum")


def _nothing_to_go_by(unit: Unit, any_trials: bool) -> tuple[str, str]:
    if not any_trials:
        return (
            "`budget`: nothing is measured yet that would show where to spend",
            "Run the sweep with a few trials per cell first, such as trials: 16",
        )
    if unit == "usd":
        return "`budget`: the models have no prices", "Give `prices:` in the config, or a budget in tokens"
    return "`budget`: the endpoints report no tokens", "Use `trials` instead"


_SAVE_SECONDS = 5.0
_BEYOND = " (what was in flight then is paid for, too)"


class Spending:
    """Adds up what a sweep spends and remembers it beside the cube; stops the sweep at its bound.

    Parameters
    ----------
    records
        Of the cube: where the sum is kept between runs.
    counters
        Of the cube: what it has cost, where no sum was kept yet.
    prices
        By label of the model, USD per million tokens, see `evalcube.flows.events.Traffic.usage`.
    bound
        Where to stop; None is nowhere.
    """

    def __init__(
        self, records: Space, counters: Counters, prices: Mapping[str, Sequence[float]], bound: Spend | None
    ) -> None:
        self._records = records
        self._prices = prices
        self.bound: dict[str, float | None] = {} if bound is None else bound.model_dump()
        """Where to stop, by unit: ``tokens`` and ``usd``; None is nowhere."""
        # Without a sum, as after a kill in the first seconds: what the cube holds is the least that was spent.
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
        """By this run so far; of a worker that died, what it had in flight as if it had been answered."""
        tokens, usd = 0.0, 0.0
        there = {address_of(worker): worker for worker in self._workers}
        for worker, report in self._workers.items():
            # Where another process has its address it died, and what it had in flight was asked, and may have to be
            # paid.
            died, answers = there[address_of(worker)] != worker, sum(report.answered.values())
            share = 1.0 + report.in_flight / answers if died and answers else 1.0
            for model, used in report.usage.items():
                tokens += share * sum(used[:2])
                usd += share * price_of(self._prices.get(model, ()), used)
        return Spent(tokens, usd)

    @property
    def reached(self) -> str:
        """The bound that is reached, for people; empty if none is."""
        tokens, usd, spent = self.bound.get("tokens"), self.bound.get("usd"), self.spent
        if tokens is not None and spent.tokens >= tokens:
            return f"spend.tokens: {spent.tokens:,.0f} of {tokens:,.0f} tokens are spent{_BEYOND}"
        if usd is not None and spent.usd >= usd:
            return f"spend.usd: {spent.usd:,.2f} of {usd:,.2f} USD are spent{_BEYOND}"
        return ""

    def save(self) -> None:
        """Keep the sum, so that a run that is killed loses no more than the last seconds of it."""
        self._saved_at = time.monotonic()
        spent = self.spent
        with guarded(f"{self._records.address}/{SPENT}", "keep what the sweep has spent"):
            self._records.put(SPENT, json.dumps({"tokens": spent.tokens, "usd": spent.usd}).encode())
