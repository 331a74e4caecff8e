"""The scripts of Slurm's jobs."""

import shlex
import subprocess

import pytest

from evalcube.deploy.clusters.slurm.script import JobSettings, clock, retirement, sbatch_header, worker_script

pytestmark = pytest.mark.cluster  # bash reads the scripts
ODD = "/data/my cubes/'x' $(touch pwned); 50%"


def options(script):
    """The options in a script's header, read as sbatch does: words of a shell."""
    lines = [line.removeprefix("#SBATCH ") for line in script.splitlines() if line.startswith("#SBATCH ")]
    return dict(word.partition("=")[::2] for line in lines for word in shlex.split(line))


def test_worker_script__quotes_what_it_is_given():
    settings = JobSettings(logs=ODD, options=("--constraint=cpu",), memory="2G", cores=4)

    script = worker_script("evalcube-x-1", "tls://10.0.0.1:5", settings, python=f"{ODD}/python")

    found = options(script)
    assert found["--output"] == f"{ODD.replace('%', '%%')}/%j.log"
    assert found["--constraint"] == "cpu"
    assert found["--job-name"] == "evalcube-x-1"
    assert f"exec {shlex.quote(ODD + '/python')} -P -m distributed.cli.dask_worker tls://10.0.0.1:5" in script
    assert "--memory-limit 536870912" in script
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0


def test_worker_script__names_variables_and_holds_no_value(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-secret-123")

    script = worker_script("n", "tls://h:1", JobSettings(environment=("MY_KEY",)))

    assert "MY_KEY" in options(script)["--export"].split(",")
    assert "sk-secret" not in script


def test_worker_script__a_prologue_that_fails_ends_the_job_and_is_named(tmp_path):
    script = worker_script(
        "n", "tls://h:1", JobSettings(prologue=("false && true", "module load x")), python="echo"
    )
    done = subprocess.run(["bash"], input=script, text=True, capture_output=True, check=False, cwd=tmp_path)

    assert done.returncode != 0
    assert "the job ends, as this failed: module load x" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("walltime", [60, 90, 600, 3600, 86_400])
def test_worker_script__workers_retire_before_the_walltime(walltime):
    margin, stagger = retirement(walltime)
    environment = {"SLURM_JOB_NAME": "n", "SLURM_JOB_ID": "7"}
    script = worker_script("n", "tls://h:1", JobSettings(walltime=walltime), python="echo")

    said = subprocess.run(
        ["bash"], input=script, text=True, capture_output=True, check=True, env=environment
    ).stdout

    words = said.split()
    lifetime = int(words[words.index("--lifetime") + 1].rstrip("s"))
    assert walltime - margin - stagger - 20 <= lifetime <= walltime - margin - stagger
    assert lifetime + stagger < walltime
    assert words[words.index("--name") + 1] == "n.7"


def test_sbatch_header__leaves_out_what_is_not_asked_for():
    found = options(
        "\n".join(sbatch_header("n", JobSettings(walltime=5400, account="lab"), ["--signal=B:TERM@120"]))
    )

    assert found["--time"] == clock(5400) == "01:30:00"
    assert found["--account"] == "lab"
    assert "--partition" not in found
    assert found["--signal"] == "B:TERM@120"
    assert "--no-requeue" in found
