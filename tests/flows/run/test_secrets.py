"""A key is in one request header and nowhere else: after runs that pass or fail, every byte is looked at."""

import base64
import json
import os
import secrets
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from distributed import Client

from evalcube.flows.read.reader import Reader
from evalcube.flows.read.report import report
from evalcube.flows.read.statistics import leaderboard
from evalcube.flows.read.status import cube_status
from evalcube.storage.cache.cache import open_cache
from tests.flows.support import command, loaded, write_config
from tests.stages.infer.echo import Echo, http
from tests.waiting import wait_until

KEY = f"sk-{secrets.token_hex(12)}/{secrets.token_hex(8)}+{secrets.token_hex(4)}=="
VARIABLE = "SECRETS_TEST_KEY"

PRELOAD = '''
"""Runs in the scheduler and the workers: logs everything, keeps all that is sent, and has one defect."""

import logging
import types
from pathlib import Path

import cloudpickle
from distributed import Scheduler, SchedulerPlugin

logging.basicConfig(level=logging.DEBUG)
for name in ("distributed", "aiohttp", "asyncio"):
    logging.getLogger(name).setLevel(logging.DEBUG)


class Keep(SchedulerPlugin):
    def __init__(self, scheduler):
        self.scheduler = scheduler
        self.graph = Path("graph.bin").open("ab", buffering=0)

    def update_graph(self, scheduler, **kwargs):
        self.graph.write(repr(kwargs).encode())
        for key in kwargs.get("keys", ()):
            self.graph.write(cloudpickle.dumps((key, scheduler.tasks[key].run_spec)))


def dask_setup(server):
    if isinstance(server, Scheduler):
        server.add_plugin(Keep(server))
        return
    from evalcube.deploy.clusters import code
    from evalcube.stages.infer.wire import Sender

    give = code.give

    async def given(name, plugin, dask_worker=None):
        with Path("graph.bin").open("ab") as graph:
            graph.write(plugin)
        return await give(name, plugin, dask_worker)

    code.give = given  # the driver's call names it
    send = Sender.send

    async def broken(self, *args):
        if "/defect/" in str(self._urls[0]):
            raise RuntimeError("a defect")
        return await send(self, *args)

    # As if it stood in our module: what stands in others is a mistake of theirs.
    ours = {"__name__": Sender.__module__, "send": send}
    Sender.send = types.FunctionType(broken.__code__, ours, closure=broken.__closure__)
'''


def forms(key):
    """The key as it may stand in a text."""
    quoted = json.dumps(key)[1:-1]
    slashed = quoted.replace("/", "\\/")
    found = {key, quoted, slashed, slashed.replace("+", "\\u002B"), key.replace("/", "%2F")}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for shift in range(3):  # its place in what is encoded; what the neighbours change is cut off
            text = encode(b"\0" * shift + key.encode()).decode().rstrip("=")
            found.add(text[4 if shift else 0 : -4])
    return {form.encode() for form in found}


def _escaped(document):
    """JSON as some servers write it."""
    return json.dumps(document).encode().replace(b"/", b"\\/").replace(b"+", b"\\u002B")


def answer(request):
    """What the endpoint says; it repeats the key wherever it can."""
    said = request.decode("latin-1")
    leaking = f"x-key: {KEY}", f"set-cookie: key={KEY}"
    if "/reset/" in said:
        return None
    if "/denied/" in said:
        error = {"message": f"Incorrect key {KEY}.", "type": KEY, "code": KEY, "request": said}
        return http(_escaped({"error": error}), 401, *leaking)
    body = {
        "id": KEY,
        "choices": [{"message": {"content": f"Your key is {KEY}."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }
    return http(_escaped(body), 200, *leaking)


@contextmanager
def cluster(folder):
    """A scheduler and a worker of which everything is written down in `folder`; its address."""
    (folder / "preload.py").write_text(PRELOAD)
    environment = {
        **os.environ,
        VARIABLE: KEY,
        "PYTHONPATH": str(Path(__file__).parents[3]),
        "DASK_LOGGING__DISTRIBUTED": "debug",
    }
    started = []

    def start(kind, *arguments):
        code = "import sys; from distributed.cli import dask_{0}; sys.argv = ['dask', *sys.argv[1:]]; dask_{0}.main()"
        with (folder / f"{kind}.log").open("wb") as log:
            started.append(
                subprocess.Popen(
                    [sys.executable, "-c", code.format(kind), *arguments, "--preload", "preload.py"],
                    cwd=folder,
                    env=environment,
                    stdout=log,
                    stderr=log,
                )
            )

    common = ("--host", "127.0.0.1", "--no-dashboard")
    try:
        start("scheduler", *common, "--port", "0", "--scheduler-file", "scheduler.json")
        note = folder / "scheduler.json"
        wait_until(
            lambda: note.exists() and note.read_text().strip(), told=(folder / "scheduler.log").read_text
        )
        address = json.loads(note.read_text())["address"]
        start("worker", address, *common, "--no-nanny", "--nthreads", "4", "--local-directory", "scratch")
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:  # Dask's own shutdown now and then waits for ever
                process.kill()
                process.wait()


RUNS = {"pass": (["pass"], 0), "fails": (["denied", "reset"], 1), "defect": (["defect"], 70)}
"""What the endpoints of a run's models do, and how the run ends."""


def sweep(folder, name, host):
    """A config of two trials for each model, whose endpoint behaves as the model is called."""
    models = [
        {
            "name": model,
            "endpoint": f"{host}/{model}/v1",
            "key_env": VARIABLE,
            "limits": {"connections": 2, "retries": 1, "timeout": 60},
        }
        for model in RUNS[name][0]
    ]
    return write_config(
        folder,
        {
            "name": name,
            "trials": 2,
            "cube": str(folder / f"{name}.zarr"),
            "cache": str(folder / "cache" / name),
            "models": models,
            "samplers": {"greedy": {"temperature": 0, "max_tokens": 50}},
            "tasks": {"boolean": {"manifold": [{"points": [{"length": 4}], "tiers": ["easy"]}]}},
        },
        f"{name}.yaml",
    )


@pytest.fixture
def trail(tmp_path):
    """A folder with everything that the runs left or said, and the endpoint's address."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    with Echo(answer) as echo, cluster(folder) as address:
        host = echo.base_url.removesuffix("/v1")
        environment = {VARIABLE: KEY, "DASK_LOGGING__DISTRIBUTED": "debug", "PYTHONASYNCIODEBUG": "1"}
        runs = {}
        for name in RUNS:
            path = sweep(folder, name, host)
            arguments = ("run", path, "--scheduler", address, "--log", "events.jsonl", "--json")
            runs[name] = command(*arguments, cwd=folder, env=environment)
        for name, process in runs.items():
            output, errors = process.communicate()
            (folder / f"{name}.out").write_text(output)
            (folder / f"{name}.err").write_text(errors)
        assert {name: process.returncode for name, process in runs.items()} == {
            name: code for name, (_, code) in RUNS.items()
        }
        with Client(address, set_as_default=False) as client:
            kept = {
                "worker logs": client.get_worker_logs(),
                "scheduler logs": client.get_scheduler_logs(),
                "events": client.get_events(),
                "metrics": client.run(lambda dask_worker: repr(vars(dask_worker))),
            }
            (folder / "dask.txt").write_text(repr(kept))
        assert f"authorization: bearer {KEY}".encode() in echo.requests[0].lower().replace(
            KEY.lower().encode(), KEY.encode()
        )
    read_as_users_do(folder)
    return folder, host


def read_as_users_do(folder):
    """Write what people look at: status, leaderboard, report with samples, a trial."""
    for name in RUNS:
        cube = folder / f"{name}.zarr"
        (folder / f"{name}.status").write_text(json.dumps(cube_status(cube)))
        (folder / f"{name}.board").write_text(json.dumps(leaderboard(cube).to_dict()))
        report(cube, folder / f"{name}.html", samples=2)
        (folder / f"{name}.trial").write_text(repr(Reader(cube).view(0, 0, 0, 0)))


def decoded(folder):
    """All that is compressed where it lies: entries of caches and arrays of cubes, by name."""
    for name in RUNS:
        cache = open_cache(folder / "cache" / name)
        for entry in cache.entries():
            yield f"cache {name}", entry.key.encode() + (cache.get(entry.key) or b"")
        dataset = loaded(folder / f"{name}.zarr")
        for variable in dataset.variables:
            values = dataset[variable].to_numpy()
            text = repr(values.tolist()) if values.dtype.kind in "OUT" else values.tobytes()
            yield f"{name}.zarr {variable}", text.encode() if isinstance(text, str) else text
        yield f"{name}.zarr attributes", json.dumps(dataset.attrs, default=str).encode()


def corpus(folder):
    """All bytes, by where they are."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [*((str(path.relative_to(folder)), path.read_bytes()) for path in files), *decoded(folder)]


def holders(everything, *needles):
    """Whatever contains one of `needles`."""
    return {name for name, data in everything if any(needle in data for needle in needles)}


# All in one test: what is looked at is made in half a minute, by processes that log everything.
def test_key__is_nowhere_and_all_else_where_it_should_be(trail):
    folder, host = trail
    everything = corpus(folder)

    assert holders(everything, *forms(KEY)) == set()
    _trail_holds_what_it_should(folder, everything)
    found = holders(everything, host.removeprefix("http://").encode())
    assert "worker.log" in found or "graph.bin" in found
    assert not {name for name in found if name.startswith("cache")}
    _log_has_no_answer_in_it((folder / "events.jsonl").read_text())


def _trail_holds_what_it_should(folder, everything):
    assert VARIABLE.encode() in (folder / "graph.bin").read_bytes()
    assert "a defect" in (folder / "defect.err").read_text()
    assert "Traceback" in (folder / "defect.err").read_text()
    assert "Incorrect key [key]." in (folder / "fails.err").read_text()
    assert "DEBUG" in (folder / "worker.log").read_text()
    assert "DEBUG" in (folder / "scheduler.log").read_text()
    assert {"cache pass", "pass.trial", "pass.html"} <= holders(everything, b"Your key is [key].")
    assert {"events.jsonl"} <= holders(everything, b'"event": "failed"')


def _log_has_no_answer_in_it(log):
    assert len({json.loads(line)["run"] for line in log.splitlines()}) == len(RUNS)
    assert "Your key" not in log
    assert "Incorrect key" not in log


def test_forms__are_found_in_encoded_text():
    for shift in range(6):
        text = base64.b64encode(b"x" * shift + KEY.encode() + b"tail")
        assert any(form in text for form in forms(KEY))
