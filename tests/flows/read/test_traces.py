"""What traces and tokens tell; thinking that stands in the answer is compressed as a trace of its own would be."""

import pytest

import evalcube as ec
from evalcube.flows.errors import SweepError
from evalcube.flows.read.forensics import clip, compression, cost, hazard, with_replies
from evalcube.flows.read.selection import Part, open_part
from evalcube.stages.process.grading import compressed_size
from tests.flows.support import SHARED, sweep_config


@pytest.fixture(scope="module")
def cube(tmp_path_factory, _served):
    """Two models, of which only the first shows its reasoning apart."""
    folder = tmp_path_factory.mktemp("traces")
    config = sweep_config(folder, _served.base_url, trials=3, models=("apart", "within"))
    config["models"][0]["simulate"]["reasoning"] = "field"
    ec.run(config, cluster=SHARED)
    return config["cube"]


def test_with_replies__takes_the_reply_where_there_is_no_trace(cube):
    part = open_part(cube, Part(where=["task=arithmetic"], trials=2)).dataset

    found = with_replies(part, cube)

    apart, within = ({"model": place} for place in (0, 1))
    assert (found["reasoning_bytes"][apart] == part["reasoning_bytes"][apart]).all()
    rows = ec.trials(cube, where=["model=within", "task=arithmetic"]).records()
    texts = [row["response"].encode() for row in rows if row["trial"] < 2]
    sizes = found["reasoning_bytes"][within].values
    assert sorted(sizes[sizes > 0].ravel().tolist()) == sorted(map(len, texts))
    packed = found["compressed_bytes"][within].values
    assert sorted(packed[packed > 0].ravel().tolist()) == sorted(map(compressed_size, texts))


def test_with_replies__without_replies_says_so(cube, tmp_path):
    (tmp_path / "empty").mkdir()

    with pytest.raises(SweepError, match="no reply is at hand"):
        with_replies(open_part(cube).dataset, cube, cache=[str(tmp_path / "empty")])


@pytest.mark.parametrize("analysis", [hazard, compression, cost, clip], ids=lambda each: each.__name__)
def test_analyses__say_the_same_of_a_small_cube_and_of_what_is_read_piece_by_piece(cube, analysis):
    whole, lazy = (analysis(each, Part(where=["task=arithmetic"])) for each in (cube, ec.open_cube(cube)))

    assert repr(lazy[2]) == repr(whole[2])  # NaN equals itself there
    assert whole[2]


def test_clip__without_lengths_of_answers_says_so(cube):
    with pytest.raises(SweepError, match="has no array `tokens`"):
        clip(open_part(cube).dataset.drop_vars("tokens"))
