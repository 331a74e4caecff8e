"""Addresses of cubes and caches, and what each means: the one place that tells directories, buckets and servers apart.

What differs between stores stands in `SCHEMES`; everybody else asks the functions here. Addresses hold no credentials:
they are written into cubes, logs and messages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from evalcube.storage.errors import UnsupportedUrlError


class Kind(Enum):
    """What an address leads to."""

    DIRECTORY = "directory"
    BUCKET = "bucket"
    WEB = "web server"
    REDIS = "Redis server"
    UNKNOWN = "unknown"


class Scheme(NamedTuple):
    """What the scheme of an address says of the store."""

    kind: Kind
    variables: str = ""
    """What the names of all environment variables begin with that the store's own tools use."""
    credentials: str = ""
    """Those that give access, for messages."""
    version: str = "e_tag"
    """By what obstore puts an object only over the one that was seen: GCS has generations, the others ETags."""


SCHEMES: Mapping[str, Scheme] = {
    "": Scheme(Kind.DIRECTORY),
    "file": Scheme(Kind.DIRECTORY),
    "s3": Scheme(
        Kind.BUCKET, "AWS_", "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY (and AWS_REGION, AWS_ENDPOINT_URL)"
    ),
    "gs": Scheme(Kind.BUCKET, "GOOGLE_", "GOOGLE_APPLICATION_CREDENTIALS", "version"),
    "az": Scheme(Kind.BUCKET, "AZURE_", "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"),
    "http": Scheme(Kind.WEB),
    "https": Scheme(Kind.WEB),
    "redis": Scheme(Kind.REDIS),
    "rediss": Scheme(Kind.REDIS),
}
STORE_VARIABLES = tuple(scheme.variables for scheme in SCHEMES.values() if scheme.variables)
"""What the names of all variables begin with that object stores are reached by."""
_STRANGE = Scheme(Kind.UNKNOWN)

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
"""Two characters or more before the colon, so that ``C:/data`` is a path."""

_FILE = re.compile(r"file://(localhost)?(?P<path>/[^?#]*)", re.IGNORECASE)
_SERVER = r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^/?#@:\[\]\s]+)(:(?P<port>[0-9]{0,5}))?"
_FORMS = {
    Kind.BUCKET: (
        re.compile(
            r"(?P<host>[A-Za-z0-9][A-Za-z0-9._-]*)(?=/|$)/*"
            r"(?P<path>((?!\.{1,2}(/|$))[^/?#\0]+(/(?=[^/])|(?=/*$)))*)/*"
        ),
        "bucket/prefix",
    ),
    Kind.WEB: (re.compile(_SERVER + r"(/[^?#]*)?"), "host/cubes/sweep.zarr"),
    Kind.REDIS: (
        re.compile(
            _SERVER + r"(/(?P<database>[0-9]{0,9})/?)?(\?password_env=(?P<variable>[A-Za-z_][A-Za-z0-9_]*))?"
        ),
        "host:6379/0, or host:6379/0?password_env=NAME with the environment variable of the password",
    ),
}
"""What follows the scheme and its slashes, and what a user is told of that."""
_SLASHES_OF_A_BUCKET = 2
_GREATEST_PORT = 65535

REMEDY = (
    "Use a directory, local or on NFS: a plain path such as results/sweep.zarr, or file:///absolute/path. Cubes and "
    "caches may lie on object stores (s3://, gs://, az://), caches on redis://host:port/db, cubes that are only read "
    "on web servers (https://)."
)
Address = str | os.PathLike[str]
"""What a user gives to say where a cube is: its address, or what a function has returned that made or filled it."""


class MadeCube:
    """What has made or filled a cube: stands for its address wherever one is taken."""

    cube: str

    def __fspath__(self) -> str:
        return self.cube


def plain_address(given: Address) -> str | Path:
    """The address that is meant; of another type, as it was given, for whoever refuses it."""
    return os.fspath(given) if isinstance(given, os.PathLike) and not isinstance(given, Path) else given


def scheme_of(url: str | Path) -> str:
    """Scheme of an address in lower case; empty for a path."""
    if isinstance(url, Path):
        return ""
    if not isinstance(url, str):
        raise UnsupportedUrlError("an address is a text or a path", type(url).__name__, REMEDY)
    match = _SCHEME.match(url)
    return match[1].lower() if match else ""


def store_at(url: str | Path) -> Scheme:
    """What is known of the store that an address leads to, by its scheme."""
    return SCHEMES.get(scheme_of(url), _STRANGE)


def kind_of(url: str | Path) -> Kind:
    """What kind of store an address leads to."""
    return store_at(url).kind


def is_directory(url: str | Path) -> bool:
    """Whether an address is one of a directory: a path, or ``file://`` and one.

    Examples
    --------
    >>> is_directory("results/sweep.zarr"), is_directory("file:///a.zarr"), is_directory("s3://bucket/a.zarr")
    (True, True, False)
    """
    return kind_of(url) is Kind.DIRECTORY


def has_folders(url: str | Path) -> bool:
    """Whether other things than entries can lie at an address, and caches beside it: not on a Redis server."""
    return kind_of(url) is not Kind.REDIS


def beside(url: str | Path, name: str) -> str:
    """The address of what has a name in the same folder; empty on a web server, and beside what fills its bucket.

    Examples
    --------
    >>> beside("s3://bucket/cubes/a.zarr", "cache"), beside("s3://bucket", "cache")
    ('s3://bucket/cubes/cache', '')
    """
    whole = resolved(url)
    if kind_of(url) is Kind.WEB or (kind_of(url) is Kind.BUCKET and whole.count("/") == _SLASHES_OF_A_BUCKET):
        return ""
    return f"{whole.rpartition('/')[0]}/{name}"


def redacted(url: str | Path) -> str:
    """An address for a message, without what may be a secret: user info and query.

    Examples
    --------
    >>> redacted("redis://:pass/word@host/0")
    'redis://***@host/0'
    """
    text = str(url)
    if scheme_of(url) == "":
        return text
    return re.sub(r"\?.*", "?***", re.sub(r"//.*@", "//***@", text, flags=re.DOTALL), flags=re.DOTALL)


def absolute(url: str | Path) -> str:
    """An address that means the same from any directory; what is no directory's stays as it is."""
    return str(url) if kind_of(url) in (Kind.BUCKET, Kind.WEB, Kind.REDIS) else str(directory_of(url))


def resolved(url: str | Path) -> str:
    """An address in the one form that all who mean the same place give it: links of a directory are followed."""
    kind = kind_of(url)
    if kind is Kind.BUCKET:
        return object_prefix(str(url))
    if kind is Kind.WEB:
        return http_address(str(url))
    return str(directory_of(url).resolve())


def directory_of(url: str | Path) -> Path:
    """Directory that an address means; relative paths are relative to the current directory.

    Examples
    --------
    >>> directory_of("file:///data/my%20cube.zarr").as_posix()
    '/data/my cube.zarr'
    """
    text = str(url)
    if not text.strip() or "\0" in text:
        raise UnsupportedUrlError("the address is empty or has a zero byte", repr(text), REMEDY)
    scheme = scheme_of(url)
    if not scheme:
        return at_home(text).absolute()
    if scheme != "file":
        problem = f"addresses that begin with {scheme}:// are not supported"
        raise UnsupportedUrlError(problem, redacted(text), REMEDY)
    match = _FILE.fullmatch(text)
    # Also a zero byte that is written as %00: the system would end the path there.
    path = unquote(match["path"]) if match else "\0"
    if "\0" in path:
        problem = "a file: URL has three slashes and nothing but a path"
        raise UnsupportedUrlError(problem, redacted(text), REMEDY)
    return Path(path)


def at_home(path: str | Path) -> Path:
    """The path, with the home folder that ``~`` or ``~user`` at its beginning means."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        problem = "its home folder is not known"
        raise UnsupportedUrlError(problem, str(path), "Write the whole path.") from None


def _match_address(url: str) -> re.Match[str]:
    """Parts of an address that is no directory's."""
    form, words = _FORMS[kind_of(url)]
    match = form.fullmatch(url.partition("://")[2])
    if match is None or int(match.groupdict().get("port") or 0) > _GREATEST_PORT:
        raise UnsupportedUrlError(
            "addresses of such stores have another form, without user name and password",
            redacted(url),
            f"Write it like {scheme_of(url)}://{words}. Secrets stand in the environment variables of the store.",
        )
    return match


def object_prefix(url: str) -> str:
    """The address of an object store's prefix in its plain form, without a slash at the end.

    Examples
    --------
    >>> object_prefix("s3://bucket/caches/")
    's3://bucket/caches'
    """
    match = _match_address(url)
    return f"{scheme_of(url)}://{match['host']}/{match['path']}".rstrip("/")


def http_address(url: str) -> str:
    """The address of files on a web server in its plain form, without a slash at the end.

    Examples
    --------
    >>> http_address("https://team.example:8443/cubes/sweep.zarr/")
    'https://team.example:8443/cubes/sweep.zarr'
    """
    match = _match_address(url)
    return f"{scheme_of(url)}://{match[0].rstrip('/')}"


class RedisAddress(NamedTuple):
    """Where a Redis server is."""

    host: str
    port: int
    database: int
    tls: bool
    password_env: str
    """Name of the environment variable with the password."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"redis{'s' * self.tls}://{host}:{self.port}/{self.database}"


def redis_address(url: str) -> RedisAddress:
    """Read ``redis://host:port/db``, where port and db may be left out.

    Examples
    --------
    >>> str(redis_address("redis://cache.example?password_env=TEAM_CACHE"))
    'redis://cache.example:6379/0'
    """
    match = _match_address(url)
    port, database = int(match["port"] or 6379), int(match["database"] or 0)
    host, secret = match["host"].strip("[]"), match["variable"] or "REDIS_PASSWORD"
    return RedisAddress(host, port, database, scheme_of(url) == "rediss", secret)
