"""Workers on other hosts: network namespaces with host names and disks of their own."""

import asyncio
import itertools
import os
import shutil
import subprocess
import threading
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import pytest

from flows.errors import SweepError
from flows.run.events import BlockDone, Noted
from flows.run.sweep import run
from tests.flows.bare_cluster import BareCluster, assert_nothing_is_left
from tests.flows.support import simulator_stats, sweep_config
from tests.tiers import need

pytestmark = pytest.mark.integration

BRIDGE = "evbr"
GATEWAY = "10.78.0.1"


def ip(*words, check=True):
    subprocess.run(["ip", *words], check=check, capture_output=True)


def in_host(name, *words):
    return ("ip", "netns", "exec", name, *words)


@contextmanager
def hosts(names):
    """Network namespaces behind one bridge: name -> address."""
    addresses = {name: f"10.78.0.{11 + i}" for i, name in enumerate(names)}
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


class Forwarder:
    """Carries connections to an address of the hosts' network on to a port of this machine's own."""

    def __init__(self, port):
        self.port = port
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._carry, GATEWAY, 0))
        self.url = f"http://{GATEWAY}:{self._server.sockets[0].getsockname()[1]}"
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    async def _carry(self, reader, writer):
        there, back = await asyncio.open_connection("127.0.0.1", self.port)

        async def pump(source, target):
            with suppress(OSError):
                while data := await source.read(1 << 16):
                    target.write(data)
                    await target.drain()
            with suppress(OSError):
                target.close()

        await asyncio.gather(pump(reader, back), pump(there, writer))

    def close(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


@pytest.fixture(scope="module")
def two_hosts():
    need("root", os.geteuid() == 0, "network namespaces are made as root")
    need("ip", shutil.which("ip") and shutil.which("unshare"), "install iproute2 and util-linux")
    try:
        with hosts(("evh1", "evh2")) as addresses:
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
def served(simulator):
    forwarder = Forwarder(urlsplit(simulator.base_url).port)
    yield forwarder
    forwarder.close()


def config_of(tmp_path, served, **changes):
    config = sweep_config(tmp_path / "shared", "http://127.0.0.1:1/v1", **changes)
    for model in config["models"]:
        del model["simulate"]
        model["endpoint"] = f"{served.url}/v1"
    return config


@pytest.mark.timeout(120)
def test_run__refuses_a_host_that_does_not_see_the_cube_before_anything_is_sent(
    tmp_path, cluster, two_hosts, simulator, served
):
    (first, at), (second, there) = two_hosts.items()
    join(cluster, first, at)
    join(cluster, second, there, hidden=tmp_path / "shared")

    with pytest.raises(
        SweepError, match=rf"worker tcp://{there}:\d+ \({second}\): does not see the sweep's cube at"
    ) as caught:
        run(
            config_of(
                tmp_path, served, cluster={"kind": "scheduler", "address": cluster.address, "minimum": 2}
            )
        )

    assert "Mount the same file system there" in str(caught.value)
    assert simulator_stats(simulator)["requests"] == 0
    assert_nothing_is_left(cluster)


@pytest.mark.timeout(120)
def test_run__a_late_host_that_does_not_see_the_cube_is_named_and_gets_nothing(
    tmp_path, cluster, two_hosts, served
):
    (first, at), (second, there) = two_hosts.items()
    join(cluster, first, at)
    notes, joined = [], itertools.count()

    def follow(event):
        if isinstance(event, BlockDone) and next(joined) == 0:
            join(cluster, second, there, hidden=tmp_path / "shared")
        if isinstance(event, Noted):
            notes.append(event.message)

    config = config_of(tmp_path, served, trials=400)
    config["models"][0]["limits"]["requests_per_minute"] = 6000
    summary = run(config, scheduler=cluster.address, subscribers=[follow])

    assert (summary.reason, summary.done) == ("complete", 2000)
    refused = [note for note in notes if "takes no part in the run" in note]
    assert len(refused) == 1
    assert f"({second})" in refused[0]
    assert "does not see the sweep's cube" in refused[0]
    assert_nothing_is_left(cluster)
