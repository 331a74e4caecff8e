import numpy as np
import xarray as xr

from evalcube import stats as outcomes

R = np.random.default_rng(0).integers(0, 2, (2000, 37))


def test_metrics__a_plain_data_array_is_questions_by_samples():
    assert outcomes.pass_at_k(xr.DataArray(R, dims=("q", "s")), 3) == outcomes.pass_at_k(R, 3)
