"""What traces and tokens tell."""

import pytest

import evalcube as ec
from evalcube.flows.errors import SweepError
from evalcube.flows.read.forensics import clip, compression, cost, hazard
from evalcube.flows.read.selection import Part, open_part
from tests.flows.support import SHARED, sweep_config


@pytest.fixture(scope="module")
def cube(tmp_path_factory, _served):
    """Two models, of which only the first shows its reasoning apart."""
    folder = tmp_path_factory.mktemp("traces")
    config = sweep_config(folder, _served.base_url, trials=3, models=("apart", "within"))
    config["models"][0]["simulate"]["reasoning"] = "field"
    ec.run(config, cluster=SHARED)
    return config["cube"]


@pytest.mark.parametrize("analysis", [hazard, compression, cost, clip], ids=lambda each: each.__name__)
def test_analyses__say_the_same_of_a_small_cube_and_of_what_is_read_piece_by_piece(cube, analysis):
    whole, lazy = (analysis(each, Part(where=["task=arithmetic"])) for each in (cube, ec.open_cube(cube)))

    assert repr(lazy[2]) == repr(whole[2])  # NaN equals itself there
    assert whole[2]


def test_clip__without_lengths_of_answers_says_so(cube):
    with pytest.raises(SweepError, match="no array `tokens`"):
        clip(open_part(cube).dataset.drop_vars("tokens"))
