"""Docstrings of what reads cubes name every parameter and say what comes back."""

import importlib
import inspect
import pkgutil

import pytest

from evalcube.flows import cubes
from tests.test_docstrings import documented, sections

MODULES = [
    importlib.import_module(f"flows.cubes.{found.name}") for found in pkgutil.iter_modules(cubes.__path__)
]
FUNCTIONS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": function
    for module in MODULES
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if not name.startswith("_") and function.__module__ == module.__name__
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function__documents_every_parameter(name):
    assert documented(FUNCTIONS[name]) == set(inspect.signature(FUNCTIONS[name]).parameters)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function__says_what_comes_back(name):
    returned = inspect.signature(FUNCTIONS[name]).return_annotation

    assert returned in ("None", "Iterator[None]") or {"Returns", "Yields"} & set(sections(FUNCTIONS[name]))
