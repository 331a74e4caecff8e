"""The script of a chain's jobs, which tries again where a job ends before there is a run to speak of."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path

from evalcube.deploy.clusters.slurm.script import CAREFUL, JobSettings, sbatch_header
from evalcube.flows.config.cluster import SlurmSection
from evalcube.flows.submit.chain import MOST_RETRIES

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
