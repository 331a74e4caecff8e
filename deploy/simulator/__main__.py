"""The command `python -m evalcube.deploy.simulator`, which serves simulated models until it is stopped."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

from aiohttp import web

from evalcube.deploy.errors import SimulatorError
from evalcube.deploy.servers.guard import when_parent_dies
from evalcube.deploy.simulator import reply
from evalcube.deploy.simulator.profile import Profile, parse
from evalcube.deploy.simulator.truth import HEADER, decode

_MOST_BYTES = 16 << 20
"""Of a request's body."""
_BACKLOG = 2048
"""Hundreds of clients connect in the same moment; with fewer places some would wait a second for one."""
_parse = lru_cache(maxsize=1024)(parse)

Listen = Callable[[int], Awaitable[tuple[str, Callable[[], Awaitable[None]]]]]
"""Begins to serve on a port; the server's address, and what closes it."""


async def listen(port: int) -> tuple[str, Callable[[], Awaitable[None]]]:
    """Serve on the loopback address; the server's address, and what closes it."""
    application = web.Application(client_max_size=_MOST_BYTES)
    application.router.add_post("/v1/chat/completions", _chat)
    application.router.add_get("/v1/models", _models)
    application.router.add_get("/health", _health)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=_BACKLOG).start()
    return f"http://127.0.0.1:{runner.addresses[0][1]}", runner.cleanup


async def _health(_: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


async def _models(_: web.Request) -> web.Response:
    entry = {"id": Profile().model_name("default"), "object": "model", "owned_by": "evalcube"}
    return web.json_response({"object": "list", "data": [entry]})


async def _chat(request: web.Request) -> web.Response:
    body = await request.read()
    try:
        fields = json.loads(body)
        _, profile = _parse(fields["model"])
        messages, limit, stop = _messages(fields), most_tokens(fields), stops(fields)
    except SimulatorError as error:
        return _error(404, f"no such model: {error}", "model_not_found")
    except (ValueError, RecursionError, TypeError, LookupError) as error:
        return _error(400, f"not a valid chat completion request: {error}"[:300], "invalid_value")
    truth = decode(request.headers.get(HEADER, "").encode())
    digest = reply.request_digest(identity(fields, body), 0 if truth is None else truth.repeat)
    text = reply.speak(profile, truth, reply.draws(digest), limit, stop)
    seconds = reply.delay(profile, text.tokens)
    if seconds > 0.0:
        await asyncio.sleep(seconds)
    size, tools = reply.prompt_tokens(messages), bool(fields.get("tools"))
    completion = reply.completion(fields["model"], digest, text, size, tools=tools)
    return web.json_response(completion, dumps=partial(json.dumps, separators=(",", ":")))


def _messages(fields: Mapping[str, Any]) -> list[Mapping[str, object]]:
    messages = fields["messages"]
    if not isinstance(messages, list) or not messages or not all(isinstance(turn, dict) for turn in messages):
        raise ValueError("messages must be a list of objects")
    return messages


def most_tokens(fields: Mapping[str, object]) -> int | None:
    """Most tokens of the completion that a request's fields ask for; None leaves it to the model."""
    for name in ("max_completion_tokens", "max_tokens"):
        value = fields.get(name)
        if value is not None and (type(value) is not int or value < 1):
            raise ValueError(f"{name} must be a whole number, 1 or more")
        if isinstance(value, int):
            return value
    return None


def stops(fields: Mapping[str, object]) -> list[str]:
    """The texts before which a request wants its reply to end."""
    if fields.get("response_format") not in (None, {"type": "text"}):
        raise ValueError("response_format is not supported")
    value = fields.get("stop") or []
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("stop must be a text or a list of texts")
    return texts


def identity(fields: Mapping[str, object], body: bytes) -> bytes:
    """What the reply to a request follows from, by its fields and its body: streamed or whole, it is the same."""
    if "stream" not in fields:
        return body
    fields_kept = {name: value for name, value in fields.items() if name not in ("stream", "stream_options")}
    return json.dumps(fields_kept, sort_keys=True, separators=(",", ":")).encode()


def _error(status: int, message: str, code: str) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return web.json_response({"error": error}, status=status)


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 after SIGTERM, SIGINT or (``--follow-parent``) the end of standard input; 2 if it cannot serve."""
    parser = argparse.ArgumentParser(
        prog="python -m evalcube.deploy.simulator", description="Simulated models on the loopback address."
    )
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 (default) takes a free one")
    parser.add_argument("--follow-parent", action="store_true", help="stop when standard input ends")
    options = parser.parse_args(arguments)
    return serve_until_stopped(listen, options.port, follow_parent=options.follow_parent)


def serve_until_stopped(listen: Listen, port: int, *, follow_parent: bool) -> int:
    """Serve until SIGTERM, SIGINT or the end of the parent; exit code: 2 if the port cannot be listened on."""
    try:
        asyncio.run(_run(listen, port, follow_parent=follow_parent))
    except OSError as error:
        sys.stderr.write(f"cannot listen on port {port}: {error.strerror}. Use --port 0 for a free port.\n")
        return 2
    return 0


async def _run(listen: Listen, port: int, *, follow_parent: bool) -> None:
    loop = asyncio.get_running_loop()
    # A handler of the loop's runs between two steps of it, so that no reply is cut off by the signal itself.
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    address, close = await listen(port)
    if follow_parent:
        when_parent_dies(lambda: _notify(loop, stop))
    sys.stdout.write(f"listening on {address}\n")
    sys.stdout.flush()
    gc.freeze()  # nothing that exists now becomes garbage; not to scan it shortens the pauses of a busy server
    await stop.wait()
    await close()


def _notify(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Set an event of a loop from another thread."""
    with suppress(RuntimeError):  # a signal may have ended the loop already
        loop.call_soon_threadsafe(stop.set)


if __name__ == "__main__":
    sys.exit(main())
