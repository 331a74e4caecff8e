"""The warning of points that repeat a few problems."""

import pytest

from evalcube.flows.read.cautions import _few_problems
from evalcube.storage.cube.cube import Cube
from tests.flows.cli.made_up import make_cube


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    return Cube.open(make_cube(tmp_path_factory.mktemp("few"))).dataset()


@pytest.mark.parametrize(
    ("trials", "repeats", "said"), [(40, 21, True), (40, 20, False), (20, 11, True), (19, 18, False)]
)
def test_few_problems__of_more_than_half_of_enough_trials(counted, trials, repeats, said):
    dataset = counted.copy(deep=True)
    for name, value in (("trials", trials), ("duplicates", repeats)):
        dataset["counters"].loc[{"counter": name}] = 0
        dataset["counters"][
            {"task": 1, "params": 0, "counter": dataset["counter"].values.tolist().index(name)}
        ] = value

    found = _few_problems(dataset)

    assert [text.split(" repeat")[0] for text in found] == ["sort: 1 of 1 points"] * said
