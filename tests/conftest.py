"""Settings that every test shares."""

import atexit
import copy
import gc
import json
import os
import pickle
import shutil
import signal
import socketserver
import sys
import tempfile
from functools import cache

import pytest
import typer.main
import typer.testing
from _pytest.doctest import DoctestModule
from _pytest.runner import runtestprotocol
from hypothesis import settings

# Each of the many processes that tests start would compile all modules anew if nobody kept what is compiled.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# No test takes the power away; after a kill, what was written is there without waiting for the disk.
os.fsync = lambda _: None

# Servers of tests take as many connections at once as a sweep opens; with Python's 5, some wait for seconds.
socketserver.TCPServer.request_queue_size = 256
# They end as soon as they are told; with Python's 0.5 s, a test waits for that.
socketserver.BaseServer.serve_forever.__defaults__ = (0.02,)

# Hundreds of commands are called in one process; to make their tree anew for each would take a twentieth of a second.
typer.main.get_command = typer.testing._get_command = cache(typer.main.get_command)

pytest_plugins = ["tests.tiers", "tests.browser", "tests.examples", "tests.installed", "tests.hub"]
collect_ignore = ["data"]  # scripts that made samples, with packages that tests do not need

# No deadline: a busy machine is no bug. In CI the same examples each time, so that a red run can be repeated.
settings.register_profile("here", deadline=None, max_examples=20)
settings.register_profile("quick", deadline=None, max_examples=10)
settings.register_profile("ci", deadline=None, max_examples=20, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

# Runs are remembered below the user's home directory; those of tests are forgotten with them. What the user has set up
# there, such as clusters, is nothing to tests.
_HOME = tempfile.mkdtemp(prefix="evalcube-home-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
os.environ |= {"XDG_STATE_HOME": f"{_HOME}/state", "XDG_CONFIG_HOME": f"{_HOME}/config"}

# A shell script that runs tests in the background (`make test &`) has them ignore Ctrl-C, and all their children too.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})


gc.disable()  # while tests are collected, all that is made stays


def pytest_collection_finish():
    """Have the garbage collector leave alone what stays to the end, and empty cubes be made once."""
    gc.freeze()
    # With Python's 700, a twelfth of what tests take goes into looking through all there is.
    gc.set_threshold(20_000)
    gc.enable()
    if layout := sys.modules.get("evalcube.storage.cube.layout"):
        layout._build = _build_once(layout._build)
    if metadata := sys.modules.get("zarr.core.metadata.v3"):
        metadata.ArrayV3Metadata.from_dict = _parse_once(metadata.ArrayV3Metadata.from_dict)


def pytest_sessionfinish(session):
    """Have pytest not look through all reports for what tests left behind: they ran in other processes."""
    if session.config.getoption("dist", "no") != "no":
        gc.freeze()


def _build_once(build):
    """Have zarr make each empty cube once: most tests begin with one, and many with the same."""
    made = {}

    def build_or_copy(store, **design):
        objects = made.setdefault(pickle.dumps(design), {})
        if not objects:
            build(MemoryStore(objects), **design)

        async def put():
            for key, content in objects.items():
                await store.set(key, content)

        sync(put())

    from zarr.core.sync import sync
    from zarr.storage import MemoryStore

    return build_or_copy


def _parse_once(parse):
    """Have zarr parse the same metadata of an array once: it takes a tenth of the time of tests that open cubes."""
    parsed = {}

    def parse_or_copy(document):
        key = json.dumps(document, sort_keys=True, default=repr)
        if key not in parsed:
            parsed[key] = parse(document)
        metadata = copy.copy(parsed[key])
        # which zarr updates in place
        object.__setattr__(metadata, "attributes", copy.deepcopy(metadata.attributes))
        return metadata

    return parse_or_copy


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """Have pytest's workers report what somebody reads: to send and take a report takes as long as most tests."""
    if not hasattr(item.config, "workerinput") or item.config.option.durations is not None:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed or report.sections:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path):
    """Look for examples in modules that have some, and not in tests."""
    found = yield
    if found and (file_path.name.startswith("test_") or ">>>" not in file_path.read_text()):
        found = [one for one in found if not isinstance(one, DoctestModule)]
    return found
