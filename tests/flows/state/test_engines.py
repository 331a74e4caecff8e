"""What is said of evaluations whose replies come from several systems."""

from types import SimpleNamespace

import numpy as np
import pytest

from evalcube.flows.state.engines import Origin, with_answers
from evalcube.stages.reply.body import name_code
from evalcube.storage.cube.regions import Region
from evalcube.storage.errors import CubeDamagedError


class Stored:
    """A cube of one evaluation and one region, of which `right` and `wrong` trials are whose."""

    trial_arrays = ("status", "provider")

    def __init__(self, **answers):
        self.whose = [name for name, (right, wrong) in answers.items() for _ in range(right + wrong)]
        self.status = [
            1 - (place >= right) for right, wrong in answers.values() for place in range(right + wrong)
        ]

    def read_region(self, region, names):
        if region.trial:
            raise CubeDamagedError("a chunk cannot be decoded", "c.zarr", "heal it")
        codes = [name_code(name) for name in self.whose]
        arrays = (np.array(values).reshape(1, 1, -1, 1) for values in (self.status, codes))
        return dict(zip(names, arrays, strict=True))


def found(cube, *names, regions=(0, 1)):
    receipts = [SimpleNamespace(region=Region(0, trial, 0)) for trial in regions]
    (origin,) = with_answers([Origin("m", fingerprints=dict.fromkeys(names, 9))], cube, receipts)
    return origin


@pytest.mark.parametrize(
    ("wrong", "told"), [(21, "more than by chance"), (10, "no more than by chance may do")]
)
def test_with_answers__shares_and_whether_they_differ(wrong, told):
    origin = found(Stored(a=(20, 10), b=(30 - wrong, wrong)), "a", "b")

    assert origin.right == {"a": (20, 30), "b": (30 - wrong, 30)}
    assert (
        f"a 50%, 66.7% of them right; b 50%, {(30 - wrong) / 30:.1%} of them right. They differ {told}"
        in origin.warning
    )


def test_with_answers__says_what_receipts_say_where_the_cube_does_not_tell_trials_apart():
    cube = Stored(a=(1, 1))

    assert found(cube, "a").warning == ""
    assert found(cube, "a", "b").right == found(cube, "a", "b", regions=(1,)).right == {}
    assert "replies name different systems (a, b)" in found(cube, "a", "b").warning
