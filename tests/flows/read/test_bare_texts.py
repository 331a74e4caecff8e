"""A text in the place of a list, which Python would read letter by letter, is refused with the list that was meant."""

import pytest

import evalcube as ec
from evalcube.flows.read.statistics import metrics, table
from tests.stages.analyze.synthetic import PROFILES, dataset


@pytest.fixture(scope="module")
def cube():
    return dataset(PROFILES[:2], tasks=2)


MISTAKES = {
    "models": (lambda cube: ec.compare(cube, "A", "B"), 'Write models=["A"]'),
    "a model for a part": (lambda cube: ec.leaderboard(cube, "constructor"), "`part`: str is no part"),
    "ranked": (lambda cube: ec.rank(cube, ["constructor"]), "`part`: list is no part"),
    "by": (lambda cube: table(cube, by="model"), 'Write by=["model"]'),
    "names": (lambda cube: metrics(cube, names="pass_at_k"), 'Write names=["pass_at_k"]'),
    "status": (lambda _: ec.trials("a.zarr", status="correct"), 'Write status=["correct"]'),
    "columns": (lambda _: ec.trials("a.zarr", columns="model"), 'Write columns=["model"]'),
    "treatments": (lambda _: ec.verdict("a.zarr", None, "new"), 'Write treatments=["new"]'),
}


@pytest.mark.parametrize(("call", "told"), MISTAKES.values(), ids=MISTAKES)
def test_analyses__refuse_a_text_where_several_belong(call, told, cube):
    with pytest.raises(ec.EvalcubeError) as caught:
        call(cube)

    assert told in str(caught.value)


def test_part__takes_a_single_condition_as_a_list_of_one():
    assert ec.Part("task=sort").where == ("task=sort",)
    with pytest.raises(ec.SweepError, match="`where`: 7 is no"):
        ec.Part(7)
