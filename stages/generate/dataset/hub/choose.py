"""Which files of a repository on the hub hold the rows that an address names.

The rule: the file of `path`; else what the card's `configs` list for config and split; else the files whose folders or
names have both as a word; else, as `datasets` has it, all as `train` where no name has a split's. What is left must be
one file, or the numbered parts of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import chain, islice
from typing import Any

from evalcube.stages.generate.dataset.files import ENDINGS
from evalcube.stages.generate.dataset.hub.address import Address, safe_path

_LISTED = 12
"""Files that a message lists."""
_MOST_ENTRIES, _MOST_PATTERNS = 2000, 20
_WORD = re.compile(r"[^A-Za-z0-9]+")
_SPLITS = frozenset("train training test testing eval evaluation validation valid val dev".split())


def form_of(path: str) -> str:
    """The format of a file by its name; empty if it has none of ours.

    Examples
    --------
    >>> form_of("data/test-00000-of-00001.parquet"), form_of("test.json.gz"), form_of("README.md")
    ('parquet', 'json', '')
    """
    name = path.lower().removesuffix(".gz").rpartition("/")[2]
    ending = name[name.rfind(".") :] if "." in name else ""
    return "json" if ending == ".json" else ENDINGS.get(ending, "")


def chosen(asked: Address, files: Sequence[str], configs: object) -> list[str]:
    """The files with the rows of an address, in order."""
    there = sorted(file for file in files if safe_path(file) and form_of(file))
    if asked.path:
        if asked.path in there:
            return [asked.path]
        raise asked.problem(f"names no file with rows; there are {_list_files(there)}")
    if not there:
        raise asked.problem("has no Parquet, JSONL or CSV file; give a revision or a data set that has one")
    declared = list(_declared_files(asked, there, configs))
    if len(declared) == 1:
        return declared[0]
    matching = list(chain(*declared)) or [file for file in there if _is_named(file, asked)]
    if not matching and asked.split == "train" and not any(_SPLITS & _words(file) for file in there):
        whole = replace(asked, split="")
        matching = [file for file in there if _is_named(file, whole)]
    if matching and not declared and len({re.sub(r"\d+", "0", file) for file in matching}) == 1:
        return matching
    problem = "may mean several files" if matching else "is in none of its files by name"
    raise asked.problem(
        f"{problem}; say which with config=, split= or path=: {_list_files(list(dict.fromkeys(matching or there)))}"
    )


def _declared_files(asked: Address, there: Sequence[str], configs: object) -> Iterator[list[str]]:
    """The files of each split that the card declares and the address may mean."""
    rows = [row for row in _list(configs) if isinstance(row, dict)]
    if not asked.config and len(rows) > 1:
        default = [row for row in rows if row.get("default") is True or row.get("config_name") == "default"]
        rows = default or rows
    entries = (
        entry if isinstance(entry, dict) else {"split": "train", "path": entry}
        for row in rows
        if asked.config in ("", row.get("config_name"))
        for entry in _list(row.get("data_files"))
    )
    for entry in islice(entries, _MOST_ENTRIES):
        texts = (each for each in _list(entry.get("path")) if isinstance(each, str) and len(each) <= 500)
        patterns = [each.removeprefix("./") for each in islice(texts, _MOST_PATTERNS)]
        files = [file for file in there if any(fnmatchcase(file, each) for each in patterns)]
        if files and asked.split in ("", entry.get("split")):
            yield files


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_named(file: str, asked: Address) -> bool:
    stem = file.rpartition("/")[2].split(".")[0]
    return all(wanted in ("", stem) or wanted in _words(file) for wanted in (asked.config, asked.split))


def _words(file: str) -> set[str]:
    return {*file.split("/")[:-1], *_WORD.split(file)}


def _list_files(files: Sequence[str]) -> str:
    shown = ", ".join(file[:80] for file in files[:_LISTED])
    return (shown or "none") + (f" and {len(files) - _LISTED} more" if len(files) > _LISTED else "")
