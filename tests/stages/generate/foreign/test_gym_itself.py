"""Tasks of reasoning-gym with that package: every point of gym30 is made, scored, and read again without it."""

import hashlib
from importlib.util import find_spec

import pytest

import evalcube as ec
from evalcube.flows.config.suites import load_suite
from evalcube.stages.generate import Cell, TaskError, all_tasks, expand
from evalcube.stages.generate.contract import check_task
from evalcube.stages.generate.foreign import bounded, gym, rendered
from evalcube.stages.generate.foreign.bounded import ask
from evalcube.stages.generate.recent import Recent
from tests.flows.support import sweep_config
from tests.tiers import need

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def _package():
    need("reasoning-gym", find_spec("reasoning_gym"), "pip install 'evalcube[gym]'")


def points(suite="gym30"):
    config = load_suite(suite, ["sim:"])
    for label in config.tasks:
        name, entries = config.manifold(label)
        yield from (Cell(all_tasks()[name], point.params, 1) for point in expand(all_tasks()[name], entries))


def test_gym30__right_answers_are_right_and_others_are_not():
    for cell in points():
        trial, other = cell.trial(0), cell.trial(1)
        scored = trial.extras["entry"] is not None

        said = cell.parse(f"Let me see.\n<answer>{trial.answer}</answer>", trial)

        assert said == trial.answer.strip(), cell.task.name
        assert cell.grade(trial.answer, trial)
        assert other.answer == trial.answer or not cell.grade("I do not know.", trial), cell.task.name
        if scored:  # which the shortcut for the reference itself did not ask
            asked = {"name": cell.task.name[4:], "answer": trial.answer, "entry": trial.extras["entry"]}
            assert ask("gym", asked) == 1, cell.task.name


@pytest.mark.parametrize("name", ["dice", "rotate_matrix", "knights_knaves"])
def test_task__keeps_the_contract_of_all_tasks(name):
    task = all_tasks()[f"gym:{name}"]

    check_task(task, task.Params(level=0), trials=5)


def test_rows__are_the_same_in_another_process():
    cells = list(points())[::7]

    def digests():
        rendered._HELD = Recent(9)
        return [hashlib.sha256(repr([cell.trial(i) for i in (40, 3)]).encode()).hexdigest() for cell in cells]

    before = digests()
    bounded.end()

    assert digests() == before


def test_levels__of_every_generator_are_made():
    for name, entry in gym.catalogue()["generators"].items():
        task = all_tasks()[f"gym:{name}"]
        for level in {0, entry["levels"] - 1}:
            (row,) = task.render(task.Params(level=level), [5])
            assert row["prompt"], name


def prompts(cube):
    return [row["prompt"] for row in ec.trials(cube, where=["task=gym:dice"], columns=["prompt"]).rows()]


def test_run__keeps_questions_for_who_has_not_the_package(tmp_path, monkeypatch):
    tasks = {name: {"params": {"level": 1}} for name in ("gym:dice", "gym:word_sorting")}
    config = sweep_config(tmp_path, "", tasks=tasks, trials=3)
    ec.run(config, progress=False).raise_for_status()
    more = ec.run(config | {"trials": 40}, progress=False).raise_for_status()
    assert more.done == 80
    shown = prompts(config["cube"])
    monkeypatch.setattr(rendered, "_HELD", Recent(9))
    monkeypatch.setattr(gym, "_installed_version", lambda: "")

    again = prompts(config["cube"])

    assert again == shown
    assert len(set(again)) == 40
    with pytest.raises(TaskError, match="pip install"):
        ec.run(config | {"trials": 70}, progress=False)
