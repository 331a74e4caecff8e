"""A Slurm of one node for tests: munged, slurmctld and slurmd with their own config, ports and files."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.ports import free_ports
from tests.tiers import need
from tests.waiting import PATIENCE, wait_until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")
_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


_CONFIG = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdSpoolDir={folder}/node
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmUser={user}
SlurmdUser={user}
SwitchType=switch/none
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
JobRequeue=0
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
KillWait=5
MessageTimeout=60
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=16000 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=cancel Nodes=ALL MaxTime=INFINITE State=UP
PartitionName=requeue Nodes=ALL MaxTime=INFINITE State=UP PreemptMode=REQUEUE
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


@dataclass(frozen=True)
class SlurmNode:
    """A Slurm that runs."""

    host: str
    """Name of its node."""
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which Slurm's commands find it."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def command(self, *words: str) -> str:
        """The standard output of one of Slurm's commands."""
        environment = {**os.environ, "PATH": _PATH, **self.environment}
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def jobs(self) -> dict[int, str]:
        """The jobs in the queue: number -> state."""
        lines = self.command("squeue", "-h", "-o", "%i %T").split("\n")
        return {int(line.split()[0]): line.split()[1] for line in lines if line}

    def wait_until_empty(self) -> None:
        """Wait until no job is in the queue; one that was cancelled is cleaned up after for a while."""
        wait_until(lambda: not self.jobs(), told=self.jobs, pause=0.3)

    def preempt(self, seconds: float = 1.0) -> None:
        """Take the whole node for a job that goes before all others."""
        self.command(
            "sbatch",
            "--partition=urgent",
            "--cpus-per-task=8",
            "--output=/dev/null",
            f"--wrap=sleep {seconds}",
        )

    def resume(self) -> None:
        """Take jobs again after a drain."""
        self.command("scontrol", "update", f"nodename={self.host}", "state=resume")


@contextmanager
def slurm_node() -> Iterator[SlurmNode]:
    """A context with a Slurm of one node with eight CPUs; skips where Slurm is not installed."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=_PATH) is None]
    need("slurm", not missing, "apt-get install slurm-wlm munge")
    host = socket.gethostname().split(".")[0]
    # A short path: that of a socket has 107 characters at most.
    with tempfile.TemporaryDirectory(prefix="slurm-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        ports = free_ports(2)
        config = _CONFIG.format(
            host=host, folder=folder, user=getpass.getuser(), controller_port=ports[0], node_port=ports[1]
        )
        (folder / "slurm.conf").write_text(config)
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        for one in ("node", "state"):
            (folder / one).mkdir()
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        munge = ["munged", "-F", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket"]
        munge += [f"--{what}-file={folder}/munge.{what}" for what in ("pid", "log", "seed")]
        _start(stack, folder, munge)
        _wait("munged", folder, (folder / "munge.socket").exists)
        _start(stack, folder, ["slurmctld", "-D", "-i", "-f", f"{folder}/slurm.conf"])
        _start(stack, folder, ["slurmd", "-D", "-f", f"{folder}/slurm.conf"])
        node = SlurmNode(host, folder)
        _wait("slurmctld", folder, lambda: _is_idle(node))
        # Before the daemons end: a job that outlives slurmd is nobody's.
        stack.callback(_empty, node)
        yield node


def _start(stack: ExitStack, folder: Path, words: list[str]) -> None:
    log = stack.enter_context((folder / f"{words[0]}.out").open("wb"))
    program = shutil.which(words[0], path=_PATH)
    environment = {**os.environ, "PATH": _PATH, "SLURM_CONF": str(folder / "slurm.conf")}
    process = subprocess.Popen(
        [str(program), *words[1:]], stdout=log, stderr=log, env=environment, start_new_session=True
    )

    def end() -> None:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    stack.callback(end)


def _is_idle(node: SlurmNode) -> bool:
    try:
        return "idle" in node.command("sinfo", "-h", "-o", "%t")
    except (AssertionError, subprocess.TimeoutExpired):
        return False


def _empty(node: SlurmNode) -> None:
    node.command("scancel", "--user", getpass.getuser())
    with suppress(AssertionError):
        node.wait_until_empty()


def _wait(name: str, folder: Path, ready: object) -> None:
    def told() -> str:
        logs = "\n".join(path.read_text()[-2000:] for path in sorted(folder.glob("*.out")))
        return f"{name} does not start:\n{logs}"

    wait_until(ready, told=told, pause=0.1)
