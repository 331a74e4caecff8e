"""Docstrings of the public face and of plugins' contracts name every parameter and say what comes back."""

import inspect
import re

import evalcube
from evalcube import plugins, stats
from tests.cases import with_cases

FUNCTIONS = [
    getattr(module, name)
    for module in (evalcube, stats, plugins)
    for name in module.__all__
    if inspect.isfunction(getattr(module, name))
]
CONTRACTS = (plugins.Task, plugins.TaskParams, plugins.Stream)
METHODS = [
    function
    for contract in CONTRACTS
    for name, function in inspect.getmembers(contract, inspect.isroutine)
    if name in vars(contract) and not name.startswith("_")
]
VERBS = (
    "plan run probe upsample status open_cube leaderboard table rank compare metrics verdict trials report merge diff "
    "publish pull import_logs export verify rescore"
).split()


def sections(item):
    """numpydoc sections of a docstring: heading -> lines."""
    parts = re.split(r"\n([A-Z][A-Za-z ]+)\n-{3,}\n", "\n" + (inspect.getdoc(item) or "") + "\n")
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def documented(item):
    """Parameters with an entry of their own; several may share one, separated by commas."""
    lines = re.findall(r"^(\S.*)$", sections(item).get("Parameters", ""), re.MULTILINE)
    return {name.strip().lstrip("*") for line in lines for name in line.split(",")}


def parameters(function):
    """Names of a function's parameters for others, without the instance or class that it belongs to."""
    return {name for name in inspect.signature(function).parameters if name != "self" and name[0] != "_"}


@with_cases("function", FUNCTIONS)
def test_functions__document_every_parameter_and_say_what_comes_back(function):
    assert documented(function) == parameters(function)
    assert "Returns" in sections(function)


@with_cases("method", METHODS)
def test_contracts__document_every_parameter(method):
    assert documented(method) == parameters(method)


def test_documented__sees_a_parameter_that_is_left_out():
    def function(a, b, *rest):
        """A result.

        Parameters
        ----------
        a, rest
            Numbers.
        """

    assert documented(function) == {"a", "rest"} != set(inspect.signature(function).parameters)


@with_cases("name", VERBS)
def test_verbs__have_an_example(name):
    assert f"ec.{name}(" in sections(getattr(evalcube, name))["Examples"]
