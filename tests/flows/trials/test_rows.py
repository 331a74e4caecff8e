import itertools

import numpy as np
import pytest

from evalcube.flows.trials.rows import PLACES, nearest

EVERY = sorted(itertools.product(range(1), range(2), range(2), range(2), range(3), range(2)))
SOME = [place for number, place in enumerate(EVERY) if number % 3]
SHUFFLED = np.random.default_rng(1).permutation(SOME)
ROWS = {name: SHUFFLED[:, axis] for axis, name in enumerate(PLACES)} | {
    "status": np.arange(len(SHUFFLED), dtype=np.uint8)
}


@pytest.mark.parametrize("back", [False, True])
def test_nearest__is_the_first_row_beyond_any_place(back):
    for place in EVERY:
        beyond = [row for row in SOME if (row < place if back else row > place)]

        found = nearest(ROWS, place, back=back)

        if not beyond:
            assert found is None
            continue
        best = max(beyond) if back else min(beyond)
        assert tuple(found[name] for name in PLACES) == best
        assert tuple(SHUFFLED[found["status"]].tolist()) == best
