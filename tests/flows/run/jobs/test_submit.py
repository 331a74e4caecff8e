"""Submitting on a real Slurm of one node, and over an ssh that stays here."""

import re
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from evalcube.flows.run.jobs.chain import Chain
from tests import waiting
from tests.deploy.clusters.slurm.slurm_node import slurm_node
from tests.flows.support import own_process, refused, simulator_stats, sweep_config, write_config

ROOT = str(Path(__file__).parents[4])
wait_until = partial(waiting.wait_until, pause=0.3)  # each look at the queue starts a program


@pytest.fixture(scope="module")
def node():
    with slurm_node() as found:
        yield found


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PYTHONPATH", ROOT)


@pytest.fixture
def slurm(node, monkeypatch):
    for name, value in node.environment.items():
        monkeypatch.setenv(name, value)
    node.wait_until_empty()
    return node


def submitted(tmp_path, simulator, *, latency=0.0, cluster=None, **changes):
    config = sweep_config(tmp_path, simulator.base_url, **changes)
    for model in config["models"]:
        model["simulate"]["latency"] = latency
    return {**config, "cluster": {"slurm": {"memory": "1G", **(cluster or {})}}}


def chains(folder):
    return {path.parent.name: Chain.read(path) for path in folder.glob("slurm-logs/*/*/chain.json")}


def is_attempt(words, folder):
    return "attempt" in (words or ()) and any(word.startswith(str(folder)) for word in words)


def processes_of(folder):
    """What goes on for the jobs of a folder: it would ask on in the tests that follow."""
    found = [one.info["cmdline"] or () for one in psutil.process_iter(["cmdline"])]
    return [words for words in found if any(word.startswith(f"{folder}/") for word in words)]


@pytest.mark.integration
def test_submit__a_job_for_each_model_and_one_cube_in_the_end(tmp_path, simulator, slurm):
    config = write_config(tmp_path, submitted(tmp_path, simulator, trials=4, models=("alpha", "beta")))

    code, output, errors = own_process("submit", config, cwd=tmp_path)

    assert code == 0, errors
    assert re.search(r"submitted as (evalcube-test-[0-9a-f]{6}): alpha is job \d+, beta is job \d+", output)
    cube = tmp_path / "cube.zarr"
    wait_until(cube.exists)
    slurm.wait_until_empty()
    found = chains(tmp_path)
    assert {name: chain.complete for name, chain in found.items()} == {"alpha": True, "beta": True}
    code, output, _ = own_process("status", cube, cwd=tmp_path)
    assert "alpha: complete" in output
    assert "beta: complete" in output
    sent = simulator_stats(simulator)["requests"]
    code, output, errors = own_process("run", config, "--cluster", "local", "--quiet", cwd=tmp_path)
    assert code == 0, errors
    assert simulator_stats(simulator)["requests"] == sent  # the merged cube is that of the config


@pytest.mark.integration
def test_submit__a_job_that_is_killed_is_followed_by_one_that_goes_on_and_scancel_ends_the_chain(
    tmp_path, simulator, slurm
):
    # Enough for minutes: it is never complete.
    settings = submitted(tmp_path, simulator, latency=1.0, trials=2000)
    config = write_config(tmp_path, settings)
    assert own_process("submit", config, cwd=tmp_path)[0] == 0
    chain = wait_until(lambda: [one for one in chains(tmp_path).values() if one.attempts])[0]
    first = chain.attempts[0].job
    wait_until(lambda: simulator_stats(simulator)["requests"] > 20)
    wait_until(lambda: slurm.jobs().get(first + 1) == "PENDING")

    # Not with scancel, after which a job counts as cancelled.
    # Whatever it is about to start still has its name for a moment.
    for process in psutil.process_iter(["cmdline"]):
        if is_attempt(process.info["cmdline"], tmp_path):
            with suppress(psutil.NoSuchProcess):
                process.kill()
    wait_until(lambda: slurm.jobs().get(first + 1) == "RUNNING")
    chain = wait_until(lambda: [one for one in chains(tmp_path).values() if len(one.attempts) == 2])[0]
    before = simulator_stats(simulator)["requests"]
    wait_until(lambda: simulator_stats(simulator)["requests"] > before)
    third = wait_until(lambda: [job for job, state in slurm.jobs().items() if state == "PENDING"])[0]

    slurm.command("scancel", str(first + 1))
    slurm.wait_until_empty()

    [chain] = chains(tmp_path).values()
    assert chain.stopped == f"job {first + 1} was cancelled"
    assert len(chain.attempts) == 2
    assert third > first + 1
    wait_until(lambda: not processes_of(tmp_path))


@pytest.mark.integration
@pytest.mark.parametrize(("partition", "options"), [("cancel", []), ("requeue", ["--requeue"])])
def test_submit__a_job_that_is_preempted_is_followed_and_counts_as_no_failure(
    tmp_path, simulator, slurm, partition, options
):
    cluster = {"partition": partition, "options": options}
    settings = submitted(tmp_path, simulator, latency=1.0, trials=2000, cluster=cluster)
    assert own_process("submit", write_config(tmp_path, settings), cwd=tmp_path)[0] == 0
    chain = wait_until(lambda: [one for one in chains(tmp_path).values() if one.attempts])[0]
    first = chain.attempts[0].job
    wait_until(lambda: simulator_stats(simulator)["requests"] > 20)
    wait_until(lambda: slurm.jobs().get(first + 1) == "PENDING")

    slurm.preempt()
    if options:
        wait_until(lambda: slurm.jobs().get(first) == "PENDING")
        slurm.command("scontrol", "update", f"jobid={first}", "starttime=now")  # Slurm would wait for minutes
    chain = wait_until(lambda: [one for one in chains(tmp_path).values() if len(one.attempts) == 2])[0]

    assert [one.job for one in chain.attempts] == [first, first if options else first + 1]
    assert (chain.attempts[0].ending, chain.retries, chain.stopped) == ("time", 1, "")  # one is under way
    before = simulator_stats(simulator)["requests"]
    wait_until(lambda: simulator_stats(simulator)["requests"] > before)
    assert own_process("stop", "cube.zarr", cwd=tmp_path)[0] == 0
    slurm.wait_until_empty()
    wait_until(lambda: not processes_of(tmp_path))


@pytest.mark.integration
@pytest.mark.usefixtures("slurm")
def test_submit__a_job_whose_prologue_fails_is_tried_again(tmp_path, simulator):
    been = tmp_path / "been"
    cluster = {"prologue": [f"if [ ! -e {been} ]; then touch {been}; module load nothing; fi"]}
    settings = submitted(tmp_path, simulator, trials=4, cluster=cluster)

    assert own_process("submit", write_config(tmp_path, settings), cwd=tmp_path)[0] == 0

    chain = wait_until(lambda: [one for one in chains(tmp_path).values() if one.complete])[0]
    assert [one.ending for one in chain.attempts] == ["unbegun", "complete"]
    [log] = tmp_path.glob(f"slurm-logs/*/*/{chain.attempts[0].job}.log")
    assert f"job {chain.attempts[1].job} tries again" in log.read_text()


@pytest.mark.integration
def test_stop__ends_all_jobs_of_a_submission(tmp_path, simulator, slurm):
    config = write_config(
        tmp_path, submitted(tmp_path, simulator, cluster={"options": ["--hold"]}, models=("a", "b"))
    )
    assert own_process("submit", config, cwd=tmp_path)[0] == 0
    assert len(slurm.jobs()) == 2

    code, output, errors = own_process("stop", "cube.zarr", cwd=tmp_path)

    assert code == 0, errors
    assert "2 jobs ended" in output
    slurm.wait_until_empty()
    assert {chain.stopped for chain in chains(tmp_path).values()} == {"cancelled"}


@pytest.mark.cluster
def test_submit__dry_run_prints_everything_and_writes_nothing(tmp_path, simulator):
    config = write_config(tmp_path, submitted(tmp_path, simulator, models=("alpha", "beta")))
    before = sorted(tmp_path.rglob("*"))

    code, output, errors = own_process("submit", config, "--dry-run", cwd=tmp_path)

    assert code == 0, errors
    assert "2 chains of jobs, each job 01:00:00, at most 12 jobs" in output
    assert output.count("#SBATCH --signal=B:TERM@120") == 2
    assert f"evalcube merge {tmp_path}/cube.zarr" in output
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.cluster
def test_submit__without_slurm_says_so(tmp_path, simulator, monkeypatch):
    config = write_config(tmp_path, submitted(tmp_path, simulator))
    monkeypatch.setenv("PATH", str(tmp_path))
    refused(own_process("submit", config, cwd=tmp_path), "`sbatch` is not on this machine")
    refused(
        own_process("submit", config, "--cluster", "local", cwd=tmp_path),
        "to a running Dask cluster or to Slurm",
    )
