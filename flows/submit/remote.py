"""Submits from a machine outside of the cluster: copies a config and its files over ssh, and asks there later."""

from __future__ import annotations

import datetime
import io
import json
import re
import secrets
import shlex
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from evalcube.deploy.clusters.slurm.queue import printable
from evalcube.deploy.clusters.slurm.script import slug
from evalcube.flows.config.models import SweepConfig
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.submit.records import Submission, remember, submissions_of

_SECONDS = 120
_CONFIG = "sweep.yaml"
_CLUSTER = "cluster.yaml"
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:-]{0,250}")
_FOLDER = "evalcube-submitted"


def submit_there(
    settings: SweepConfig, host: str, cluster: str | None, options: Sequence[str], *, dry_run: bool
) -> tuple[str, Submission | None]:
    """Copy a sweep's config and files to a host, and have it submitted there; what it said, and the record.

    Parameters
    ----------
    settings
        The sweep's config.
    host
        As ssh knows it.
    cluster
        Name of a cluster in the file of that host, or a file here, which is copied.
    options
        Further options of ``evalcube submit``.
    dry_run
        Whether it is only printed what would be submitted.

    Raises
    ------
    SweepError
        If files cannot be copied, or the host refuses.
    """
    _check_host(host)
    name = f"{slug(settings.name)}-{secrets.token_hex(3)}"
    files = dict.fromkeys(build_plan(settings).files.values())
    words = ["evalcube", "submit", _CONFIG, *options]
    if cluster is not None:
        here = Path(cluster).expanduser()
        copied = "/" in cluster or cluster.endswith((".yaml", ".yml"))
        words += ["--cluster", f"./{_CLUSTER}" if copied else cluster]
    else:
        copied = False
    words += ["--dry-run"] if dry_run else []
    parts: dict[str, bytes] = {}
    try:
        for file in files:
            parts[_below(file)] = Path(file).read_bytes()
        if copied:
            parts[_CLUSTER] = here.read_bytes()
    except OSError as error:
        raise SweepError(f"{error.filename}: cannot be read: {error.strerror}") from None
    parts[_CONFIG] = json.dumps(settings.model_dump(mode="json", exclude_unset=True), indent=1).encode()
    place = f"{_FOLDER}/{name}"
    _ssh(
        host,
        f"umask 077 && mkdir -p {shlex.quote(place)} && tar -xf - -C {shlex.quote(place)}",
        _archive(parts),
    )
    inner = f"cd {shlex.quote(place)} && {shlex.join(words)}"
    said = _in_login_shell(host, inner)
    if dry_run:
        return said, None
    match = re.search(r"submitted as (evalcube-[A-Za-z0-9-]+)", said)
    if match is None:
        raise SweepError(f"{host} did not say what it submitted, but: {printable(said)}")
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    made = Submission(match[1], now, settings.cube, f"~/{place}", (), host)
    remember(made)
    return said, made


def there(host: str, *words: str) -> str:
    """What an evalcube command says on another host.

    Parameters
    ----------
    host
        As ssh knows it.
    words
        Of the command, without the program.

    Raises
    ------
    SweepError
        If the host cannot be reached or the command fails.
    """
    _check_host(host)
    width = f"COLUMNS={shutil.get_terminal_size().columns}"
    return _in_login_shell(host, f"{width} {shlex.join(['evalcube', *words])}")


def cube_there(host: str, target: str) -> str:
    """Where a cube is on a host, if it was submitted there from here by its address; else the target as it is.

    Parameters
    ----------
    host
        As it was given to `submit_there`.
    target
        A cube as the config has it, the name of a submission, or anything that the host understands.
    """
    for one in reversed(submissions_of(target, host)):
        relative = "://" not in one.cube and not one.cube.startswith(("/", "~"))
        return f"{one.folder.removeprefix('~/')}/{one.cube}" if relative else one.cube
    return target


def names_there(host: str, target: str) -> list[str]:
    """The submissions on a host that are meant by a name, or that a cube's address here means; else the target alone.

    Parameters
    ----------
    host, target
        As of `cube_there`.
    """
    return [one.name for one in submissions_of(target, host)] or [target]


def _check_host(host: str) -> None:
    if not _HOST.fullmatch(host):
        raise SweepError(
            f"`ssh`: '{host}' is no host", "Give a host as ssh knows it, such as login1 or me@login1"
        )


def _below(file: str) -> str:
    """The path under which a file is copied, which its config names."""
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts:
        raise SweepError(
            f"{file}: cannot be copied to another machine and be found there",
            "Give the path of the file relative to the current directory, and below it",
        )
    return str(path)


def _archive(parts: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in parts.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o600
            archive.addfile(entry, io.BytesIO(data))
    return stream.getvalue()


def _in_login_shell(host: str, line: str) -> str:
    """What a line of a shell says there, whose profile says where evalcube is."""
    return _ssh(host, f"bash -lc {shlex.quote(line)}").decode(errors="replace")


def _ssh(host: str, line: str, data: bytes = b"") -> bytes:
    try:
        done = subprocess.run(
            ["ssh", "-o", "BatchMode=yes", "--", host, line],
            input=data,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise SweepError("`ssh` is not on this machine", "Install OpenSSH's client") from None
    except subprocess.TimeoutExpired:
        raise SweepError(f"{host} has not answered for {_SECONDS} s") from None
    if done.returncode:
        said = printable(done.stderr.decode(errors="replace"), 2000)
        raise SweepError(f"{host}: {said or f'ssh ended with code {done.returncode}'}")
    return done.stdout
