"""Sweeps submitted to a real Slurm of one node, and the scripts of their jobs."""

import re
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests import waiting
from tests.deploy.clusters.slurm.slurm_node import slurm_node
from tests.flows.support import evalcube, own_process, refused, simulator_stats, sweep_config, write_config

ROOT = str(Path(__file__).parents[4])
wait_until = partial(waiting.wait_until, pause=0.3)  # each look at the queue starts a program
CONNECTIONS = 8


@pytest.fixture(scope="module")
def node():
    with slurm_node() as running:
        yield running


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


def sweep(tmp_path, simulator, *, latency=1.0, options=(), prologue=(), **changes):
    config = sweep_config(tmp_path, simulator.base_url, **changes)
    for model in config["models"]:
        model["simulate"]["latency"] = latency
        model["limits"]["connections"] = CONNECTIONS
    section = {"options": ["--mem=1G", *options], "prologue": list(prologue)}
    return write_config(tmp_path, {**config, "cluster": {"slurm": section}})


def submit(tmp_path, config, *options):
    code, output, errors = own_process("submit", config, *options, cwd=tmp_path)
    assert code == 0, errors
    return int(re.match(r"job (\d+), whose script is", output)[1])


def hurry(slurm, job):
    """Begin a job that was queued again: Slurm itself would wait for minutes."""
    wait_until(lambda: slurm.jobs().get(job) == "PENDING", told=slurm.jobs)
    slurm.command("scontrol", "update", f"jobid={job}", "starttime=now")


def shown(slurm, job):
    return slurm.command("scontrol", "show", "job", "--oneliner", str(job))


def processes_of(folder):
    """What goes on for the jobs of a folder: it would ask on in the tests that follow."""
    commands = [process.info["cmdline"] or () for process in psutil.process_iter(["cmdline"])]
    return [words for words in commands if any(word.startswith(f"{folder}/") for word in words)]


@pytest.mark.integration
def test_job__longer_than_its_time_limit_is_requeued_and_completes_with_every_answer_paid_once(
    tmp_path, simulator, slurm
):
    config = sweep(tmp_path, simulator, latency=3.0, trials=60, options=["--time=2", "--signal=B:USR1@30"])

    job = submit(tmp_path, config)
    while job in slurm.jobs():
        wait_until(lambda: slurm.jobs().get(job, "PENDING") == "PENDING")
        if job in slurm.jobs():
            hurry(slurm, job)
            wait_until(lambda: slurm.jobs().get(job) != "PENDING")

    assert "Run the same command again to resume" in (tmp_path / f"cube-{job}.log").read_text()
    assert re.search("JobState=COMPLETED .*Restarts=[1-9]", shown(slurm, job))
    counts = simulator_stats(simulator)
    assert counts["requests"] == counts["distinct"] > 0
    code, output, errors = own_process("run", config, "--cluster", "local", "--quiet", cwd=tmp_path)
    assert (code, simulator_stats(simulator)["requests"]) == (0, counts["requests"]), errors
    assert "300 of 300 trials done" in output


@pytest.mark.integration
@pytest.mark.parametrize("time_is_up", [False, True])
def test_job__ends_for_good_by_scancel(tmp_path, simulator, slurm, time_is_up):
    job = submit(tmp_path, sweep(tmp_path, simulator, latency=20.0, trials=2000))
    wait_until(lambda: simulator_stats(simulator)["requests"] >= CONNECTIONS)
    if time_is_up:
        slurm.command("scancel", "--batch", "--signal=USR1", str(job))

    slurm.command("scancel", str(job))

    slurm.wait_until_empty()
    assert "JobState=CANCELLED" in shown(slurm, job)
    wait_until(lambda: not processes_of(tmp_path))


@pytest.mark.integration
def test_job__a_run_that_is_refused_is_not_requeued(tmp_path, simulator, slurm):
    job = submit(tmp_path, sweep(tmp_path, simulator, prologue=[f"rm {tmp_path}/sweep.yaml"]))
    slurm.wait_until_empty()

    assert re.search("JobState=FAILED .*Restarts=0 .*ExitCode=2:0", shown(slurm, job))
    assert "no such file" in (tmp_path / f"cube-{job}.log").read_text()


@pytest.mark.integration
def test_job__that_is_preempted_goes_on_and_a_stop_ends_it(tmp_path, simulator, slurm):
    job = submit(tmp_path, sweep(tmp_path, simulator, trials=2000, options=["--partition=requeue"]))
    wait_until(lambda: simulator_stats(simulator)["requests"] > 20)

    slurm.preempt()
    hurry(slurm, job)
    wait_until(lambda: slurm.jobs().get(job) == "RUNNING")
    before = simulator_stats(simulator)["requests"]
    wait_until(lambda: simulator_stats(simulator)["requests"] > before + 2 * CONNECTIONS)
    assert own_process("stop", "cube.zarr", cwd=tmp_path)[0] == 0

    slurm.wait_until_empty()
    assert "ExitCode=130:0" in shown(slurm, job)


@pytest.mark.integration
def test_submit__a_job_for_each_model_with_a_cube_of_its_own(tmp_path, simulator, slurm):
    config = sweep(tmp_path, simulator, latency=0.0, trials=4, models=("alpha", "beta"))

    for model in ("alpha", "beta"):
        submit(tmp_path, config, "--only", f"model={model}", "--cube", f"{model}.zarr")
    slurm.wait_until_empty()

    code, _, errors = own_process("merge", "cube.zarr", "alpha.zarr", "beta.zarr", cwd=tmp_path)
    assert code == 0, errors
    sent = simulator_stats(simulator)["requests"]
    code, _, errors = own_process("run", config, "--cluster", "local", "--quiet", cwd=tmp_path)
    assert code == 0, errors
    assert simulator_stats(simulator)["requests"] == sent


def test_submit__dry_run_prints_the_script_and_writes_nothing(tmp_path, simulator):
    config = sweep(tmp_path, simulator, options=["--gres=gpu:1"], prologue=["module load x"])
    before = sorted(tmp_path.rglob("*"))

    code, output, errors = evalcube("submit", config, "--dry-run", "--only", "model=alpha", cwd=tmp_path)

    assert code == 0, errors
    marks = ["#SBATCH --signal=B:USR1@120", "#SBATCH --gres=gpu:1", "module load x", "--only model=alpha"]
    assert sorted(marks, key=output.index) == marks
    assert sorted(tmp_path.rglob("*")) == before


def test_submit__without_slurm_says_so(tmp_path, simulator, monkeypatch):
    config = sweep(tmp_path, simulator)
    monkeypatch.setenv("PATH", str(tmp_path))

    refused(evalcube("submit", config, cwd=tmp_path), "`sbatch` is not on this machine")
    refused(
        evalcube("submit", config, "--cluster", "local", cwd=tmp_path),
        "to a running Dask cluster or to Slurm",
    )
