"""Types the blocks of a page as a reader would: commands, files and Python, one after the other in one folder."""

from __future__ import annotations

import doctest
import io
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Container, Mapping
from contextlib import chdir, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from tests.docs.pages import ROOT, Block
from tests.flows.support import evalcube, one_simulator
from tests.waiting import PATIENCE, wait_until

_SHELL = re.compile(r"[|&;<>$`*?~(){}]")
"""Signs of a line that only a shell understands."""
_PLAIN = re.compile(
    r"evalcube (?P<command>.*?)( > (?P<file>[\w.-]+))?( \|\| (true|test \$\? = (?P<code>\d+)))?(\s+#[^'\"]*)?"
)
"""A command of ours whose output may go to a file, and which may end with another exit code than 0."""
_HEREDOC = re.compile(r"cat > (?P<file>[\w.-]+) <<'END'\n(?P<text>.*?)^END\n", re.DOTALL | re.MULTILINE)
"""A file that a block writes."""
_LASTING = re.compile(r"<<|\\$|&$|^\s*[()]|^(export|cd|for|if|while|trap) |^\w+=", re.MULTILINE)
"""Signs of a block whose lines need the shell of the lines before."""
_LIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Reader:
    """Somebody who types what a page says, in a folder that has the examples.

    Parameters
    ----------
    folder
        Where; it is made.
    environment
        Variables beside those of the test.
    binaries
        Folder of the programs `evalcube` and `python`; None: commands without a shell's signs run in this process,
        which is quicker.
    """

    def __init__(
        self, folder: Path, environment: Mapping[str, str] | None = None, binaries: Path | None = None
    ) -> None:
        self.folder = folder
        self.binaries = binaries
        if not folder.exists():
            shutil.copytree(ROOT / "examples", folder / "examples")
        path = f"{binaries or Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {
            "PATH": path,
            "COLUMNS": "80",
            "XDG_CACHE_HOME": str(folder / "user-cache"),
            **(environment or {}),
        }
        self.names: dict[str, object] = {"__name__": "__main__"}
        self._terminals: list[subprocess.Popen[bytes]] = []
        self.printed = ""
        """What the block before printed."""

    def type(self, block: Block) -> None:
        """Do what a block says; an AssertionError tells where it is not true."""
        if block.reason:
            self.printed = ""
        elif block.port:
            self._start(block)
        elif block.file:
            self._write(block)
        elif block.language == "sh":
            self.printed = self._commands(block)
        elif block.language == "python":
            self.printed = self._python(block)
        elif block.language == "text" and self.printed:
            told = doctest.OutputChecker().check_output(block.text, self.printed, _LIKE)
            assert told, f"{block}: the page has\n{block.text}\nand the command prints\n{self.printed}"

    def close(self) -> None:
        """End what runs in terminals of its own."""
        for process in self._terminals:
            process.kill()
            process.wait()

    def _start(self, block: Block) -> None:
        # The page names the port, and other tests on this machine may be typing it, too.
        wait_until(lambda: not _listens(block.port), told=lambda: f"{block}: port {block.port} is taken")
        process = subprocess.Popen(
            ["bash", "-c", f"exec {block.text}"],
            cwd=self.folder,
            env={**os.environ, **self.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._terminals.append(process)

        def served() -> bool:
            assert process.poll() is None, f"{block}: it ended with code {process.returncode}"
            return _listens(block.port)

        wait_until(served, told=lambda: f"{block}: nothing listens on port {block.port}")

    def _write(self, block: Block) -> None:
        path = self.folder / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")

    def _commands(self, block: Block) -> str:
        text = block.text
        while self.binaries is None and (first := _HEREDOC.match(text)):
            (self.folder / first["file"]).write_text(first["text"], encoding="utf-8")
            text = text[first.end() :]
        if self.binaries is not None or _LASTING.search(text):
            return self._shell(block, text)
        return "".join(self._line(block, line) for line in text.splitlines() if line.strip())

    def _line(self, block: Block, line: str) -> str:
        plain = _PLAIN.fullmatch(line)
        if plain is None or _SHELL.search(re.sub("'[^']*'", "", plain["command"])):
            return self._shell(block, line)
        known = range(256) if " || true" in line else (0, int(plain["code"] or 0))
        output = self._command(block, shlex.split(plain["command"]), known)
        if plain["file"]:
            (self.folder / plain["file"]).write_text(output, encoding="utf-8")
            return ""
        return output

    def _shell(self, block: Block, text: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail"],
            input=text,
            cwd=self.folder,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=3 * PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"{block}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def _command(self, block: Block, arguments: list[str], known: Container[int]) -> str:
        with patch.dict(os.environ, self.environment):
            code, output, errors = evalcube(
                *arguments, cwd=self.folder, columns=int(self.environment["COLUMNS"])
            )
        assert code in known, f"{block}: evalcube {shlex.join(arguments)}\n{output}{errors}"
        return output

    def _python(self, block: Block) -> str:
        if self.binaries is not None:
            return self._shell(block, f"python - <<'END'\n{block.text}\nEND\n")
        output = io.StringIO()
        with (
            chdir(self.folder),
            patch.dict(os.environ, self.environment),
            redirect_stdout(output),
            one_simulator(),
        ):
            if not block.text.startswith(">>>"):
                exec(compile(block.text, str(block), "exec"), self.names)  # noqa: S102 - our own pages
                return output.getvalue()
            test = doctest.DocTestParser().get_doctest(block.text, self.names, str(block), None, block.line)
            failed = doctest.DocTestRunner(optionflags=_LIKE).run(test, clear_globs=False).failed
        assert failed == 0, f"{block}:\n{output.getvalue()}"
        return ""


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
