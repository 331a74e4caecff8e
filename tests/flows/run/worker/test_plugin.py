"""What a worker reports to the driver while it takes part in a run."""

import asyncio
from types import SimpleNamespace

import psutil
import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.events import from_message
from evalcube.flows.plan.build import build_plan
from evalcube.flows.run.servers import serve_models
from evalcube.flows.run.worker import plugin as plugin_module
from evalcube.flows.run.worker.context import RunContext
from evalcube.flows.run.worker.plugin import SweepPlugin, topic
from evalcube.flows.run.worker.workspace import Workspace
from evalcube.stages.infer.jobs import Slowdown
from tests.waiting import PATIENCE, wait_until


@pytest.fixture
def context(tmp_path):
    config = from_mapping(
        {
            "name": "reports",
            "trials": 1,
            "cube": str(tmp_path / "cube.zarr"),
            "cache": str(tmp_path / "cache"),
            "models": [{"name": "m", "endpoint": "http://127.0.0.1:9/v1", "model": "m"}],
            "tasks": {"boolean": {"manifold": [{"points": [{"length": 4}]}]}},
        }
    )
    plan = build_plan(config)
    with serve_models(config.models) as served:
        parts = (plan.spec(), plan.trials, plan.repeats, plan.prices, config.cube, config.cache)
        yield RunContext("run", *parts, served.routes, "")


def test_plugin__reports_what_an_endpoint_asked_for_and_what_was_sent(context, monkeypatch):
    news = [[Slowdown("m", pause=2.0, reason="429: Retry-After", overload=True)]]
    monkeypatch.setattr(Workspace, "slowdowns", lambda _: news.pop() if news else [])
    monkeypatch.setattr(plugin_module, "_REPORT_MS", 5)
    messages: list = []
    worker = SimpleNamespace(
        id="w-1",
        address="tcp://10.0.0.1:9",
        lifetime=None,
        plugins={},
        monitor=SimpleNamespace(proc=psutil.Process()),
        log_event=lambda *message: messages.append(message),
    )

    async def take_part():
        plugin = SweepPlugin(context)
        plugin.setup(worker)
        await asyncio.to_thread(wait_until, plugin.ready.is_set)
        plugin.workspace.meter.add("m", requests=3, answers=2, seconds=1.5)
        await asyncio.to_thread(wait_until, lambda: len(messages) > 1)
        await plugin.teardown(worker)

    asyncio.run(asyncio.wait_for(take_part(), PATIENCE))

    reports = [from_message(message) for name, message in messages if name == topic("run")]
    assert len(reports) == len(messages)
    slowed = [report for report in reports if isinstance(report, Slowdown)]
    assert slowed == [Slowdown("m", 2.0, "429: Retry-After", overload=True, worker="tcp://10.0.0.1:9")]
    last = [report for report in reports if not isinstance(report, Slowdown)][-1]
    assert last.models == {"m": {"requests": 3, "answers": 2, "seconds": 1.5}}
    assert last.worker.startswith("tcp://10.0.0.1:9")
