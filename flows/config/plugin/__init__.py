"""The package that ``evalcube init --plugin`` writes: files with ``plugin_name`` in the place of its name."""

from __future__ import annotations

import keyword
import re
import sys
from importlib.resources import files

from evalcube.flows.errors import SweepError
from evalcube.stages.generate import TASKS


def plugin_files(name: str) -> dict[str, bytes]:
    """The files of a new package, by their path in its folder.

    Examples
    --------
    >>> sorted(plugin_files("word-games"))
    ['README.md', 'pyproject.toml', 'test_word_games.py', 'word_games.py']
    """
    module = name.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9_-]{1,63}", name) or module.endswith("_") or keyword.iskeyword(module):
        raise SweepError(
            f"`plugin`: '{name}' is no name of a package",
            "Use small letters, digits and dashes, as in word-games",
        )
    taken = (
        "a task of evalcube"
        if module in TASKS
        else "a module of Python's or evalcube's"
        if module in (*sys.stdlib_module_names, "evalcube")
        else ""
    )
    if taken:
        raise SweepError(f"`plugin`: '{name}' is {taken} already", f"Take another name, such as {name}-2")
    words = {
        "plugin_name": module,
        "plugin-name": module.replace("_", "-"),
        "PluginName": module.title().replace("_", ""),
    }
    return {
        _with(words, path.name.removesuffix(".txt")): _with(words, path.read_text(encoding="utf-8")).encode()
        for path in files(__package__).iterdir()
        if path.name.endswith(".txt")
    }


def _with(words: dict[str, str], text: str) -> str:
    for word, own in words.items():
        text = text.replace(word, own)
    return text
