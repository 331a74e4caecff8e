"""Workers on other hosts: network namespaces with host names and disks of their own."""

import itertools
import json
import os
import shutil
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.events import BlockDone, Noted
from evalcube.flows.run.sweep import run
from tests.flows.bare_cluster import BareCluster, assert_nothing_is_left
from tests.flows.support import sweep_config
from tests.tiers import need

pytestmark = pytest.mark.integration

# Other runs of the tests on this machine have others.
NUMBER = os.getpid() % 10_000
BRIDGE = f"evbr{NUMBER}"
NET = f"10.78.{NUMBER % 250}"
GATEWAY = f"{NET}.1"
PORT = 8000
"""Of the model; the network is this test's own."""


def ip(*words, check=True):
    subprocess.run(["ip", *words], check=check, capture_output=True)


def in_host(name, *words):
    return ("ip", "netns", "exec", name, *words)


@contextmanager
def hosts(names):
    """Network namespaces behind one bridge: name -> address."""
    addresses = {name: f"{NET}.{11 + i}" for i, name in enumerate(names)}
    try:
        ip("link", "add", BRIDGE, "type", "bridge")
        ip("addr", "add", f"{GATEWAY}/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for name, address in addresses.items():
            outer, inner = f"{name}-o", f"{name}-i"
            ip("netns", "add", name)
            ip("link", "add", outer, "type", "veth", "peer", "name", inner)
            ip("link", "set", inner, "netns", name)
            ip("link", "set", outer, "master", BRIDGE, "up")
            for words in (
                ("addr", "add", f"{address}/24", "dev", inner),
                ("link", "set", inner, "up"),
                ("link", "set", "lo", "up"),
            ):
                subprocess.run(in_host(name, "ip", *words), check=True, capture_output=True)
        yield addresses
    finally:
        for name in names:
            ip("netns", "del", name, check=False)
        ip("link", "del", BRIDGE, check=False)


class Answering(BaseHTTPRequestHandler):
    """A model that says the same to everybody."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests += 1
        self.server.gate.wait()
        message = {"role": "assistant", "content": "Answer: 1"}
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        reply = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def two_hosts():
    need("root", os.geteuid() == 0, "network namespaces are made as root")
    need("ip", shutil.which("ip") and shutil.which("unshare"), "install iproute2 and util-linux")
    try:
        with hosts((f"evh{NUMBER}a", f"evh{NUMBER}b")) as addresses:
            yield addresses
    except subprocess.CalledProcessError as error:
        pytest.skip(f"network namespaces cannot be made here: {error.stderr.decode().strip()}")


@pytest.fixture
def cluster(tmp_path, two_hosts):
    assert two_hosts
    (tmp_path / "cluster").mkdir()
    (tmp_path / "shared").mkdir()
    made = BareCluster(tmp_path / "cluster")
    try:
        made.start_scheduler(host=GATEWAY)
        yield made
    finally:
        made.close()


def join(cluster, name, address, *, hidden=None):
    """Start a worker on a host, from which a folder may be hidden by a disk of its own."""
    hide = "" if hidden is None else f"mount -t tmpfs none {hidden}; "
    own = (
        "unshare",
        "-m",
        "-u",
        "--propagation",
        "private",
        "bash",
        "-c",
        f'hostname {name}; {hide}exec "$@"',
        "bash",
    )
    cluster.add_worker("--name", name, host=address, prefix=in_host(name, *own), nanny=False)


@pytest.fixture
def model(two_hosts):
    """A model server that hosts reach, and that counts its requests."""
    assert two_hosts
    with ThreadingHTTPServer((GATEWAY, PORT), Answering) as server:
        server.daemon_threads, server.requests, server.gate = True, 0, threading.Event()
        server.gate.set()
        threading.Thread(target=server.serve_forever).start()
        yield server
        server.shutdown()


def config_of(tmp_path, model, **changes):
    config = sweep_config(tmp_path / "shared", f"http://{GATEWAY}:{model.server_port}/v1", **changes)
    (described,) = config["models"]
    del described["simulate"]
    described["endpoint"] = described["endpoint"].removeprefix("sim:")
    return config


def of_both(cluster):
    """The section of a config that waits for both hosts."""
    return {"address": cluster.address, "minimum": 2}


def test_run__refuses_hosts_that_do_not_see_the_cube_before_anything_is_sent(
    tmp_path, cluster, two_hosts, model
):
    for name, address in two_hosts.items():
        join(cluster, name, address, hidden=tmp_path / "shared")
    # Both are unfit, and the one that says so first is named.
    named = "|".join(rf"{address}:\d+ \({name}\)" for name, address in two_hosts.items())

    with pytest.raises(SweepError, match=f"worker tcp://({named}): .* cube at {tmp_path}") as caught:
        run(config_of(tmp_path, model, cluster=of_both(cluster)))

    assert "Mount" in str(caught.value)
    assert model.requests == 0
    assert_nothing_is_left(cluster)


def reach(name, *, reached):
    """Open or close the way of a host to the model's port, and to no other."""
    change = "del" if reached else "add"
    blackhole = ("ip", "route", change, "prohibit", GATEWAY + "/32", "table", "77")
    rule = ("ip", "rule", change, "ipproto", "tcp", "dport", str(PORT), "lookup", "77")
    for words in (blackhole, rule):
        subprocess.run(in_host(name, *words), check=True, capture_output=True)


def test_run__a_host_that_alone_cannot_reach_the_endpoint_is_named_and_others_ask(
    tmp_path, cluster, two_hosts, model
):
    (first, at), (second, there) = two_hosts.items()
    join(cluster, first, at)
    join(cluster, second, there)
    notes = []
    reach(second, reached=False)

    try:
        config = config_of(tmp_path, model, trials=20, cluster=of_both(cluster))
        summary = run(
            config, subscribers=[lambda one: notes.append(one.message) if isinstance(one, Noted) else None]
        )
    finally:
        reach(second, reached=True)

    assert (summary.reason, summary.done, summary.transport) == ("complete", 100, 0), summary.details
    (refused,) = [note for note in notes if "not take part" in note]
    assert f"({second})" in refused
    assert f"{GATEWAY}:{PORT} cannot be reached" in refused
    assert model.requests == 100


def test_run__a_host_whose_way_to_the_endpoint_is_cut_in_mid_run_is_set_aside_and_others_ask(
    tmp_path, cluster, two_hosts, model
):
    (first, at), (second, there) = two_hosts.items()
    join(cluster, first, at)
    join(cluster, second, there)
    notes, blocks = [], itertools.count()

    def follow(event):
        if isinstance(event, BlockDone) and next(blocks) == 0:
            reach(second, reached=False)
        if isinstance(event, Noted):
            notes.append(event.message)

    try:
        config = config_of(tmp_path, model, trials=200, cluster=of_both(cluster))
        config["models"][0]["limits"]["retries"] = 1
        summary = run(config, subscribers=[follow])
    finally:
        reach(second, reached=True)

    assert (summary.reason, summary.done, summary.transport) == ("complete", 1000, 0), summary.details
    (aside,) = [note for note in notes if "not take part" in note]
    assert f"({second})" in aside


def test_run__a_late_host_that_does_not_see_the_cube_is_named_and_gets_nothing(
    tmp_path, cluster, two_hosts, model
):
    (first, at), (second, there) = two_hosts.items()
    join(cluster, first, at)
    notes, joined = [], itertools.count()

    def follow(event):
        if isinstance(event, BlockDone) and next(joined) == 0:
            model.gate.clear()  # so that the run lasts until the worker is there
            join(cluster, second, there, hidden=tmp_path / "shared")
        if isinstance(event, Noted):
            notes.append(event.message)
            if "not take part" in event.message:
                model.gate.set()

    config = config_of(tmp_path, model, trials=200)
    config["models"][0]["limits"]["timeout"] = 200
    summary = run(config, scheduler=cluster.address, subscribers=[follow])

    assert (summary.reason, summary.done) == ("complete", 1000), summary.details
    refused = [note for note in notes if "not take part" in note]
    assert len(refused) == 1
    assert f"({second})" in refused[0]
    assert "sweep's cube" in refused[0]
    assert_nothing_is_left(cluster)
