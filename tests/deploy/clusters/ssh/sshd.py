"""Real SSH servers for tests: on this machine, or in a network namespace each, as if they were hosts of their own."""

import os
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.ports import free_port
from tests.tiers import need
from tests.waiting import wait_until

_CONFIG = """
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/id.pub
PidFile none
StrictModes no
PasswordAuthentication no
UsePAM no
PermitRootLogin yes
"""


@dataclass
class Server:
    """One that runs."""

    folder: Path
    address: str
    port: int
    process: subprocess.Popen

    @property
    def options(self):
        """How asyncssh logs in."""
        return {
            "port": self.port,
            "known_hosts": str(self.folder / "known_hosts"),
            "client_keys": [str(self.folder / "id")],
        }


def sshd_program():
    """Path of the server's program; skips the test if there is none."""
    found = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    need("sshd", found, "apt-get install openssh-server")
    return found


@contextmanager
def serving(folder, address="127.0.0.1", prefix=()):
    """A server at an address; `prefix` are words that put it elsewhere, such as into a namespace."""
    program, port = sshd_program(), free_port()
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("host_key", "id"):
        if not (folder / name).exists():
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    (folder / "config").write_text(_CONFIG.format(folder=folder))
    known = (folder / "host_key.pub").read_text().split()
    with (folder / "known_hosts").open("a") as file:
        file.write(f"[{address}]:{port} {known[0]} {known[1]}\n")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    words = [
        *prefix,
        program,
        "-D",
        "-e",
        "-f",
        folder / "config",
        "-p",
        str(port),
        "-o",
        f"ListenAddress={address}",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(list(map(str, words)), stderr=log, stdin=subprocess.DEVNULL)
    try:
        _wait_for(folder / "log", process)
        yield Server(folder, address, port, process)
    finally:
        process.terminate()
        process.wait()


def _wait_for(log, process):
    def listens():
        assert process.poll() is None, log.read_text()
        return "listening" in log.read_text()

    wait_until(listens, told=log.read_text)


def processes(name):
    """Ids of processes whose command line has a word in it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if name in line:
                found.append(int(entry.name))
    return found
