"""Replies that were cut go on: a server that writes one text to each question, as far as it may."""

import json
import shutil
import threading
from collections import Counter
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from evalcube.flows.cli.output import ExitStatus
from evalcube.flows.errors import SweepError
from evalcube.flows.keep.choice import Choice
from evalcube.flows.keep.forget import forget
from evalcube.flows.plan.requests import trial_request
from evalcube.flows.read.gate import gate
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.statistics import leaderboard
from evalcube.flows.run.sweep import run
from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cube.cube import Cube
from tests.flows.shared_cluster import SHARED
from tests.flows.support import evalcube, stored, write_config

pytestmark = pytest.mark.cluster

MARK = "\n###"
SIZE = 3
"""Characters of a token."""


def says(question, draw=0):
    """The whole text about a question: filler of some length, of several bytes a character, and an answer."""
    number = int(sha256(f"{question}{draw}".encode()).hexdigest()[:4], 16)
    return "hm… " * (number % 60) + f"\nAnswer: {number % 2}"


class Writer(BaseHTTPRequestHandler):
    """Goes on with the text that a prompt has begun, or with that of a question, and counts what it is asked."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if len(self.server.asked) >= self.server.most:
            self.send_error(500)
            return
        self.server.asked.append(asked)
        chat = "messages" in asked
        prompt = asked["messages"][0]["content"] if chat else asked["prompt"]
        question, _, begun = prompt.partition(MARK)
        whole = says(question, draw=asked["max_tokens"] if chat else 0)
        assert whole.startswith(begun)
        text = whole[len(begun) :]
        spoken = text[: SIZE * asked["max_tokens"]]
        ended = {"finish_reason": "stop" if spoken == text else "length"}
        choice = {"message": {"content": spoken}} if chat else {"text": spoken}
        tokens = -(-len(spoken) // SIZE)
        body = {"choices": [{**choice, **ended}], "usage": {"prompt_tokens": 7, "completion_tokens": tokens}}
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Writer) as server:
        server.asked, server.most = [], 1000
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def config(tmp_path, server, limit, *, api="completions", cube="cube.zarr", cache="cache"):
    rows = [{"question": f"Is {n} odd?", "answer": str(n % 2)} for n in range(24)]
    (tmp_path / "odd.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return {
        "name": "odd",
        "trials": 24,
        "cube": str(tmp_path / cube),
        "cache": str(tmp_path / cache),
        "models": [
            {
                "name": "m",
                "endpoint": f"http://127.0.0.1:{server.server_port}/v1",
                "api": api,
                "limits": {"connections": 4, "retries": 0},
            }
        ],
        "templates": {"plain": [{"role": "user", "content": "{{ prompt }}" + MARK}]},
        "samplers": {"greedy": {"temperature": 0, "max_tokens": limit}},
        "tasks": {
            "odd": {
                "task": "dataset",
                "params": {"file": str(tmp_path / "odd.jsonl"), "prompt": "question", "answer": "answer"},
            }
        },
    }


def outcomes(cube, place):
    opened = Cube.open(cube)
    return {name: stored(opened, name)[place] for name in ("status", "tokens", "compressed_bytes")}


def test_run__what_is_continued_is_what_one_request_with_the_larger_limit_says(tmp_path, server):
    short, long = config(tmp_path, server, 20), config(tmp_path, server, 60, cube="long.zarr", cache="long")
    run(long, cluster=SHARED)
    server.asked.clear()

    summary = run(short, extend_truncated=60, cluster=SHARED)

    cut = int((outcomes(short["cube"], 0)["status"] == 2).sum())
    assert (summary.reason, summary.done, summary.sent) == ("complete", 48, 24 + cut)
    assert 0 < cut < 24
    assert Counter(asked["max_tokens"] for asked in server.asked) == {20: 24, 40: cut}
    labels = Cube.open(short["cube"]).read_label("sampler").tolist()
    assert labels == ["greedy", "greedy continued to 60"]
    for name, values in outcomes(short["cube"], 1).items():
        np.testing.assert_array_equal(values, outcomes(long["cube"], 0)[name], name)


def test_run__asks_nothing_twice_whatever_failed_or_was_lost_in_between(tmp_path, server):
    settings = config(tmp_path, server, 20)
    server.most = 24 + 3  # and nothing is answered from there on: in the midst of what is asked further

    broken = run(settings, extend_truncated=60, cluster=SHARED)
    server.most = 1000
    resumed = run(settings, extend_truncated=60, cluster=SHARED)

    assert (broken.reason, resumed.reason, resumed.done) == ("incomplete", "complete", 48)
    assert all(count == 1 for count in Counter(map(json.dumps, server.asked)).values())
    before, whole = len(server.asked), outcomes(settings["cube"], 1)
    # As after a kill between a reply and what is made of it: the cache has the parts, and no cube has anything.
    cache = open_cache(settings["cache"])
    cache.remove(keys(settings["cube"], 1))
    cache.close()
    shutil.rmtree(settings["cube"])
    again = run(settings, extend_truncated=60, cluster=SHARED)
    assert (again.reason, again.sent, len(server.asked)) == ("complete", 0, before)
    for name, values in outcomes(settings["cube"], 1).items():
        np.testing.assert_array_equal(values, whole[name], name)


def keys(cube, place):
    """Keys of the replies of an evaluation."""
    plan = Reader(cube).plan
    cell = plan.tasks[0].cells[0].cell
    return [trial_request(plan.evaluations[place], cell, cell.trial(n), 0).digest for n in range(24)]


def test_run__what_is_asked_anew_is_an_upper_bound_wherever_it_is_shown(tmp_path, server):
    settings = config(tmp_path, server, 20, api="chat")
    summary = run(settings, extend_truncated=60, cluster=SHARED)
    cut = int((outcomes(settings["cube"], 0)["status"] == 2).sum())

    board = leaderboard(settings["cube"])

    assert (summary.reason, summary.sent, 0 < cut < 24) == ("complete", 24 + cut, True)
    assert [asked["max_tokens"] for asked in server.asked[24:]] == [60] * cut
    ours, bound = board.rows
    assert (ours.rank, ours.upper_bound, bound.rank, bound.upper_bound) == (1, False, None, True)
    assert ours.rank_interval.upper == 1  # it meets no bound
    assert bound.accuracy.value >= ours.accuracy.value
    _, shown, warned = evalcube("leaderboard", settings["cube"], cwd=tmp_path)
    assert "m · greedy upper bound at 60" in shown
    assert "Upper bounds (*) and no accuracies, without a rank: m · greedy upper bound at 60." in warned
    assert f"{100 * bound.accuracy.value:.1f} %*" in shown
    with pytest.raises(
        SweepError, match=r"'m · greedy upper bound at 60' is an upper bound.*it decides nothing"
    ):
        gate({"critical": [{"noninferior": 1}]}, settings["cube"], "0", "1")
    # What was asked is what an evaluation with that limit asks: it asks the others only.
    honest = config(tmp_path, server, 60, api="chat", cube="honest.zarr")
    assert run(honest, cluster=SHARED).sent == 24 - cut


def test_run__without_the_option_keeps_extensions_and_asks_none(tmp_path, server):
    settings = config(tmp_path, server, 20)
    run(settings, extend_truncated=60, cluster=SHARED)
    asked = len(server.asked)

    plain = run(settings, cluster=SHARED)

    assert (plain.reason, plain.done, plain.sent) == ("complete", 24, 0)
    assert plain.unnamed.models == ("m / greedy continued to 60",)
    forget(settings["cube"], Choice(("sampler=greedy continued to 60",)), cache=True)
    again = run(settings, extend_truncated=60, cluster=SHARED)
    assert (again.reason, again.sent) == ("complete", asked - 24)  # what was continued, and not what was cut
    forget(settings["cube"], Choice(("sampler=greedy continued to 60",)), cache=True)
    cache = open_cache(settings["cache"])
    cache.remove(keys(settings["cube"], 0))
    cache.close()
    code, _, told = evalcube(
        *("run", write_config(tmp_path, settings), "--extend-truncated", "60", "--quiet"), cwd=tmp_path
    )
    assert code == ExitStatus.INCOMPLETE
    assert "24 trials: no reply to extend: the cache lacks it" in told
    assert "Mend what is said above" in told
