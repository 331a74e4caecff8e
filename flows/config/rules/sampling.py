"""Rules about how much is asked: trials, tokens, dollars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flows.config.findings import Finding, Path
from flows.config.models import SweepConfig
from flows.config.partial import each, every
from flows.config.secrecy import show


def trials_or_precision(config: SweepConfig) -> Iterator[Finding]:
    """Either trials are given or a precision that decides them."""
    if "trials" not in config.model_fields_set or config.precision is None:
        return
    if config.trials != config.precision.base:  # equal where a config was written out
        yield Finding(
            ("precision",),
            f"excludes trials ({show(config.trials)}): precision decides how many trials a cell has",
            remedy="Remove one of the two",
            at_key=True,
        )


def token_limits(config: SweepConfig) -> Iterator[Finding]:
    """A sampler's limit of tokens is a number of them."""
    for name, sampler in each(config.samplers):
        yield from limits(
            ("samplers", name),
            sampler,
            ("max_tokens", "max_completion_tokens"),
            "Leave it out for the server's default",
        )


def limits(
    path: Path, sampler: Mapping[str, Any], params: tuple[str, ...], remedy: str = ""
) -> Iterator[Finding]:
    """The limits among a sampler's parameters that are none.

    Parameters
    ----------
    path
        Where the sampler stands.
    params
        Names of its parameters that are limits.
    """
    for param, value in each(sampler):
        if param in params and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            yield Finding((*path, param), "must be a whole number of at least 1", remedy=remedy, shown=True)


def spend_has_prices(config: SweepConfig) -> Iterator[Finding]:
    """A bound in dollars can be reached."""
    if config.spend is None or config.spend.usd is None:
        return
    if not any(every(config.models, lambda model: model.prices.prompt or model.prices.completion)):
        yield Finding(
            ("spend", "usd"),
            "no model has prices, so that this bound would never be reached",
            remedy="Give the models prices (USD per million tokens), or bound tokens",
            shown=True,
        )
