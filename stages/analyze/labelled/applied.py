"""Functions of arrays on labelled ones, in memory or lazy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from evalcube._arrays import Variable, variable

if TYPE_CHECKING:
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
        first, core = parts[0]
        loop = [str(dim) for dim in first.dims if dim not in core]
        results = function(*(values.transpose(..., *core).values for values, core in parts), **kwargs)
        several = results if isinstance(results, tuple) else (results,)
        return tuple(variable((*loop, *dims), one) for one, dims in zip(several, found, strict=True))
    import xarray as xr

    parts = [
        (xr.Variable(*one) if isinstance(cast("object", one), Variable) else one, core) for one, core in parts
    ]
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
