"""Sweeps for tests: small configs against a simulator that the test owns."""

import atexit
import copy
import json
import os
import shutil
import subprocess
import sys
import urllib.request
from contextlib import chdir, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
from typer.testing import CliRunner

from evalcube._arrays import as_xarray
from evalcube.deploy.clusters import LocalProcesses
from evalcube.deploy.servers.managed import Simulator
from evalcube.flows.cli import app as cli
from evalcube.storage.cube.cube import Cube
from tests.flows.shared_cluster import PROCESSES, SHARED
from tests.waiting import PATIENCE

UNTIMED = ("status", "tokens", "prompt_tokens", "reasoning_bytes", "compressed_bytes", "guess_chance")


def sweep_config(tmp_path, endpoint, *, trials=8, cells=4, models=("alpha",), cube="cube.zarr", **changes):
    """A config of one easy task; `endpoint` is a simulator's base URL."""
    config = {
        "name": "test",
        "trials": trials,
        "cube": str(tmp_path / cube),
        "cache": str(tmp_path / "cache"),
        "models": [
            {
                "name": name,
                "endpoint": f"sim:{endpoint}",
                "simulate": {"ability": 3.0, "tokens": 20},
                "limits": {"connections": 8, "retries": 2, "timeout": 30},
            }
            for name in models
        ],
        "samplers": {"greedy": {"temperature": 0, "max_tokens": 200}},
        "tasks": {
            "arithmetic": {"manifold": [{"grid": {"length": list(range(3, 3 + cells))}, "tiers": ["easy"]}]},
            "boolean": {"manifold": [{"points": [{"length": 4}], "tiers": ["easy", "hard"]}]},
        },
    }
    return {**config, **changes}


def hooked(hook, workers):
    """A local cluster; `hook`, a generator function of its client, yields once, while the cluster is in use."""

    class Hooked(LocalProcesses):
        def connect(self):
            return self._hooked()

        @contextmanager
        def _hooked(self):
            with LocalProcesses.connect(self) as connection, contextmanager(hook)(connection.client):
                yield connection

    return Hooked(workers=workers, dashboard=False)


def arrays(cube):
    """All that must not depend on how a sweep came about."""
    opened = Cube.open(cube)
    timed = opened.read_label("counter").tolist().index("latency_sum")
    counters = np.delete(opened.read_counters(), timed, axis=-1)
    return {**{name: stored(opened, name) for name in UNTIMED}, "counters": counters}


def copied(config, folder):
    """A finished sweep in another folder, where a test changes it."""
    config = copy.deepcopy(config)
    for name in ("cube", "cache"):
        config[name] = str(shutil.copytree(config[name], folder / Path(config[name]).name))
    return config


def loaded(url):
    """A cube as `dataset` has it, without the detour of Dask."""
    return as_xarray(Cube.open(url).load())


def stored(cube, name):
    """Values of a whole array of an open cube, sooner there than those of its lazy dataset."""
    return cube.group.read(name, (Ellipsis,))


def assert_same_cube(left, right):
    """Bit for bit, times of day apart."""
    ours, theirs = arrays(left), arrays(right)
    assert ours.keys() == theirs.keys()
    for name, values in ours.items():
        assert values.dtype == theirs[name].dtype
        np.testing.assert_array_equal(
            np.ascontiguousarray(values).view(np.uint8),
            np.ascontiguousarray(theirs[name]).view(np.uint8),
            name,
        )


def change_attributes(cube, change):
    """Let `change` alter the spec of a cube in its place, as damage or somebody else would."""
    path = Path(cube) / "zarr.json"
    document = json.loads(path.read_text())
    attributes = document["attributes"]
    changed = change(attributes["spec"])
    if changed is not None:
        attributes["spec"] = changed
    path.write_text(json.dumps(document))


def simulator_stats(simulator):
    """What the simulator counted."""
    with urllib.request.urlopen(f"{simulator.address}/control/stats", timeout=PATIENCE) as reply:
        return json.load(reply)


def set_faults(simulator, rules):
    """Replace the simulator's fault rules."""
    _tell(simulator, "faults", rules)


def set_limits(simulator, **limits):
    """Replace the limits that the simulator enforces."""
    _tell(simulator, "limits", limits)


def set_batches(simulator, **settings):
    """Have the simulator's batches go so."""
    _tell(simulator, "batches", settings)


def _tell(simulator, what, document):
    request = urllib.request.Request(
        f"{simulator.address}/control/{what}", json.dumps(document).encode(), method="POST"
    )
    urllib.request.urlopen(request, timeout=PATIENCE).close()


def set_key(simulator, key=""):
    """Have the simulator accept this key only; any if it is empty."""
    request = urllib.request.Request(f"{simulator.address}/control/key", key.encode(), method="POST")
    urllib.request.urlopen(request, timeout=PATIENCE).close()


def reset(simulator):
    """Forget counts, faults, limits and the key."""
    set_key(simulator)
    set_faults(simulator, [])
    set_limits(simulator)
    urllib.request.urlopen(
        urllib.request.Request(f"{simulator.address}/control/reset", b"", method="POST"), timeout=PATIENCE
    ).close()


@cache
def simulated():
    """The server of models at ``sim:``, for all commands of this process."""
    server = Simulator()
    atexit.register(server.__exit__, None, None, None)
    return server.__enter__()


def one_simulator():
    """A context in which runs of this process ask the server that is there, and start none for themselves."""
    return patch("evalcube.flows.run.servers.Simulator", lambda: nullcontext(simulated()))


def evalcube(*arguments, cwd, columns=200):
    """Run the command line in this process: (exit code, standard output, standard error).

    Sweeps with one worker run in this process too, those with more on the shared workers.
    """
    with (
        CliRunner(env={"COLUMNS": str(columns)}).isolation() as (output, errors, _),
        chdir(cwd),
        patch.object(sys, "argv", ["evalcube", *map(str, arguments)]),
        patch(
            "evalcube.flows.run.cluster.LocalProcesses",
            lambda workers: SHARED if workers == 1 else PROCESSES,
        ),
        one_simulator(),
    ):
        code = cli._run(SimpleNamespace(failure=None))
        sys.stdout.flush()
        sys.stderr.flush()
        return int(code), output.getvalue().decode(), errors.getvalue().decode()


def command(*arguments, cwd, env=None, **options):
    """Start the command line in a process of its own."""
    return subprocess_of(
        [sys.executable, "-m", "evalcube", *map(str, arguments)], cwd=cwd, env=env, **options
    )


def subprocess_of(words, *, cwd, env=None, **options):
    """Start a program that finds our packages, in a session of its own."""
    return subprocess.Popen(
        words,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "COLUMNS": "200", **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


def own_process(*arguments, cwd, env=None):
    """Run the command line in a process of its own, to its end; the result is that of `evalcube`."""
    process = command(*arguments, cwd=cwd, env=env)
    output, errors = process.communicate()
    return process.returncode, output, errors


def write_config(tmp_path, config, name="sweep.yaml"):
    """Write a config; JSON is YAML."""
    path = tmp_path / name
    path.write_text(json.dumps(config, indent=1))
    return path


def refused(result, *fragments):
    """A command that ended with exit code 2 and one clear message; returns what it wrote to standard error."""
    code, output, errors = result
    assert code == 2, (output, errors)
    assert "Traceback" not in errors
    for fragment in fragments:
        assert fragment in errors
    return errors
