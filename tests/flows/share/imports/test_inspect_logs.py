"""Logs of Inspect are read as its own package reads them."""

import json
import math
import zipfile

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.share.imports.samples import LogHints
from tests.cases import with_cases
from tests.flows.share.imports.logs import INSPECT, samples

EXPECTED = json.loads((INSPECT / "expected.json").read_text(encoding="utf-8"))


def changed(tmp_path, name="a.json", **fields):
    """The JSON log with other fields."""
    document = json.loads((INSPECT / "charlie-sums.json").read_text(encoding="utf-8"))
    for key, value in fields.items():
        place = document
        *steps, last = key.split("__")
        for step in steps:
            place = place[int(step) if step.isdecimal() else step]
        place[last] = value
    found = tmp_path / name
    found.write_text(json.dumps(document), encoding="utf-8")
    return found


@with_cases("name", sorted(EXPECTED))
def test_read_inspect__reads_what_the_package_reads(name):
    found = samples("inspect", INSPECT / name)

    # What inspect_ai itself said of the same file.
    assert len(found) == len(EXPECTED[name]) > 0
    for ours, theirs in zip(sorted(found, key=key_of), sorted(EXPECTED[name], key=expected_key), strict=True):
        answer = ours.answer
        assert (ours.run.model, ours.run.task, ours.question.id) == (
            theirs["model"],
            theirs["task"],
            theirs["id"],
        )
        assert answer.repeat == theirs["epoch"] - 1
        assert bool(answer.failure) == theirs["error"]
        if theirs["error"]:
            continue
        assert answer.text == theirs["completion"]
        assert answer.completion_tokens == theirs["tokens"]
        assert answer.score == theirs["scores"][ours.run.scorer]
        finish = {"max_tokens": "length", "content_filter": "refused"}.get(theirs["stop"], "stop")
        assert answer.finish == finish


def key_of(sample):
    return sample.question.id, sample.answer.repeat


def expected_key(sample):
    return sample["id"], sample["epoch"]


def test_read_inspect__reads_what_else_there_is():
    sums, capitals = (
        samples("inspect", INSPECT / "bravo-sums.eval"),
        samples("inspect", INSPECT / "alfa-capitals.eval"),
    )

    assert sums[0].question.prompt == "What is 0 + 0?"
    assert sums[0].question.reference == "0"
    assert sums[0].answer.reasoning == "Let me add."
    assert sums[0].answer.prompt_tokens > 0
    assert math.isfinite(sums[0].answer.latency)
    assert sums[0].run.setup_name == "system_message+generate"
    assert json.loads(sums[0].run.settings)["temperature"] == 0.7
    assert capitals[0].question.options == ("Alfa", "Bravo", "Charlie", "Delta")
    assert {sample.answer.failure for sample in samples("inspect", INSPECT / "alfa-essays.eval")} == {
        "",
        "error in inspect_ai",
    }


def test_read_inspect__takes_the_score_that_is_asked_for():
    wanted = LogHints()
    samples("inspect", INSPECT / "alfa-sums.eval", wanted)

    assert [("'match'" in note, note.split()[-1]) for note in wanted.notes] == [(True, "includes")]
    found = samples("inspect", INSPECT / "alfa-sums.eval", score="includes")
    assert {sample.run.scorer for sample in found} == {"includes"}
    with pytest.raises(SweepError, match="no score 'f1'"):
        samples("inspect", INSPECT / "alfa-sums.eval", score="f1")


@pytest.mark.parametrize("name", ["level", "metadata.level"])
def test_read_inspect__takes_a_cluster_from_the_metadata_of_a_sample(name):
    log = INSPECT / "charlie-sums.json"

    plain, found = (samples("inspect", log, fields=given) for given in ({}, {"cluster": name}))

    assert {one.question.cluster for one in plain} == {""}
    assert [one.question.cluster for one in found] == ["0", "1", "2"]


PARTS = [
    {"name": "num", "scorer": "two"},
    {"name": "txt", "scorer": "two"},
    {"name": "match", "scorer": "match"},
]


@pytest.mark.parametrize(
    ("asked", "name", "score"),
    [("two.num", "two.num", 1), ("num", "two.num", 1), ("match", "match", "I"), (None, "two.num", 1)],
)
def test_read_inspect__takes_a_part_of_a_score(tmp_path, asked, name, score):
    fields = {
        f"samples__{i}__scores": {"two": {"value": {"txt": 0.5, "num": 1}}, "match": {"value": "I"}}
        for i in range(3)
    }
    fields |= {"samples__1__scores": {}, "results__scores": PARTS, "results__headline": None}
    wanted = LogHints(score=asked)

    found = samples("inspect", changed(tmp_path, **fields), wanted)

    assert {sample.run.scorer for sample in found} == {name}  # also where nothing was scored
    assert [sample.answer.score for sample in found if not sample.answer.failure] == [score] * 2
    assert ["'two.num'" in note and note.endswith("two.txt, match") for note in wanted.notes] == [True] * (
        not asked
    )
    with pytest.raises(SweepError, match="no score 'two'"):
        samples("inspect", changed(tmp_path, **fields), score="two")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"version": 99}, "it has version 99 of the format"),
        ({"eval": None}, "it has no `eval`"),
        ({"eval__model": None}, "the log does not say the model"),
        ({"samples__1__epoch": "1"}, "sample 2, epoch: it must be a whole number"),
        ({"samples__1__epoch": 10**9}, "sample 2, epoch: it must be a whole number"),
    ],
)
def test_read_inspect__refuses_with_the_place(tmp_path, fields, message):
    with pytest.raises(SweepError, match=message):
        samples("inspect", changed(tmp_path, **fields))


@pytest.mark.parametrize(
    ("fields", "failure"),
    [
        ({"samples__0__error": {"message": "x"}}, "error in inspect_ai"),
        ({"samples__0__invalidation": {"author": "x"}}, "invalidated in inspect_ai"),
        ({"samples__0__scores": {}}, "not scored by inspect_ai"),
        ({"samples__0__scores": None}, "not scored by inspect_ai"),
    ],
)
def test_read_inspect__says_why_there_is_no_answer(tmp_path, fields, failure):
    found = samples("inspect", changed(tmp_path, **fields))

    assert [sample.answer.failure for sample in found] == [failure, "", ""]


def test_read_inspect__passes_over_what_has_another_form(tmp_path):
    fields = {
        "samples__0__output": [],
        "samples__0__model_usage": "x",
        "samples__0__input": 3,
        "samples__0__target": None,
        "samples__0__choices": {"a": 1},
        "samples__0__id": None,
        "eval__scorers": 3,
        "plan": [],
        "results": None,
    }
    found = samples("inspect", changed(tmp_path, **fields), score="match")

    assert found[0].answer.text == ""
    assert found[0].answer.completion_tokens == -1
    assert (found[0].question.prompt, found[0].question.reference, found[0].question.options) == ("", "", ())


def test_read_inspect__reads_a_log_that_was_not_finished(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.eval", "w") as made:
        document = json.loads((INSPECT / "charlie-sums.json").read_text(encoding="utf-8"))
        first = document.pop("samples")[0]
        made.writestr("_journal/start.json", json.dumps(document))
        made.writestr("samples/s0_epoch_1.json", json.dumps(first))
    wanted = LogHints()

    found = samples("inspect", tmp_path / "a.eval", wanted)

    assert len(found) == 1
    assert any("was not finished" in note for note in wanted.notes)


def test_read_inspect__says_which_samples_it_cannot_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.eval", "w") as made:
        made.writestr("header.json", json.dumps({"version": 2, "eval": {"model": "m", "task": "t"}}))
        made.writestr("samples/s0_epoch_1/sample.json", "{}")

    with pytest.raises(SweepError, match="samples in parts"):
        samples("inspect", tmp_path / "a.eval")


def test_read_inspect__keeps_no_argument_of_a_model(tmp_path):
    path = changed(tmp_path, eval__model_args={"api_key": "sk-secret"})

    settings = samples("inspect", path)[0].run.settings

    assert "secret" not in settings
    assert "model_args_sha256" in settings
