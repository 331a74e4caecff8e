"""Lease records as others leave them, and a clock for whoever watches them."""

import json
import os
import time

from evalcube.storage.processes import ProcessIdentity


def write_lease(path, process, renewed, ttl=60.0, **others):
    path.parent.mkdir(exist_ok=True)
    fields = {"host": process.host, "boot": process.boot, "pid": process.pid, "start": process.start}
    path.write_text(json.dumps({"token": "t", "process": fields, "since": renewed, "ttl": ttl, **others}))
    os.utime(path, (renewed, renewed))


ELSEWHERE = ProcessIdentity("far-away", "another boot", 77, 5)


class Watching:
    """A monotonic clock for whoever watches, which goes on only while it sleeps, and what happens meanwhile."""

    def __init__(self):
        self.now = 500.0
        self.texts = []
        self.meanwhile = lambda _: None

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        self.meanwhile(self.now - 500.0)

    def time(self):
        return time.time()

    def notify(self, text):
        self.texts.append(text)
