"""Sorts tests into tiers by what they need, and fails a unit test that starts a process.

A test belongs to the tier that it, its class or its module is marked with; else to that of the fixtures it uses
(`STARTERS`); else it is a unit test. So a test cannot come into a tier by oversight: whoever starts a process
without a mark is told.
"""

from __future__ import annotations

import multiprocessing.process
import multiprocessing.util
import os
import sys
from collections import Counter

import pytest

TIERS = ("cluster", "browser", "chaos", "integration", "model")
STARTERS = {
    "_served": "cluster",  # simulators
    "running": "cluster",
    "processes": "cluster",
    "trail": "cluster",
    "redis_place": "cluster",
    "redis_url": "cluster",
    "certificate": "cluster",  # openssl
    "sdist": "cluster",
    "wheel": "cluster",
    "measured": "browser",
    "chromium": "browser",
}
"""Fixtures that start processes, and the tier of the tests that use them."""

_EVENTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec"}
_REQUIRED = "EVALCUBE_REQUIRE"


def need(tool: str, found: object, remedy: str) -> None:
    """Skip a test for want of a tool; fail it if the variable EVALCUBE_REQUIRE names the tool."""
    if found:
        return
    reason = f"needs {tool} ({remedy})"
    if tool in os.environ.get(_REQUIRED, "").split():
        pytest.fail(f"{reason}, and {_REQUIRED} names it", pytrace=False)
    pytest.skip(reason)


class _Guard:
    """Knows which test runs and which fixture is being made when a process starts."""

    def __init__(self) -> None:
        self.unit: str | None = None
        """The unit test under way."""
        self.fixtures: list[pytest.FixtureDef[object]] = []
        """Fixtures that are being made, the innermost last."""
        self.starters: set[pytest.FixtureDef[object]] = set()
        """Fixtures that started a process; one of a session did so before most tests that use it."""
        self.offence: str | None = None

    def started(self, how: str) -> None:
        if self.fixtures:
            self.starters.add(self.fixtures[-1])
        if self.unit is not None:
            self.offence = f"a unit test starts a process ({how}): mark it with one of {', '.join(TIERS)}"
            raise pytest.fail.Exception(self.offence)


_guard = _Guard()


def _watch() -> None:
    """Have `_guard` told of each process, for as long as this one lives: audit hooks cannot be removed."""
    # Names of its own, as those of the module are gone when the interpreter ends.
    sys.addaudithook(
        lambda event, _, events=frozenset(_EVENTS), guard=_guard: (
            guard.started(event) if event in events else None
        )
    )
    # multiprocessing forks in C, which no event tells of, and a fork server starts processes out of sight.
    spawn, start = multiprocessing.util.spawnv_passfds, multiprocessing.process.BaseProcess.start

    def told_spawn(*arguments: object) -> object:
        _guard.started("multiprocessing")
        return spawn(*arguments)

    def told_start(process: multiprocessing.process.BaseProcess) -> None:
        _guard.started("multiprocessing")
        start(process)

    multiprocessing.util.spawnv_passfds = told_spawn
    multiprocessing.process.BaseProcess.start = told_start


def pytest_configure() -> None:
    """Begin to watch."""
    _watch()


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its tier."""
    for item in items:
        if any(mark.name in TIERS for mark in item.iter_markers()):
            continue
        used = [STARTERS[name] for name in getattr(item, "fixturenames", ()) if name in STARTERS]
        item.add_marker(max(used, key=TIERS.index) if used else "unit")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> object:
    """Remember which fixture is being made."""
    _guard.fixtures.append(fixturedef)
    try:
        return (yield)
    finally:
        _guard.fixtures.pop()


def _guarded(item: pytest.Item) -> object:
    _guard.unit = item.nodeid if item.get_closest_marker("unit") else None
    try:
        result = yield
    finally:
        _guard.unit = None
        offence, _guard.offence = _guard.offence, None
    if offence is not None:  # in a thread, or where everything is caught
        pytest.fail(offence)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> object:
    """Guard the making of a test's fixtures."""
    return (yield from _guarded(item))


def _fixtures(item: pytest.Item) -> set[pytest.FixtureDef[object]]:
    """The fixtures of a test, not their names: another module may call a parameter of its own the same."""
    if not isinstance(item, pytest.Function):
        return set()
    return {made for named in item._fixtureinfo.name2fixturedefs.values() for made in named}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> object:
    """Guard a test."""
    known = [made.argname for made in _guard.starters.intersection(_fixtures(item))]
    if known and item.get_closest_marker("unit"):
        pytest.fail(f"a unit test uses what starts a process: {', '.join(known)}. Name it in tests/tiers.py")
    return (yield from _guarded(item))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at the end what was skipped for want of a tool, and how to run it."""
    reasons = Counter(
        str(report.longrepr[2]).removeprefix("Skipped: ")
        for report in terminalreporter.getreports("skipped")
        if isinstance(report.longrepr, tuple)
    )
    if reasons:
        listed = "; ".join(f"{count} × {reason}" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"{reasons.total()} skipped: {listed}")
