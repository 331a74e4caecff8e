"""A cube as xarray's users want it: plain text labels, nothing that is only ours in its attributes, and an accessor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from evalcube.flows.cubes import statistics
from evalcube.flows.cubes.selection import Part, labelled_dataset
from evalcube.stages.analyze.formulas.estimators import Mode
from evalcube.storage.cube.cube import Cube
from evalcube.storage.urls import Address

if TYPE_CHECKING:
    from evalcube.flows.cubes.results import ComparisonResult, LeaderboardResult, MetricsResult, TableResult

_ACCESSOR = "ec"
_KEPT = ("title", "evalcube_format")
_MOST_BYTES = 64_000_000
"""Of a label whose texts all take as much room as its longest; those above are Python's texts."""


def open_cube(url: Address) -> xr.Dataset:
    """A cube as a lazy, labelled dataset.

    It is what `xarray.open_zarr` opens, with these changes: labels are ``<U`` in place of numpy's ``StringDType``, so
    that plots, `xarray.merge` and ``to_netcdf`` take them; ``base_trials`` (task, params) and ``max_tokens`` (model)
    come from the cube's description, which leaves ``attrs``; counters of questions are added to ``counters``. The
    analyses of `evalcube` are at hand as ``dataset.ec``, see `CubeAccessor`.

    Parameters
    ----------
    url
        Address of the cube, or what a function returned that made or filled it.

    Returns
    -------
    Dataset
        With dimensions model, task, params, trial, repeat, counter and tier; each variable says its units. Labels
        are in memory, variables are not.

    Raises
    ------
    StorageError
        If there is no cube, or it cannot be read.
    """
    if not hasattr(xr.Dataset, _ACCESSOR):  # not at import: two copies of this module would both do it
        xr.register_dataset_accessor(_ACCESSOR)(CubeAccessor)  # type: ignore[no-untyped-call]
    dataset = labelled_dataset(Cube.open(url))
    texts = {
        name: xr.Variable(label.dims, _plain(label.values), label.attrs)
        for name, label in dataset.coords.items()
        if isinstance(label.dtype, np.dtypes.StringDType)
    }
    dataset = dataset.assign_coords(texts)
    dataset.attrs = {name: value for name, value in dataset.attrs.items() if name in _KEPT}
    return dataset


def _plain(values: np.ndarray) -> np.ndarray:
    texts = values.astype(object)
    longest = max(map(len, texts.flat), default=1)
    return texts if 4 * longest * texts.size > _MOST_BYTES else texts.astype(str)


class CubeAccessor:
    """The analyses of `evalcube` on a dataset that `open_cube` opened, or on a part of it: ``dataset.ec``.

    What needs more than counters and outcomes is not here: `evalcube.trials` and `evalcube.verdict` read the cube and
    its cache, so they take its address.

    Parameters
    ----------
    dataset
        The dataset.
    """

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    def rate(self, by: Sequence[str] = ("model",), *, mode: Mode = "C_P") -> xr.DataArray:
        """Success rates of groups, as an array to compute with and to plot.

        Parameters
        ----------
        by
            Coordinates to group by, as for `evalcube.table`.
        mode
            Estimator, as for `evalcube.table`.

        Returns
        -------
        DataArray
            Shares from 0 to 1, NaN where a group has none; its dimensions are `by`.
        """
        return self.table(by=by, mode=mode).estimates["point"].rename("rate")

    def table(
        self, part: Part | None = None, *, by: Sequence[str] = ("model",), mode: Mode = "C_P"
    ) -> TableResult:
        """Success rates with intervals, of any groups; see `evalcube.table`.

        Parameters
        ----------
        part, by, mode
            As for `evalcube.table`.

        Returns
        -------
        TableResult
            With ``to_dataframe()``, a row for each group.
        """
        return statistics.table(self._dataset, part, by=by, mode=mode)

    def leaderboard(self, part: Part | None = None, *, sort: str = "") -> LeaderboardResult:
        """All evaluations ranked; see `evalcube.leaderboard`.

        Parameters
        ----------
        part, sort
            As for `evalcube.leaderboard`.

        Returns
        -------
        LeaderboardResult
            Rows, best first.
        """
        return statistics.leaderboard(self._dataset, part, sort=sort)

    def compare(self, models: Sequence[str | int] = (), part: Part | None = None) -> ComparisonResult:
        """Paired comparisons on the trials that both finished; see `evalcube.compare`.

        Parameters
        ----------
        models, part
            As for `evalcube.compare`.

        Returns
        -------
        ComparisonResult
            A `Pair` for each two evaluations.
        """
        return statistics.compare(self._dataset, models, part)

    def metrics(
        self,
        part: Part | None = None,
        *,
        names: Sequence[str] = ("pass_at_k", "pass_hat_k"),
        k: Sequence[int] = (),
        settings: Mapping[str, object] | None = None,
    ) -> MetricsResult:
        """Pass@k and its family; see `evalcube.metrics`.

        Parameters
        ----------
        part, names, k, settings
            As for `evalcube.metrics`.

        Returns
        -------
        MetricsResult
            With ``to_dataframe()``, a row for each group and k.
        """
        return statistics.metrics(self._dataset, part, names=names, k=k, settings=settings)
