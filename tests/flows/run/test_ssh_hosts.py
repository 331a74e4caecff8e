"""A sweep on two hosts over SSH, each a network namespace with its own server, one of which is lost in mid-sweep."""

import os
import shutil
import socket
import subprocess
import threading
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from evalcube.deploy.clusters.ssh import Ssh
from evalcube.deploy.simulator.profile import Profile
from evalcube.flows.run.events import BlockDone
from evalcube.flows.run.sweep import run
from tests.deploy.clusters.ssh.sshd import processes, serving
from tests.flows.shared_cluster import SHARED
from tests.flows.support import assert_same_cube, simulator_stats, sweep_config
from tests.tiers import need
from tests.waiting import wait_until

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[3]
CONNECTIONS = 8


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextmanager
def network():
    """A bridge of this machine with two namespaces; yields its address and, of each namespace, name and address."""
    need("ip and root", shutil.which("ip") and os.geteuid() == 0, "apt-get install iproute2, run as root")
    number = os.getpid() % 1000
    bridge, net = f"evb{number}", f"10.77.{number % 250}"
    with ExitStack() as stack:
        ip("link", "add", bridge, "type", "bridge")
        stack.callback(ip, "link", "del", bridge)
        ip("addr", "add", f"{net}.1/24", "dev", bridge)
        ip("link", "set", bridge, "up")
        found = []
        for place in (1, 2):
            name, here, there = f"evn{number}-{place}", f"eva{number}{place}", f"evz{number}{place}"
            ip("netns", "add", name)
            stack.callback(ip, "netns", "del", name)
            ip("link", "add", here, "type", "veth", "peer", "name", there)
            ip("link", "set", there, "netns", name)
            ip("link", "set", here, "master", bridge, "up")
            ip("-n", name, "addr", "add", f"{net}.1{place}/24", "dev", there)
            ip("-n", name, "link", "set", there, "up")
            ip("-n", name, "link", "set", "lo", "up")
            found.append((name, f"{net}.1{place}"))
        yield f"{net}.1", found


@contextmanager
def forwarded(address, port):
    """A port of the address, whose connections go to the simulator's, which listens on this machine alone."""

    def carry(source, target):
        with suppress(OSError):
            while data := source.recv(65_536):
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def serve():
        with suppress(OSError):
            while True:
                taken, _ = listening.accept()
                onward = socket.create_connection(("127.0.0.1", port))
                opened.extend((taken, onward))
                for pair in ((taken, onward), (onward, taken)):
                    threading.Thread(target=carry, args=pair, daemon=True).start()

    opened = []
    with socket.create_server((address, 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    for one in opened:
        one.close()


def test_run__on_two_hosts_goes_on_when_one_is_lost_and_asks_nothing_again(tmp_path, simulator, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with network() as (here, hosts), ExitStack() as stack:
        port = stack.enter_context(forwarded(here, int(simulator.address.rsplit(":", 1)[1])))
        servers = [
            stack.enter_context(serving(tmp_path / "ssh", address, ("ip", "netns", "exec", name)))
            for name, address in hosts
        ]
        config = sweep_config(tmp_path, simulator.base_url, trials=60)
        (model,) = config["models"]
        model |= {
            "endpoint": f"http://{here}:{port}/v1",
            "model": Profile(tokens=20, latency=0.1).model_name("alpha"),
        }
        model["limits"]["connections"] = CONNECTIONS
        del model["simulate"]
        lost = []

        def lose(event):
            if isinstance(event, BlockDone) and not lost:
                lost.extend(processes(f"evalcube-{servers[0].address}"))
                for process in lost:
                    with suppress(ProcessLookupError):
                        os.kill(process, 9)

        cluster = Ssh(
            tuple(server.host for server in servers),
            servers[0].login,
            variables=("PYTHONPATH",),
            minimum=2,
            patience=60,
        )
        summary = run(config, cluster=cluster, subscribers=[lose])

    assert lost
    assert (summary.reason, summary.done) == ("complete", 300)
    assert simulator_stats(simulator)["requests"] <= 300 + CONNECTIONS
    wait_until(lambda: not processes(f"evalcube-{here.removesuffix('.1')}."))
    calm = {**config, "cube": str(tmp_path / "calm.zarr")}
    assert run(calm, cluster=SHARED).sent == 0
    assert_same_cube(config["cube"], calm["cube"])
