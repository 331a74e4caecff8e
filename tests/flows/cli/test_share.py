"""What merge, diff, publish, pull and import hand on, print and end with."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from evalcube.flows.read.merged.dataset import Conflict
from evalcube.flows.share.difference import Difference, SideCounts, StatusChange
from evalcube.flows.share.imports.logs import ImportSummary
from evalcube.flows.share.merge import ConflictError, Merged
from evalcube.flows.share.publish.check_secrets import SecretsError
from tests.flows.support import evalcube

SIDES = {"params": {"length": 3}, "trial": 5, "repeat": 0, "kept": "correct", "hidden": "refused"}
CONFLICT = Conflict("m", "sort", "ours.zarr", "theirs.zarr", 1200, 7, False, SIDES)
MERGED = Merged("out.zarr", ("ours.zarr", "theirs.zarr"), {"model": 2, "task": 3}, 5000, 6500, 4, "first")


@pytest.fixture
def call(monkeypatch, tmp_path):
    """Calls a command whose library function is replaced: exit code, output, errors, and what that was given."""

    def run(where, result, *arguments):
        seen = {}

        def instead(*given, **options):
            seen.update(options, given=given)
            if isinstance(result, Exception):
                raise result
            return result

        monkeypatch.setattr(f"evalcube.flows.share.{where}", instead)
        code, output, errors = evalcube(*arguments, cwd=tmp_path)
        return SimpleNamespace(
            code=code, output=" ".join(output.split()), text=output, errors=errors, seen=seen
        )

    return run


def merge(call, result, *options):
    return call("merge.merge_cubes", result, "merge", "out.zarr", "ours.zarr", "theirs.zarr", *options)


def test_merge__says_what_it_made_and_what_is_missing(call):
    done = merge(call, replace(MERGED, notes=("a note",)), "--rename", "ours.zarr:m=n", "--prefer", "newer")
    whole = merge(call, replace(MERGED, planned=5000))

    assert done.code == 0
    assert (
        "out.zarr: 2 evaluations, 3 tasks, 5,000 trials from 2 cubes; 1,500 planned ones are missing"
        in done.output
    )
    assert "different outcomes" not in done.output
    assert "a note" in done.errors
    assert (done.seen["prefer"], list(done.seen["rename"])) == ("newer", ["ours.zarr:m=n"])
    assert done.seen["given"] == ("out.zarr", ["ours.zarr", "theirs.zarr"])
    assert "missing" not in whole.output
    assert json.loads(merge(call, MERGED, "--json").text)["trials"] == 5000


def test_merge__shows_what_was_decided_and_which_of_it_was_natural(call):
    other = replace(CONFLICT, task="dates", trials=50, by_nature=True)
    done = merge(call, replace(MERGED, conflicts=(CONFLICT, other)))

    assert "1,250 trials had different outcomes in two cubes; decided by --prefer first" in done.output
    assert "50 of them were asked at a temperature above 0" in done.output
    assert "temperature" not in merge(call, replace(MERGED, conflicts=(CONFLICT,))).output
    for words in ("length=3", "trial 5, repeat 0: correct, refused", "theirs.zarr", "1,200", "7"):
        assert words.split(",")[0] in done.output.replace("│", "")


def test_merge__that_is_refused_shows_the_conflicts_all_the_same(call):
    error = ConflictError("they contradict each other", "Say which", (CONFLICT,))
    shown, listed = merge(call, error), merge(call, error, "--json")

    assert (shown.code, listed.code) == (2, 2)
    assert "theirs.zarr" in shown.output
    assert "they contradict each other" in shown.errors
    document = json.loads(listed.text)
    assert (document["cube"], document["prefer"]) == (None, "fail")
    assert document["conflicts"][0]["trials"] == 1200


EQUAL = Difference(
    "a",
    "b",
    plan={"cells": 0, "first": 9, "second": 9},
    cells=SideCounts(0, 0, 3),
    trials=SideCounts(0, 0, 1234),
)


@pytest.mark.parametrize(
    ("difference", "code", "words"),
    [
        (EQUAL, 0, ["trials: 1,234 equal, 0 differ, 0 only in the first, 0 only in the second", "equal"]),
        (replace(EQUAL, identity=("they ask otherwise",)), 1, ["they ask otherwise", "different"]),
        (replace(EQUAL, plan={"cells": 1500}), 1, ["1,500 cells have different plans", "different"]),
        (
            replace(EQUAL, cells=SideCounts(1, 2, 3, 4)),
            1,
            ["cells: 3 equal, 4 differ, 1 only in the first, 2 only in the second"],
        ),
        (
            replace(
                EQUAL,
                trials=SideCounts(differing=2),
                status_changes=(StatusChange("m", "sort", "correct", "refused", 2),),
            ),
            1,
            ["trials with different outcomes", "correct → refused", "different"],
        ),
    ],
)
def test_diff__ends_with_1_if_they_differ(call, difference, code, words):
    found = call("difference.diff_cubes", difference, "diff", "a", "b")
    listed = call("difference.diff_cubes", difference, "diff", "a", "b", "--json")

    assert (found.code, listed.code) == (code, code)
    assert all(text in found.output for text in words)
    assert found.text.splitlines()[-1] == ("different" if code else "equal")
    assert json.loads(listed.text)["equal"] == (code == 0)
    assert ("plans" in found.output) == (difference.plan["cells"] > 0)
    assert ("→" in found.output) == bool(difference.status_changes)


def published(**fields):
    publication = SimpleNamespace(trials=1234, objects=range(2000), size=5_000_000, licence="")
    known = {
        "cube": "s3://b/v1",
        "digest": "blake2b:abc",
        "publication": publication,
        "replies": None,
        "notes": (),
    }
    return SimpleNamespace(**{**known, **fields}, to_dict=lambda: {"cube": "s3://b/v1"})


def test_publish__says_what_was_copied(call):
    where = "publish.publish.publish_cube"
    done = call(
        where, published(notes=("a note",)), "publish", "c.zarr", "s3://b", "--tag", "v1", "--allow", "path"
    )
    packed = call(
        where,
        published(replies=SimpleNamespace(entries=4321)),
        "publish",
        "c.zarr",
        "s3://b",
        "--with-replies",
    )
    listed = call(where, published(), "publish", "c.zarr", "s3://b", "--json", "--license", "MIT")

    assert done.text.splitlines() == ["s3://b/v1: 1,234 trials in 2,000 objects, 5.0 MB", "blake2b:abc"]
    assert "a note" in done.errors
    assert (done.seen["tag"], list(done.seen["allow"]), done.seen["with_replies"]) == ("v1", ["path"], False)
    assert "1,234 trials, 4,321 replies in" in packed.output
    assert packed.seen["with_replies"]
    assert list(packed.seen["allow"]) == []
    assert json.loads(listed.text)["findings"] == []
    assert listed.seen["licence"] == "MIT"


def test_publish__that_is_refused_lists_what_was_found(call):
    where = "publish.publish.publish_cube"
    error = SecretsError([])
    error.to_list = lambda: [{"id": "x"}]
    listed = call(where, error, "publish", "c.zarr", "s3://b", "--json")

    document = json.loads(listed.text)
    assert (listed.code, document["cube"], document["findings"]) == (2, None, [{"id": "x"}])
    refused = call(where, SecretsError([]), "publish", "c.zarr", "s3://b")
    assert (refused.code, refused.output) == (2, "")


def test_pull__says_what_came_and_takes_gigabytes(call):
    where = "publish.pull.pull_cube"
    licensed = SimpleNamespace(licence="CC-BY-4.0")
    plain = published(replies=0, trials=12, cache=None)
    done = call(where, plain, "pull", "s3://b", "to.zarr", "--most", "0.5")
    more = call(
        where,
        published(publication=licensed, replies=3000, trials=12, cache="c"),
        "pull",
        "s3://b",
        "to.zarr",
    )

    assert done.text.splitlines() == ["s3://b/v1: 12 trials", "blake2b:abc"]
    assert done.seen["most_bytes"] == 500_000_000
    assert more.text.splitlines() == [
        "s3://b/v1: 12 trials; 3,000 replies in c",
        "blake2b:abc",
        "licence: CC-BY-4.0",
    ]
    assert more.seen["most_bytes"] == 64 * 10**9
    assert json.loads(call(where, plain, "pull", "s3://b", "to.zarr", "--json").text)["cube"] == "s3://b/v1"


SUMMARY = ImportSummary("c.zarr", "cache", 2, ("m",), ("t", "u"), 9, 7, 0, 0, ())


def test_import__says_what_was_read_and_ends_with_1_if_something_was_left_out(call):
    def imported(summary, *options):
        return call("imports.logs.import_logs", summary, "import", "a.json", "--into", "c.zarr", *options)

    done = imported(SUMMARY, "--map", "prompt=q", "--correct-from", "0.5", "--score", "acc")
    partial = imported(replace(SUMMARY, failed=3, repeated=4, notes=("odd",), left_out=("b.json: broken",)))

    assert done.code == 0
    assert done.text.splitlines() == [
        "2 logs: 7 answers of 1 evaluations to 2 tasks", "written to c.zarr; replies in cache"
    ]  # fmt: skip
    assert (done.seen["map"], done.seen["correct_from"], done.seen["score"]) == ("prompt=q", 0.5, "acc")
    assert partial.code == 1
    assert "note: odd" in partial.output
    assert "tasks; 3 samples without an answer or a score; 4 said again" in partial.output
    assert "left out: b.json: broken" in partial.errors
    assert json.loads(imported(SUMMARY, "--json").text)["replies"] == 7
