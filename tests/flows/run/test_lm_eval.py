"""Ten tasks asked by lm-eval and by evalcube of one server: the same requests, and the same scores of each reply."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest

from evalcube.flows.read.reader import Reader
from evalcube.flows.run.sweep import run
from evalcube.stages.reply.status import Status
from evalcube.storage.cube.cube import Cube
from tests.flows.shared_cluster import SHARED
from tests.tiers import need

pytestmark = pytest.mark.integration

TASKS = Path(__file__).parents[2] / "data" / "lm_eval"
NAMES = sorted(path.stem for path in TASKS.glob("t_*.yaml"))
PROGRAM = TASKS / "by_lm_eval.py"
IN_TURNS = {"t_prefix"}
"""Tasks that lm-eval's chat models put into several messages, with a system message or an answer's beginning."""


class Model(BaseHTTPRequestHandler):
    """Says what the data have for the last question of a prompt, up to a stop sequence."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        asked.pop("seed", None)  # which lm-eval always sends, as it does an empty list of stop sequences
        asked = {name: value for name, value in asked.items() if value != []}
        chat = "messages" in asked
        prompt = asked["messages"][0]["content"] if chat else asked["prompt"]
        self.server.asked.append(json.dumps(asked, sort_keys=True))
        text = self.server.says[max(self.server.says, key=prompt.rfind)]
        for stop in asked.get("stop") or ():
            text = text.split(stop)[0]
        said = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        body = json.dumps({"choices": [{"index": 0, "finish_reason": "stop", **said}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def server():
    need("lm-eval", find_spec("lm_eval") and find_spec("tenacity"), "pip install 'lm-eval[api]'")
    lines = [
        line for name in ("sums", "words") for line in (TASKS / f"{name}.jsonl").read_text().splitlines()
    ]
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        server.says = {row["question"]: row["says"] for row in map(json.loads, lines)}
        server.asked = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize("api", ["completions", "chat"])
def test_run__scores_each_reply_as_lm_eval_does(tmp_path, monkeypatch, server, api):
    monkeypatch.chdir(TASKS)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cached"))
    names = [name for name in NAMES if api == "completions" or name not in IN_TURNS]
    theirs = by_lm_eval(server, api, names)
    asked = sorted(server.asked)
    server.asked.clear()

    summary = run(config(tmp_path, server, api, names), cluster=SHARED)

    assert (summary.reason, summary.done) == ("complete", sum(map(rows, names)))
    assert sorted(server.asked) == asked
    ours = {}
    for task, view, trial, cell in answered(tmp_path / "cube.zarr"):
        for filtered, found in cell.task.scores(view.response, cell.params, trial).items():
            ours[task, view.row_id, filtered] = found["scores"]
        mark = theirs[task, view.row_id, cell.params.filter][cell.params.metric]
        read_by = "status" if cell.params.graded_by == "lm-eval" else "status_theirs"
        assert (recorded(tmp_path, view, read_by) == Status.CORRECT) == (mark == 1.0), (task, view)
    assert ours == theirs


def answered(cube):
    """Each trial, as it was asked and answered."""
    reader = Reader(cube)
    for index, task in enumerate(reader.plan.tasks):
        cell = task.cells[0].cell
        for number in range(cell.size):
            yield cell.task.own_name, reader.view(0, index, 0, number), cell.trial(number), cell


def recorded(tmp_path, view, array):
    found = Cube.open(tmp_path / "cube.zarr").dataset()[array].sel(task=view.task)
    return int(found.isel(model=0, params=0, trial=view.trial, repeat=0))


def rows(name):
    return 8 if name in ("t_first_examples", "t_prefix", "t_strict_and_flexible") else 9


def by_lm_eval(server, api, names):
    """Scores by metric that lm-eval gives: by task, question and filter."""
    path = "chat/completions" if api == "chat" else "completions"
    url = f"http://127.0.0.1:{server.server_port}/v1/{path}"
    ended = subprocess.run(
        [sys.executable, PROGRAM, ".", url, *names], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    return {
        (name, str(number), filtered): scores
        for name, samples in json.loads(ended.stdout).items()
        for number, filtered, _, scores in samples
    }


def config(tmp_path, server, api, names):
    return {
        "name": "theirs",
        "trials": 100,
        "cube": str(tmp_path / "cube.zarr"),
        "cache": str(tmp_path / "cache"),
        "models": [{"name": "m", "endpoint": f"http://127.0.0.1:{server.server_port}/v1", "api": api}],
        "samplers": {"as-the-task-says": {}},
        "tasks": {f"lm-eval:{name}": {"params": {"include_path": "."}} for name in names},
    }
