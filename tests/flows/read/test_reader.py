"""Reading cubes: damaged descriptions are told in one message, points are found."""

import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evalcube as ec
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.filters import matching_points
from evalcube.flows.plan.plan import Plan
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.report import _MIXED, _places, report
from evalcube.flows.read.statistics import leaderboard
from evalcube.flows.read.status import cube_status
from evalcube.flows.share.publish.publish import publish_cube
from evalcube.flows.state.trust import STATE_VARIABLE
from evalcube.stages.reply.body import UNKNOWN_END, ending_code
from evalcube.stages.reply.status import Status
from evalcube.storage.cube.ledger import Ledger
from tests.cases import with_cases
from tests.flows.read.merged.generated import Recipe, make_cube
from tests.flows.support import change_attributes, evalcube, refused


def _points(spec):
    return spec["tasks"][0]["points"]


DAMAGES = {
    "not a mapping": (lambda _: [1, 2], "spec: "),
    "empty": (lambda _: {}, "spec.format: "),
    "format of another kind": (lambda s: s.update(format="1"), "spec.format: "),
    "no seed": (lambda s: s.pop("seed") and None, "spec.seed: "),
    "seed as text": (lambda s: s.update(seed="42"), "spec.seed: "),
    "no evaluations": (lambda s: s.update(evaluations=[]), "spec.evaluations: "),
    "template without a name": (
        lambda s: s["evaluations"][0].update(template={}),
        "spec.evaluations[0].template",
    ),
    "number among the messages": (
        lambda s: s["evaluations"][0]["template"].update(source=[{"role": 1}]),
        "spec.evaluations[0].template.source",
    ),
    "NaN in the sampler": (
        lambda s: s["evaluations"][0]["sampler"]["params"].update(temperature=float("nan")),
        "spec.evaluations[0].sampler.params: ",
    ),
    "point without params": (lambda s: _points(s)[1].clear(), "spec.tasks[0].points[1].cell_id: "),
    "params out of range": (
        lambda s: _points(s)[1]["params"].update(length=10**6),
        "spec.tasks[0].points[1].params.length: ",
    ),
    "a reader that is no pattern": (
        lambda s: s["tasks"][0].update(reader={"name": "theirs", "pattern": "("}),
        "spec.tasks[0].reader.pattern: is no regular expression",
    ),
    "a reader without its group": (
        lambda s: s["tasks"][0].update(reader={"name": "theirs", "pattern": "a", "group": 7}),
        "spec.tasks[0].reader: the pattern has no group 7",
    ),
    "a reader too long": (
        lambda s: s["tasks"][0].update(reader={"name": "theirs", "pattern": "a" * 1001}),
        "spec.tasks[0].reader.pattern: ",
    ),
    "a reader without a name": (
        lambda s: s["tasks"][0].update(reader={"pattern": "a"}),
        "spec.tasks[0].reader.name: ",
    ),
    "a reader of many kinds": (
        lambda s: s["tasks"][0].update(reader={"name": "theirs", "own": True, "pattern": "a"}),
        "spec.tasks[0].reader.own: ",
    ),
    "one point less": (lambda s: _points(s).pop() and None, "it lists 3 along params"),
    "one model more": (lambda s: s["evaluations"].append(s["evaluations"][0]), "it lists 2 along model"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_readers__damaged_description_is_one_clear_message(name, small_sweep, tmp_path):
    change, where = DAMAGES[name]
    shutil.copytree(small_sweep / "cube.zarr", tmp_path / "cube.zarr")
    change_attributes(tmp_path / "cube.zarr", change)

    calls = [
        lambda: Reader(tmp_path / "cube.zarr"),
        lambda: report(tmp_path / "cube.zarr", tmp_path / "report.html"),
    ]
    if name != "params out of range" and "reader" not in name:  # these two need no task
        calls.append(lambda: leaderboard(tmp_path / "cube.zarr"))
        calls.append(lambda: cube_status(tmp_path / "cube.zarr"))
    for call in calls:
        with pytest.raises(SweepError, match="damaged or not") as caught:
            call()
        assert where in str(caught.value)
        assert "\n" not in str(caught.value)
    if name == "no seed":
        refused(evalcube("status", "cube.zarr", cwd=tmp_path), "evalcube: the cube's description is damaged")


def test_reader__newer_format_says_update(small_sweep, tmp_path):
    shutil.copytree(small_sweep / "cube.zarr", tmp_path / "cube.zarr")
    change_attributes(tmp_path / "cube.zarr", lambda spec: spec.update(format=2, more=1))

    with pytest.raises(SweepError, match="Update evalcube"):
        Reader(tmp_path / "cube.zarr")


def test_ending__has_the_word_that_the_ledger_knows_and_else_a_number(tmp_path):
    cube = make_cube(tmp_path / "c.zarr", Recipe(models=("alpha",), lengths=(3,), depths=(), trials=(0, 2)))
    (receipt,) = Ledger(cube.records).newest().values()
    with Ledger(cube.records) as ledger:
        ledger.append(replace(receipt, fingerprints={f"{UNKNOWN_END}odd": 1}))
    odd = ending_code("odd")

    endings = [Reader(cube.url).ending(code) for code in (0, odd, odd + 1)]

    assert endings == [None, f"{UNKNOWN_END}odd", f"{UNKNOWN_END}#{odd + 1}"]


def test_show__of_a_publication_says_what_reads_its_replies(small_sweep, tmp_path, monkeypatch):
    publish_cube(small_sweep / "cube.zarr", tmp_path / "shared", tag="v1", with_replies=True)
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "of another user"))
    point = ("--task", "boolean", "--trial", "0")

    code, output, _ = evalcube("show", "shared/v1", *point, cwd=tmp_path)

    assert code == 0
    assert "shared/v1 COPY.zarr" in " ".join(output.replace("│", " ").split())
    assert evalcube("pull", "shared/v1", "COPY.zarr", cwd=tmp_path)[0] == 0
    assert Reader(tmp_path / "COPY.zarr").view(0, 0, 0, 0).response is not None


@pytest.mark.parametrize("notes", ['{"cache": 5, "name": [1]}', "[" * 100_000, "[]"])
def test_reader__damaged_notes_are_left_out(notes, small_sweep, tmp_path, monkeypatch):
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "of another user"))  # who has no notes of the run
    shutil.copytree(small_sweep / "cube.zarr", tmp_path / "cube.zarr")
    (tmp_path / "cube.zarr" / "_evalcube" / "sweep.json").write_text(notes)

    assert Reader(tmp_path / "cube.zarr").cache() is None


@with_cases(
    ("params", "found"),
    [
        ("0", [0]),
        ("1", [1]),
        ("2", []),
        ("\u00b2", []),
        ("foo=null", []),
        ("a=null", [0]),
        ('{"b": "x,y"}', [1]),
    ],
)
def test_matching__points_that_params_stand_for(params, found):
    assert matching_points([{"a": None}, {"b": "x,y"}], params) == found


def test_view__has_what_each_judge_was_sent(judged):
    reader = Reader(judged / "cube.zarr")

    view = reader.view(0, 0, 0, 0)

    assert {message["judge"] for message in view.judged} == {
        ", ".join(judge.name for judge in reader.plan.judges)
    }
    assert any("capital of" in message["content"] for message in view.judged)


def test_ask_judges__takes_the_criteria_of_the_rows_task():
    asked, place = [], (0, 1, 2, 3, 4)
    book = SimpleNamespace(
        of=lambda task, question: asked.append((task, question)) or SimpleNamespace(rubric="")
    )
    of_place = SimpleNamespace(_readings=lambda place: [place], _book=book, plan=None)
    replied = SimpleNamespace(place=place, answered=True, question="q", opinions=None)
    lost = SimpleNamespace(place=place, answered=None, question="q", opinions=None)

    Reader._ask_judges(of_place, [replied, lost], None)

    assert asked == [(1, "q")]
    assert (replied.opinions, lost.opinions) == ([], [place])  # of a reply that is lost, what the cube has


def test_view__of_what_a_cube_does_not_keep_has_nothing(small_sweep, monkeypatch):
    kept = {"status": int(Status.CORRECT), "tokens": 7, "latency": 0.5}
    monkeypatch.setattr(Reader, "_stored_values", lambda *_: kept)
    reader = Reader(small_sweep / "cube.zarr")
    monkeypatch.setattr(reader, "ending", "ending {}".format)
    monkeypatch.setattr(reader, "provider", "provider {}".format)

    view = reader.view(0, 0, 0, 0)

    assert (view.status, view.tokens, view.latency) == ("correct", 7, 0.5)
    assert (view.ending, view.provider, view.looping, view.read_as) == ("ending 0", "provider 0", False, None)
    assert (view.prompt_tokens, view.reasoning_tokens, view.cached_tokens, view.layers) == (
        None,
        None,
        None,
        {},
    )
    assert np.isnan(view.first_token) == np.isnan(
        reader.load_trials([(0, 0, 0, 0, 0)])[0].answered.reading.first_token
    )
    for wrong in ({"trial": 99}, {"trial": -1}, {"trial": 0, "repeat": 1}):
        with pytest.raises(SweepError, match="outside of the cube"):
            reader.view(0, 0, 0, **wrong)
    assert reader.view(0, 0, 0, reader.plan.trials - 1).trial == reader.plan.trials - 1


def test_evalcube__every_error_shown_to_users_can_be_caught_by_name(tmp_path):
    named = {getattr(ec, name) for name in ec.__all__ if name.endswith("Error")}

    assert named >= {ec.ConfigError, ec.StorageError, ec.DeployError, ec.TaskError, ec.InferenceError}
    assert all(issubclass(error, ec.EvalcubeError) for error in named)
    with pytest.raises(ec.StorageError, match=r"none\.zarr"):
        ec.leaderboard(tmp_path / "none.zarr")


FORMS = ("a · warm", "a / warm", "a / plain / warm", "a · plain · warm", "1")


@with_cases("name", FORMS)
def test_evaluation_index__takes_a_label_as_any_output_writes_it(name):
    evaluations = [SimpleNamespace(model="a", label=f"a / plain / {one}") for one in ("greedy", "warm")]
    plan = SimpleNamespace(evaluations=evaluations, labels=("a / greedy", "a / warm"))

    assert Plan.evaluation_index(plan, name) == 1
    with pytest.raises(SweepError, match=r"'a'.* 0 = a · greedy, 1 = a · warm"):
        Plan.evaluation_index(plan, "a")


@given(
    st.lists(st.sampled_from(list(Status)), min_size=1, max_size=9), st.integers(0, 10**12), st.integers(0, 5)
)
def test_report__shows_no_trial_twice_and_as_many_as_there_are(outcomes, count, turn):
    status = np.array(outcomes, dtype=np.uint8).reshape(1, -1, 1)

    found = _places(status, count, turn)

    there = [(0, place, 0) for place, one in enumerate(outcomes) if one in _MIXED]
    assert len(set(found)) == len(found) == min(count, len(there))
    assert set(found) <= set(there)
