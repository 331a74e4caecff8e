"""A complete HTTP request in, the response out: routes, checks and the simulated chat completion."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any, NamedTuple

from deploy.errors import SimulatorError
from deploy.simulator import ability, reply
from deploy.simulator.counts import Counts, Log, Ticket
from deploy.simulator.faults import Injector, apply, parse_rules
from deploy.simulator.profile import Profile, parse
from deploy.simulator.quota import Enforcer, Limits, parse_limits
from deploy.simulator.truth import decode
from deploy.simulator.wire import Response, error_response, json_response

CHAT = "/v1/chat/completions"


class Request(NamedTuple):
    """One request, as far as the simulator looks at it."""

    method: str
    path: str
    body: bytes = b""
    truth: bytes = b""
    authorization: bytes = b""


class Chat(NamedTuple):
    """A chat request that passed all checks."""

    model: str
    name: str
    profile: Profile
    messages: list[Mapping[str, object]]
    limit: int | None
    """Most tokens of the completion; None leaves it to the model."""


class RefusedError(Exception):
    """A request that gets an error response instead of a completion."""

    def __init__(self, response: Response) -> None:
        self.response = response
        super().__init__(response.status)


Reply = tuple[Response, Ticket | None]

_parse = lru_cache(maxsize=1024)(parse)


class Application:
    """The simulator without its network: `handle` gives each request its response.

    Parameters
    ----------
    key
        API key that requests under ``/v1`` must bring; None lets all in.
    injector
        Faults to begin with.
    log
        Log of finished requests.
    limits
        Limits to enforce.
    """

    def __init__(
        self,
        key: str | None = None,
        injector: Injector | None = None,
        log: Log | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.counts = Counts()
        self._enforcer = Enforcer(limits)
        self._bearer = None if key is None else f"Bearer {key}".encode()
        self._injector = injector or Injector()
        self._log = log
        self._routes: dict[str, dict[str, Callable[[Request], Reply]]] = {
            CHAT: {"POST": self._chat},
            "/v1/models": {"GET": self._models},
            "/health": {"GET": lambda _: (json_response({"status": "ok"}), None)},
            "/control/stats": {"GET": lambda _: (json_response(self.stats()), None)},
            "/control/reset": {"POST": self._reset},
            "/control/faults": {"POST": self._faults},
            "/control/limits": {"POST": self._limits},
        }

    def handle(self, request: Request) -> Reply:
        """Answer a request; a chat request that was counted in comes with its ticket.

        The caller must hand each ticket back to `left` when the response is written or can no longer be.
        """
        path = request.path.partition("?")[0]
        methods = self._routes.get(path)
        if methods is None:
            return error_response(404, f"no such path: {path[:200]}", "not_found"), None
        action = methods.get("GET" if request.method == "HEAD" else request.method)
        if action is None:
            allowed = ", ".join([*methods, "HEAD"] if "GET" in methods else methods)
            message = f"{path} knows {allowed} only"
            return error_response(405, message, "method_not_allowed", (("allow", allowed),)), None
        if path.startswith("/v1/") and not self._let_in(request):
            return error_response(401, "wrong or missing API key", "invalid_api_key"), None
        try:
            return action(request)
        except RefusedError as refused:
            return refused.response, None

    def _let_in(self, request: Request) -> bool:
        return self._bearer is None or hmac.compare_digest(request.authorization, self._bearer)

    def left(self, ticket: Ticket, *, delivered: bool) -> None:
        """Count a request out, and log it if it is finished."""
        self.counts.leave(ticket, delivered=delivered)
        if delivered and ticket.good and self._log is not None:
            self._log.write(ticket)

    def stats(self) -> dict[str, object]:
        """All counts, with those of the faults."""
        return {
            **self.counts.summary(),
            "faults": self._injector.struck,
            "limits": self._enforcer.summary(),
        }

    def _chat(self, request: Request) -> Reply:
        chat = _checked(request.body)
        truth = decode(request.truth)
        digest = ability.request_digest(request.body, 0 if truth is None else truth.repeat)
        attempt = self.counts.arrive(digest, chat.name)
        rule = self._injector.pick(digest, attempt, chat.name)
        text = reply.speak(chat.profile, truth, ability.draws(digest), chat.limit)
        asked, now = reply.prompt_tokens(chat.messages), time.monotonic()
        refused = self._enforcer.arrive(asked + text.tokens, self.counts.in_flight, now)
        if refused is not None:
            return refused, Ticket(digest, chat.name, good=False)
        body = reply.completion(chat.model, digest, text, asked)
        response = json_response(body) if rule is None else apply(rule, body)
        told = self._enforcer.headers(now)
        if told:
            response = response._replace(headers=response.headers + told)
        delay = ability.delay(chat.profile, text.tokens)
        return response._replace(delay=delay) if delay else response, Ticket(digest, chat.name, rule is None)

    def _models(self, _: Request) -> Reply:
        entry = {"id": Profile().model_name("default"), "object": "model", "owned_by": "evalcube"}
        return json_response({"object": "list", "data": [entry]}), None

    def _reset(self, _: Request) -> Reply:
        self.counts.reset()
        self._injector = Injector(self._injector.rules)
        self._enforcer = Enforcer(self._enforcer.limits)
        return json_response({"status": "ok"}), None

    def _faults(self, request: Request) -> Reply:
        try:
            self._injector = Injector(parse_rules(request.body))
        except SimulatorError as error:
            return error_response(400, str(error), "invalid_rules"), None
        return json_response({"rules": len(self._injector.rules)}), None

    def _limits(self, request: Request) -> Reply:
        try:
            self._enforcer = Enforcer(parse_limits(request.body))
        except SimulatorError as error:
            return error_response(400, str(error), "invalid_limits"), None
        return json_response({"limits": asdict(self._enforcer.limits)}), None


def _checked(body: bytes) -> Chat:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise RefusedError(error_response(400, "the body is no JSON", "invalid_json")) from None
    if not isinstance(fields, dict):
        raise _bad("body", "must be an object")
    name, profile = _model(fields.get("model"))
    if fields.get("stream"):
        raise _bad("stream", "is not simulated")
    if fields.get("n") not in (None, 1):
        raise _bad("n", "must be 1")
    return Chat(fields["model"], name, profile, _messages(fields.get("messages")), _limit(fields))


def _bad(field: str, rule: str) -> RefusedError:
    return RefusedError(error_response(400, f"{field} {rule}", "invalid_value"))


def _model(model: object) -> tuple[str, Profile]:
    if not isinstance(model, str):
        raise _bad("model", "must be text")
    try:
        return _parse(model)
    except SimulatorError as error:
        raise RefusedError(error_response(404, f"no such model: {error}", "model_not_found")) from None


def _messages(messages: object) -> list[Mapping[str, object]]:
    if not isinstance(messages, list) or not messages:
        raise _bad("messages", "must be a list of at least one message")
    if not all(isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages):
        raise _bad("messages", "must be objects with a role")
    return messages


def _limit(fields: Mapping[str, Any]) -> int | None:
    for name in ("max_completion_tokens", "max_tokens"):
        value = fields.get(name)
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise _bad(name, "must be a whole number, 1 or more")
            return value
    return None
