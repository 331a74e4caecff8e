"""The public face: ``import evalcube as ec``. ``evalcube.pyi`` lists its names, which are imported when first used."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec

_PACKAGES = ("flows", "stages", "storage", "deploy")


class EvalcubeError(Exception):
    """Base of all errors that a user can mend: what is wrong, and what to do about it.

    ::

        EvalcubeError
        ├── ConfigError       a config with problems, all of them at once
        ├── TemplateError     a prompt template that does not compile or renders no messages
        ├── SweepError        a sweep that cannot run, or a cube that cannot be read, as asked
        ├── StorageError      a cube or cache that cannot be opened, read or written; see `storage.errors`
        ├── DeployError       a cluster or model server that did not start, answer or stop; see `deploy.errors`
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


def _refuse_what_hides_us() -> None:
    """Raise an ImportError if a module of the user's would be imported in the place of one of our packages.

    Their names are common, and the current directory and PYTHONPATH come before what is installed: what followed
    would be a traceback about a module that is missing in a package that is not ours.
    """
    here = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120 - pathlib takes as long as all the rest
    for name in _PACKAGES:
        spec = find_spec(name)
        # A folder without `__init__.py` has no origin, and never wins over a package further down the path.
        if spec is None or spec.origin is None:
            continue
        place = os.path.realpath(spec.origin)
        if spec.submodule_search_locations is not None:
            place = os.path.dirname(place)  # noqa: PTH120
        folder = os.path.dirname(place)  # noqa: PTH120
        if folder != here:
            message = (
                f"'{place}' hides evalcube's own package '{name}'. Rename it, or run Python where '{folder}' is not "
                f"on its module path, such as from another directory or with another PYTHONPATH"
            )
            raise ImportError(message, name=name, path=place)


_refuse_what_hides_us()


@cache
def _homes() -> dict[str, tuple[str, str]]:
    """Public name -> its module and its name there, as `evalcube.pyi` imports them."""
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
    # Python itself looks for `__path__` at each `from evalcube import ...`, which must stay cheap.
    if name.startswith("__") or name not in _homes():
        raise AttributeError(f"module 'evalcube' has no attribute {name!r}")
    module, original = _homes()[name]
    return getattr(import_module(module), original)


def __dir__() -> list[str]:
    return _names()
