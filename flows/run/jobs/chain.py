"""The chain of jobs that bring one part to its end: what happened so far, and whether there is to be another job."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evalcube.deploy.slurm import CAREFUL, JobSettings, sbatch_header
from evalcube.storage.files import replace_synced

if TYPE_CHECKING:
    from evalcube.flows.config.cluster import SlurmSection

MOST_RETRIES, MOST_JOBS = 3, 12
_GO_ON = ("TIMEOUT", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "DEADLINE")
"""States in which Slurm took a job away that would have gone on."""

Ending = Literal["", "complete", "time", "bound", "failed", "cancelled", "unbegun"]
"""How a job ended, by its own account: not at all (it was killed), with the sweep complete, with its time used up,
because the run was stopped (at its bound of spending, or by an order), with an error, because somebody cancelled it,
before its run could start."""


@dataclass(frozen=True)
class Attempt:
    """One job of a chain."""

    job: int
    ending: Ending = ""
    code: int | None = None
    """Exit code of the run."""


@dataclass(frozen=True)
class Chain:
    """The jobs of one part so far."""

    walltime: float
    """Seconds of each job."""
    attempts: tuple[Attempt, ...] = ()
    stopped: str = ""
    """Why there is no further job; empty while there may be one."""

    @property
    def complete(self) -> bool:
        """Whether the part is done."""
        return bool(self.attempts) and self.attempts[-1].ending == "complete"

    @property
    def retries(self) -> int:
        """Jobs that failed or were killed for a reason that does not explain it."""
        return sum(attempt.ending in ("", "failed", "unbegun") for attempt in self.attempts)

    def before_next(self, parent: str | None, unbegun: Sequence[int] = ()) -> Chain:
        """The chain when its next job begins: with the reason in `stopped` if that must do nothing.

        Parameters
        ----------
        parent
            Slurm's state of the last job, such as TIMEOUT; None if there was none, or nobody knows it any more.
        unbegun
            Numbers of jobs since then that ended before their run could start.
        """
        if self.stopped:
            return self
        chain = self._after_last(parent)
        known = {attempt.job for attempt in self.attempts}
        more = (Attempt(job, "unbegun") for job in unbegun if job not in known)
        chain = replace(chain, attempts=(*chain.attempts, *more))
        if chain.stopped or not chain.attempts:
            return chain
        if chain.retries > MOST_RETRIES:
            last = chain.attempts[-1].job
            return replace(chain, stopped=f"{chain.retries} jobs failed; the last one was {last}")
        if not chain.has_room:
            return replace(chain, stopped=f"its {MOST_JOBS} jobs are used up: submit again to go on")
        return chain

    def _after_last(self, parent: str | None) -> Chain:
        """The chain with what is known of its last job, and stopped if that was to be the last."""
        if not self.attempts:
            return self
        last = self.attempts[-1]
        if last.ending == "complete":
            return replace(self, stopped="complete")
        if last.ending == "bound":
            return replace(self, stopped="the run was stopped, by its bound of spending or an order")
        if last.ending == "cancelled" or (parent or "").startswith("CANCELLED"):
            return replace(self, stopped=f"job {last.job} was cancelled")
        if parent in _GO_ON:
            # Killed, but not by a fault of its own.
            return replace(self, attempts=(*self.attempts[:-1], replace(last, ending="time")))
        return self

    @property
    def has_room(self) -> bool:
        """Whether there may be another job."""
        return sum(attempt.ending != "unbegun" for attempt in self.attempts) < MOST_JOBS

    def begun(self, job: int) -> Chain:
        """The chain with one more job, which has begun."""
        return replace(self, attempts=(*self.attempts, Attempt(job)))

    def ended(self, ending: Ending, code: int | None) -> Chain:
        """The chain whose last job has ended."""
        last = replace(self.attempts[-1], ending=ending, code=code)
        return replace(self, attempts=(*self.attempts[:-1], last))

    def write(self, path: Path) -> None:
        """Keep it in a file."""
        replace_synced(path, json.dumps(asdict(self)).encode())

    @staticmethod
    def read(path: Path) -> Chain:
        """Read what `write` kept.

        Raises
        ------
        OSError
            The file cannot be read.
        ValueError
            It holds something else.
        """
        try:
            document: Mapping[str, Any] = json.loads(path.read_bytes())
            attempts = tuple(Attempt(**attempt) for attempt in document["attempts"])
            return Chain(**{**document, "attempts": attempts})
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"{path}: no chain of jobs") from error


@dataclass(frozen=True)
class Outlook:
    """What may be said of a part."""

    part: str
    jobs: Mapping[int, str] | None = field(default_factory=dict)
    """Those in the queue or running: number -> state; None where Slurm does not answer."""
    chain: Chain | None = None
    done: tuple[int, int] | None = None
    """Trials that are done, and all of them; None where there is no cube yet."""
    unbegun: tuple[int, ...] = ()
    """Jobs since the last attempt whose run could not start, as they have a log and are not in the chain."""
    log: tuple[str, ...] = ()
    """The last lines of the newest job's log."""

    @property
    def _failed(self) -> bool:
        """Whether the newest job's log says why no job goes on."""
        if self.chain is None or self.chain.complete or self.jobs is None or self.jobs:
            return False
        attempts = self.chain.attempts
        return bool(self.unbegun) or (bool(attempts) and attempts[-1].ending in ("failed", "unbegun"))

    def __str__(self) -> str:
        begun = len(self.chain.attempts) if self.chain is not None else 0
        more = [f"{self.done[0]:,} of {self.done[1]:,} trials"] if self.done is not None else []
        more += [f"{begun} jobs so far"] if begun > 1 else []
        line = f"{self.part}: {self._told()}" + (f" ({', '.join(more)})" if more else "")
        return "\n".join([line, *(f"  | {one}" for one in (self.log if self._failed else ()))])

    def _told(self) -> str:
        chain = self.chain
        if chain is None:
            return "nothing is known of its jobs"
        if chain.complete:
            return "complete"
        if self.jobs:
            return ", ".join(f"job {number} {state}" for number, state in sorted(self.jobs.items()))
        if chain.stopped:
            return f"ended: {chain.stopped}"
        if self.jobs is None:
            return "Slurm does not answer here, so that it is not known whether a job goes on"
        if self.unbegun:
            return f"job {self.unbegun[-1]} ended before its run could start, and no job goes on"
        if not chain.attempts:
            return "no job is in the queue, and none has begun"
        last = chain.attempts[-1]
        return f"no job is in the queue; the last one, {last.job}, ended: {last.ending or 'killed'}"


_NOTICE_SECONDS = 120
"""Before the walltime, in which a run ends in good order."""
_PAUSE_SECONDS = 30
"""Before the second further try, and twice that before the third: what is missing may come back."""

_TRY_AGAIN = """\
# A line that fails before the run can start ends the job, and another one tries again: {most} in all, with those whose
# run failed. It gets the numbers of those before it as arguments, as the folder may be what is missing.
ended=("$@")
try_again() {{
  local code=$? number failed
  trap - ERR EXIT
  set +e
  if [ "$code" -ge 128 ]; then return; fi  # by a signal: it was cancelled, or its time was up
  if [ -r {chain} ] && ! grep -q '"stopped": ""' {chain}; then return; fi
  failed=$(grep -oE '"ending": "(failed|unbegun)?"' {chain} 2>/dev/null | wc -l)
  if [ $((failed + ${{#ended[@]}})) -ge {most} ]; then
    echo "evalcube: the job ended before its run could start, as others did before it, and no job follows" >&2
    return
  fi
  unset "${{!SBATCH_@}}"  # they would go before the lines at the head of this script
  number=$(sbatch --parsable "--dependency=afternotok:$SLURM_JOB_ID" --kill-on-invalid-dep=yes \
    "--begin=now+$(({pause} * ${{#ended[@]}}))" "$0" "${{ended[@]}}" "$SLURM_JOB_ID") || return
  echo "evalcube: the job ended before its run could start; job $number tries again" >&2
}}
trap try_again EXIT
trap 'trap - EXIT; exit 143' TERM"""


def job_script(name: str, part: str, place: Path, section: SlurmSection, job: JobSettings) -> str:
    """The script of the jobs of a part.

    Parameters
    ----------
    name
        Of the submission.
    part
        Of the part.
    place
        Folder of the part.
    section
        The cluster's description.
    job
        What a job asks for; its logs are in the folder of the part.
    """
    notice = int(min(_NOTICE_SECONDS, section.walltime / 4))
    # Only to the job's own process, which stops the run in good order; its children would get it twice.
    more = [f"--signal=B:TERM@{notice}", f"--chdir={shlex.quote(str(Path.cwd()))}"]
    header = sbatch_header(f"{name}-{part}", replace(job, logs=str(place)), more)
    chain = shlex.quote(str(place / "chain.json"))
    again = _TRY_AGAIN.format(chain=chain, most=MOST_RETRIES, pause=_PAUSE_SECONDS)
    words = [section.python or sys.executable, "-P", "-m", "evalcube", "cluster", "attempt", str(place)]
    words += ["--workers", str(section.cores)]
    words += ["--container", section.container] if section.container else []
    # Looked for first: where `exec` fails, a shell has forgotten what it was to do then.
    run = [
        f"command -v {shlex.quote(words[0])} > /dev/null",
        f'exec {shlex.join(words)} --unbegun "${{ended[*]}}"',
    ]
    return "\n".join([*header, *CAREFUL, again, *section.prologue, *run]) + "\n"
