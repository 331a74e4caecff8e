"""Which results a choice means."""

from dataclasses import replace

import numpy as np
import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.keep.choice import Choice
from evalcube.flows.keep.forget import forget
from evalcube.stages.reply.status import Status
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.errors import StorageError
from tests.flows.keep.forgetting import (
    BETA,
    assert_whole,
    statuses,
)
from tests.flows.support import stored


@pytest.mark.parametrize(
    ("choice", "count", "place"),
    [
        (Choice(("trial=6..",)), 2 * 3 * 2 * 2, np.s_[:, :, :, 6:]),
        (Choice(("task=boolean",)), 2 * 8 * 2, np.s_[:, 1, :1]),
        (Choice(("task=arithmetic", "length=4", "model=alpha", "trial=0..2")), 3 * 2, np.s_[0, 0, 1, :3]),
        (Choice(("tier=hard",)), 2 * 8 * 2, np.s_[:, 1, :1]),
    ],
)
def test_forget__takes_what_fulfils_all_conditions(sweep, choice, count, place):
    before = statuses(sweep)
    expected = before.copy()
    expected[place] = Status.MISSING

    assert forget(sweep["cube"], choice).trials == count

    np.testing.assert_array_equal(statuses(sweep), expected)
    for array in ("tokens", "latency", "guess_chance"):
        values = stored(Cube.open(sweep["cube"]), array)[place]
        assert (np.isnan(values) | (values == -1)).all()
    assert_whole(sweep)


def test_forget__by_outcome(sweep):
    before = statuses(sweep)
    wrong = int((before == Status.INCORRECT).sum())
    assert wrong

    assert forget(sweep["cube"], Choice(("status=incorrect",))).trials == wrong

    np.testing.assert_array_equal(
        statuses(sweep), np.where(before == Status.INCORRECT, Status.MISSING, before)
    )
    with pytest.raises(SweepError, match="no status 'wrong'"):
        forget(sweep["cube"], Choice(("status=wrong",)))


def test_forget__refuses_a_ledger_with_regions_outside_of_the_cube(sweep):
    records = Cube.open(sweep["cube"], writable=True).records
    with Ledger(records) as ledger:
        region, receipt = next(iter(ledger.newest().items()))
        ledger.append(replace(receipt, region=replace(region, model=99)))

    with pytest.raises(StorageError, match="outside of the cube"):
        forget(sweep["cube"], BETA)
