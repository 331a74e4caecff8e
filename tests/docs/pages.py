"""The blocks of code of the pages: where each stands, and whether it runs here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "AGENTS.md")]
    + [*(ROOT / "docs").glob("*.md")]
)
SERVICES = (
    *("a Dask scheduler", "a fresh clone", "a GPU", "a model server", "a package index", "GitHub", "GitLab"),
    *("Icechunk", "Slurm", "SSH hosts", "the Hugging Face Hub"),
)
"""What blocks may need that is missing here: nothing else is a reason not to run one."""
LANGUAGES = ("sh", "python", "yaml", "json", "toml", "js", "text")
"""A block is in one of these; one of text is no code, and below a block of commands it is what they print."""

_FENCE = re.compile(r"( *)```(.*)")
_MARK = re.compile(r" *<!-- not run here: (.*) -->")
_NEEDS = re.compile(r"it needs {0}((, {0})* and {0})?".replace("{0}", f"(?:{'|'.join(SERVICES)})"))
_TERMINAL = re.compile(r" *<!-- in a terminal of its own, on port (\d+) -->")
_NAME = re.compile(r"# (\S+\.\w+)\n")
_SEPARATE = "<!-- each section begins with what the first one made -->"
_NEW = "<!-- typed in a new environment -->"


@dataclass(frozen=True)
class Block:
    """One block of code of a page."""

    page: Path
    line: int
    section: str
    language: str
    text: str
    reason: str
    """Why it does not run here; empty if it does."""
    port: int = 0
    """Where it listens, if it is a program that runs in a terminal of its own; else 0."""

    @property
    def names_service(self) -> bool:
        """Whether the reason says which of `SERVICES` it needs."""
        return _NEEDS.fullmatch(self.reason) is not None

    @property
    def file(self) -> str:
        """Name of the file that it is, which its first line says; empty for others."""
        named = _NAME.match(self.text)
        return named[1] if named else ""

    def __str__(self) -> str:
        page = self.page.relative_to(ROOT) if self.page.is_relative_to(ROOT) else self.page.name
        return f"{page}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    return list(_blocks(page, page.read_text(encoding="utf-8").splitlines()))


def _blocks(page: Path, lines: list[str]) -> Iterator[Block]:
    section = before = ""
    numbered = iter(enumerate(lines, 1))
    for number, line in numbered:
        fence = _FENCE.match(line)
        if fence:
            indent = len(fence[1])
            inside = []
            for _, inner in numbered:
                if inner.strip() == "```":
                    break
                inside.append(inner[indent:] + "\n")
            mark, terminal = _MARK.match(before), _TERMINAL.match(before)
            reason, port = mark[1] if mark else "", int(terminal[1]) if terminal else 0
            yield Block(page, number, section, fence[2], "".join(inside), reason, port)
        elif line.startswith("## "):
            section = line
        if line.strip():
            before = line


def are_separate(page: Path) -> bool:
    """Whether the sections of a page do not go on from each other, but each from the first one."""
    return _SEPARATE in page.read_text(encoding="utf-8")


def needs_environment(page: Path) -> bool:
    """Whether a page installs packages."""
    return _NEW in page.read_text(encoding="utf-8")


def indented(page: Path) -> list[int]:
    """Lines at which a block of code begins that is indented and not fenced, so that nobody sees its language."""
    found = []
    fenced, before, listed = False, "", False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and line.strip():
            if not line.startswith(" "):
                listed = bool(re.match(r"[-*] |\d+\. ", line))
            elif re.match(r"    +\S", line) and not before.strip() and not (listed and _is_text(line)):
                found.append(number)
        before = line
    return found


def _is_text(line: str) -> bool:
    """Whether an indented line goes on with the text of a list's entry."""
    return bool(re.match(r" {2,5}\S", line))
