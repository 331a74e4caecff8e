"""A cube as xarray's users want it: plain text labels, nothing that is only ours in its attributes, and an accessor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import xarray as xr

import evalcube
from evalcube import known_as
from evalcube._arrays import as_xarray
from evalcube.flows.cube_like import CubeLike, listed, need_address, need_addresses
from evalcube.flows.plan.filters import Where
from evalcube.flows.read import statistics
from evalcube.flows.read.selection import Part, with_labels
from evalcube.flows.read.verdict import cube_verdict
from evalcube.stages.analyze.formulas.estimators import Mode
from evalcube.storage.cube.cube import Cube
from evalcube.storage.urls import absolute

if TYPE_CHECKING:
    from evalcube.flows.read.results import ComparisonResult, LeaderboardResult, MetricsResult, TableResult
    from evalcube.flows.read.verdict import CubeVerdict

_ACCESSOR = "ec"
_KEPT = ("title", "evalcube_format")
_MOST_BYTES = 64_000_000
"""Of a label whose texts all take as much room as its longest; those above are Python's texts."""


if TYPE_CHECKING:

    class CubeDataset(xr.Dataset):  # type: ignore[no-untyped-call]
        """What `open_cube` returns: a dataset with the analyses of `evalcube` at hand."""

        ec: CubeAccessor

else:
    CubeDataset = xr.Dataset


def open_cube(cube: CubeLike) -> CubeDataset:
    """A cube as a lazy, labelled dataset.

    It is what `xarray.open_zarr` opens, with these changes: labels are ``<U`` in place of numpy's ``StringDType``, so
    that plots, `xarray.merge` and ``to_netcdf`` take them; ``base_trials`` (task, params) and ``max_tokens`` (model)
    come from the cube's description, which leaves ``attrs``; counters of questions are added to ``counters``. All
    arrays have the chunks of ``status``. The analyses of `evalcube` are at hand as ``dataset.ec``, see
    `CubeAccessor`. Its address is ``encoding["source"]``, so that it stands for its cube in all functions.

    Parameters
    ----------
    cube
        A cube; or several in a list, which are joined as `evalcube.merge` joins them and have no address.

    Returns
    -------
    Dataset
        With dimensions model, task, params, trial, repeat, counter and tier; each variable says its units. Labels
        are in memory, variables are not.

    Raises
    ------
    StorageError
        If there is no cube, or it cannot be read.

    Examples
    --------
    >>> import evalcube as ec
    >>> cube = ec.open_cube("results/sweep.zarr")
    >>> cube.sel(model=["small"], task=["sort"]).ec.rate(by=["param_length"]).dims
    ('param_length',)
    """
    if not hasattr(xr.Dataset, _ACCESSOR):  # not at import: two copies of this module would both do it
        xr.register_dataset_accessor(_ACCESSOR)(CubeAccessor)  # type: ignore[no-untyped-call]
    cubes = listed(cube)
    if len(cubes) == 1:
        address = need_address(cubes)
        dataset = as_xarray(with_labels(Cube.open(address), trials=True, lazy=True))
        dataset.encoding["source"] = absolute(address)
    else:
        from evalcube.flows.read.merged.dataset import open_joined  # with much that one cube needs nothing of

        addresses = list(map(str, need_addresses(cubes)))
        joined = open_joined(addresses, trials=True, lazy=True)
        dataset = as_xarray(with_labels(joined.dataset, trials=True))
    texts = {
        name: xr.Variable(label.dims, _plain(label.values), label.attrs, {"dtype": np.dtypes.StringDType()})
        for name, label in dataset.coords.items()
        if label.dtype.kind in "TU"
    }
    dataset = _with_equal_chunks(dataset).assign_coords(texts)
    dataset.attrs = {name: value for name, value in dataset.attrs.items() if name in _KEPT}
    return cast("CubeDataset", dataset)


def _with_equal_chunks(dataset: xr.Dataset) -> xr.Dataset:
    """Return the dataset with the chunks of ``status`` in all lazy arrays: those of small ones differ in the cube."""
    lazy = [name for name, array in dataset.data_vars.items() if array.chunks]
    return dataset.assign(dataset[lazy].reset_coords(drop=True).chunk(dataset["status"].chunksizes).data_vars)


def _plain(values: np.ndarray) -> np.ndarray:
    texts = values.astype(object)
    longest = max(map(len, texts.flat), default=1)
    return texts if 4 * longest * texts.size > _MOST_BYTES else texts.astype(str)


@known_as("evalcube.results")
class CubeAccessor:
    """The analyses of evalcube on a dataset of `open_cube`: ``dataset.ec``.

    What is computed from its arrays holds of these, whatever was done to them. `trials` and `verdict` read the cube at
    its address again, and leave out what is not selected any more.

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

    def trials(
        self,
        *,
        where: Where | str = (),
        status: Sequence[str] = (),
        sort: str | None = None,
        limit: int | None = None,
        columns: Sequence[str] | None = None,
    ) -> evalcube.results.Trials:
        """The trials as a table, one row each; see `evalcube.trials`, which takes the dataset too.

        Parameters
        ----------
        where, status, sort, limit, columns
            As for `evalcube.trials`.

        Returns
        -------
        Trials
            With ``len()``, ``rows()`` and ``to_dataframe()``.
        """
        # By its public name, as its module rests on this one.
        return evalcube.trials(
            self._dataset, where=where, status=status, sort=sort, limit=limit, columns=columns
        )

    def verdict(
        self, control: str | None = None, treatments: Sequence[str] = (), *, tasks: Sequence[str] = ()
    ) -> CubeVerdict:
        """Compare variants on the questions that they share; see `evalcube.verdict`, which takes the dataset too.

        Parameters
        ----------
        control, treatments, tasks
            As for `evalcube.verdict`.

        Returns
        -------
        CubeVerdict
            The verdict, with what was compared.
        """
        return cube_verdict(self._dataset, control, treatments, tasks=tasks)
