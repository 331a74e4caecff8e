from pathlib import Path

import pytest

from evalcube.storage.errors import (
    StorageError,
    UnsupportedUrlError,
)
from evalcube.storage.urls import SCHEMES, Kind, beside, directory_of, has_folders, kind_of, resolved
from tests.cases import with_cases


@with_cases(
    ("url", "path"),
    [
        ("/a/b.zarr", "/a/b.zarr"),
        (Path("/a/b"), "/a/b"),
        ("file:///a/b%20c", "/a/b c"),
        ("file://localhost/a", "/a"),
        ("results/x.zarr", str(Path.cwd() / "results/x.zarr")),
        ("a:b", str(Path.cwd() / "a:b")),
        ("~/x", str(Path.home() / "x")),
    ],
)
def test_directory_of__paths_and_file_urls(url, path):
    assert str(directory_of(url)) == path


@with_cases("url", ["s3://bucket/x", "gs://b", "az://b/c", "redis://host:1", "S3://b", "https://h/x"])
def test_directory_of__other_stores_say_what_works(url):
    with pytest.raises(StorageError, match=r"Use a directory"):
        directory_of(url)


def test_directory_of__home_of_nobody():
    with pytest.raises(UnsupportedUrlError, match=r"~nobody7/x: "):
        directory_of("~nobody7/x")


@with_cases(
    "url",
    [
        "",
        "  ",
        "file://host/a",
        "file:/a",
        "file:///a?b",
        "file:///a#b",
        "a\0b",
        "file://[x/a",
        "file:///a%00b",
    ],
)
def test_directory_of__malformed(url):
    with pytest.raises(StorageError, match="Use a directory"):
        directory_of(url)


def test_directory_of__repeats_no_secret():
    with pytest.raises(StorageError) as caught:
        directory_of("file://ann:hunter2@host/a?token=hunter2")

    assert "hunter2" not in str(caught.value)


@with_cases(
    ("url", "kind"),
    [
        ("C:/a", Kind.DIRECTORY),
        (Path("a.zarr.zip"), Kind.DIRECTORY),
        ("FILE:///a", Kind.DIRECTORY),
        ("az://b/c", Kind.BUCKET),
        ("HTTPS://h/x", Kind.WEB),
        ("rediss://h", Kind.REDIS),
        ("ftp://h/x", Kind.UNKNOWN),
    ],
)
def test_kind_of__is_read_off_the_scheme(url, kind):
    assert kind_of(url) is kind


@pytest.mark.parametrize("url", ["https://[::1/x", "https://h]/x", "http://h:65536/x", "https://h:x/y"])
def test_resolved__of_no_web_servers_address_says_how_to_write_one(url):
    with pytest.raises(UnsupportedUrlError, match="like http"):
        resolved(url)
    assert resolved("https://[::1]:443/x//") == "https://[::1]:443/x"


def test_schemes__of_buckets_name_what_gives_access_to_them():
    buckets = [scheme for scheme in SCHEMES.values() if scheme.kind is Kind.BUCKET]

    assert all(scheme.variables and scheme.credentials.startswith(scheme.variables) for scheme in buckets)


@pytest.mark.parametrize(
    ("url", "place"),
    [("/a/b.zarr", "/a/cache"), ("gs://b/c.zarr/", "gs://b/cache"), ("gs://b/", ""), ("https://h/x/y", "")],
)
def test_beside__is_nothing_on_a_web_server_and_at_a_whole_bucket(url, place):
    assert beside(url, "cache") == place


def test_has_folders__redis_has_none():
    assert [has_folders(url) for url in ("a", "s3://b/c", "redis://h")] == [True, True, False]
