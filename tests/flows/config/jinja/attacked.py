"""Renders templates that may be attacks, each in a process of its own with little memory, and prints what they took.

It reads a JSON list of texts from its input and prints a JSON list of [error, seconds of CPU, bytes more than before].
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time

from evalcube.flows.config.templates import Template
from evalcube.flows.errors import TemplateError

MEMORY = 1_200_000_000
SECONDS = 30


def main() -> None:
    """Render all."""
    json.dump([attempt(text) for text in json.load(sys.stdin)], sys.stdout)


def attempt(text: str) -> tuple[str, float, int]:
    """What one text came to: how it ended, what it took."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        end = render(text)
        taken = time.process_time() - start
        memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
        os.write(writer, json.dumps([end, taken, memory]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(answer) if answer else (f"died: {status}", SECONDS, MEMORY)


def render(text: str) -> str:
    """How rendering ended."""
    try:
        template = Template([{"role": "user", "content": text}])
        template.render(prompt="What is 1 + 1? " * 70, task="sums", params={"n": 5, "name": "a b"})
    except TemplateError as error:
        return f"refused: {error.message}"
    except BaseException as error:  # noqa: BLE001 - nothing else may come out
        return f"escaped: {type(error).__name__}"
    return "rendered"


if __name__ == "__main__":
    main()
