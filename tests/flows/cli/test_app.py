"""The command line as a user meets it: real processes, exit codes, one clear message for each mistake."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from evalcube.deploy.clusters import ExistingScheduler
from tests.flows.support import (
    command,
    evalcube,
    refused,
    reset,
    set_faults,
    simulator_stats,
    sweep_config,
    write_config,
)
from tests.waiting import PATIENCE, wait_until


@pytest.fixture(scope="module")
def finished(tmp_path_factory, _served):
    """A folder with a finished small sweep of two models."""
    reset(_served)
    folder = tmp_path_factory.mktemp("finished")
    config = sweep_config(folder, _served.base_url, models=("alpha", "beta"), cube="cube.zarr")
    path = write_config(folder, config)
    code, output, errors = evalcube("run", path, "--workers", 1, cwd=folder)
    assert code == 0, errors
    assert "80 of 80 trials done" in output
    assert "alpha" in output
    assert "accuracy" in output
    return folder


def _closed_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


BAD_CONFIGS = {
    "unknown field": ({"trails": 3}, ["sweep.yaml:", "trails", "Did you mean 'trials'?"]),
    "unknown task": ({"tasks": {"aritmetic": {"manifold": [{"points": [{"length": 3}]}]}}}, ["'arithmetic'"]),
    "parameter out of range": (
        {"tasks": {"arithmetic": {"manifold": [{"points": [{"length": 99}]}]}}},
        ["sweep.yaml:", "tasks.arithmetic.manifold[0].points[0].length", "99", "50"],
    ),
    "template that renders no message list": (
        {"templates": {"t": "just {{ prompt }}"}},
        ["sweep.yaml:", "templates.t"],
    ),
    "no trials": ({"trials": 0}, ["sweep.yaml:", "trials", "got 0"]),
}


@pytest.mark.parametrize("name", BAD_CONFIGS)
def test_run__bad_config_is_one_clear_message(name, tmp_path):
    changes, fragments = BAD_CONFIGS[name]
    write_config(tmp_path, sweep_config(tmp_path, "http://127.0.0.1:9/v1", **changes))

    refused(evalcube("run", "sweep.yaml", cwd=tmp_path), *fragments)

    assert not (tmp_path / "cube.zarr").exists()


def test_run__missing_file(tmp_path):
    refused(evalcube("run", "sweap.yaml", cwd=tmp_path), "sweap.yaml: no such file", "evalcube init")


def test_run__wrong_yaml(tmp_path):
    (tmp_path / "sweep.yaml").write_text("name: a\nmodels: [\n")

    refused(evalcube("run", "sweep.yaml", cwd=tmp_path), "sweep.yaml:")


def test_run__key_variable_not_set(tmp_path):
    config = sweep_config(tmp_path, "http://127.0.0.1:9/v1")
    config["models"] = [{"name": "m", "endpoint": "http://127.0.0.1:9/v1", "key_env": "NO_SUCH_KEY"}]
    write_config(tmp_path, config)

    refused(evalcube("run", "sweep.yaml", cwd=tmp_path), "models[m].key_env", "NO_SUCH_KEY")


def test_run__endpoint_refusing_connections_marks_transport_errors_and_resume_finishes(tmp_path, simulator):
    config = sweep_config(tmp_path, f"http://127.0.0.1:{_closed_port()}/v1")
    config["models"][0]["limits"]["retries"] = 1
    path = write_config(tmp_path, config)

    code, output, errors = evalcube("run", path, "--workers", 1, "--quiet", cwd=tmp_path)

    assert code == 1
    assert "0 of 40 trials done" in output
    assert re.search(r"40 trials: connect", errors)
    assert "same command again" in errors
    status = json.loads(evalcube("status", config["cube"], "--json", cwd=tmp_path)[1])
    assert status["models"][0]["transport"] == 40
    assert status["models"][0]["causes"] == {"connect": 40}
    config["models"][0]["endpoint"] = f"sim:{simulator.base_url}"
    write_config(tmp_path, config)
    code, output, _ = evalcube("run", path, "--workers", 1, "--quiet", cwd=tmp_path)
    assert (code, "40 of 40" in output) == (0, True)


def test_run__wrong_key_stops_the_model_with_few_requests(tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, trials=100)
    path = write_config(tmp_path, config)
    set_faults(simulator, [{"kind": "status", "status": 401}])

    code, _, errors = evalcube("run", path, "--workers", 1, "--quiet", cwd=tmp_path)

    assert code == 1
    assert "500 trials: http 401" in errors
    assert simulator_stats(simulator)["requests"] <= 8


def test_run__cube_of_another_config(finished):
    config = json.loads((finished / "sweep.yaml").read_text())
    write_config(finished, {**config, "seed": 1}, "other.yaml")

    refused(
        evalcube("run", "other.yaml", cwd=finished), "seed is 42 in the cube and 1 in the config", "--cube"
    )


def test_run__paths_that_cannot_be_written(tmp_path, simulator):
    path = write_config(tmp_path, sweep_config(tmp_path, simulator.base_url))
    (tmp_path / "file").write_text("")

    refused(evalcube("run", path, "--cube", tmp_path / "file" / "cube.zarr", cwd=tmp_path), "file")
    refused(evalcube("run", path, "--cache", tmp_path / "file" / "cache", cwd=tmp_path), "file")


def test_run__scheduler_unreachable(tmp_path, simulator, monkeypatch):
    monkeypatch.setattr(
        "evalcube.flows.run.cluster.ExistingScheduler", partial(ExistingScheduler, timeout=0.5)
    )
    path = write_config(tmp_path, sweep_config(tmp_path, simulator.base_url))
    address = f"tcp://127.0.0.1:{_closed_port()}"

    refused(evalcube("run", path, "--scheduler", address, cwd=tmp_path), address, "dask scheduler")


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, pytest.param(signal.SIGHUP, marks=pytest.mark.integration)],
    ids=["ctrl-c", "terminal closed"],
)
def test_run__a_signal_stops_cleanly_and_says_how_to_resume(number, tmp_path, simulator):
    config = sweep_config(tmp_path, simulator.base_url, trials=40)
    config["models"][0]["simulate"]["latency"] = 0.1
    path = write_config(tmp_path, config)
    process = command("run", path, "--workers", 2, "--quiet", cwd=tmp_path)
    wait_until(lambda: simulator_stats(simulator)["finished"] >= 30)

    os.killpg(process.pid, number)  # as a terminal does: to every process of the group
    output, errors = process.communicate()

    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "same command again" in errors
    stopped = simulator_stats(simulator)
    done = int(re.search(r"(\d+) of 200 trials done", output)[1])
    assert 0 < done < 200
    assert stopped["abandoned"] == 0
    assert done == stopped["finished"]  # what was paid for is recorded
    wait_until(lambda: not _alive_in_group(process.pid))
    code, output, _ = evalcube("run", path, "--workers", 1, "--quiet", cwd=tmp_path)
    assert (code, "200 of 200" in output) == (0, True)
    assert simulator_stats(simulator)["requests"] == 200


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        *(pytest.param(one, marks=pytest.mark.integration) for one in (signal.SIGTERM, signal.SIGHUP)),
    ],
)
def test_run__a_signal_while_the_cluster_starts_ends_it_quietly(
    number, tmp_path, tmp_path_factory, simulator
):
    path = write_config(tmp_path, slow(sweep_config(tmp_path, simulator.base_url, trials=400)))
    scratch = tmp_path_factory.mktemp("s")  # a socket's path must be short
    process = command("run", path, "--workers", 2, "--quiet", cwd=tmp_path, env={"TMPDIR": str(scratch)})
    wait_until(
        lambda: list(scratch.glob("dask-scratch-space/*"))
    )  # the workers' folder: their processes start now
    time.sleep(0.3)

    process.send_signal(number) if number == signal.SIGTERM else os.killpg(process.pid, number)
    _, errors = process.communicate()

    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "same command again" in errors
    wait_until(lambda: not _alive_in_group(process.pid))


def test_run__a_script_without_a_main_guard_says_so(tmp_path, simulator):
    config = write_config(tmp_path, sweep_config(tmp_path, simulator.base_url))
    script = tmp_path / "script.py"
    script.write_text(f"import evalcube as ec\nec.run({str(config)!r}, workers=1)\n")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}

    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=PATIENCE,
    )

    assert done.returncode == 1
    assert "if __name__ == '__main__':" in done.stderr


def slow(config):
    config["models"][0]["simulate"]["latency"] = 0.2
    return config


def _alive_in_group(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_plan__counts_what_is_done_cached_and_left(tmp_path, finished):
    config = json.loads((finished / "sweep.yaml").read_text())
    path = write_config(tmp_path, {**config, "trials": 10})
    fresh = write_config(tmp_path, {**config, "trials": 10, "cube": str(tmp_path / "new.zarr")}, "fresh.yaml")

    grown = json.loads(evalcube("plan", path, "--json", cwd=tmp_path)[1])
    anew = json.loads(evalcube("plan", fresh, "--json", cwd=tmp_path)[1])
    code, table, _ = evalcube("plan", path, cwd=tmp_path)

    assert [(row["done"], row["cached"], row["to_send"]) for row in grown["evaluations"]] == [(40, 0, 10)] * 2
    assert [(row["done"], row["cached"], row["to_send"]) for row in anew["evaluations"]] == [(0, 40, 10)] * 2
    assert grown["points"]["boolean"] == {"all": 1, "easy": 1, "hard": 1}
    assert not (tmp_path / "new.zarr").exists()
    assert code == 0
    assert "20 requests to send" in table


def test_status__of_a_finished_sweep(finished):
    code, text, _ = evalcube("status", "cube.zarr", cwd=finished)
    document = json.loads(evalcube("status", "cube.zarr", "--json", cwd=finished)[1])

    assert code == 0
    assert "80 of 80 trials done" in text
    assert document["complete"] is True
    assert [model["done"] for model in document["models"]] == [40, 40]
    assert document["running"] is None


def test_status__of_several_cubes(finished):
    shutil.copytree(finished / "cube.zarr", finished / "copy.zarr", dirs_exist_ok=True)

    text = evalcube("status", "cube.zarr", "copy.zarr", cwd=finished)[1]
    document = json.loads(evalcube("status", "cube.zarr", "copy.zarr", "--json", cwd=finished)[1])

    assert text.count("80 of 80 trials done") == 2
    assert "copy.zarr" in text
    assert [one["done"] for one in document["cubes"].values()] == [80, 80]
    refused(evalcube("status", "cube.zarr", "copy.zarr", "--watch", cwd=finished), "--watch follows one cube")


def test_leaderboard__as_table_markdown_and_json(finished):
    text = evalcube("leaderboard", "cube.zarr", cwd=finished)[1]
    markdown = evalcube("leaderboard", "cube.zarr", "--markdown", cwd=finished)[1]
    document = json.loads(evalcube("leaderboard", "cube.zarr", "--json", cwd=finished)[1])

    assert "alpha" in text
    assert markdown.lstrip().startswith("|")
    assert {row["model_name"] for row in document["rows"]} == {"alpha", "beta"}


def test_report__is_one_self_contained_page(finished):
    code, output, errors = evalcube("report", "cube.zarr", "-o", "out/report.html", cwd=finished)

    page = (finished / "out/report.html").read_text()
    assert code == 0, errors
    assert output.strip() == "out/report.html"
    assert "alpha" in page
    assert "Answer:" in page  # sample trials come from the cache
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)


def test_report__needs_no_cache_that_answers(finished, tmp_path):
    path = tmp_path / "report.html"
    code, _, errors = evalcube(
        "report", "cube.zarr", "-o", path, "--cache", "redis://127.0.0.1:1/0", cwd=finished
    )

    assert (code, path.is_file()) == (0, True)
    assert "not answer: redis://127.0.0.1:1/0" in errors
    assert "does not answer" in path.read_text("utf-8")


def test_report__shows_trials_of_several_cubes_and_of_a_part(finished):
    cubes = ["cube.zarr", "./cube.zarr"]

    code, _, errors = evalcube("report", *cubes, "-o", "out/some.html", "--trials", "2", cwd=finished)

    assert code == 0, errors
    page = (finished / "out/some.html").read_text()
    assert {"correct", "incorrect"} <= set(re.findall(r'data-status="(\w+)"', page))
    assert "2 trials of each" in page
    assert re.search(r'<td class="h\d"[^>]*><a href="#trial-\d+"', page)
    for value in ("bad", "0"):
        refused(evalcube("report", "cube.zarr", "--trials", value, cwd=finished), value)


def test_leaderboard__is_drawn_on_a_page(finished):
    assert evalcube("leaderboard", "cube.zarr", "--plot", "out/board.svg", cwd=finished)[0] == 0

    assert ">alpha<" in (finished / "out/board.svg").read_text()


def test_show__tells_everything_of_one_trial(finished):
    arguments = (
        "show",
        "cube.zarr",
        "--model",
        "alpha",
        "--task",
        "arithmetic",
        "--params",
        "length=4",
        "--trial",
        3,
    )
    text = evalcube(*arguments, cwd=finished)[1]
    document = json.loads(evalcube(*arguments, "--json", cwd=finished)[1])

    assert "Answer: <integer>" in text
    assert document["params"]["length"] == 4
    assert document["status"] in {"correct", "incorrect"}
    assert (document["parsed"] == document["reference"]) == (document["status"] == "correct")
    assert document["response"].strip().endswith(f"Answer: {document['parsed']}")


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (("--task", "arithmetik"), ["--task", "arithmetic, boolean"]),
        (("--task", "arithmetic"), ["--params", "4 points"]),
        (("--task", "arithmetic", "--params", "length=77"), ["no point", "77"]),
        (("--task", "boolean", "--trial", "8"), ["--trial", "8", "0 to 7"]),
        (("--task", "boolean", "--model", "gamma"), ["--model", "gamma", "alpha"]),
    ],
)
def test_show__says_what_can_be_chosen(finished, arguments, fragments):
    given = arguments if "--model" in arguments else (*arguments, "--model", "alpha")

    refused(evalcube("show", "cube.zarr", *given, cwd=finished), *fragments)


@pytest.mark.parametrize("name", ["status", "leaderboard", "report", "show"])
def test_readers__say_when_there_is_no_cube(name, tmp_path):
    more = ("--task", "boolean") if name == "show" else ()

    refused(evalcube(name, "none.zarr", *more, cwd=tmp_path), "none.zarr")


def test_init__writes_a_config_that_plans_and_refuses_to_overwrite(tmp_path):
    code, output, _ = evalcube("init", cwd=tmp_path)
    planned = evalcube("plan", "sweep.yaml", cwd=tmp_path)

    assert (code, "wrote sweep.yaml" in output) == (0, True)
    assert planned[0] == 0, planned[2]
    refused(evalcube("init", cwd=tmp_path), "sweep.yaml", "--force")


def test_help__names_every_command_and_the_exit_codes(tmp_path):
    code, text, _ = evalcube("--help", cwd=tmp_path)

    assert code == 0
    for name in ("run", "plan", "status", "leaderboard", "report", "show", "simulate", "init", "local"):
        assert re.search(rf"\b{name}\b", text)
    assert "130" in text
    assert "70 internal error" in re.sub(r"\s+", " ", text)


def test_version__is_printed(tmp_path):
    assert evalcube("--version", cwd=tmp_path)[1].startswith("evalcube 0.")
