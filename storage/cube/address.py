"""The space that a cube's address means: the one place that chooses an implementation of `storage.cube.space.Space`."""

from __future__ import annotations

from pathlib import Path

from evalcube.storage.cube.directory import Directory
from evalcube.storage.cube.space import Space
from evalcube.storage.errors import need_package
from evalcube.storage.urls import (
    HTTP_SCHEMES,
    ICECHUNK,
    OBJECT_SCHEMES,
    directory_of,
    http_address,
    object_prefix,
    repository_address,
    scheme_of,
)

ZIP = ".zip"
"""What the names of zip files end in."""

Address = str | Path
"""What a user gives to say where a cube is."""


def space_of(url: Address) -> Space:
    """The space that an address means: a directory, a zip file, a bucket, a web server, or a commit.

    Raises
    ------
    UnsupportedUrlError
        The address is of another kind, or malformed.
    StorageError
        The package that it needs is not installed.
    """
    scheme = scheme_of(url)
    if scheme in OBJECT_SCHEMES:
        address = object_prefix(str(url))
        need_package("obstore", "objects", "a cube", address)
        if (file := _remote_zip(address)) is not None:
            return file
        # Imported here: cubes in directories, which most are, start without it.
        from evalcube.storage.cube.bucket import Bucket

        return Bucket(address)
    if scheme in HTTP_SCHEMES:
        address = http_address(str(url))
        if (file := _remote_zip(address)) is not None:
            return file
        from evalcube.storage.cube.served import ServedFiles

        return ServedFiles(address)
    if scheme == ICECHUNK:
        repository = repository_address(str(url))
        need_package("icechunk", "icechunk", "a cube", str(repository))
        from evalcube.storage.cube.versions.committed import committed_files

        return committed_files(repository)
    path = directory_of(url)
    if path.name.endswith(ZIP) and not path.is_dir():
        from evalcube.storage.cube.zipped import ZippedFiles

        return ZippedFiles(path)
    return Directory(path)


def _remote_zip(address: str) -> Space | None:
    """The zip file at an address of a store or server; None if there is none."""
    if not address.endswith(ZIP):
        return None
    need_package("obstore", "objects", "a zip file on a server", address)
    from evalcube.storage.cube.zipped_remote import RemoteZip, is_remote_zip

    return RemoteZip(address) if is_remote_zip(address) else None
