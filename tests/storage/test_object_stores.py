"""What an error of a store becomes, and how much of an object comes into memory."""

from types import SimpleNamespace

import pytest
from obstore import exceptions

from evalcube.storage import object_stores
from evalcube.storage.errors import NotWritableError, StorageError
from evalcube.storage.object_stores import connect, first_bytes, has_no_place, mark_reachable, store_errors
from tests.cases import with_cases


class Answer:
    """An object of parts of five bytes, of which the ones that were taken are counted."""

    def __init__(self, parts, size):
        self.meta, self.parts, self.taken = {"size": size}, parts, 0

    def stream(self, min_chunk_size):
        assert min_chunk_size > 0
        for part in range(self.parts):
            self.taken += 1
            yield bytes([65 + part]) * 5


@with_cases(
    ("most", "data", "taken"),
    [
        (0, b"", 1),
        (4, b"AAAA", 1),
        (5, b"AAAAA", 1),
        (6, b"AAAAAB", 2),
        (99, b"AAAAABBBBBCCCCC", 3),
        (None, b"AAAAABBBBB", 2),
    ],
)
def test_first_bytes__takes_no_more_parts_than_it_needs(most, data, taken):
    answer = Answer(3, 10)

    assert first_bytes(answer, most) == data
    assert answer.taken == taken


@with_cases(
    ("error", "kind", "words"),
    [
        (exceptions.PermissionDeniedError("x"), NotWritableError, "refuses the credentials"),
        (exceptions.UnauthenticatedError("x"), NotWritableError, "refuses the credentials"),
        (FileNotFoundError("x"), StorageError, "no such bucket or container"),
        (
            exceptions.GenericError("odd https://h/x?X-Amz-Signature=abc.\nmore"),
            StorageError,
            "odd https://h/x?***",
        ),
        (OSError(""), StorageError, "cannot read: OSError"),
        (ValueError("x" * 500), StorageError, "x" * 300),
    ],
)
def test_store_errors__say_what_to_do_and_hold_no_signature(error, kind, words):
    with pytest.raises(kind) as caught, store_errors("s3://bucket/a", "read"):
        raise error

    assert words in caught.value.message
    assert "abc" not in str(caught.value)
    assert "more" not in str(caught.value)
    assert "x" * 301 not in str(caught.value)
    assert caught.value.remedy
    assert caught.value.__cause__ is None


def test_store_errors__leave_others_as_they_are():
    with pytest.raises(KeyError), store_errors("s3://bucket/a", "read"):
        raise KeyError("a")


@pytest.mark.parametrize(
    ("text", "none"),
    [("... NoSuchBucket ...", True), ("ContainerNotFound", True), ("NoSuchKey", False), ("", False)],
)
def test_has_no_place__where_the_bucket_itself_is_not_there(text, none):
    assert has_no_place(ValueError(text)) == none


def test_connect__is_made_once_for_an_environment_and_waits_for_a_store_that_was_there(monkeypatch):
    made = []
    monkeypatch.setattr(object_stores, "_ANSWERED", set())
    monkeypatch.setattr(
        object_stores,
        "from_url",
        lambda _, retry_config: made.append(retry_config) or SimpleNamespace(),
    )
    object_stores._cached_connection.cache_clear()

    first = connect("s3://b/a")
    assert connect("s3://b/a") is first
    mark_reachable("s3://b/a")
    assert connect("s3://b/a") is not first
    assert [config["max_retries"] for config in made] == [8, 40]
    monkeypatch.setenv("AWS_REGION", "elsewhere")
    connect("s3://b/a")
    monkeypatch.setenv("UNRELATED", "x")
    connect("s3://b/a")
    object_stores._cached_connection.cache_clear()

    assert len(made) == 3
