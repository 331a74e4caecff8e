"""A host that follows instructions, and hosts that have one vice each: what `evalcube probe` should tell apart."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.simulator.app import Reply, Request
from tests.simulator.counts import Ticket
from tests.simulator.forms import PATHS, deliver
from tests.simulator.server import serve
from tests.simulator.wire import error_response, json_response

VICES = {
    "max_tokens": "max_tokens",
    "length": "max_tokens",
    "stop": "stop",
    "seed": "seed",
    "effort": "effort",
    "usage": "usage",
    "context": "context",
    "uncounted": "context",
    "upstreams": "upstream",
    "system": "system",
    "schema": "schema",
}
"""By name of the vice, where a probe tells of it."""
_WORDS = "the wide sea lies grey under one low sky while gulls ride over the waves and boats rest".split()
_THOUGHTS = {"low": 12, None: 20, "high": 60}
_WINDOW = 8_000
"""Bytes of the end of a prompt that a host which cuts it reads."""


class Habits:
    """A host without a network: `handle` answers as the model of an honest host does, but for its vices.

    Parameters
    ----------
    vices
        Of `VICES`.
    refuses
        Parameters that it answers with HTTP 400, and what it wants in their place.
    flaky
        Whether every other request fails.
    """

    def __init__(self, *vices: str, refuses: dict[str, str] | None = None, flaky: bool = False) -> None:
        self._vices, self._refuses, self._flaky = set(vices), refuses or {}, flaky
        self.requests: list[dict[str, Any]] = []

    def handle(self, request: Request) -> Reply:
        """The response to a request."""
        if request.path not in PATHS:
            return error_response(404, "no such path", "not_found"), None
        fields = json.loads(request.body)
        self.requests.append(fields)
        if self._flaky and len(self.requests) % 2 == 0:
            return error_response(500, "try again", "server_error"), None
        for name in (one for one in self._refuses if one in fields):
            wanted = self._refuses[name]
            said = f"Unsupported parameter: '{name}' is not supported with this model."
            message = f"{said} Use '{wanted}' instead." if wanted else said
            return error_response(400, message, "unsupported_parameter"), None
        form = PATHS[request.path]
        response = json_response(self._body(as_chat(fields)))
        return deliver(response, form, stream=fields.get("stream") is True), None

    def left(self, ticket: Ticket, *, delivered: bool) -> None:
        """Nothing to do."""

    def _body(self, fields: dict[str, Any]) -> dict[str, Any]:
        system = " ".join(one["content"] for one in fields["messages"] if one["role"] == "system")
        system = "" if "system" in self._vices else system
        prompt = fields["messages"][-1]["content"]
        prompt = prompt[-_WINDOW:] if self._vices & {"context", "uncounted"} else prompt
        drawn = self._drawn(fields, prompt)
        thought = self._prose(drawn, self._thoughts(fields))
        content = self._said(fields, system, prompt, drawn)
        finish, limit = "stop", fields.get("max_tokens", fields.get("max_completion_tokens", 10_000))
        for text in () if "stop" in self._vices else fields.get("stop", ()):
            content = content.partition(text)[0]
        if "max_tokens" not in self._vices and len(thought + content) > 4 * limit:
            finish = "stop" if "length" in self._vices else "length"
            thought, content = thought[: 4 * limit], content[: max(4 * limit - len(thought), 0)]
        factor = 3 if "usage" in self._vices else 1
        usage = {
            "prompt_tokens": (len(system) + len(prompt)) // 4 + 8,
            "completion_tokens": factor * -(-len(thought + content) // 4),
            "completion_tokens_details": {"reasoning_tokens": len(thought) // 4},
        }
        message: dict[str, Any] = {"role": "assistant", "content": content, "reasoning_content": thought}
        if "tools" in fields:
            call = {"name": "weather", "arguments": '{"city": "Paris"}'}
            message["tool_calls"] = [{"index": 0, "id": "a", "type": "function", "function": call}]
        upstream = len(self.requests) % 2 if "upstreams" in self._vices else 0
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": fields["model"],
            "system_fingerprint": f"fp_{upstream}",
            "choices": [choice],
            "usage": None if "uncounted" in self._vices else usage,
        }

    def _drawn(self, fields: dict[str, Any], prompt: str) -> bytes:
        """What a reply follows from: at temperature 0 the prompt, else the seed, or the number of the request."""
        chance: object = 0
        if fields.get("temperature"):
            chance = fields.get("seed") if "seed" not in self._vices else len(self.requests)
        return hashlib.sha256(f"{prompt} {chance}".encode()).digest()

    def _thoughts(self, fields: dict[str, Any]) -> int:
        effort = fields.get("reasoning_effort")
        return _THOUGHTS[None if "effort" in self._vices else effort]

    @staticmethod
    def _prose(drawn: bytes, words: int) -> str:
        return " ".join(_WORDS[drawn[i % 32] % len(_WORDS)] for i in range(words)) + "."

    def _said(self, fields: dict[str, Any], system: str, prompt: str, drawn: bytes) -> str:
        if "BANANA" in system:
            return "BANANA"
        if fields["response_format"] and "schema" not in self._vices:
            return '{"name": "sea", "number": 3}'
        if "tools" in fields:
            return ""
        if "codes" in prompt:
            return ", ".join(re.findall(r"[A-Z]+-\d+", prompt))
        if prompt.startswith("Count"):
            return "\n".join(map(str, range(1, 301)))
        return self._prose(drawn, 30)


_SAME = {"stop_sequences": "stop", "max_output_tokens": "max_tokens"}
"""Parameters of other APIs, and what the chat API calls them."""


def as_chat(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the request of any of the four APIs as the chat API has it."""
    messages = (
        fields.get("messages") or fields.get("input") or [{"role": "user", "content": fields["prompt"]}]
    )
    if "system" in fields:
        messages = [{"role": "system", "content": fields["system"]}, *messages]
    config = fields.get("output_config", {})
    effort = fields.get("reasoning", config).get("effort", fields.get("reasoning_effort"))
    shape = fields.get("text", config).get("format", fields.get("response_format"))
    more = {"messages": messages, "reasoning_effort": effort, "response_format": shape}
    return {**{_SAME.get(name, name): value for name, value in fields.items()}, **more}


@contextmanager
def serving(host: Habits) -> Iterator[str]:
    """The base URL of a host, which is served by a thread of this process as long as the context."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def close() -> None:
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()

    server = asyncio.run_coroutine_threadsafe(serve(host), loop).result()  # type: ignore[arg-type]
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        asyncio.run_coroutine_threadsafe(close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
