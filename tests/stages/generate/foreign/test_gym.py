"""Tasks of reasoning-gym, without that package: what they are called, take, say, and read."""

import pickle

import pytest
from pydantic import ValidationError

from evalcube.flows.config.suites import load_suite
from evalcube.stages.generate import Cell, TaskError, all_tasks, expand
from evalcube.stages.generate.base import Trial
from evalcube.stages.generate.foreign import gym
from evalcube.stages.generate.foreign.bounded import Failure
from tests.cases import with_cases

CHAINS = all_tasks()["gym:chain_sum"]


def test_catalogue__has_levels_of_each_generator_and_a_reason_for_each_that_is_refused():
    known, refused = gym.catalogue()["generators"], gym.catalogue()["refused"]

    assert (len(known), len(refused)) == (73, 32)
    assert not known.keys() & refused.keys()
    for name, entry in known.items():
        assert entry["levels"] >= 1, name
        assert all(entry["attributes"].values()), name
    assert all(refused.values())


@with_cases("name", gym.catalogue()["generators"])
def test_params_of__take_every_level(name):
    task = all_tasks()[f"gym:{name}"]
    entry = gym.catalogue()["generators"][name]

    for attribute, levels in entry["attributes"].items():
        last = task.Params.model_validate({f"level_{attribute}": len(levels) - 1})
        assert task.config(last) == levels[-1]
        with pytest.raises(ValidationError):
            task.Params.model_validate({f"level_{attribute}": len(levels)})


def test_config__one_attribute_and_one_setting_win_over_the_level():
    params = CHAINS.Params(level=2, level_num_digits=0, max_terms=9)

    assert CHAINS.config(params) == {"min_terms": 4, "max_terms": 9, "min_digits": 1, "max_digits": 1}
    assert CHAINS.config(CHAINS.Params()) == {}
    assert CHAINS.difficulty(params) == 3
    assert params.canonical() == {
        "reasoning_gym": gym.catalogue()["version"],
        "level": 2,
        "level_num_digits": 0,
        "max_terms": 9,
    }


@pytest.mark.parametrize(
    "given", [{"level": True}, {"level": "2"}, {"allow_negation": "yes"}, {"level": 1.5}]
)
def test_params__take_numbers_for_numbers(given):
    with pytest.raises(ValidationError):
        CHAINS.Params.model_validate(given)


def test_task__survives_pickling_with_its_params():
    cell = Cell(CHAINS, CHAINS.Params(level=1), 3)

    copy = pickle.loads(pickle.dumps(cell))  # noqa: S301 - made in the same expression

    assert (copy, copy.id, copy.params) == (cell, cell.id, cell.params)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("chainsum", "Did you mean 'gym:chain_sum'"),
        ("sudoku", "not offered: it takes 251 ms an item"),
        ("", "write gym:NAME with one of ab, "),
        ("../x", "has no generator"),
    ],
)
def test_task__says_why_there_is_none(name, said):
    with pytest.raises(TaskError, match=said):
        all_tasks()[f"gym:{name}"]


def test_render__says_how_the_package_is_installed(monkeypatch):
    monkeypatch.setattr(gym, "_installed_version", lambda: "")

    with pytest.raises(TaskError, match=r"pip install 'evalcube\[gym\]'"):
        CHAINS.render(CHAINS.Params(), [1])


def test_resolve__refuses_another_version():
    with pytest.raises(TaskError, match=r"0\.1\.2 "):
        CHAINS.resolve(CHAINS.Params(reasoning_gym="0.1.2"))


@pytest.mark.parametrize(("there", "said"), [("0.1.24", "and 0.1.24 is installed"), ("", "is not installed")])
def test_check_package__says_what_is_needed(monkeypatch, there, said):
    monkeypatch.setattr(gym, "_installed_version", lambda: there)

    with pytest.raises(TaskError, match=said):
        CHAINS.check_package()


def test_render__says_what_a_generator_says_against_its_params(monkeypatch):
    monkeypatch.setattr(gym, "_installed_version", lambda: gym.catalogue()["version"])
    monkeypatch.setattr(gym, "ask", lambda *_: Failure("grader raised AssertionError: min_terms"))

    with pytest.raises(TaskError, match=r'\{"min_terms": 0\}: .* AssertionError'):
        CHAINS.render(CHAINS.Params(min_terms=0), [1])


@with_cases(
    ("reply", "read"),
    [
        ("<answer>7</answer>", "7"),
        ("<answer>5</answer>, no: <answer> 7\n8 </answer> Good.", "7\n8"),
        ("<answer>```\n1 2\n3 4\n```</answer>", "1 2\n3 4"),
        ("<answer>7", "7"),
        ("<answer> </answer>", None),
        ("I think.\nAnswer: 7", "7"),
        (r"So \boxed{7}", "7"),
        ("I cannot say", None),
        ("", None),
        ("<answer>" * 50_000, None),
    ],
)
def test_read_answer__takes_the_last_tag_or_a_mark(reply, read):
    assert gym.read_answer(reply) == read


@with_cases(
    ("reply", "read"),
    [
        ("So.\nAnswer:\n1 2\n3 4\nThat is all.", "1 2\n3 4"),
        ("Answer: 1 2\n3 4", "1 2\n3 4"),
        ("**Answer:**\n```\n1 2\n3 4\n```", "1 2\n3 4"),
        ("<answer>1 2\n3 4\n5 6</answer>", "1 2\n3 4\n5 6"),
        ("Answer:", None),
        ("1 2\n3 4", None),
    ],
)
def test_parse_reply__takes_as_many_lines_as_the_reference_has(reply, read):
    trial = Trial("?", "1 2\n5 6", extras={"entry": None})

    assert CHAINS.parse_reply(reply, CHAINS.Params(), trial) == read


@pytest.mark.parametrize(
    ("answer", "entry", "said", "right"),
    [
        ("7", {"item": {}}, None, True),  # without a look at the scorer
        ("8", None, None, False),
        ("7.0", {"item": {}}, 1.0, True),
        ("7.1", {"item": {}}, 0.99, False),
        ("9", {"item": {}}, Failure("grader ran out of time"), False),
        ("9", {"item": {}}, "1", False),
        ("9", {"item": {}}, True, True),
    ],
)
def test_grade__is_right_for_the_whole_score_alone(monkeypatch, answer, entry, said, right):
    asked = []
    monkeypatch.setattr(gym, "ask", lambda *given: asked.append(given) or said)

    graded = CHAINS.grade_reply(answer, CHAINS.Params(), Trial("?", "7", extras={"entry": entry}))

    assert graded is right
    assert bool(asked) == (said is not None)


def test_gym30__has_thirty_generators_in_three_tiers_with_floors_and_needs_no_package_to_be_read():
    suite = load_suite("gym30", ["sim:"])

    assert len(suite.tasks) == 30
    for label in suite.tasks:
        name, entries = suite.manifold(label)
        task = all_tasks()[name]
        points = expand(task, entries)
        assert [point.tiers for point in points] == [("easy",), ("medium",), ("hard",)]
        floors = gym.catalogue()["floors"][name.partition(":")[2]]
        for point in points:
            floor = floors[str(point.params.level)]
            assert floor["floor"] <= 0.25, name
            assert task.trial(point.params, {"prompt": "?", "target": "1"}).guess_chance == floor["floor"]
        levels = [task.difficulty(point.params) for point in points]
        assert levels == sorted(set(levels)), name
