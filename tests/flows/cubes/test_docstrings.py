"""Docstrings of what reads cubes name every parameter and say what comes back."""

import importlib
import inspect
import pkgutil

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


def test_functions__document_every_parameter_and_say_what_comes_back():
    for name, function in FUNCTIONS.items():
        assert documented(function) == set(inspect.signature(function).parameters), name
        returned = inspect.signature(function).return_annotation
        assert returned in ("None", "Iterator[None]") or {"Returns", "Yields"} & set(sections(function)), name
