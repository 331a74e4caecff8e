"""All values of many metrics and several k from a single pass over an outcome matrix."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evalcube.stages.analyze.formulas.outcomes import (
    binary,
    blends,
    categorical,
    inputs,
    spectrum,
    thresholds,
)
from evalcube.stages.analyze.formulas.outcomes.counts import Categories, Successes, categories, successes
from evalcube.stages.errors import ArgumentError

Options = Mapping[str, Mapping[str, Any]]

_MEAN_AND_SIGMA = ("", "sigma")
_INTERVAL = ("mu", "sigma", "lo", "hi")


@dataclass(frozen=True)
class Metric:
    """One metric and how to call it."""

    function: Callable[..., Any]
    categorical: bool = False
    """Takes categories with weights `w`; else binary outcomes."""
    takes_k: bool = True
    required: str = ""
    """An argument without a default, beyond R and k."""

    @property
    def settings(self) -> tuple[str, ...]:
        """Arguments beyond the outcomes and k."""
        # One of each pair of names for the same thing.
        left_out = {"R", "k", "lambda_"}
        return tuple(name for name in inspect.signature(self.function).parameters if name not in left_out)

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the values that it returns; () for a single number."""
        if self.function.__name__.endswith("_ci"):
            return _INTERVAL
        return () if self.takes_k else _MEAN_AND_SIGMA


def metric_parts(name: str) -> list[str]:
    """Names of a metric's values, the main one first."""
    return [f"{name}_{part}" if part else name for part in METRICS[name].parts or ("", "lower", "upper")]


_FUNCTIONS = vars(binary) | vars(blends) | vars(categorical) | vars(spectrum) | vars(thresholds)
_REQUIRED = {"g_pass_at_k_tau": "tau", "threshold_spectrum_at_k": "weights"}
_BINARY = (
    "pass_at_k unanimous_at_k g_pass_at_k mg_pass_at_k auc_at_k pass_hat_k g_pass_at_k_tau maj_at_k geom_at_k "
    "geom_ds_at_k geo_spectrum_at_k geo_spectrum_star_at_k threshold_spectrum_at_k"
).split()
_CATEGORICAL = ("max_at_k", "bayes", "avg")
OF_MEANS = ("geom_ds_at_k", "geo_spectrum_at_k", "geo_spectrum_star_at_k")
"""Metrics that are functions of means over questions, and no such means."""

METRICS: Mapping[str, Metric] = {
    full: Metric(
        _FUNCTIONS[full],
        categorical=name in _CATEGORICAL,
        takes_k="_at_k" in name or name == "pass_hat_k",
        required=_REQUIRED.get(name, ""),
    )
    for name in (*_BINARY, *_CATEGORICAL)
    for full in (name, f"{name}_ci")
}
"""Every metric by name; `tailpass` profiles are not single values and are left out."""


def metric_table(
    R: object,
    metrics: Sequence[str] | None = None,
    k: int | Sequence[int] = 1,
    *,
    w: object = None,
    options: Options | None = None,
) -> dict[str, Any]:
    """Values of several metrics for several k, with one pass over R.

    Parameters
    ----------
    R
        Outcomes, questions × samples: numpy, or a Dask array, which is reduced by chunk; or reduced outcomes.
    metrics
        Names; None means all that `w` and `options` allow.
    k
        One number of draws or several.
    w
        Weights of the categorical metrics (bayes, avg, max_at_k).
    options
        Further arguments by metric, such as ``{"g_pass_at_k_tau": {"tau": 0.5}}``.

    Returns
    -------
    By metric the value, or a mapping from k to the value for metrics of k.

    Raises
    ------
    ValueError
        If a metric is unknown, lacks an argument or does not fit the outcomes, and as the metric itself does.

    Examples
    --------
    >>> table = metric_table([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], ["pass_at_k", "avg"], k=[1, 2])
    >>> [round(value, 6) for value in table["pass_at_k"].values()], round(table["avg"][0], 6)
    ([0.7, 0.95], 0.7)
    """
    names = select_metrics(metrics, w, options)
    top, some = top_category(w), {METRICS[name].categorical for name in names}
    reduced: dict[bool, Any] = {}
    if top == 1 or False in some:
        reduced[False] = successes(R)
    if True in some:
        reduced[True] = categories(reduced[False] if top == 1 else R, top)
    columns: dict[str, Any] = {}
    for name in names:
        metric = METRICS[name]
        outcomes = reduced[metric.categorical]
        if metric.takes_k:
            columns[name] = {each: evaluate(name, outcomes, each, w, options) for each in draws_list(k)}
        else:
            columns[name] = evaluate(name, outcomes, None, w, options)
    return columns


def select_metrics(metrics: Sequence[str] | None, w: object, options: Options | None) -> tuple[str, ...]:
    """The names to evaluate, checked against what they need."""
    choices = options or {}
    for name in (*(metrics or ()), *choices):
        if name not in METRICS:
            raise ArgumentError(f"unknown metric {name!r}; there are {', '.join(sorted(METRICS))}")
    if metrics is None:
        only_categorical = top_category(w) > 1
        return tuple(
            name
            for name, metric in METRICS.items()
            if (metric.categorical or not only_categorical)
            and (not metric.required or metric.required in choices.get(name, {}))
        )
    for name in metrics:
        required = METRICS[name].required
        if required and required not in choices.get(name, {}):
            raise ArgumentError(
                f"{name} needs `{required}`; pass options={{{name!r}: {{{required!r}: ...}}}}"
            )
    return tuple(dict.fromkeys(metrics))


def top_category(w: object) -> int:
    """C, the largest category that has a weight."""
    return 1 if w is None else inputs.rewards(w).size - 1


def evaluate(
    name: str,
    reduced: Successes | Categories,
    k: int | None,
    w: object = None,
    options: Options | None = None,
) -> Any:  # noqa: ANN401 - a number or a tuple of numbers
    """One value of one metric of reduced outcomes."""
    metric = METRICS[name]
    if not metric.categorical and isinstance(reduced, Categories):
        raise ArgumentError(f"{name} is for binary outcomes, but `w` has weights for more categories")
    arguments: dict[str, Any] = dict((options or {}).get(name, {}))
    if metric.categorical:
        arguments.setdefault("w", w)
    return metric.function(reduced, *((k,) if metric.takes_k else ()), **arguments)


def draws_list(k: int | Sequence[int]) -> list[int]:
    """One k or several as a list of checked integers."""
    return [inputs.draws(each) for each in (np.ravel(np.asarray(k, dtype=object)))]
