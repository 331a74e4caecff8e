"""What is written of an import: plans, labels and data files."""

import json

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.share.imports.collect import Collection, TaskKey
from evalcube.flows.share.imports.samples import Scale
from evalcube.flows.share.imports.write import file_name, import_plan, task_labels, write_data
from tests.cases import with_cases
from tests.flows.share.imports.samples import cell_params, collected, sample


def test_plan__reaches_as_far_as_each_model_was_asked():
    with collected(sample("a"), sample("a", 1), sample("b"), sample("a", model="bravo")) as found:
        plan, targets = import_plan(found, [cell_params(found, 0)], found.table())

    assert targets.trials.reshape(-1).tolist() == [2, 1]
    assert targets.repeats.reshape(-1).tolist() == [2, 1]
    assert (plan.trials, plan.repeats) == (2, 2)


def test_plan__has_evaluations_that_no_config_can_name():
    with collected(sample("a", settings='{"temperature":0.5,"top":"x"}')) as found:
        (evaluation,) = import_plan(found, [cell_params(found, 0)], found.table())[0].evaluations

    assert evaluation.is_imported
    assert evaluation.sampler.params == {
        "temperature": 0.5,
        "imported": {"tool": "tool", "settings": {"top": "x"}},
    }
    assert evaluation.sampler.name == "tool T=0.5 [8931b7]"


def test_task_labels__are_no_longer_than_they_must_be():
    keys = [
        TaskKey("a", "t@1", "m"),
        TaskKey("a", "u@1", "m"),
        TaskKey("a", "u@2", "m"),
        TaskKey("a", "u@2", "n"),
    ]

    assert task_labels(keys) == ["t", "u@1", "u@2 (m)", "u@2 (n)"]
    assert task_labels([TaskKey("a", "t", "m"), TaskKey("b", "t", "m")]) == ["a/t/m", "b/t/m"]


def test_record__has_the_prompt_only_where_it_is_another():
    with collected(sample("a", prompt="one"), sample("a", prompt="two", model="bravo")) as found:
        assert b'"prompt"' not in found.record(0)
        assert b'"prompt":"two"' in found.record(1)


@pytest.mark.parametrize("text", ["half \ud800 pair", "\n line \n", "\x1b[31m red", "ü" * 100])
def test_rows__hold_any_text(tmp_path, text):
    with collected(sample("a", prompt=text)) as found:
        (params,) = write_data(found, tmp_path)

        line = json.loads((tmp_path / params.file.rpartition("/")[2]).read_text(encoding="utf-8"))
        assert line["prompt"] == text.encode("utf-8", "replace").decode().strip("\n")


def test_rows__refuse_what_no_data_set_can_hold():
    with Collection(Scale()) as found, pytest.raises(SweepError, match="1,000,001 characters"):
        found.add(sample("a", prompt="x" * 1_000_001))


@with_cases("name", ["../../etc/passwd", "/abs", "a\0b", "..", "x" * 500, "ä/ö", ""])
def test_file_name__is_no_path(name):
    found = file_name(TaskKey("tool", name, "match"), "ab" * 32)

    assert "/" not in found
    assert "\0" not in found
    assert not found.startswith(".")
    assert len(found) < 100
