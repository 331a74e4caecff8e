"""Runs on another host, from its standard input alone: starts workers, and ends them when the connection ends.

The first line of standard input is JSON: the words of the command and further environment variables. Secrets come this
way and not on a command line, which every user of the host could read. When the rest of standard input ends, because
the driver has left or was killed, or the network is gone, the command and all that it started are ended.
"""

import json
import os
import signal
import subprocess
import sys
import threading

GRACE_SECONDS = 5.0


def _end(child: "subprocess.Popen[bytes]") -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)  # all that it has started, too
        except ProcessLookupError:
            return
        try:
            child.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            continue


def main() -> int:
    """Run the command that standard input names; returns its exit code."""
    said = json.loads(sys.stdin.buffer.readline())
    child = subprocess.Popen(
        [sys.executable, *said["words"]],
        env={**os.environ, **said["environment"]},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )

    def watch() -> None:
        while os.read(0, 4096):
            pass
        _end(child)

    threading.Thread(target=watch, daemon=True).start()
    return child.wait()


if __name__ == "__main__":
    sys.exit(main())
