"""The simulator without its network: routes, keys, faults and limits decide on the response to each request."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from evalcube.deploy.errors import SimulatorError
from evalcube.deploy.simulator import reply
from evalcube.deploy.simulator.profile import Profile
from evalcube.deploy.simulator.truth import decode
from tests.simulator.batches import parse_settings
from tests.simulator.counts import Counts, Log, Ticket
from tests.simulator.faults import STREAM_KINDS, Injector, apply, parse_rules
from tests.simulator.forms import CHAT, MESSAGES, PATHS, Form, as_error, deliver
from tests.simulator.hosted import PREFIXES, HostedBatches, let_in
from tests.simulator.quota import Enforcer, Limits, parse_limits
from tests.simulator.requests import RefusedError, checked
from tests.simulator.wire import Response, error_response, json_response


class Request(NamedTuple):
    """One complete HTTP request, as far as the simulator reads it."""

    method: str
    path: str
    body: bytes = b""
    truth: bytes = b""
    """Value of the header `evalcube.deploy.simulator.truth.HEADER`."""
    keys: Mapping[bytes, bytes] = MappingProxyType({})
    """The headers with the API key and the API's version, by lower-case name."""


Reply = tuple[Response, Ticket | None]
"""A response, and the ticket of a request that was counted in."""


class Application:
    """One simulated server: `handle` has the response to each request.

    Parameters
    ----------
    key
        API key that requests under ``/v1`` must carry; None lets all in.
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
        self._key = None if key is None else key.encode()
        self._injector = injector or Injector()
        self._log = log
        self._batches = HostedBatches(self._in_batch)
        self._routes: dict[str, dict[str, Callable[[Request], Reply]]] = {
            **{path: {"POST": partial(self._answer, form)} for path, form in PATHS.items()},
            "/v1/models": {"GET": self._models},
            "/health": {"GET": lambda _: (json_response({"status": "ok"}), None)},
            "/control/stats": {"GET": lambda _: (json_response(self.stats()), None)},
            "/control/reset": {"POST": self._reset},
            "/control/faults": {"POST": self._faults},
            "/control/limits": {"POST": self._limits},
            "/control/key": {"POST": self._change_key},
            "/control/batches": {"POST": self._batching},
        }

    def handle(self, request: Request) -> Reply:
        """The response to a request, and a ticket if the request was counted in.

        The caller must hand each ticket back to `left` when the response is written or can no longer be: until then
        the request is in flight.
        """
        path = request.path.partition("?")[0]
        methods = self._routes.get(path)
        if methods is None and path.startswith(PREFIXES):
            return self._about_batches(request), None
        if methods is None:
            return error_response(404, f"no such path: {path[:200]}", "not_found"), None
        action = methods.get("GET" if request.method == "HEAD" else request.method)
        if action is None:
            allowed = ", ".join([*methods, "HEAD"] if "GET" in methods else methods)
            message = f"{path} knows {allowed} only"
            return error_response(405, message, "method_not_allowed", (("allow", allowed),)), None
        if path.startswith("/v1/") and not self._let_in(path, request):
            refusal = error_response(401, "wrong or missing API key", "invalid_api_key")
            return as_error(refusal, PATHS.get(path, CHAT)), None
        try:
            return action(request)
        except RefusedError as refused:
            return as_error(refused.response, PATHS.get(path, CHAT)), None

    def _about_batches(self, request: Request) -> Response:
        refused = let_in(request.path, request.keys, self._key)
        if refused is not None:
            return refused
        response = self._batches.handle(request.method, request.path, request.body)
        return error_response(404, "no such path", "not_found") if response is None else response

    def _let_in(self, path: str, request: Request) -> bool:
        if self._key is None:
            return True
        if PATHS.get(path) is MESSAGES:
            return hmac.compare_digest(request.keys.get(b"x-api-key", b""), self._key)
        return hmac.compare_digest(request.keys.get(b"authorization", b""), b"Bearer " + self._key)

    def left(self, ticket: Ticket, *, delivered: bool) -> None:
        """Count a request out, and log it if it is finished.

        Parameters
        ----------
        ticket
            What `handle` gave out for it.
        delivered
            Whether the response was written to the end, or as far as its fault lets it.
        """
        self.counts.leave(ticket, delivered=delivered)
        if delivered and ticket.good and self._log is not None:
            self._log.write(ticket)

    def stats(self) -> dict[str, object]:
        """All counts as JSON has them, with those of faults, limits and batches."""
        return {
            **self.counts.summary(),
            "faults": self._injector.struck,
            "limits": self._enforcer.summary(),
            "batches": self._batches.summary(),
        }

    def _in_batch(self, path: str, body: bytes, truth: bytes) -> Response | None:
        """The response to one request of a batch, which is not subject to limits in flight."""
        form = PATHS.get(path)
        if form is None:
            return None
        keys = {b"anthropic-version": b"of the batch"}
        try:
            response, ticket = self._answer(form, Request("POST", path, body, truth, keys))
        except RefusedError as refused:
            return as_error(refused.response, form)
        if ticket is not None:
            self.left(ticket, delivered=True)
        return response

    def _answer(self, form: Form, request: Request) -> Reply:
        asked = checked(form, request.body, request.keys)
        truth = decode(request.truth)
        digest = reply.request_digest(asked.identity, 0 if truth is None else truth.repeat)
        attempt = self.counts.arrive(digest, asked.name)
        rule = self._injector.pick(digest, attempt, asked.name)
        text = reply.speak(asked.profile, truth, reply.draws(digest), asked.limit, asked.stop)
        prompt, now = reply.prompt_tokens(asked.messages), time.monotonic()
        refused = self._enforcer.arrive(prompt + text.tokens, self.counts.in_flight, now)
        if refused is not None:
            return as_error(refused, form), Ticket(digest, asked.name, good=False)
        body = reply.completion(asked.model, digest, text, prompt, tools=asked.tools)
        later = rule is not None and asked.stream and rule.kind in STREAM_KINDS
        response = json_response(body) if rule is None or later else apply(rule, body)
        left = self._enforcer.headers(now)
        if left:
            response = response._replace(headers=response.headers + left)
        if asked.stream or form is not CHAT:
            response = deliver(response, form, stream=asked.stream, rule=rule)
        return _timed(response, asked.profile, text.tokens), Ticket(digest, asked.name, rule is None)

    def _models(self, _: Request) -> Reply:
        entry = {"id": Profile().model_name("default"), "object": "model", "owned_by": "evalcube"}
        return json_response({"object": "list", "data": [entry]}), None

    def _reset(self, _: Request) -> Reply:
        self.counts.reset()
        self._injector = Injector(self._injector.rules)
        self._enforcer = Enforcer(self._enforcer.limits)
        self._batches = HostedBatches(self._in_batch)
        return json_response({"status": "ok"}), None

    def _change_key(self, request: Request) -> Reply:
        self._key = request.body or None
        return json_response({"key": self._key is not None}), None

    def _faults(self, request: Request) -> Reply:
        try:
            self._injector = Injector(parse_rules(request.body))
        except SimulatorError as error:
            return error_response(400, str(error), "invalid_rules"), None
        return json_response({"rules": len(self._injector.rules)}), None

    def _batching(self, request: Request) -> Reply:
        try:
            self._batches.settings = parse_settings(request.body)
        except SimulatorError as error:
            return error_response(400, str(error), "invalid_batches"), None
        return json_response({"batches": self._batches.settings_record()}), None

    def _limits(self, request: Request) -> Reply:
        try:
            self._enforcer = Enforcer(parse_limits(request.body))
        except SimulatorError as error:
            return error_response(400, str(error), "invalid_limits"), None
        return json_response({"limits": asdict(self._enforcer.limits)}), None


def _timed(response: Response, profile: Profile, tokens: int) -> Response:
    """A response that comes as late as its model is slow; a stream begins with the first token."""
    delay = reply.delay(profile, tokens)
    if not delay:
        return response
    if not response.events:
        return response._replace(delay=delay)
    pace = (delay - profile.latency) / len(response.events)
    return response._replace(delay=profile.latency, pace=pace)
