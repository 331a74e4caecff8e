"""The public face: ``import evalcube as ec``. ``__init__.pyi`` lists its names, which are imported when first used."""

from __future__ import annotations

from functools import cache
from importlib import import_module

__version__ = "0.1.0"


class EvalcubeError(Exception):
    """Base of all errors that a user can fix.

    ::

        EvalcubeError
        ├── ConfigError       a config with problems, all of them at once; also a ValueError, as the next two are
        ├── TemplateError     a prompt template that does not compile or renders no messages
        ├── SweepError        a sweep that cannot run, or a cube that cannot be read, as asked
        ├── StorageError      a cube or cache that cannot be opened, read or written; see `evalcube.storage.errors`
        ├── DeployError       a cluster or model server that did not start, answer or stop; see `evalcube.deploy.errors`
        ├── ArgumentError     numbers or labels that a formula cannot take; also a ValueError, some a TypeError
        ├── TaskError         a task, its params or a plugin; also a ValueError
        └── InferenceError    an endpoint that cannot be asked as configured; also a ValueError

    Parameters
    ----------
    message
        The rule that was broken, with the offending value, and where.
    remedy
        What to do about it; may be empty.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.message = message
        self.remedy = remedy

    def __init_subclass__(cls) -> None:
        if cls.__module__.startswith(_homes().get(cls.__name__, ("none",))[0]):
            known_as(__name__)(cls)

    def __str__(self) -> str:
        return f"{self.message}. {self.remedy}" if self.remedy else self.message


def known_as(module: str, name: str = "") -> object:
    """Give a class or function the name that users import it by, so that pickles and references outlive a move.

    Parameters
    ----------
    module
        The public module.
    name
        Its name there; default: its own.
    """

    def named(thing: object) -> object:
        if hasattr(thing, "__qualname__"):
            thing.__module__, thing.__name__ = module, name or thing.__name__
            thing.__qualname__ = thing.__name__
        return thing

    return named


@cache
def _homes() -> dict[str, tuple[str, str]]:
    """Public name -> its module and its name there, as the stub imports them; modules of ours have no name there."""
    import ast

    # The loader, not the file system, has the stub where evalcube came as an archive.
    tree = ast.parse(__loader__.get_data(f"{__file__}i"))
    modules: dict[str, str] = {}
    homes: dict[str, tuple[str, str]] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(__name__):
            for one in node.names:
                if one.asname != one.name:
                    modules[one.asname] = f"{node.module}.{one.name}"
                elif node.module == __name__:
                    homes[one.name] = (f"{__name__}.{one.name}", "")
                else:
                    homes[one.name] = (node.module, one.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
            homes[node.targets[0].id] = (modules[node.value.value.id], node.value.attr)
    return homes


def _names() -> list[str]:
    """All public names: classes, then functions and modules."""
    return sorted((*_homes(), "EvalcubeError"))


def __getattr__(name: str) -> object:
    if name == "__all__":
        return _names()
    # Python itself looks for names such as `__wrapped__`, which must stay cheap.
    if not name.startswith("__") and name in _homes():
        home, original = _homes()[name]
        module = import_module(home)
        thing = getattr(module, original) if original else module
        # Public modules are not below others.
        return known_as(__name__, name)(thing) if getattr(thing, "__module__", "").count(".") > 1 else thing
    if not name.startswith("_") and name in (formulas := import_module("evalcube.stats")).__all__:
        return getattr(formulas, name)  # as papers and notebooks write them; not listed here
    raise AttributeError(f"module 'evalcube' has no attribute {name!r}")


def __dir__() -> list[str]:
    return _names()
