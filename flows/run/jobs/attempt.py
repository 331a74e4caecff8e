"""What one job of a chain does: queue its successor, run its part as far as time allows, and say how it ended."""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from evalcube.deploy import slurm
from evalcube.deploy.errors import ClusterError
from evalcube.flows.run.jobs.chain import Chain, Ending

_COMPLETE, _STOPPED = 0, 130
_SET_PARENT_DEATH_SIGNAL = 1
"""Of Linux's prctl(2)."""
_AGAIN = 75
"""Exit code of a job that wants a successor; sysexits.h calls it a temporary failure."""


def attempt(folder: Path, job: int, *, workers: int, container: str = "", unbegun: Sequence[int] = ()) -> int:
    """Run a part as far as one job gets; returns the job's exit code, other than 0 if there is to be another.

    Parameters
    ----------
    folder
        Of the part: its config, script and chain.
    job
        This job's number.
    workers
        Worker processes beside the driver.
    container
        Command that starts a container; the run is in it, and what talks to Slurm is not.
    unbegun
        Numbers of the jobs just before this one that ended before their run could start.
    """
    path = folder / "chain.json"
    chain = Chain.read(path)
    last = chain.attempts[-1].job if chain.attempts else None
    # Given back to the queue, under its number: a site's preemption may do that, where the cluster's options allow it.
    again = last == job
    parent = "PREEMPTED" if again else slurm.state_of(last) if last is not None else None
    chain = chain.before_next(parent, unbegun)
    if chain.stopped:
        chain.write(path)
        _say(f"nothing is done: {chain.stopped}")
        return _COMPLETE
    chain = chain.begun(job)
    chain.write(path)
    successor = (_waiting(job) if again else None) or _successor(chain, folder, job)
    ending, code = _run(folder, job, workers, shlex.split(container), chain.walltime)
    chain = replace(chain.ended(ending, code), stopped=_stopped_meanwhile(path))
    if ending == "cancelled" and not chain.stopped:
        chain = replace(chain, stopped=f"job {job} was cancelled")
    chain.write(path)
    if ending in ("", "time", "failed") and successor is not None and not chain.stopped:
        _say(f"ends ({ending or 'by Slurm'}); job {successor} goes on, unless this one was cancelled")
        return _AGAIN
    if successor is not None:
        with suppress(ClusterError):
            slurm.cancel([successor])
    if ending == "complete":
        _finish(folder.parent)
        return _COMPLETE
    _say(f"ends ({chain.stopped or ending or 'by Slurm'}), and no job goes on")
    return code or _AGAIN


def _stopped_meanwhile(path: Path) -> str:
    """Why somebody ended the chain while a job ran; empty if nobody did."""
    try:
        return Chain.read(path).stopped
    except (OSError, ValueError):
        return ""


def _successor(chain: Chain, folder: Path, job: int) -> int | None:
    """The number of the job that begins if this one does not complete; None if there is to be none."""
    if not chain.has_room:
        return None
    try:
        script = (folder / "job.sh").read_text()
        # Queued at the start: whatever ends this job, its successor is in the queue.
        return slurm.submit(script, [f"--dependency=afternotok:{job}", "--kill-on-invalid-dep=yes"])
    except (OSError, ClusterError) as error:
        _say(f"no further job will go on where this one ends: {error}")
        return None


def _waiting(job: int) -> int | None:
    """The successor that a job queued before it was given back to the queue; None if there is none."""
    with suppress(ClusterError):
        states = slurm.live_jobs(os.environ.get("SLURM_JOB_NAME", ""))
        return next((one for one, state in states.items() if state == "PENDING" and one != job), None)
    return None


def _run(
    folder: Path, job: int, workers: int, container: Sequence[str], walltime: float
) -> tuple[Ending, int]:
    """Run the part's sweep in a process of its own, so that its end, whatever it is, leaves somebody who notes it."""
    python = [sys.executable] if not container else ["python3"]
    words = [*container, *python, "-P", "-m", "evalcube", "run", str(folder / "config.yaml")]
    words += ["--workers", str(workers), "--quiet", "--log", str(folder / "events.jsonl")]
    # A run that another one keeps waiting did not fail: it waits as long as its job lasts, and its successor goes on.
    words += ["--wait", str(int(walltime))]
    asked_to_end = told = False
    process: subprocess.Popen[bytes] | None = None

    def end(number: int, frame: object) -> None:  # noqa: ARG001 - the interface of handlers
        nonlocal asked_to_end, told
        if not asked_to_end:
            asked_to_end = True
            if process is not None:
                told = True
                process.send_signal(signal.SIGTERM)

    # Before there is a process: a signal that came in between would end this one, and not the run.
    signal.signal(signal.SIGTERM, end)
    process = subprocess.Popen(words, preexec_fn=_end_with_parent)  # noqa: PLW1509 - there is one thread here
    if asked_to_end and not told:  # twice would mean: at once
        process.send_signal(signal.SIGTERM)
    code = process.wait()
    if code == _COMPLETE:
        return "complete", code
    if asked_to_end:
        # Before its walltime a job runs while it gets the signal. One that Slurm ends is not running any more, and
        # whether that was a cancellation may be known only when it is over: to its successor.
        state = slurm.state_of(job) or "RUNNING"
        if state.startswith("CANCELLED"):
            return "cancelled", code
        return ("time" if state == "RUNNING" else ""), code
    return ("bound" if code == _STOPPED else "failed"), code


def _end_with_parent() -> None:
    """In the run, before it is one: have it end in good order when this process is killed and its job is over.

    Not every site's Slurm finds processes whose parent is gone, and the next job waits for this one's lease.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)


def _finish(folder: Path) -> None:
    """Merge the parts' cubes if this was the last one to be complete."""
    document = json.loads((folder / "submission.json").read_bytes())
    cube, parts = document["cube"], document["parts"]
    if len(parts) < 2:
        return
    chains = [Chain.read(folder / name / "chain.json") for name in parts]
    if not all(chain.complete for chain in chains):
        _say(f"complete; {sum(not chain.complete for chain in chains)} other parts are not")
        return
    try:
        # Of two parts that end at once one merges.
        os.close(os.open(folder / "merge.lock", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    words = [sys.executable, "-P", "-m", "evalcube", "merge", cube, *parts.values()]
    if subprocess.call(words) != 0:
        (folder / "merge.lock").unlink(missing_ok=True)
        _say(f"complete, but not merged; do it with: evalcube merge {shlex.join([cube, *parts.values()])}")


def _say(text: str) -> None:
    sys.stderr.write(f"evalcube: {text}\n")
    sys.stderr.flush()
