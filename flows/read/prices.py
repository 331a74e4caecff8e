"""What a cube's tokens cost beyond what its arrays say: which prices were declared, and those of cached tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from evalcube._arrays import variable
from evalcube.flows.state.records import cached_prices, priced_models
from evalcube.stages.analyze.labelled import axes
from evalcube.stages.reply.status import COUNTERS
from evalcube.storage.cube.cube import Cube

if TYPE_CHECKING:
    import xarray as xr


def with_prices(dataset: xr.Dataset, cube: Cube | None, notes: Mapping[str, object]) -> xr.Dataset:
    """The dataset with ``price_declared`` (model), and prices of prompts as they were with those that were cached.

    A price of 0 stands in a cube also where a config declares none. Cached tokens are told by trial and not in the
    counters, so that their lower price is spread over all prompts of a model.

    Parameters
    ----------
    dataset
        Of the cube, or of a part of it.
    cube
        The cube; None where nobody knows it.
    notes
        What the last run noted beside it.
    """
    declared = priced_models(notes)
    if declared is None:
        return dataset
    names = axes.names(dataset, "model_name")
    values = np.array([name in declared for name in names], dtype=bool)
    found = dataset.assign_coords(price_declared=variable(("model",), values))
    more = cached_prices(notes)
    if cube is None or not any(more.values()) or "price_prompt" not in dataset.coords:
        return found
    shares = _cached_shares(cube)
    prices = dataset["price_prompt"].values + [more.get(name, 0.0) * shares.get(name, 0.0) for name in names]
    return found.assign_coords(price_prompt=variable(("model",), prices, dataset["price_prompt"].attrs))


def _cached_shares(cube: Cube) -> dict[str, float]:
    """Share of the tokens of a model's prompts that its endpoint had in its cache, by name of the model."""
    if "cached_tokens" not in cube.trial_arrays:
        return {}
    told = cube.dataset()["cached_tokens"].clip(min=0).sum(("task", "params", "trial", "repeat")).values
    prompts = cube.read_counters()[..., COUNTERS.index("prompt_tokens_sum")].sum(axis=(1, 2))
    cached, every = Counter[str](), Counter[str]()
    for name, part, whole in zip(
        map(str, cube.read_label("model_name")), told.tolist(), prompts.tolist(), strict=True
    ):
        cached[name] += part
        every[name] += whole
    return {name: min(part / every[name], 1.0) for name, part in cached.items() if every[name] > 0}
