"""The scripts of Slurm's jobs: options for sbatch, then shell lines; no value of a variable stands in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

ALWAYS_EXPORTED = (
    *(
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "PATH",
        "PYTHONPATH",
        "LD_LIBRARY_PATH",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
    ),
    *(
        "LANG",
        "LC_ALL",
        "TZ",
        "MODULEPATH",
        "MODULESHOME",
        "DASK_CONFIG",
        "SSL_CERT_FILE",
        "REQUESTS_CA_BUNDLE",
    ),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "XDG_STATE_HOME"),
    *("XDG_CACHE_HOME", "HF_HOME"),
)
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
    first = "#!/bin/bash -l"
    # A job that is given back to the queue would come again under the number of one that is replaced already.
    return [
        first,
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


def slug(name: str, longest: int = 40) -> str:
    """A name as a part of a job's name.

    Examples
    --------
    >>> slug("My sweep: 3/4"), slug("…")
    ('My-sweep-3-4', 'sweep')
    """
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:longest].strip("-") or "sweep"
