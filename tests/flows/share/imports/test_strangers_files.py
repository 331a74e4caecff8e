"""Files that are none, halves of surrogate pairs, and thousands of answers to one question."""

import json
import os

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.share.imports import bounded
from evalcube.flows.share.imports.collect import Collection
from evalcube.flows.share.imports.logs import import_logs
from evalcube.flows.share.imports.samples import Answer, Question, Run, Sample, Scale, canonical
from tests.cases import with_cases

FIELDS = {"prompt": "q", "response": "a", "correct": "c", "model": "m", "task": "t"}


@pytest.mark.parametrize("name", ["x.jsonl", "x.eval", "x.json", "x.jsonl.gz", "results.jsonl"])
@pytest.mark.parametrize("kind", ["pipe", "link to a device", "folder"])
def test_import_logs__opens_nothing_but_regular_files(tmp_path, name, kind):
    path = tmp_path / name
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        (path / "empty").mkdir(parents=True)
    else:
        path.symlink_to("/dev/zero")

    with pytest.raises(SweepError, match=name):
        import_logs([path], tmp_path / "c.zarr", cache=tmp_path / "cache")
    with pytest.raises(SweepError, match=name):
        list(bounded.lines(path))
    with pytest.raises(SweepError, match=name):
        bounded.Archive(path)


def test_import_logs__takes_halves_of_surrogate_pairs(tmp_path):
    row = {"c": 1} | {field: f"{field}\ud83d" for field in ("q", "a", "m", "t", "id")}
    (tmp_path / "x.jsonl").write_text(json.dumps(row) + "\n")

    summary = import_logs(
        [tmp_path / "x.jsonl"],
        tmp_path / "c.zarr",
        cache=tmp_path / "cache",
        map={**FIELDS, "id": "id"},
    )

    assert summary.replies == 1


def test_import_logs__refuses_what_can_just_be_parsed(tmp_path):
    row = json.dumps({"q": "what?", "a": "this", "c": "deep", "m": "model", "t": "task"})
    for depth in range(850, 1000):
        (tmp_path / "x.jsonl").write_text(row.replace('"deep"', '{"a": ' * depth + "1" + "}" * depth))
        with pytest.raises(SweepError, match=r"x\.jsonl"):
            import_logs([tmp_path / "x.jsonl"], tmp_path / "c.zarr", cache=tmp_path / "cache", map=FIELDS)


def test_import_logs__refuses_names_that_no_task_has(tmp_path):
    row = {"q": "what?", "a": "this", "x" * 1000: 1, "m": "model", "t": "task"}
    (tmp_path / "x.jsonl").write_text(json.dumps(row) + "\n")

    with pytest.raises(SweepError, match=r"x\.jsonl, line 1: .* names"):
        import_logs(
            [tmp_path / "x.jsonl"],
            tmp_path / "c.zarr",
            cache=tmp_path / "cache",
            map={**FIELDS, "correct": "x" * 1000},
        )


def test_canonical__refuses_settings_that_no_tool_has():
    def nested(levels):
        return {"a": json.loads("[" * levels + "]" * levels)}

    assert canonical(nested(98)) == '{"a":' + "[" * 98 + "]" * 98 + "}"
    with pytest.raises(SweepError, match="deeper than 100 levels"):
        canonical(nested(600))


def test_parse__keeps_whole_pairs_and_replaces_halves():
    assert bounded.parse(b'["\\ud83d\\ude00", "\\ude00", {"\\ud83d": 1}]', "x") == [
        "\U0001f600",
        "\ufffd",
        {"\ufffd": 1},
    ]


@with_cases("data", [b"\xff\xfe\xfa", b'"\xc3', b"[" * 100_000, b"9" * 5000, b'{"a":', b"\x00", b'"\x80"'])
def test_parse__refuses_the_rest_in_one_line(data):
    with pytest.raises(SweepError, match="JSON") as caught:
        bounded.parse(data, "x.json, line 3")

    assert "\n" not in str(caught.value)


class Counted(str):
    """A name that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        type(self).compared += 1
        return str.__eq__(self, other)


def test_collection__looks_at_no_sample_twice():
    run = Run("tool", "task", "match", "model")
    samples = 400

    with Collection(Scale()) as collection:
        for number in range(samples):
            question = Question("same", "the same question", "", Counted(f"id{number}"))
            collection.add(Sample(run, question, Answer(text="x", score=1), f"line {number}"))

    assert Counted.compared < 20 * samples
