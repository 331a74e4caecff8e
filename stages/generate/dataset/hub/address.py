"""The address of rows on the Hugging Face Hub: which data set, which revision, and which of its files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import parse_qsl, quote

from evalcube.stages.generate.errors import TaskError, file_error

SCHEME = "hf://"
_FORM = re.compile(
    r"hf://(?:datasets/)?(?P<repo>[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95})(?:@(?P<revision>[^?]{1,200}))?"
    r"(?:\?(?P<query>.*))?",
    re.ASCII,
)
_COMMIT = re.compile("[0-9a-f]{40}")
_PARTS = ("config", "split", "path")
_LONGEST = 1000


def is_hub(file: str) -> bool:
    """Whether a data set's `file` is an address on the hub."""
    return file.startswith(SCHEME)


def lasting(file: str) -> str:
    """A data set's `file` as it holds in any directory."""
    return file if is_hub(file) else str(Path(file).absolute())


def source_of(file: str) -> str:
    """What stays of a data set's `file` when its content changes: an absolute path, or an address without revision."""
    return str(replace(Address.parse(file), revision="")) if is_hub(file) else str(Path(file).absolute())


def with_files(params: Any, name: Callable[[Mapping[str, Any]], str]) -> Any:  # noqa: ANN401 - JSON values
    """Params as JSON with another name for each file that has a digest beside it."""
    if not isinstance(params, Mapping):
        return params
    renamed = {key: with_files(value, name) for key, value in params.items()}
    if "sha256" in renamed and isinstance(renamed.get("file"), str):
        renamed["file"] = name(renamed) if renamed["file"] else ""
    return renamed


def shareable(params: Any) -> Any:  # noqa: ANN401 - JSON values
    """Params as others may see them: a digest tells a file, and where it lies on this machine is nobody's business."""
    shared = with_files(params, lambda named: bare_name(named["file"]))
    if isinstance(shared, dict) and isinstance(shared.get("include_path"), str):
        shared["include_path"] = PurePath(shared["include_path"]).name
    return shared


def bare_name(file: str) -> str:
    """A data set's `file` as others may see it: without the folders of this machine."""
    return file if is_hub(file) else PurePath(file).name


def safe_path(path: str) -> bool:
    """Whether the name of a file in somebody's repository can be one below a folder of ours.

    Examples
    --------
    >>> safe_path("main/test.parquet"), safe_path("../x"), safe_path("/etc/x"), safe_path("a//b")
    (True, False, False, False)
    """
    return (
        path.isprintable()
        and "\\" not in path
        and len(path) <= 500
        and not any(part in ("", ".", "..") for part in path.split("/"))
    )


@dataclass(frozen=True)
class Address:
    """Rows on the hub, as a config names them."""

    repo: str
    revision: str = ""
    """A commit, a branch or a tag; empty for the newest commit."""
    config: str = ""
    split: str = ""
    path: str = ""

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read an address.

        Examples
        --------
        >>> Address.parse("hf://openai/gsm8k@main?config=main&split=test").split
        'test'
        """
        form = _FORM.fullmatch(text) if text.isprintable() and len(text) <= _LONGEST else None
        if form is None:
            raise _refusal(text, "is no address of a data set")
        parts: dict[str, str] = {}
        for name, value in parse_qsl(form["query"] or "", keep_blank_values=True):
            if name not in _PARTS or name in parts or not value.isprintable() or not value:
                raise _refusal(text, f"has a part {name!r} that is unknown, empty or there twice")
            parts[name] = value
        if not safe_path(parts.get("path", "x")) or not safe_path(form["revision"] or "x"):
            raise _refusal(text, "has a path or a revision that is none")
        return cls(form["repo"], form["revision"] or "", **parts)

    def __str__(self) -> str:
        query = "&".join(
            f"{name}={quote(value, safe='/ ')}" for name in _PARTS if (value := getattr(self, name))
        )
        return (
            f"{SCHEME}{self.repo}{'@' if self.revision else ''}{self.revision}{'?' if query else ''}{query}"
        )

    @property
    def is_pinned(self) -> bool:
        """Whether it names a commit, which never changes."""
        return bool(_COMMIT.fullmatch(self.revision))

    def problem(self, why: str) -> TaskError:
        """An error about what the address names."""
        return file_error(str(self), why)


def _refusal(text: str, why: str) -> TaskError:
    return file_error(
        repr(text[:200]),
        f"{why}; write hf://OWNER/NAME, and behind it @REVISION and ?config=NAME&split=NAME or ?path=FILE where they "
        "are needed",
    )
