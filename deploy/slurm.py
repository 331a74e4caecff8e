"""Slurm through its own commands: submit, look up and cancel jobs; and their scripts, with no value of a variable."""

from __future__ import annotations

import getpass
import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalcube.deploy.errors import ClusterError

_SECONDS = 30.0
"""That a command may take: a controller under load answers late."""
_LIVE = frozenset(
    "PENDING RUNNING CONFIGURING COMPLETING RESIZING SUSPENDED STOPPED SIGNALING STAGE_OUT REQUEUED REQUEUE_FED "
    "REQUEUE_HOLD RESV_DEL_HOLD SPECIAL_EXIT".split()
)
"""States of jobs that still run or may run."""
_BUSY = re.compile(
    "Socket timed out|Unable to contact slurm controller|Resource temporarily unavailable|timed out"
)
_HINDERING = re.compile(
    r"SQUEUE_|SACCT_|SCANCEL_|SLURM_(?!CONF$|CLUSTERS$)|SBATCH_(JOB_NAME|EXPORT|OUTPUT|TIMELIMIT|REQUEUE|NO_REQUEUE)$"
)
"""Variables that would change what the commands print, override a script, or tell of a job in which this process is."""
_TAIL_BYTES = 4096
_LONGEST = 300
"""Characters of a program's own words that are passed on."""


class SlurmBusyError(ClusterError):
    """Slurm's controller does not answer at the moment."""


def submit(script: str, options: Sequence[str] = ()) -> int:
    """Submit a job; returns its number.

    Parameters
    ----------
    script
        Its whole script, which sbatch reads from its standard input.
    options
        Further options of sbatch.

    Raises
    ------
    ClusterError
        If sbatch refuses it, with its own words, or Slurm does not answer.
    """
    answer = _call(["sbatch", "--parsable", *options], "sbatch refused the job", script)
    match = re.match(r"\d+", answer.strip().split("\n")[-1])
    if match is None:
        raise ClusterError(f"sbatch answered no job number but {printable(answer)!r}")
    return int(match[0])


def live_jobs(name: str) -> dict[int, str]:
    """Number -> state of this user's jobs of that name that run or may run.

    Raises
    ------
    SlurmBusyError
        If Slurm does not answer.
    """
    whose = (f"--name={name}", f"--user={getpass.getuser()}")
    words = ["squeue", "--noheader", "--states=all", "--format=%i|%T", *whose]
    jobs = [line.strip().partition("|") for line in _call(words, "squeue failed").splitlines()]
    return {int(number): state for number, _, state in jobs if number.isdecimal() and state in _LIVE}


def state_of(job: int) -> str | None:
    """How a job is or ended, such as RUNNING, TIMEOUT or CANCELLED; None if nobody knows.

    Accounting remembers for long, where a site has it; the controller for some minutes after the end.
    """
    sources = (
        (f"sacct --noheader --parsable2 --allocations --jobs={job} --format=State", r"^(\w+)"),
        (f"scontrol show job --oneliner {job}", r"\bJobState=(\w+)"),
    )
    for words, pattern in sources:
        try:
            match = re.search(pattern, _call(words.split(), "nobody remembers the job"))
        except ClusterError:
            continue
        if match is not None:
            return match[1]
    return None


def cancel(jobs: Iterable[int], name: str | None = None) -> None:
    """Cancel jobs by number, and all of this user's of a name; those that have ended are no problem.

    Raises
    ------
    SlurmBusyError
        If Slurm does not answer.
    """
    which = [list(map(str, jobs))]
    which += [] if name is None else [[f"--name={name}", f"--user={getpass.getuser()}"]]
    for words in filter(None, which):
        _call(["scancel", "--quiet", *words], "scancel failed", may_fail=True)


def _call(words: list[str], failed: str, text: str | None = None, *, may_fail: bool = False) -> str:
    """The standard output of one of Slurm's commands."""
    environment = {key: value for key, value in os.environ.items() if not _HINDERING.match(key)}
    try:
        done = subprocess.run(
            words, input=text, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False,
            start_new_session=True,
        )  # fmt: skip
    except FileNotFoundError:
        raise ClusterError(
            f"`{words[0]}` is not on this machine: submit from a login node of the cluster, or load its module"
        ) from None
    except subprocess.TimeoutExpired:
        raise SlurmBusyError(f"`{words[0]}` has not answered for {_SECONDS:g} s") from None
    if done.returncode and not may_fail:
        said = printable(done.stderr or done.stdout)
        kind = SlurmBusyError if _BUSY.search(said) else ClusterError
        raise kind(f"{failed}: {said or f'exit code {done.returncode}'}")
    return done.stdout


def printable(text: str, longest: int = _LONGEST) -> str:
    """The words of another program as one line that a terminal may show."""
    line = "; ".join(part.strip() for part in text.splitlines() if part.strip())
    line = "".join(character if character.isprintable() else "?" for character in line)
    return line if len(line) <= longest else f"{line[:longest]}..."


def last_lines(log: Path, most: int) -> list[str]:
    """The last lines of a log that are not empty, safe to be shown.

    Parameters
    ----------
    log
        The file, of which only the end is read.
    most
        How many.

    Raises
    ------
    OSError
        It cannot be read.
    """
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        text = file.read(_TAIL_BYTES).decode(errors="replace")
    return [printable(line) for line in [line for line in text.splitlines() if line.strip()][-most:]]


ALWAYS_EXPORTED = (
    "HOME USER LOGNAME SHELL PATH PYTHONPATH LD_LIBRARY_PATH VIRTUAL_ENV CONDA_PREFIX "
    "LANG LC_ALL TZ MODULEPATH MODULESHOME DASK_CONFIG SSL_CERT_FILE REQUESTS_CA_BUNDLE "
    "HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy XDG_STATE_HOME XDG_CACHE_HOME HF_HOME"
).split()
"""Variables that jobs get from where they are submitted, where they are set."""

CAREFUL = (
    "set -e",
    """trap 'echo "evalcube: the job ends, as this failed: $BASH_COMMAND" >&2' ERR""",
)
"""Lines after which one that fails ends the job, and is named."""


@dataclass(frozen=True)
class JobSettings:
    """What a job asks of Slurm, and what its shell does first."""

    walltime: float = 3600.0
    """Seconds; Slurm counts in minutes."""
    cores: int = 1
    memory: str = "4G"
    partition: str | None = None
    account: str | None = None
    options: tuple[str, ...] = ()
    """Further options of sbatch, as they are."""
    prologue: tuple[str, ...] = ()
    """Shell lines before anything else."""
    environment: tuple[str, ...] = ()
    """Names of further variables that jobs get from where they are submitted."""
    logs: str = "slurm-logs"
    """Absolute path of the folder of the jobs' logs."""


def sbatch_header(name: str, settings: JobSettings, more: Sequence[str] = ()) -> list[str]:
    """The first lines of a job's script.

    Parameters
    ----------
    name
        Of the job: letters, digits, dots, dashes.
    settings
        What it asks for.
    more
        Further options of sbatch that the kind of job needs.
    """
    exported = dict.fromkeys((*ALWAYS_EXPORTED, *settings.environment))
    options = {
        "job-name": name,
        "output": f"{settings.logs.replace('%', '%%')}/%j.log",
        "time": clock(settings.walltime),
        "nodes": "1",
        "ntasks": "1",
        "cpus-per-task": str(settings.cores),
        "mem": settings.memory,
        "partition": settings.partition,
        "account": settings.account,
        # By name only: sbatch takes the values from the environment, and the script may lie open.
        "export": ",".join(exported),
    }
    lines = [f"--{key}={shlex.quote(value)}" for key, value in options.items() if value is not None]
    # A login shell: it knows `module`, which is a function and goes along with no variable that is exported by name.
    # A job that is given back to the queue would come again under the number of one that is replaced already.
    return [
        "#!/bin/bash -l",
        *(f"#SBATCH {line}" for line in (*lines, "--no-requeue", *more, *settings.options)),
    ]


def clock(seconds: float) -> str:
    """Seconds as Slurm writes times, in whole minutes upwards.

    Examples
    --------
    >>> clock(60), clock(5401), clock(90_000)
    ('00:01:00', '01:31:00', '1-01:00:00')
    """
    minutes = -(-int(seconds) // 60)
    days, hours = divmod(minutes // 60, 24)
    return (f"{days}-" if days else "") + f"{hours:02}:{minutes % 60:02}:00"


def slug(name: str) -> str:
    """A name as a part of a job's name, at most 40 characters long.

    Examples
    --------
    >>> slug("My sweep: 3/4"), slug("…")
    ('My-sweep-3-4', 'sweep')
    """
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:40].strip("-") or "sweep"
