"""The space that a cube's address means: the one place that chooses an implementation of `storage.cube.space.Space`."""

from __future__ import annotations

from evalcube.storage.cube.directory import Directory
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import UnsupportedUrlError, need_package
from evalcube.storage.urls import (
    Address,
    Kind,
    directory_of,
    http_address,
    is_zip,
    kind_of,
    object_prefix,
    plain_address,
    redacted,
)


def space_of(url: Address) -> Space:
    """The space that an address means: a directory, a zip file on this machine, a bucket, or a web server.

    Raises
    ------
    UnsupportedUrlError
        The address is of another kind, or malformed.
    StorageError
        The package that it needs is not installed.
    """
    url = plain_address(url)
    kind = kind_of(url)
    if is_zip(url) and kind in (Kind.BUCKET, Kind.WEB):
        remedy = "Copy it to this machine and give its path, or publish the cube there without .zip."
        raise UnsupportedUrlError("zip files are read and made on this machine only", redacted(url), remedy)
    if kind is Kind.BUCKET:
        address = object_prefix(str(url))
        need_package("obstore", "objects", "a cube", address)
        # Imported here: cubes in directories, which most are, start without it.
        from evalcube.storage.cube.bucket.objects import Bucket

        return Bucket(address)
    if kind is Kind.WEB:
        from evalcube.storage.cube.served import ServedFiles

        return ServedFiles(http_address(str(url)))
    path = directory_of(url)
    if is_zip(path) and not path.is_dir():
        from evalcube.storage.cube.zipped import ZippedFiles

        return ZippedFiles(path)
    return Directory(path)
