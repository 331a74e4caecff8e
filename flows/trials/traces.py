"""Lengths of the thinking that models write into their answers, for trials without a reasoning trace of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import xarray as xr

from evalcube.flows.errors import SweepError
from evalcube.flows.trials.read import trials
from evalcube.stages.process.grading import compressed_size

_COLUMNS = ("eval_id", "task", "cell_id", "trial", "repeat", "reasoning_bytes", "response")


def with_replies(
    dataset: xr.Dataset, cube: str | Path | Sequence[str | Path], cache: Sequence[str] | None = None
) -> xr.Dataset:
    """A part of a cube in which what a reply says stands for the trace that it lacks, read from the cache.

    Parameters
    ----------
    dataset
        The part, with the trial arrays.
    cube
        Its address, or those that it was joined from.
    cache
        Addresses of response caches; default: the one at hand.

    Returns
    -------
    Dataset
        With other ``reasoning_bytes`` and ``compressed_bytes``, in memory.

    Raises
    ------
    SweepError
        If no reply is at hand.
    """
    lengths = {name: dataset[name].copy(deep=True).load() for name in ("reasoning_bytes", "compressed_bytes")}
    dims = ("model", "task", "params", "trial", "repeat")
    whole, packed = (array.transpose(*dims).values for array in lengths.values())
    models = {str(name): place for place, name in enumerate(dataset["eval_id"].values)}
    tasks = {str(name): place for place, name in enumerate(dataset["task"].values)}
    ids = dataset["cell_id"].transpose("task", "params").values
    slots = [{str(name): place for place, name in enumerate(row) if name} for row in ids]
    found = 0
    for row in trials(cube, columns=_COLUMNS, cache=cache).rows():
        model, task = models.get(row["eval_id"]), tasks.get(row["task"])
        slot = None if task is None else slots[task].get(row["cell_id"])
        if model is None or slot is None or row["trial"] >= whole.shape[3] or row["response"] is None:
            continue
        found += 1
        if row["reasoning_bytes"]:
            continue
        text = row["response"].encode("utf-8", "surrogatepass")
        place = (model, task, slot, row["trial"], row["repeat"])
        whole[place], packed[place] = len(text), compressed_size(text)
    if not found:
        raise SweepError(
            "no reply is at hand, so that there is nothing to compress",
            "Name this sweep's cache with `cache`",
        )
    return dataset.assign(
        {name: (dims, values) for name, values in zip(lengths, (whole, packed), strict=True)}
    )
