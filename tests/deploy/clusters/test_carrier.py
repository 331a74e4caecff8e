"""What a node does with evalcube that is brought to it: requirements, versions side by side, and nothing left."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import evalcube
from evalcube.deploy.clusters import carrier
from evalcube.deploy.clusters.carried import packed_source, requirements_here
from evalcube.deploy.clusters.carrier import unfit
from evalcube.deploy.clusters.registrar import Registrar, is_chosen

PROBE = """
import importlib, json, os, sys
sys.meta_path[:] = [finder for finder in sys.meta_path if 'editable' not in repr(finder).lower()]
sys.path[:] = [path for path in sys.path if path not in ('', {root!r})]
space = {{'__name__': 'carrier'}}
exec(open({source!r}).read(), space)
use, leave = space['use_code'], space['leave_code']
archive = open({archive!r}, 'rb').read()
said = [use('a', 'first', 'ann', archive, {folder!r})]
import evalcube.flows.errors
said.append(evalcube.flows.errors.__file__)
said.append(use('b', 'second', 'bob', archive, {folder!r}))
said.append(use('c', 'first', 'cid', archive, {folder!r}))
sys.path.append({plugins!r})
import games, standing
leave('a')
said.append('evalcube.flows' in sys.modules)
leave('c')
left = [name for name in sys.modules if name.split('.')[0] == 'evalcube']
said += [left, os.listdir({folder!r}), use('b', 'second', 'bob', archive, {folder!r})]
left = [name for name in ('games', 'games.base', 'standing', 'json') if name in sys.modules]
print(json.dumps([*said, left]))
"""


@pytest.mark.cluster
def test_use_code__one_version_at_a_time_and_nothing_afterwards(tmp_path):
    digest, data = packed_source()
    (tmp_path / "archive.zip").write_bytes(data)
    (tmp_path / "folder").mkdir()
    plugins = tmp_path / "plugins"
    (plugins / "games").mkdir(parents=True)
    (plugins / "games" / "base.py").write_text("from evalcube.flows.errors import SweepError as Base\n")
    (plugins / "games" / "__init__.py").write_text("from games.base import Base\nclass Word(Base): ...\n")
    (plugins / "standing.py").write_text("import json\n")
    names = {
        "root": str(Path(evalcube.__file__).parents[1]),
        "source": carrier.__file__,
        "archive": str(tmp_path / "archive.zip"),
        "folder": str(tmp_path / "folder"),
        "plugins": str(plugins),
    }

    done = subprocess.run(
        [sys.executable, "-P", "-c", PROBE.format(**names)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )

    first, place, refused, again, kept, left, files, second, others = json.loads(done.stdout)
    assert digest
    assert (first, again, second) == ("", "", "")
    assert place.startswith(str(tmp_path / "folder"))
    assert refused.startswith("runs another version of evalcube at the moment, for ann.")
    assert kept is True  # another run still uses it
    assert (left, files) == ([], [])
    assert others == ["standing", "json"]  # a plugin is made of our classes, and goes with them


@pytest.mark.parametrize(
    ("requirement", "said"),
    [
        ("numpy>=2.1", []),
        ("numpy>=99.5", ["is too old (needs >= 99.5)"]),
        ("numpy<1", ["does not do (needs <1)"]),
        ("no-such-package>=1.2", ["no-such-package is not installed (needs >= 1.2)"]),
        ("no-such-package>=1; sys_platform == 'none'", []),
    ],
)
def test_unfit__names_what_is_missing_or_too_old(requirement, said):
    found = unfit([requirement], ">=3.11")

    assert len(found) == len(said)
    for text, end in zip(found, said, strict=True):
        assert text.endswith(end)


def test_unfit__names_an_old_python():
    (said,) = unfit([], ">=9.1")

    assert said.startswith("Python 3.")
    assert said.endswith("does not do (needs >= 9.1)")


def test_requirements_here__are_those_of_the_package_without_extras():
    required, python = requirements_here()

    assert any(text.startswith("zarr>=3") for text in required)
    assert not any(text.startswith(("pytest", "redis")) for text in required)
    assert python == ">=3.11"
    assert unfit(list(required), python) == []


def test_carrier__a_task_waits_no_longer_than_it_must_on_a_worker_that_cannot_do_it(monkeypatch):
    monkeypatch.setattr(carrier, "_PAUSE_SECONDS", 0.0)
    made = carrier.Carrier("run", "digest", b"", "ann", b"", [], ">=3.11")
    made.problem = "zarr is not installed"
    made.ready.set()

    with pytest.raises(carrier.Reschedule):
        made.call(b"", [])


class FakeScheduler:
    def __init__(self):
        self.plugins, self.worker_plugins = {}, {}


async def registered(scheduler, name, endpoints, since):
    made = Registrar(name, f"client-{name}", "group", endpoints)
    await made.start(scheduler)
    made.evalcube_since = since
    scheduler.plugins[made.name] = made
    return made


def test_registrar__counts_the_runs_that_ask_an_endpoint():

    async def shares():
        scheduler = FakeScheduler()
        first = await registered(scheduler, "one", ["a", "b"], 1.0)
        second = await registered(scheduler, "two", ["b"], 2.0)
        return first.shares(), second.shares()

    assert asyncio.run(shares()) == ({"a": (1, 0), "b": (2, 0)}, {"b": (2, 1)})


@pytest.mark.parametrize(
    ("names", "resource", "chosen"),
    [
        ([], "", True),
        (["w1"], "", True),
        (["7"], "", False),
        (["tcp://a"], "", True),
        ([], "eval", True),
        ([], "GPU", False),
    ],
)
def test_is_chosen__by_name_address_or_resource(names, resource, chosen):
    assert is_chosen("tcp://a", "w1", {"eval": 1}, names, resource) is chosen


def test_carrier__on_a_worker_that_the_run_does_not_use_brings_nothing():
    made = carrier.Carrier("run", "digest", b"", "ann", b"", [], ">=3.11", (["other"], ""))
    worker = SimpleNamespace(name="w1", address="tcp://a", state=SimpleNamespace(total_resources={}))

    assert made._load(worker) is None
    assert made.problem == "the run does not use this worker"


@pytest.mark.parametrize("gone", [True, False], ids=["gone", "let in"])
def test_registrar__what_is_done_may_be_computed_again_by_whoever_joins(gone):
    """A task is kept to the workers of a moment; those may all be gone when its result is lost with one of them."""

    async def restrictions():
        scheduler = FakeScheduler()
        done = SimpleNamespace(
            group=SimpleNamespace(name="process-group"),
            state="processing",
            processing_on=None,
            worker_restrictions=None,
        )
        scheduler.tasks, scheduler.workers, scheduler.running = {"done": done}, {"ready": 0, "late": 0}, ()
        registrar = await registered(scheduler, "one", ["a"], 1.0)
        registrar.bar(["late"])
        before, done.state = done.worker_restrictions, "memory"
        if gone:
            registrar.remove_worker(scheduler, "late")
        else:
            registrar.bar([])
        return before, done.worker_restrictions

    assert asyncio.run(restrictions()) == ({"ready"}, None)
