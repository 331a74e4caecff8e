"""Ports for servers of tests that have to know theirs before they start, or to keep it while they are down."""

import random
import socket
from contextlib import ExitStack

# Below those that the system gives to connections and to servers that ask for any port: one of these would now and
# then be somebody else's before its server listens, and whoever connects while nobody does could reach itself.
_RANGE = range(20_000, 32_000)


def free_ports(count, address="127.0.0.1"):
    """As many different ports at which nobody listens."""
    found = []
    with ExitStack() as stack:
        while len(found) < count:
            port = random.SystemRandom().choice(_RANGE)
            one = stack.enter_context(socket.socket())
            try:
                one.bind((address, port))
            except OSError:
                continue
            found.append(port)
    return found


def free_port(address="127.0.0.1"):
    """A port at which nobody listens."""
    (port,) = free_ports(1, address)
    return port
