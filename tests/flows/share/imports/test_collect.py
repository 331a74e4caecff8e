"""Samples of several logs meet: questions by content, models by settings, answers by repeat."""

import json

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.share.imports.collect import REPLIED, ModelSetting, TaskKey
from evalcube.flows.share.imports.logs import import_logs
from evalcube.flows.share.imports.write import import_plan
from tests.flows.share.imports.samples import cell_params, collected, sample

KEY = TaskKey("tool", "task", "match")


def table(collection):
    return [tuple(row) for row in collection.table().tolist()]


def test_add__numbers_models_questions_and_repeats():
    with collected(sample("a"), sample("a", 1), sample("b"), sample("a", model="bravo")) as found:
        assert table(found) == [
            (0, 0, 0, 0, REPLIED), (0, 0, 0, 1, REPLIED), (0, 0, 1, 0, REPLIED), (1, 0, 0, 0, REPLIED)
        ]  # fmt: skip
        assert list(found.asked) == [ModelSetting("tool", "alfa", "{}"), ModelSetting("tool", "bravo", "{}")]
        assert list(found.tasks) == [KEY]


def test_add__takes_the_cluster_of_whoever_says_it_and_two_of_a_question_are_a_contradiction():
    with collected(sample("a"), sample("a", 1, cluster="page 1"), sample("b", 0, cluster="page 2")) as found:
        assert [json.loads(row).get("cluster") for row in found.rows(0)] == ["page 1", "page 2"]

        with pytest.raises(SweepError, match="line 9, cluster: 'page 2'"):
            found.add(sample("a", 2, cluster="page 2", where="log, line 9"))


def test_table__puts_questions_that_more_models_were_asked_first():
    with collected(sample("a"), sample("b"), sample("c"), sample("c", model="bravo")) as found:
        rows = [json.loads(row)["prompt"] for row in found.rows(0)]

        assert rows == ["c", "a", "b"]
        assert [row[2] for row in table(found)] == [1, 2, 0, 0]


def test_table__begins_repeats_at_0():
    with collected(sample("a", 1), sample("a", 2), sample("b", 1)) as found:
        assert [row[3] for row in table(found)] == [0, 1, 0]


def test_add__numbers_repeats_that_the_log_does_not():
    with collected(sample("a", None, text="x"), sample("a", None, text="y"), sample("b", None)) as found:
        assert [row[2:4] for row in table(found)] == [(0, 0), (0, 1), (1, 0)]


def test_add__tells_equal_questions_of_one_log_apart():
    with collected(
        sample("a", id="1"), sample("a", id="2", text="other"), sample("a", id="7", model="bravo")
    ) as found:
        assert [row[2] for row in table(found)] == [0, 1, 0]


def test_add__passes_over_what_was_said_before():
    with collected(sample("a"), sample("a")) as found:
        assert (len(table(found)), found.samples, found.repeated) == (1, 2, 1)


def test_add__refuses_another_answer_to_the_same_question():
    first, second = sample("a"), sample("a", text="other", where="b.eval, line 7")

    with (
        collected(first) as found,
        pytest.raises(SweepError, match=r"b\.eval, line 7: "),
    ):
        found.add(second)


def test_add__takes_an_answer_for_a_failure_and_never_the_other_way():
    failed, answered = sample("a", failure="boom"), sample("a")

    for order in ((failed, answered), (answered, failed)):
        with collected(*order) as found:
            assert [row[4] for row in table(found)] == [REPLIED]
            assert found.record(0) is not None
    with collected(failed) as found:
        assert [row[4] for row in table(found)] == [0]
        assert list(found.causes) == ["boom"]


def test_add__splits_a_model_that_was_asked_in_two_ways():
    first = sample("a", setup='{"cot":false}', setup_name="plain")
    second = sample("a", text="b", setup='{"cot":true}', setup_name="cot")
    other = sample("x", task="second", setup='{"shots":5}')

    with collected(first, second, other) as found:
        evaluations = import_plan(found, [cell_params(found, i) for i in range(2)], found.table())[
            0
        ].evaluations
        assert [one.template.name for one in evaluations] == ["imported", "imported 2"]
        assert evaluations[0].eval_id != evaluations[1].eval_id
    with collected(first, other) as alone:
        again = import_plan(alone, [cell_params(alone, i) for i in range(2)], alone.table())[0].evaluations
        assert [one.eval_id for one in again] == [evaluations[0].eval_id]


@pytest.mark.parametrize(("bound", "field"), [("_MOST_MODELS", "model"), ("_MOST_QUESTIONS", "prompt")])
def test_import_logs__more_than_a_cube_should_have_is_refused_at_the_line(
    tmp_path, monkeypatch, bound, field
):
    monkeypatch.setattr(f"evalcube.flows.share.imports.collect.{bound}", 3)
    row = {"prompt": "q", "response": "a", "correct": True, "model": "m", "task": "t"}
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(row | {field: f"{number}"}) + "\n" for number in range(9)))

    with pytest.raises(SweepError, match=r"line 4: .* more than 3 "):
        import_logs([log], tmp_path / "cube.zarr")

    assert not (tmp_path / "cube.zarr").exists()
