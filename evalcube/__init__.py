"""The public face: ``import evalcube as ec``. ``__init__.pyi`` lists its names, which are imported when first used."""

from __future__ import annotations

from functools import cache
from importlib import import_module

__version__ = "0.1.0"


class EvalcubeError(Exception):
    """Base of all errors that a user can mend: what is wrong, and what to do about it.

    ::

        EvalcubeError
        ├── ConfigError       a config with problems, all of them at once
        ├── TemplateError     a prompt template that does not compile or renders no messages
        ├── SweepError        a sweep that cannot run, or a cube that cannot be read, as asked
        ├── StorageError      a cube or cache that cannot be opened, read or written; see `evalcube.storage.errors`
        ├── DeployError       a cluster or model server that did not start, answer or stop; see `evalcube.deploy.errors`
        ├── TaskError         a task, its params or a plugin; also a ValueError
        └── InferenceError    an endpoint that cannot be asked as configured

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

    def __str__(self) -> str:
        return f"{self.message}. {self.remedy}" if self.remedy else self.message


@cache
def _homes() -> dict[str, tuple[str, str]]:
    """Public name -> its module and its name there, as the stub imports them."""
    import ast

    # The loader, not the file system, has the stub where evalcube came as an archive.
    tree = ast.parse(__loader__.get_data(f"{__file__}i"))
    modules: dict[str, str] = {}
    homes: dict[str, tuple[str, str]] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            homes |= {one.asname: (node.module, one.name) for one in node.names if one.asname}
            modules |= {one.name: f"{node.module}.{one.name}" for one in node.names if not one.asname}
        elif isinstance(node, ast.Assign):
            homes[node.targets[0].id] = (modules[node.value.value.id], node.value.attr)
    return homes


def _names() -> list[str]:
    """All public names: constants, then classes, then functions."""
    return sorted(
        (*_homes(), "EvalcubeError"), key=lambda name: (not name.isupper(), name[0].islower(), name)
    )


def __getattr__(name: str) -> object:
    if name == "__all__":
        return _names()
    # Python itself looks for names such as `__wrapped__`, which must stay cheap.
    if name.startswith("__") or name not in _homes():
        raise AttributeError(f"module 'evalcube' has no attribute {name!r}")
    module, original = _homes()[name]
    return getattr(import_module(module), original)


def __dir__() -> list[str]:
    return _names()
