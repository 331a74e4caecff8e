"""A sweep that cannot ask its model ends with one message, and its cube takes the config as it was meant."""

from pathlib import Path

import pytest

from evalcube.storage.cube.cube import Cube
from tests.flows.support import evalcube, refused, set_faults, simulator_stats, sweep_config, write_config


def run(tmp_path, config, workers=1):
    return evalcube("run", write_config(tmp_path, config), "--workers", workers, "--quiet", cwd=tmp_path)


@pytest.mark.parametrize(
    ("rule", "said", "requests"),
    [
        ({"kind": "status", "status": 401}, "http 401", 3),
        ({"kind": "status", "status": 404}, "http 404", 3),
        ({"kind": "wrong_type"}, "is the endpoint an OpenAI-compatible base URL, ending in /v1?", 9),
    ],
)
def test_run__a_model_that_cannot_be_asked_costs_three_requests_of_each_worker_and_one_message(
    tmp_path, simulator, rule, said, requests
):
    set_faults(simulator, [rule])
    config = sweep_config(tmp_path, simulator.base_url)
    config["models"][0]["limits"]["retries"] = 5

    code, _, errors = run(tmp_path, config, workers=2)

    lines = errors.strip().splitlines()
    assert code == 1, errors
    assert len(lines) == 2
    assert said in lines[0]
    assert simulator_stats(simulator)["requests"] <= 2 * requests  # there are two workers


def test_run__a_cache_that_is_refused_leaves_no_new_cube(tmp_path):
    config = sweep_config(tmp_path, "http://127.0.0.1:9/v1")
    Path(config["cache"]).touch()

    refused(run(tmp_path, config), "cannot create the cache: file exists")

    assert not Path(config["cube"]).exists()


def test_run__a_cube_without_a_trial_takes_another_config(tmp_path, simulator):
    set_faults(simulator, [{"kind": "status", "status": 404}])
    wrong = sweep_config(tmp_path, simulator.base_url, models=("alhpa",))
    assert run(tmp_path, wrong)[0] == 1
    set_faults(simulator, [])
    right = sweep_config(tmp_path, simulator.base_url, trials=2, cells=2)

    planned = evalcube("plan", write_config(tmp_path, right), cwd=tmp_path)
    code, output, errors = run(tmp_path, right)

    assert planned[0] == 0, planned
    assert code == 0, errors
    assert "6 of 6 trials done" in output
    assert Cube.open(right["cube"]).sizes["params"] == 2
    assert [path.name for path in tmp_path.glob(".cube*")] == []


def test_run__a_cube_with_one_trial_keeps_its_config(tmp_path, simulator):
    set_faults(simulator, [{"kind": "status", "status": 400, "share": 0.5}])
    config = sweep_config(tmp_path, simulator.base_url)
    assert run(tmp_path, config)[0] == 1
    before = Cube.open(config["cube"]).attrs

    refused(run(tmp_path, {**config, "seed": 7}), "seed is 42 in the cube and 7 in the config")

    assert Cube.open(config["cube"]).attrs == before


def test_run__a_refused_parameter_ends_its_model_at_once_and_says_what_to_write(tmp_path, simulator):
    said = '{"error": {"message": "Use \\u001b[31m\'max_completion_tokens\' instead", "param": "max_tokens"}}'
    set_faults(simulator, [{"kind": "status", "status": 400, "model": "beta", "body": said}])
    config = sweep_config(tmp_path, simulator.base_url, models=("alpha", "beta"))

    code, output, errors = run(tmp_path, config)
    shown = evalcube("status", config["cube"], cwd=tmp_path)[1]

    what = "beta: its endpoint refuses `max_tokens` (http 400)."
    write = "beta: {temperature: 0, max_completion_tokens: 200}"
    assert code == 1, errors
    assert "\x1b" not in output + errors
    for text in (output, " ".join(shown.split())):
        assert what in text
        assert write in text
    assert simulator_stats(simulator)["models"]["beta"] == 1
