"""Whatever is plainly wrong with an argument is told by an `EvalcubeError`, whichever function it is given to."""

import inspect

import pytest

import evalcube as ec
from evalcube import stats
from evalcube.flows.errors import SweepError, WrongTypeError, refused
from evalcube.stages.errors import ArgumentError, ArgumentTypeError

WRONG = (object(), -1, "nonsense", 3.5, [object()], b"x", {"a": 1}, True)
VERBS = (
    "plan leaderboard table rank compare metrics verdict gate trials status verify diff report rescore export"
).split()


def formulas():
    found = (getattr(stats, name) for name in stats.__all__)
    return [one for one in found if inspect.isfunction(one)]


def needed(function):
    """Names of the parameters that have no default."""
    found = inspect.signature(function).parameters.items()
    return [name for name, one in found if one.default is one.empty and one.kind is not one.VAR_POSITIONAL]


def problems(function, **arguments):
    """What a function raises that is neither an answer nor an error of ours."""
    try:
        function(**arguments)
    except ec.EvalcubeError:
        return []
    except Exception as error:  # noqa: BLE001 - whatever it is
        return [f"{function.__name__}({arguments}): {error!r}"]
    return []


@pytest.mark.filterwarnings("ignore")
def test_formulas__refuse_what_is_wrong_as_what_python_would_raise():
    found = [
        problem
        for formula in formulas()
        for wrong in WRONG
        for problem in problems(formula, **dict.fromkeys(needed(formula), wrong))
    ]

    assert found == []
    assert issubclass(ArgumentError, ValueError)
    assert issubclass(ArgumentTypeError, TypeError)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("verb", VERBS)
def test_verbs__refuse_what_is_wrong_by_name(small_sweep, tmp_path, monkeypatch, verb):
    monkeypatch.chdir(tmp_path)  # "nonsense" is a path, and so is b"x"
    function, cube = getattr(ec, verb), str(small_sweep / "cube.zarr")
    config = str(next(small_sweep.glob("*.yaml")))
    known = {"config": config, "output": str(tmp_path / "out"), "to": str(tmp_path / "to")}
    known |= {"first": "alpha", "second": "alpha", "control": "alpha", "treatment": "alpha"}
    sound = {name: known.get(name, cube) for name in needed(function)}

    found = [
        problem
        for name in inspect.signature(function).parameters
        for wrong in WRONG
        for problem in problems(function, **{**sound, name: wrong})
    ]

    assert found == []


def test_refused__keeps_the_kind_of_error():
    with pytest.raises(WrongTypeError, match=r"^no number$") as caught, refused():
        raise ArgumentTypeError("no number.")
    with pytest.raises(SweepError, match=r"^none\. Give one$"), refused():
        raise SweepError("none", "Give one")

    assert isinstance(caught.value, ec.EvalcubeError | TypeError)
    assert isinstance(ec.ConfigError([]), ValueError)
    with pytest.raises(ValueError, match="config"):
        ec.plan({})
