"""Functions of arrays on labelled ones, in memory or lazy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr


def applied(
    function: Callable[..., Any],
    parts: Sequence[tuple[xr.Variable, Sequence[str]]],
    found: Sequence[Mapping[str, int]],
    kwargs: dict[str, Any],
) -> tuple[xr.Variable, ...]:
    """What a function makes of arrays in memory, or lazily of blocks along all dims but its core dims.

    Parameters
    ----------
    function
        Takes the arrays with their core dims last; the others are the first one's, or fewer, and of one order.
    parts
        Arrays with their core dims.
    found
        Core dims of each result, with their sizes.
    kwargs
        Further arguments of the function.
    """
    if all(values.chunks is None for values, _ in parts):
        # Without xarray's generalised functions, which import Dask's arrays to look at the values.
        first, core = parts[0]
        loop = [str(dim) for dim in first.dims if dim not in core]
        results = function(*(values.transpose(..., *core).values for values, core in parts), **kwargs)
        several = results if isinstance(results, tuple) else (results,)
        return tuple(
            xr.Variable((*loop, *dims), one, fastpath=True) for one, dims in zip(several, found, strict=True)
        )
    result = xr.apply_ufunc(
        function,
        *(
            values if values.chunks is None else values.chunk(dict.fromkeys(core, -1))
            for values, core in parts
        ),
        kwargs=kwargs,
        input_core_dims=[list(core) for _, core in parts],
        output_core_dims=[list(dims) for dims in found],
        dask="parallelized",
        output_dtypes=[np.float64] * len(found),
        dask_gufunc_kwargs={"output_sizes": {dim: size for dims in found for dim, size in dims.items()}},
    )
    return result if isinstance(result, tuple) else (result,)
