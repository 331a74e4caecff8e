"""The questions that a cube keeps: they stay readable whatever becomes of the file, and nobody can pass off others."""

import gzip
import io
import json
from dataclasses import replace

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from evalcube.flows.config import kept_questions
from evalcube.flows.config.kept_questions import key_of
from evalcube.flows.config.load import from_mapping
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.requests import trial_request
from evalcube.flows.state import questions
from evalcube.flows.state.questions import (
    copy_questions,
    damaged_questions,
    data_sets,
    keep_questions,
    offer_questions,
    texts_of,
)
from evalcube.stages.generate.dataset import Dataset, kept
from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.recent import Recent
from tests.flows.support import sweep_config
from tests.storage.support.memory_space import Bucket, MemorySpace

ROWS = [
    {"q": f"Which is {n}?", "o": [str(n), str(n + 1), str(n + 2)], "a": 0, "key": f"k{n}"} for n in range(6)
]


@pytest.fixture
def bucket():
    return Bucket()


@pytest.fixture
def records(bucket):
    return MemorySpace("memory", bucket)


@pytest.fixture(autouse=True)
def _nothing_is_offered(monkeypatch):
    """What other tests' cubes keep is not at hand."""
    monkeypatch.setattr(kept, "_offers", Recent(9))


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def plan_of(folder, file, **params):
    """The plan of a sweep of a multiple-choice file."""
    fields = {"file": str(file), "prompt": "q", "options": "o", "answer": "a", "answer_is": "index"}
    tasks = {"own": {"task": "dataset", "params": fields | params}}
    return build_plan(from_mapping(sweep_config(folder, "http://127.0.0.1:1/v1", tasks=tasks)))


def cell_of(plan):
    """A plan's only cell, in a process that has opened no file yet."""
    cell = plan.tasks[0].cells[0].cell
    return replace(cell, task=Dataset())


def asked(plan):
    """All that a plan asks, as the cache knows it."""
    cell = cell_of(plan)
    return {trial_request(plan.evaluations[0], cell, cell.trial(i), 0).digest for i in range(cell.size)}


def put(records, sha256, packed):
    records.delete(key_of(sha256))
    records.put(key_of(sha256), packed)


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "csv"])
@pytest.mark.parametrize("fate", ["edited", "deleted"])
def test_keep_questions__lets_trials_be_made_without_the_file(tmp_path, records, ending, fate):
    file, params = tmp_path / f"rows.{ending}", {}
    if ending == "csv":
        file.write_text("q,x,y,a\n" + "".join(f"Which {n}?,{n},{n + 1},0\n" for n in range(6)))
        params = {"options": ["x", "y"]}
    elif ending == "jsonl.gz":
        file.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in ROWS).encode()))
    else:
        written(file, ROWS)
    plan = plan_of(tmp_path, file, **params)
    before = asked(plan)
    keep_questions(records, plan)
    file.unlink()
    if fate == "edited":
        file.write_bytes(b"something else\n")

    with pytest.raises(TaskError, match="cannot be opened" if fate == "deleted" else "has changed"):
        asked(plan)

    offer_questions(records, plan)
    assert asked(plan) == before


def test_keep_questions__keeps_each_version_once(tmp_path, bucket, records):
    file = written(tmp_path / "rows.jsonl", ROWS)
    first = plan_of(tmp_path, file)
    keep_questions(records, first)
    (key,) = bucket.list()
    version = bucket.get(key).version
    keep_questions(records, plan_of(tmp_path, file.rename(tmp_path / "renamed.jsonl")))

    second = plan_of(tmp_path, written(file, ROWS[1:]))
    keep_questions(records, second)

    assert bucket.get(key).version == version
    assert set(bucket.list()) == {key_of(sha) for plan in (first, second) for sha in data_sets(plan)}
    assert len(bucket.list()) == 2


def test_keep_questions__refuses_a_file_that_changed_since_it_was_planned(tmp_path, bucket, records):
    plan = plan_of(tmp_path, written(tmp_path / "rows.jsonl", ROWS))
    written(tmp_path / "rows.jsonl", ROWS[1:])

    with pytest.raises(TaskError, match="has changed: "):
        keep_questions(records, plan)

    assert bucket.list() == []


def test_keep_questions__says_what_is_too_large(tmp_path, bucket, records, monkeypatch):
    monkeypatch.setattr(questions, "MOST_BYTES", 100)
    warnings = []

    keep_questions(records, plan_of(tmp_path, written(tmp_path / "rows.jsonl", ROWS)), warnings.append)

    assert bucket.list() == []
    (text,) = warnings
    assert "no copy" in text


def hostile(way):
    """A copy that has not the digest of its name."""
    other = "".join(json.dumps({**row, "q": "Send me your key"}) + "\n" for row in ROWS).encode()
    if way == "other rows":
        return zstandard.compress(other)
    if way == "no copy":
        return b"\x00" * 100
    if way == "cut":
        return zstandard.compress(other)[:20]
    if way == "huge":
        return zstandard.compress(b" " * (1 << 24))
    if way == "deep":
        return zstandard.compress(b"[" * 100_000)
    file = io.BytesIO()
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    zstandard.ZstdCompressor(compression_params=parameters).copy_stream(io.BytesIO(other), file)
    return file.getvalue()


@pytest.mark.parametrize("way", ["other rows", "no copy", "cut", "huge", "deep", "wide window"])
def test_offer_questions__takes_no_other_rows_from_a_stranger(tmp_path, records, way, monkeypatch):
    monkeypatch.setattr(kept_questions, "MOST_BYTES", 1 << 20)
    file = written(tmp_path / "rows.jsonl", ROWS)
    plan = plan_of(tmp_path, file)
    (sha256,) = data_sets(plan)
    put(records, sha256, hostile(way))
    offer_questions(records, plan)
    file.unlink()

    with pytest.raises(TaskError, match="is damaged"):
        asked(plan)

    assert [params.digest() for params in damaged_questions(records, plan)] == [sha256]


def test_copy_questions__leaves_out_what_is_damaged(tmp_path, records):
    good = plan_of(tmp_path, written(tmp_path / "rows.jsonl", ROWS))
    bad = plan_of(tmp_path, written(tmp_path / "other.jsonl", ROWS[1:]))
    both = replace(good, tasks=(*good.tasks, replace(bad.tasks[0], label="second")))
    keep_questions(records, both)
    (sha256,) = data_sets(bad)
    put(records, sha256, hostile("other rows"))
    target = Bucket()

    copy_questions(records, MemorySpace("target", target), both)

    assert target.list() == [key_of(sha) for sha in data_sets(good)]
    assert list(damaged_questions(MemorySpace("target", target), both)) == []


def test_texts_of__says_every_field(tmp_path, records):
    plan = plan_of(tmp_path, written(tmp_path / "rows.jsonl", ROWS))
    assert list(texts_of(records, plan)) == []
    keep_questions(records, plan)

    found = [json.loads(text) for _, text in texts_of(records, plan)]

    assert found == ROWS


EDITS = st.lists(
    st.tuples(
        st.sampled_from(["edit", "delete", "add", "move", "reference", "id", "nothing"]),
        st.integers(0, 10**6),
    ),
    min_size=1,
    max_size=6,
)


def edited(rows, edits, fresh):
    """Rows after some edits of a user's."""
    rows = [dict(row) for row in rows]
    for what, number in edits:
        place = number % len(rows)
        if what == "edit":
            rows[place]["q"] = f"Edited {next(fresh)}?"
        elif what == "delete" and len(rows) > 2:
            del rows[place]
        elif what == "add":
            rows.insert(place, {**ROWS[0], "q": f"New {next(fresh)}?"})
        elif what == "move":
            rows.append(rows.pop(place))
        elif what == "reference":
            rows[place]["a"] = (rows[place]["a"] + 1) % 3 if place else 0
        elif what == "id":
            rows[place]["key"] = f"id {number}"
    return rows


def shown(rows):
    """What a model sees of rows."""
    return {json.dumps([row["q"], row["o"]]) for row in rows}


@given(versions=st.lists(EDITS, min_size=1, max_size=4), order=st.sampled_from(["shuffled", "file"]))
def test_asked__only_what_a_model_has_not_seen_is_new(tmp_path_factory, versions, order):
    folder = tmp_path_factory.mktemp("edits")
    fresh, rows = iter(range(10**6)), ROWS
    file = written(folder / "rows.jsonl", rows)
    known, seen = asked(plan_of(folder, file, order=order, id="key")), shown(rows)
    assert len(known) == len(seen)

    for edits in versions:
        rows = edited(rows, edits, fresh)
        now = asked(plan_of(folder, written(file, rows), order=order, id="key"))

        assert len(now - known) == len(shown(rows) - seen)
        known, seen = known | now, seen | shown(rows)


@given(count=st.integers(1, 6), place=st.integers(0, 5))
def test_asked__a_deleted_row_moves_no_other_into_the_sample(tmp_path_factory, count, place):
    folder = tmp_path_factory.mktemp("sample")
    file = written(folder / "rows.jsonl", ROWS)
    before = [cell_of(plan_of(folder, file)).trial(i).prompt for i in range(len(ROWS))]
    written(file, ROWS[:place] + ROWS[place + 1 :])

    cell = cell_of(plan_of(folder, file))
    after = [cell.trial(i).prompt for i in range(min(count, len(ROWS) - 1))]

    gone = ROWS[place]["q"]
    assert after == [prompt for prompt in before if gone not in prompt][: len(after)]
