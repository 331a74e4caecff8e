"""Counts by model, on a worker's own Prometheus endpoint while a run lasts."""

import builtins
import re
import urllib.request
from urllib.parse import urlsplit

import pytest

from evalcube.flows.run.follow.events import RegionWritten, Traffic
from evalcube.flows.run.follow.prometheus import publish
from evalcube.flows.run.sweep import run
from tests.flows.support import hooked, set_faults, sweep_config
from tests.waiting import PATIENCE


def scrape(client):
    """What all workers say at ``/metrics``."""
    pages = []
    for address, worker in client.scheduler_info(n_workers=-1)["workers"].items():
        url = f"http://{urlsplit(address).hostname}:{worker['services']['dashboard']}/metrics"
        with urllib.request.urlopen(url, timeout=PATIENCE) as page:
            pages.append(page.read().decode())
    return "\n".join(pages)


CLIENTS, AFTER = [], []


def scraped(client):
    """Have the workers asked for their metrics, in a run and after it."""
    CLIENTS.append(client)
    try:
        yield
        AFTER.append(scrape(client))
    finally:
        CLIENTS.clear()


def values(page, name):
    """Samples of a metric: {labels without the run: value}."""
    found = {}
    for labels, value in re.findall(rf"^{name}\{{(.*)\}} (\S+)$", page, re.MULTILINE):
        assert 'run="' in labels
        found[re.sub(r'run="\w+",?', "", labels).strip(",")] = float(value)
    return found


def test_publish__shows_a_run_on_its_workers_while_it_lasts(tmp_path, simulator, monkeypatch):
    monkeypatch.setenv("METRICS_KEY", "sk-should-be-nowhere-0815")
    set_faults(simulator, [{"kind": "status", "status": 500, "times": 3}])
    config = sweep_config(tmp_path, simulator.base_url, trials=4)
    config["models"][0]["key_env"] = "METRICS_KEY"
    pages = []

    def look(event):
        if isinstance(event, RegionWritten):
            pages.append(scrape(CLIENTS[0]))

    AFTER.clear()
    run(config, cluster=hooked(scraped, 1), subscribers=[look])

    (page,), (after,) = pages, AFTER
    assert "dask_worker_" in after
    assert "evalcube" not in after
    assert values(page, "evalcube_requests_total") == {'model="alpha"': 23}
    assert values(page, "evalcube_hits_total") == {'model="alpha"': 0}
    assert values(page, "evalcube_retries_total") == {'cause="http 500"': 3}
    assert values(page, "evalcube_latency_seconds_count") == {'model="alpha"': 20}
    assert values(page, "evalcube_latency_seconds_sum")['model="alpha"'] > 0
    assert values(page, "evalcube_tokens_total")['kind="completion",model="alpha"'] > 100
    assert values(page, "evalcube_in_flight") == {"": 0}
    assert simulator.address not in page
    assert "sk-should-be" not in page


def test_publish__several_runs_of_one_worker_and_an_end_for_each():
    client = pytest.importorskip("prometheus_client")
    stops = [publish(name, lambda: Traffic(failures={"http 401": 1})) for name in ("one", "two")]

    page = client.generate_latest().decode()
    stops[0]()
    stops[0]()
    later = client.generate_latest().decode()
    stops[1]()

    assert 'evalcube_failures_total{cause="http 401",run="one"} 1.0' in page
    assert 'run="one"' not in later
    assert 'run="two"' in later
    assert "evalcube" not in client.generate_latest().decode()


def test_publish__shows_what_is_waited_for():
    client = pytest.importorskip("prometheus_client")
    waiting = {"m": {"seconds": 45.0, "reason": "429: Retry-After"}}
    stop = publish("one", lambda: Traffic(waiting=waiting))

    page = client.generate_latest().decode()
    stop()

    assert values(page, "evalcube_waiting_seconds") == {'model="m"': 45}


def test_publish__does_nothing_without_the_package(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("prometheus_client"):
            raise ModuleNotFoundError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)

    publish("run", lambda: None)()
