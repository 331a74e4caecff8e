import errno
import os
from pathlib import Path

import pytest

from evalcube.storage.errors import DiskFullError, NotWritableError, StorageError, guarded, storage_error
from evalcube.storage.urls import directory_of


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    "url", ["s3://bucket/x", "gs://b", "az://b/c", "redis://host:1", "S3://b", "https://h/x"]
)
def test_directory_of__other_stores_say_what_works(url):
    with pytest.raises(StorageError, match=r"not supported.*Use a directory, local or on NFS"):
        directory_of(url)


@pytest.mark.parametrize("url", ["", "  ", "file://host/a", "file:/a", "file:///a?b", "file:///a#b", "a\0b"])
def test_directory_of__malformed(url):
    with pytest.raises(StorageError, match="Use a directory"):
        directory_of(url)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.ENOSPC, DiskFullError),
        (errno.EDQUOT, DiskFullError),
        (errno.EFBIG, DiskFullError),
        (errno.EROFS, NotWritableError),
        (errno.EACCES, NotWritableError),
        (errno.ENOTDIR, NotWritableError),
        (errno.ENAMETOOLONG, NotWritableError),
        (errno.EIO, StorageError),
        (errno.EMFILE, StorageError),
    ],
)
def test_storage_error__names_what_where_remedy(code, kind):
    cause = OSError(code, os.strerror(code), "/user/path/inner")

    error = storage_error(cause, "/user/path", "write a region")

    assert type(error) is kind
    assert str(error).startswith("/user/path: cannot write a region: ")
    assert "\n" not in str(error)
    assert error.remedy.endswith(".")


def test_guarded__chains_the_cause():
    with pytest.raises(StorageError) as caught, guarded("/x", "read"):
        raise OSError(errno.EIO, "Input/output error")

    assert isinstance(caught.value.__cause__, OSError)
