"""Puts on a condition: lost answers, repeated requests, stores that ignore conditions."""

import obstore
import pytest
from obstore import exceptions

from evalcube.storage.cube.address import space_of
from evalcube.storage.cube.bucket import conditions
from evalcube.storage.cube.space import When
from evalcube.storage.errors import StorageError
from tests.storage.support import buckets

URL = "s3://bucket/team/c.zarr"


@pytest.fixture
def stores(monkeypatch):
    monkeypatch.setattr(conditions, "_PAUSE_SECONDS", 0.0)
    return buckets.in_memory(monkeypatch)


@pytest.fixture
def space(stores):  # noqa: ARG001 - its bucket is there
    return space_of(URL)


def lose_answers(monkeypatch, times=1, stored=True):
    """Have the next puts fail, after they were stored or before; returns how many there were."""
    real, asked = obstore.put, []

    def put(store, path, *args, **kwargs):
        if "probes/" in path:
            return real(store, path, *args, **kwargs)
        asked.append(path)
        if len(asked) > times:
            return real(store, path, *args, **kwargs)
        if stored:
            real(store, path, *args, **kwargs)
        raise exceptions.GenericError("connection closed before message completed")

    monkeypatch.setattr(obstore, "put", put)
    return asked


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("first", [True, False])
def test_put__whose_answer_is_lost_wins_all_the_same(space, monkeypatch, stored, first):
    when = When.ABSENT if first else space.put("key", b"before")
    asked = lose_answers(monkeypatch, stored=stored)

    version = space.put("key", b"mine", when=when)

    assert version is not None
    assert space.get("key")[:2] == (b"mine", version)
    assert len(asked) == 1 if stored else 2


def test_put__that_is_repeated_inside_of_the_client_finds_its_own(space, monkeypatch):
    real, asked = obstore.put, []

    def put(store, path, *args, **kwargs):
        if "probes/" not in path:
            asked.append(real(store, path, *args, **kwargs))  # and the answer was 500
        return real(store, path, *args, **kwargs)

    monkeypatch.setattr(obstore, "put", put)

    assert space.put("key", b"same", when=When.ABSENT) is not None
    assert len(asked) == 1


def test_put__does_not_take_another_ones_equal_object_for_its_own(space, monkeypatch):
    space.put("key", b"same", when=When.ABSENT)
    lose_answers(monkeypatch, stored=False)

    assert space.put("key", b"same", when=When.ABSENT) is None


def test_put__gives_up_on_a_store_that_is_gone(space, monkeypatch):
    asked = lose_answers(monkeypatch, times=99, stored=False)

    with pytest.raises(StorageError, match="connection closed"):
        space.put("key", b"", when=When.ABSENT)
    assert len(asked) == 5


@pytest.mark.parametrize(("mode", "ignored"), [("create", "put-if-absent"), ("update", "put-if-unchanged")])
def test_put__refuses_a_store_that_ignores_a_condition(space, monkeypatch, mode, ignored):
    real = obstore.put

    def put(store, path, data, *, mode=None, **kwargs):
        kind = mode if mode in (None, "create") else "update"
        return real(store, path, data, **kwargs, **({} if kind in (None, ignores) else {"mode": mode}))

    ignores = mode
    monkeypatch.setattr(obstore, "put", put)

    with pytest.raises(StorageError, match=ignored) as caught:
        space.put("key", b"", when=When.ABSENT)
    assert "Use a store" in str(caught.value)
    assert list(space.list()) == []


@pytest.mark.parametrize(("address", "mark"), [("gs://b/c", "7"), ("s3://b/c", "e"), ("az://b/c", "e")])
def test_version_of__is_a_generation_at_gcs_alone(address, mark):
    assert conditions.version_of(address, {"version": "7", "e_tag": "e"}).mark == mark
