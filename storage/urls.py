"""The address of a cube or a cache in, the directory that it means out.

This is the seam for other stores: an object store gets its form here, next to `directory_of`, and its own
implementation of what `storage.cube` and `storage.cache` do with a directory.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from storage.errors import UnsupportedUrlError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
"""Two characters or more before the colon, so that ``C:/data`` is a path."""

REMEDY = (
    "Use a directory, local or on NFS: a plain path such as results/sweep.zarr, or file:///absolute/path. "
    "Object stores (s3://, gs://, az://) and redis:// do not work in this version."
)


def directory_of(url: str | Path) -> Path:
    """Directory that an address means; relative paths are relative to the current directory.

    Parameters
    ----------
    url
        A path, or ``file://`` with an absolute path (percent-encoded, no host or ``localhost``).

    Raises
    ------
    UnsupportedUrlError
        For an empty address, another scheme, or a ``file:`` URL with a host, a query or a relative path.

    Examples
    --------
    >>> directory_of("file:///data/my%20cube.zarr").as_posix()
    '/data/my cube.zarr'
    """
    text = str(url)
    if not text.strip() or "\0" in text:
        raise UnsupportedUrlError("the address is empty or has a zero byte", repr(text), REMEDY)
    if isinstance(url, Path) or not (match := _SCHEME.match(text)):
        return Path(text).expanduser().absolute()
    scheme = match[1].lower()
    if scheme != "file":
        raise UnsupportedUrlError(f"addresses that begin with {scheme}:// are not supported", text, REMEDY)
    parts = urlsplit(text)
    if (
        not text[5:].startswith("//")
        or parts.netloc not in ("", "localhost")
        or parts.query
        or parts.fragment
    ):
        raise UnsupportedUrlError("a file: URL has three slashes and nothing but a path", text, REMEDY)
    return Path(unquote(parts.path))
