"""Who is asked for more of a cube: the user's config, never the cube's own by itself."""

import json
import re

import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.run.upsample import acting_config, endpoint_lines
from evalcube.flows.state.store import open_store
from evalcube.flows.state.trust import STATE_VARIABLE, remember_run
from evalcube.storage.cube.cube import Cube
from tests.flows.support import sweep_config

pytestmark = pytest.mark.long

NOWHERE = "http://127.0.0.1:9/v1"
REMOTE = {"name": "remote", "endpoint": "https://api.example/v1", "key_env": "EXAMPLE_KEY"}
OTHER = {"name": "other", "endpoint": "https://other.example/v1"}


@pytest.fixture(autouse=True)
def _nothing_has_run(tmp_path, monkeypatch):
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))


def config_of(folder, *models):
    config = sweep_config(folder, NOWHERE, trials=1, cells=1)
    return {**config, "models": [*models] or [REMOTE]}


def noted(folder, *models, **changes):
    """Address of a cube whose notes hold a config."""
    config = config_of(folder, *models)
    cube = open_store(build_plan(from_mapping(config)), config["cube"]).cube
    cube.records.put("sweep.json", json.dumps({"config": {**config, **changes}, "cache": "cache"}).encode())
    return config["cube"]


def endpoints(config):
    return {model.name: (model.endpoint, model.key_env) for model in config.models}


def test_acting_config__of_a_config_is_that_config(tmp_path):
    config = config_of(tmp_path)

    found = acting_config(config, cube="there.zarr", cache="here")

    assert (found.cube, found.cache) == ("there.zarr", "here")
    assert endpoints(found) == {"remote": (REMOTE["endpoint"], "EXAMPLE_KEY")}


@pytest.mark.parametrize("given", ["config", "endpoints", "key_envs"])
def test_acting_config__whom_to_ask_goes_with_a_cube_only(tmp_path, given):
    with pytest.raises(SweepError, match=f"`{given}`"):
        acting_config(config_of(tmp_path), **{given: {"remote": "x"}})


def test_acting_config__a_strangers_cube_does_not_say_whom_to_ask(tmp_path):
    with pytest.raises(SweepError) as raised:
        acting_config(noted(tmp_path, REMOTE, OTHER), cache="cache")

    text = str(raised.value)
    for name in ("remote", "https://api.example/v1", "EXAMPLE_KEY", "other", "https://other.example/v1"):
        assert name in text


def test_acting_config__what_the_user_ran_counts_and_not_what_the_cube_says(tmp_path):
    cube = noted(tmp_path, OTHER)
    remember_run(Cube.open(cube), config_of(tmp_path, REMOTE))

    assert endpoints(acting_config(cube)) == {"remote": (REMOTE["endpoint"], "EXAMPLE_KEY")}


def test_acting_config__what_is_given_counts_more_than_what_was_run(tmp_path):
    cube = noted(tmp_path)
    remember_run(Cube.open(cube), config_of(tmp_path))

    found = acting_config(cube, endpoints="https://mine.example/v1", cache="cache")

    assert endpoints(found) == {"remote": ("https://mine.example/v1", None)}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"endpoints": "https://mine.example/v1", "key_envs": "MINE"},
            {
                "remote": ("https://mine.example/v1", "MINE"),
                "other": ("https://mine.example/v1", "MINE"),
                "sim": ("sim:", None),
            },
        ),
        (
            {
                "endpoints": {"remote": "https://mine.example/v1", "other": "https://b.example/v1"},
                "key_envs": {"other": "B"},
            },
            {
                "remote": ("https://mine.example/v1", None),
                "other": ("https://b.example/v1", "B"),
                "sim": ("sim:", None),
            },
        ),
    ],
    ids=["one for all", "by name"],
)
def test_acting_config__endpoints_and_keys_are_the_users(tmp_path, given, expected):
    cube = noted(tmp_path, REMOTE, OTHER, {"name": "sim", "endpoint": "sim:"})

    assert endpoints(acting_config(cube, cache="cache", **given)) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key_file": "/etc/shadow"}, "it would send remote what is in /etc/shadow"),
        ({"key_command": ["touch", "/tmp/x"]}, "it would run 'touch /tmp/x' for remote"),
        ({"headers": {"x-to": "me"}}, "it would send headers of its own to remote"),
        ({"ca_file": "/tmp/ca.pem"}, "it would believe the authorities in /tmp/ca.pem for remote"),
    ],
)
def test_acting_config__nothing_else_that_acts_comes_from_the_cube(tmp_path, change, message):
    model = {name: value for name, value in REMOTE.items() if name != "key_env"}

    with pytest.raises(SweepError, match=message):
        acting_config(
            noted(tmp_path, {**model, **change}), endpoints="https://mine.example/v1", cache="cache"
        )


def test_acting_config__says_what_does_not_fit(tmp_path):
    cube = noted(tmp_path)

    with pytest.raises(SweepError, match="`config` excludes `endpoints`"):
        acting_config(cube, config=config_of(tmp_path), endpoints="https://mine.example/v1")
    with pytest.raises(SweepError, match=r"`endpoints`: .*'x'.*: remote"):
        acting_config(cube, endpoints={"x": "https://mine.example/v1"})
    with pytest.raises(SweepError, match="which cache"):
        acting_config(cube, endpoints="https://mine.example/v1")
    Cube.open(cube).records.put("sweep.json", b"{}")
    with pytest.raises(SweepError, match=r"sweep\.json"):
        acting_config(cube, endpoints="https://mine.example/v1", cache="cache")


def test_endpoint_lines__names_the_source_of_each_key(tmp_path):
    models = [
        REMOTE,
        OTHER,
        {**OTHER, "name": "filed", "model": "b", "key_file": "/keys/a"},
        {**OTHER, "name": "run", "model": "c", "key_command": ["pass", "show"]},
    ]

    lines = endpoint_lines(from_mapping(config_of(tmp_path, *models)))

    assert [tuple(re.findall(r"^\w+|https://\S+|EXAMPLE_KEY|/keys/a|pass", line)) for line in lines] == [
        ("remote", "https://api.example/v1", "EXAMPLE_KEY"),
        ("other", "https://other.example/v1"),
        ("filed", "https://other.example/v1", "/keys/a"),
        ("run", "https://other.example/v1", "pass"),
    ]


SERVED = {"name": "mine", "serve": {"command": "rm -rf {port} /", "env_from": {"A": "EXAMPLE_KEY"}}}


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (SERVED, "it would run 'rm -rf {port} /' for mine"),
        ({"name": "mine", "serve": {"preset": "vllm"}}, "it would run 'the preset vllm' for mine"),
        (
            {"name": "mine", "endpoint": ["https://a.example/v1", "https://b.example/v1"]},
            "it would ask mine at https://a.example/v1 and https://b.example/v1",
        ),
    ],
)
def test_acting_config__a_strangers_cube_starts_no_server_and_names_none(tmp_path, model, named):
    with pytest.raises(SweepError) as caught:
        acting_config(noted(tmp_path, model), cache="c")

    assert named in str(caught.value)


def test_acting_config__an_endpoint_takes_the_place_of_a_strangers_command(tmp_path):
    found = acting_config(noted(tmp_path, SERVED), cache="c", endpoints="https://own.example/v1")

    assert found.models[0].serve is None
    assert found.models[0].endpoint == "https://own.example/v1"


def test_acting_config__a_command_of_the_users_own_run_is_his(tmp_path):
    address = noted(tmp_path, SERVED)
    remember_run(Cube.open(address), config_of(tmp_path, SERVED))

    found = acting_config(address)

    assert found.models[0].serve.command == ("rm", "-rf", "{port}", "/")
