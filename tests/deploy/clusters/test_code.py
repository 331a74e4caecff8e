"""How workers get a run's plugin."""

import asyncio
import pickle
from functools import partial
from types import SimpleNamespace

from evalcube.deploy.clusters.code import give


def give_to(worker, pickled):
    return asyncio.run(give("run", pickled, worker))


def test_give__names_what_cannot_be_imported_and_the_line_to_type():
    problem = give_to(SimpleNamespace(plugins={}), b"cno_such_package\nPlugin\n.")

    assert problem.startswith(
        "cannot import evalcube (ModuleNotFoundError: No module named 'no_such_package')."
    )
    assert "-m pip install" in problem


def test_give__adds_a_plugin_once():
    added = []

    async def plugin_add(plugin, name):
        worker.plugins[name] = plugin
        added.append(name)

    worker = SimpleNamespace(plugins={}, plugin_add=plugin_add)

    problems = [give_to(worker, pickle.dumps(partial(dict, a=1))) for _ in range(2)]

    assert problems == ["", ""]
    assert (added, worker.plugins) == (["run"], {"run": {"a": 1}})
