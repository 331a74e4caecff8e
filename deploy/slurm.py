"""Job script that runs a whole sweep under Slurm, and its submission by `sbatch`."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from evalcube.deploy.errors import ClusterError

_SECONDS = 60.0
"""That `sbatch` may take: a controller under load answers late."""
_LONGEST = 300
"""Characters of another program's output that are passed on."""

_SCRIPT = """\
#!/bin/bash
{options}

set -e
{prologue}
set +e

# Slurm sends USR1 before the time limit (--signal): the run stops in good order, and the job queues itself again.
# Requests that are still in flight a minute later are dropped; the next run sends them again.
# scancel sends TERM to all processes of the job: then nothing goes on.
time_is_up=
signalled=yes
trap 'time_is_up=yes signalled=yes; kill -TERM "$run"; {{ sleep 60; kill -TERM "$run"; }} 2> /dev/null &' USR1
trap 'time_is_up= signalled=yes' TERM

{command} --workers "${{SLURM_CPUS_PER_TASK:-1}}" &
run=$!
while [ "$signalled" ]; do
  signalled=
  wait "$run"
  code=$?
done

# Exit codes: 0 done, 1 some requests failed, 130 stopped; any other run would end in the same way again.
case "$code $time_is_up" in
  "1 yes" | "130 yes") most=20 ;;
  "1 ") most=3 ;;
  *) exit "$code" ;;
esac
if [ "${{SLURM_RESTART_COUNT:-0}}" -ge "$most" ]; then
  echo "evalcube: unfinished after $((most + 1)) starts of this job; submit again to go on" >&2
  exit "$code"
fi
scontrol requeue "$SLURM_JOB_ID" || exit "$code"
"""


def job_script(
    name: str, log: Path, command: Sequence[str], options: Sequence[str] = (), prologue: Sequence[str] = ()
) -> str:
    """Return the script of a job that runs `evalcube run`, and queues itself again while there is work left.

    Of two `options` of sbatch the later one holds, so those given here replace those that all jobs have. In `log`
    ``%j`` stands for the job's number.
    """
    common = [
        f"--job-name={shlex.quote(name)}",
        f"--output={shlex.quote(str(log))}",
        f"--chdir={shlex.quote(str(Path.cwd()))}",
        "--open-mode=append",
        "--requeue",
        "--signal=B:USR1@120",
    ]
    return _SCRIPT.format(
        options="\n".join(f"#SBATCH {option}" for option in (*common, *options)),
        prologue="\n".join(prologue),
        command=shlex.join(command),
    )


def submit(script: Path) -> int:
    """Submit a script to Slurm; return the number of its job."""
    try:
        # A list, no shell: the script's path may have any characters in it.
        process = subprocess.run(
            ["sbatch", "--parsable", str(script)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise ClusterError(
            "`sbatch` is not on this machine. Submit from a login node of the cluster, or load its module"
        ) from None
    except subprocess.TimeoutExpired:
        raise ClusterError(
            f"`sbatch` has not answered for {_SECONDS:g} s. Look for the job with `squeue --me`"
        ) from None
    # Site wrappers print greetings before it, and a federation adds `;cluster` behind it.
    number = re.match(r"\d+", process.stdout.strip().rpartition("\n")[2])
    if process.returncode or number is None:
        answer = printable(process.stderr or process.stdout) or f"exit code {process.returncode}"
        raise ClusterError(f"sbatch refused the job of {script}: {answer}")
    return int(number[0])


def printable(text: str, longest: int = _LONGEST) -> str:
    """Return the output of another program as one line that a terminal may show."""
    line = "; ".join(part.strip() for part in text.splitlines() if part.strip())
    line = "".join(character if character.isprintable() else "?" for character in line)
    return line if len(line) <= longest else f"{line[:longest]}..."
