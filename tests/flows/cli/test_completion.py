"""What a shell offers at the Tab key, in real shells."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.tiers import need
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[3]


class Terminal:
    """A shell at a terminal."""

    def __init__(self, descriptor):
        self._descriptor = descriptor
        self.text = ""

    def type(self, keys, awaited):
        """Type keys, and wait until what is awaited, a regular expression, is on the screen after them."""
        begin, until = len(self.text), time.monotonic() + PATIENCE
        os.write(self._descriptor, keys.encode())
        while not re.search(awaited, self.text[begin:], re.DOTALL):
            ready, _, _ = select.select([self._descriptor], [], [], max(until - time.monotonic(), 0))
            assert ready, f"no {awaited!r} after {keys!r}: {self.text[begin:]!r}"
            self.text += os.read(self._descriptor, 65536).decode(errors="replace")
        return self.text[begin:]


@contextmanager
def terminal(*shell, cwd, env):
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        shell, cwd=cwd, env=env, stdin=follower, stdout=follower, stderr=follower, start_new_session=True
    )
    os.close(follower)
    try:
        yield Terminal(leader)
    finally:
        process.kill()
        process.wait()
        os.close(leader)


@pytest.fixture
def place(tmp_path):
    """A folder with a cube, and an environment with a home folder and an `evalcube` on the path."""
    home, folder, programs = tmp_path / "home", tmp_path / "work", tmp_path / "bin"
    for path in (home, folder / "results" / "one.zarr", programs):
        path.mkdir(parents=True)
    script = programs / "evalcube"
    script.write_text(f"#!{sys.executable}\nfrom evalcube.__main__ import main\nmain()\n")
    script.chmod(0o755)
    env = {
        "HOME": str(home),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "TERM": "dumb",
        "LANG": "C.UTF-8",
    }
    return folder, env


def needs(shell):
    found = shutil.which(shell)
    need(shell, found, f"apt-get install {shell}")
    return found


@pytest.mark.cluster
@pytest.mark.parametrize("arguments", [("bash", "--noprofile"), ("zsh",)], ids=lambda arguments: arguments[0])
def test_shells__complete_commands_options_and_paths_once_installed(arguments, place):
    folder, env = place
    shell = (needs(arguments[0]), *arguments[1:], "-i")
    for name in (".bashrc", ".zshrc"):
        (Path(env["HOME"]) / name).write_text("PS1='READY> '\n")

    with terminal(*shell, cwd=folder, env=env) as first:
        first.type("", "READY> ")
        first.type("evalcube --install-completion\n", "completion installed")
    with terminal(*shell, cwd=folder, env=env) as second:
        second.type("", "READY> ")
        if arguments[0] == "zsh":
            second.type(
                "evalcube \t\x15", "\x07"
            )  # it loads what was installed at the first Tab, and only rings
        second.type("evalcube sta\t", "sta.*tus ")
        second.type("res\t", "res.*ults/")
        second.type("\x15evalcube leaderboard --mark\t", "--mark.*down")
