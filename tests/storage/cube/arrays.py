"""Arrays compared."""

import numpy as np


def assert_equal(left, right):
    assert set(left) == set(right)
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)
