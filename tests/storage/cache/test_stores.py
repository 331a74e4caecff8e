"""What goes wrong with object stores and Redis servers: told in one message, without secrets."""

import re

import pytest
from cache_stores import SECRET

from evalcube.storage.cache.cache import open_cache
from evalcube.storage.errors import StorageError, UnsupportedUrlError
from evalcube.storage.urls import absolute, object_prefix, redacted, redis_address
from tests.cases import with_cases


def told(error, *, kind=StorageError):
    """The text of an error that a user sees."""
    text = str(error)
    assert type(error) is kind
    assert "\n" not in text
    assert SECRET not in text
    assert "AKIATEST" not in text
    return text


@with_cases(
    "url",
    [
        f"s3://AKIATEST:{SECRET}@bucket/x",
        f"s3://AKIATEST:{SECRET}/more@bucket/x",
        f"s3://{SECRET}@bucket",
        f"s3://bucket/x?secret={SECRET}",
        f"az://bucket/x#{SECRET}"[:12] + f"?sig={SECRET}",
        f"redis://:{SECRET}@host:6379/0",
        f"redis://user:{SECRET}@host",
        f"redis://:{SECRET}/x@host",
        f"rediss://host/0?password={SECRET}",
    ],
)
def test_open_cache__refuses_credentials_in_addresses_and_does_not_repeat_them(url):
    with pytest.raises(UnsupportedUrlError) as caught:
        open_cache(url)

    told(caught.value, kind=UnsupportedUrlError)
    assert SECRET not in redacted(url)


@with_cases(
    "url",
    [
        "s3://",
        "s3:///x",
        "s3://b:80/x",
        "s3://b/x//y",
        "gs://b/../c",
        "redis://",
        "redis:///0",
        "redis://h:x/0",
    ],
)
def test_open_cache__malformed_addresses(url):
    with pytest.raises(UnsupportedUrlError, match="Write it like"):
        open_cache(url)
    for wrong in (
        "redis://h/-1",
        "redis://h/one",
        "redis://h:99999",
        "redis://h?password_env=a-b",
        "redis://[h/0",
    ):
        with pytest.raises(UnsupportedUrlError):
            redis_address(wrong)


def test_addresses__in_plain_form(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert object_prefix("gs://my-bucket/") == "gs://my-bucket"
    assert object_prefix("s3://b//a//") == "s3://b/a"
    assert str(redis_address("rediss://[::1]:7000/3")) == "rediss://[::1]:7000/3"
    assert absolute("s3://b/x") == "s3://b/x"
    assert absolute("x/y") == str(tmp_path / "x/y")
    assert re.fullmatch(r"redis://h:6379/0", str(redis_address("redis://h")))
