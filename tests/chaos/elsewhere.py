"""The command line as if on another machine, with a lease that ends soon: NAME SECONDS COMMAND ARGUMENTS…

Processes of one machine know of each other whether they live, whatever their leases say; those of several machines do
not, and watch each other's leases.
"""

import sys

from evalcube.storage import processes
from evalcube.storage.cube.lease import Lease


def main():
    name, seconds, *sys.argv[1:] = sys.argv[1:]
    processes._boot = lambda: f"the boot of {name}"
    processes.socket.gethostname = lambda: name
    Lease.acquire.__func__.__kwdefaults__["ttl"] = float(seconds)
    from evalcube.__main__ import main as command

    command()


if __name__ == "__main__":
    main()
