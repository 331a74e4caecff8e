"""The scripts of Slurm's jobs."""

import shlex

import pytest

from evalcube.deploy.slurm import JobSettings, clock, sbatch_header

pytestmark = pytest.mark.cluster  # bash reads the scripts
ODD = "/data/my cubes/'x' $(touch pwned); 50%"


def options(script):
    """The options in a script's header, read as sbatch does: words of a shell."""
    lines = [line.removeprefix("#SBATCH ") for line in script.splitlines() if line.startswith("#SBATCH ")]
    return dict(word.partition("=")[::2] for line in lines for word in shlex.split(line))


def test_sbatch_header__leaves_out_what_is_not_asked_for():
    found = options(
        "\n".join(sbatch_header("n", JobSettings(walltime=5400, account="lab"), ["--signal=B:TERM@120"]))
    )

    assert found["--time"] == clock(5400) == "01:30:00"
    assert found["--account"] == "lab"
    assert "--partition" not in found
    assert found["--signal"] == "B:TERM@120"
    assert "--no-requeue" in found
