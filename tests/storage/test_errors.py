"""Errors of the operating system as errors of storage."""

import errno
import os

import pytest

from evalcube.storage.errors import (
    DiskFullError,
    NotWritableError,
    StorageError,
    guarded,
    storage_error,
)
from tests.cases import with_cases


def test_storage_error__says_what_the_system_said_or_the_library():
    said = [
        storage_error(error, "/path", "read")
        for error in (OSError(errno.EIO, "Broken"), OSError("odd thing"))
    ]

    assert [error.what for error in said] == ["cannot read: broken", "cannot read: odd thing"]


@with_cases(
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
