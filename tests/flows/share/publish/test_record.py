"""The record of a publication: which objects it has, and what it refuses."""

import hashlib
import json

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.share.publish.publish import publish_cube
from evalcube.flows.share.publish.pull import pull_cube
from evalcube.flows.share.publish.record import FORMAT, decode
from evalcube.storage.errors import (
    CubeDamagedError,
)
from tests.cases import with_cases
from tests.flows.share.publish.publications import objects, rewritten


def test_publish__has_the_digest_of_every_object(done):
    found = objects(done.cube)
    record = found.pop("_evalcube/published.json")
    assert done.digest == f"sha256:{hashlib.sha256(record).hexdigest()}"
    assert json.loads(record)["objects"] == {
        key: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for key, data in found.items()
    }


@pytest.mark.parametrize("tag", ["../v1", "a/b", "-x", " "])
def test_publish__refuses_what_can_be_no_tag(cube, tmp_path, tag):
    with pytest.raises(SweepError, match="tag"):
        publish_cube(cube, str(tmp_path / "out"), tag=tag)

    assert not (tmp_path / "out").exists()


@with_cases("change", [{"trials": -1}, {"planned": -1}, {"trials": 2**53 + 1}, {"time": -1}, {"format": 0}])
def test_decode__refuses_counts_that_there_cannot_be(change):
    document = {"format": FORMAT, "time": 0, "shapes": {}, "trials": 0, "planned": 0, "objects": {}}
    document["ledger"] = {"receipts": 0, "sha256": "0" * 64}
    decode(json.dumps(document).encode(), "cube.zarr")

    with pytest.raises(CubeDamagedError, match=f"`{next(iter(change))}`"):
        decode(json.dumps(document | change).encode(), "cube.zarr")


def test_decode__a_newer_format_is_no_damage():
    with pytest.raises(SweepError, match="Update evalcube"):
        decode(json.dumps({"format": FORMAT + 1}).encode(), "cube.zarr")


@pytest.mark.parametrize(
    "key",
    [
        "../../evil",
        "/etc/evil",
        "a/../../evil",
        "_evalcube/lease.json",
        "_evalcube/ledger.jsonl.lock",
        "..\\evil",
        ".hidden/zarr.json",
        "a/b/c.py",
        "a/c.0.py",
        "a/c..0",
        "conftest.py",
        "x\n/zarr.json",
        "_evalcube/replies/../../x",
    ],
)
def test_pull__refuses_names_that_no_publication_has(out, tmp_path, key):
    one = {"sha256": "0" * 64, "size": 1}
    rewritten(out, lambda document: document["objects"].update({key: one}))

    with pytest.raises(CubeDamagedError, match="no publication has"):
        pull_cube(out, str(tmp_path / "mine.zarr"), tag="v1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["theirs"]


def huge(document):
    document["objects"] |= {f"a{i}/zarr.json": {"sha256": "0" * 64, "size": 2**31} for i in range(64)}


def endless(document):
    document["objects"]["a/zarr.json"] = {"sha256": "0" * 64, "size": 10**15}


def nested(document):
    document["shapes"] = "not shapes"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (huge, "137,438,9|137.4|GB"),
        (endless, "`objects.a/zarr.json.size` is 1000000000000000: .* less than or equal to 2147483648"),
        (nested, "`shapes` is 'not shapes'"),
        (lambda document: document.pop("objects"), "`objects` is missing"),
    ],
)
def test_pull__refuses_a_record_of_too_much(out, tmp_path, change, message):
    rewritten(out, change)

    with pytest.raises((SweepError, CubeDamagedError), match=message):
        pull_cube(out, str(tmp_path / "mine.zarr"), tag="v1")
    assert not (tmp_path / "mine.zarr").exists()
