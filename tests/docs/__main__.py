"""Writes what commands print now into the pages that show it: ``python -m tests.docs docs/statistics.md``.

Look at the difference before you commit it: a page that changes says that the program does.
"""

from __future__ import annotations

import re
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from tests.docs.pages import blocks
from tests.docs.typed import Reader


def refresh(page: Path) -> None:
    """Type a page that shows output, and replace what its commands do not print any more."""
    found = blocks(page)
    if not any(block.language == "text" for block in found):
        return
    with tempfile.TemporaryDirectory() as folder, closing(Reader(Path(folder) / "here")) as reader:
        text = page.read_text(encoding="utf-8")
        for block in found:
            try:
                reader.type(block)
            except AssertionError:
                if block.language != "text":
                    raise
                printed = _lasting("\n".join(line.rstrip() for line in reader.printed.splitlines()))
                text = text.replace(f"```text\n{block.text}```", f"```text\n{printed}\n```", 1)
        page.write_text(text, encoding="utf-8")


def _lasting(printed: str) -> str:
    """What a command prints, with dots for what each run measures anew."""
    printed = re.sub(r"in [\d.]+ s, [\d.,]+/s", "in ... s, .../s", printed)
    return re.sub(r"(?m)^(efficiency|concurrency): .*", r"\1: ...", printed)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        refresh(Path(name).resolve())
