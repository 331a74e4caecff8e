"""The script of a chain's jobs, run by a shell, with an sbatch that writes down what it is told."""

import os
import subprocess
from dataclasses import replace

import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.run.jobs.chain import MOST_RETRIES, Chain
from evalcube.flows.run.jobs.prepare import place_of, prepare

pytestmark = pytest.mark.cluster


@pytest.fixture
def job(tmp_path):
    """Runs a job of a chain: (exit code, what sbatch was told, what it said)."""
    tools = tmp_path / "tools"
    tools.mkdir()
    told = tmp_path / "told"
    (tools / "sbatch").write_text(
        f'#!/bin/bash\nenv | grep ^SBATCH_\nprintf "%s\\n" "$@" >> {told}\necho 9\n'
    )
    (tools / "sbatch").chmod(0o755)

    def run(prologue, *ended, python="true", chain=None):
        config = {
            "cube": str(tmp_path / "all.zarr"),
            "cache": str(tmp_path / "cache"),
            "models": [{"name": "a", "endpoint": "sim:"}],
            "tasks": {"boolean": {"params": {"length": 4}}},
            "cluster": {"slurm": {"prologue": prologue, "python": python}},
        }
        settings = from_mapping(config)
        prepared = prepare(settings, place_of(settings))
        place = prepared.folder / "a"
        place.mkdir(parents=True)
        (chain or Chain(3600)).write(place / "chain.json")
        script = tmp_path / "slurm_script"
        script.write_text(prepared.scripts[0])
        told.write_text("")
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "SBATCH_PARTITION": "other"}
        done = subprocess.run(
            ["bash", script, *ended],
            env={**environment, "SLURM_JOB_ID": "7"}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, told.read_text().splitlines(), done.stderr

    return run


def test_job__whose_prologue_fails_is_followed_by_one_that_knows_of_it(job, tmp_path):
    code, told, said = job(["true", "module load nothing"], "5")

    assert code != 0
    assert told == [
        "--parsable", "--dependency=afternotok:7", "--kill-on-invalid-dep=yes", "--begin=now+30",
        str(tmp_path / "slurm_script"), "5", "7",
    ]  # fmt: skip
    assert "this failed: module load nothing" in said
    assert "job 9 tries again" in said


def test_job__whose_python_is_not_there_is_followed(job):
    code, told, said = job([], python="/nowhere/python")

    assert (code, told[-1]) == (1, "7")
    assert "this failed: command -v /nowhere/python" in said


@pytest.mark.parametrize(
    ("ended", "endings", "followed"),
    [
        (["4", "5"], [], True),
        (["4", "5", "6"], [], False),
        (["6"], ["failed"], True),
        (["6"], ["failed", "time", "unbegun"], False),
        ([], ["failed", "", "failed"], False),
    ],
)
def test_job__is_followed_as_often_as_a_chain_allows_failures(job, ended, endings, followed):
    chain = Chain(3600)
    for number, ending in enumerate(endings):
        chain = chain.begun(number).ended(ending, 1)

    code, told, said = job(["false"], *ended, chain=chain)

    assert MOST_RETRIES == 3
    assert (code, bool(told)) == (1, followed)
    assert ("no job follows" in said) is not followed


def test_job__that_is_cancelled_or_of_a_chain_that_ended_is_not_followed(job):
    assert job(["kill -TERM $$; sleep 1"])[1] == []
    assert job(["bash -c 'kill -TERM $$'"])[1] == []
    ended = replace(Chain(3600), stopped="cancelled")
    assert job(["false"], chain=ended)[1] == []


def test_job__that_begins_has_no_other_and_hands_the_numbers_on(job, tmp_path):
    echo = tmp_path / "python"
    echo.write_text('#!/bin/bash\necho "${*: -2}" >&2\nexit 75\n')
    echo.chmod(0o755)

    assert job([], "4", "5", python=str(echo)) == (75, [], "--unbegun 4 5\n")
