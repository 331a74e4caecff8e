"""Asks one model's endpoint some questions through the client of sweeps, with a store in memory, and counts them."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from evalcube.flows.config.models import Model
from evalcube.flows.run.servers import serve_models
from evalcube.stages.infer.apis import ApiError, build_request
from evalcube.stages.infer.engine import Engine
from evalcube.stages.infer.jobs import Job, Result
from evalcube.stages.infer.reply import Reply, RetryClass
from evalcube.stages.process.reading import Reading, read_reply
from evalcube.stages.reply.body import parse_body, short_text
from evalcube.stages.reply.forms import Record

MOST = 40
"""Requests to one endpoint, each attempt counted."""
_CONNECTIONS = 4
_MOST_BYTES = 1_000_000
"""Of a reply: all are kept until the end."""
_REFUSED = re.compile(r"http (?:400|422): (?:(?P<name>\w+)(?:, |$))?(?:(?P<wanted>\w+) wanted)?")
LASTING = re.compile(r"http 4(?!08|29)|too large|address|redirect")
"""Causes for which asking once more is no use."""
_BY_ITSELF = re.compile(rb'"(?:finish_reason|stop_reason|status)" ?: ?"(?:stop|end_turn|completed)"')
_UNASKED = Result.failed(Reply(RetryClass.FAILED, "not asked"), 0)
_NOTHING = Reading("", "", "", -1, -1, math.nan)


@dataclass(frozen=True)
class ProbeQuestion:
    """One request, before it is written as the endpoint's API has it."""

    messages: Sequence[Mapping[str, str]] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = False


def user(text: str, /, *, system: str = "", stream: bool = False, **params: Any) -> ProbeQuestion:  # noqa: ANN401 - of a request
    """A user's text with parameters, as a question."""
    first = [{"role": "system", "content": system}] if system else []
    return ProbeQuestion([*first, {"role": "user", "content": text}], params, stream=stream)


@dataclass(frozen=True)
class Heard:
    """What came of one question."""

    limit: int
    """Tokens that it allowed."""
    data: bytes | None = None
    """The record of a reply that counts; None where there is none."""
    reading: Reading = _NOTHING
    cause: str = ""
    """Why there is no reply."""
    refused: tuple[str, str] = ("", "")
    """The parameter that is not taken, and what is wanted in its place."""
    served: str = ""
    """What the reply calls the model."""
    in_text: bool = False
    """Whether its reasoning stands within the text."""
    by_itself: bool = False
    """Whether it says that the model ended it: other words than that, and none, say nothing."""

    @property
    def text(self) -> str:
        """Reasoning and answer."""
        return self.reading.reasoning + self.reading.answer

    @property
    def size(self) -> int:
        """Bytes that the model wrote, as far as they are shown."""
        calls = "".join(name + arguments for name, arguments in self.reading.tool_calls)
        return len((self.text + calls).encode("utf-8", "replace"))


class UnheardError(Exception):
    """A question without a reply, the one argument."""


class Memory:
    """The store of replies, which forgets them with the probe."""

    def __init__(self) -> None:
        self.records: dict[str, bytes] = {}

    def put_all(self, records: Sequence[tuple[str, bytes]]) -> None:
        """Keep records."""
        self.records.update(records)

    def commit(self) -> None:
        """Nothing to do."""


class Host:
    """One model at its endpoint, and all that it said.

    Parameters
    ----------
    model
        Of a config.
    engine, store
        The client, which knows the model as ``plain`` and as ``streamed``, and where it puts replies.
    most
        Requests that are sent at most.
    """

    def __init__(self, model: Model, engine: Engine, store: Memory, *, most: int) -> None:
        self.model, self.sent = model, 0
        self.heard: list[Heard] = []
        self.left_out: set[str] = set()
        """Parameters that it does not take."""
        self.limit_name = "max_tokens"
        self.thinks = False
        self.base = ""
        """An answer at temperature 0."""
        self._engine, self._store, self._most, self._asked = engine, store, most, 0

    @property
    def engines(self) -> list[str]:
        """What serves the model, as far as the server says so."""
        return sorted({str(info) for infos in self._engine.engines().values() for info in infos})

    @property
    def room(self) -> int:
        """Tokens that suffice for a short answer."""
        return 2048 if self.thinks else 256

    def hear(self, *questions: ProbeQuestion) -> list[Heard]:
        """The replies to some questions; raises UnheardError where one has none."""
        heard = self.ask(*questions)
        for reply in (reply for reply in heard if reply.data is None):
            raise UnheardError(reply)
        return heard

    def ask(self, *questions: ProbeQuestion) -> list[Heard]:
        """Ask some questions at once, those that failed on the way once more; what is beyond the bound is not asked."""
        replies = [self._job(question) for question in questions]
        for stream in (False, True):
            jobs = {
                i: each
                for i, each in enumerate(replies)
                if isinstance(each, Job) and questions[i].stream is stream
            }
            for i, result in zip(jobs, self._send(stream, list(jobs.values())), strict=True):
                replies[i] = self._heard(questions[i], jobs[i].digest, result)
        heard = [each for each in replies if isinstance(each, Heard)]
        self.heard += heard
        return heard

    def fit_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters as it takes them."""
        names = {"max_tokens": self.limit_name}
        return {names.get(name, name): value for name, value in params.items() if name not in self.left_out}

    def _job(self, question: ProbeQuestion) -> Job | Heard:
        name, params, api = self.model.request_model, self.fit_params(question.params), self.model.api
        try:
            body = build_request(name, question.messages, params, api=api).body
        except ApiError as error:
            return Heard(0, cause=error.rule, refused=(error.param or "", ""))
        self._asked += 1
        # A key of its own: equal questions are asked each, and one that is refused ends no other.
        key = hashlib.sha256(b"%d %b" % (self._asked, body)).hexdigest()
        return Job(key, body, None, key)

    def _send(self, stream: bool, jobs: Sequence[Job]) -> list[Result]:
        label, room = "streamed" if stream else "plain", max(self._most - self.sent, 0)
        results = self._engine.run(label, jobs[:room])
        self.sent += sum(result.attempts for result in results)
        for i, result in enumerate(results):
            # Once more what failed on the way: it is the endpoint that is judged, not the network.
            if result.kind == "failed" and not LASTING.match(result.cause) and self.sent < self._most:
                results[i] = self._engine.run(label, [jobs[i]])[0]
                self.sent += results[i].attempts
        return results + [_UNASKED] * (len(jobs) - len(results))

    def _heard(self, question: ProbeQuestion, key: str, result: Result) -> Heard:
        limit, data = int(question.params.get("max_tokens", 0)), self._store.records.pop(key, None)
        if data is None:
            refusal = _REFUSED.fullmatch(result.cause)
            refused = (refusal["name"] or "", refusal["wanted"] or "") if refusal else ("", "")
            problem = ": ".join(filter(None, (result.cause or result.kind, result.detail)))
            return Heard(limit, cause=problem, refused=refused)
        record = Record.decode(data)
        document = parse_body(record.body)
        served = short_text(document.get("model")) if isinstance(document, dict) else ""
        body = record.body
        return Heard(
            limit,
            data,
            read_reply(record),
            served=served,
            in_text=b"<think" in body,
            by_itself=bool(_BY_ITSELF.search(body)),
        )


@contextmanager
def host_of(model: Model, most: int = MOST) -> Iterator[Host]:
    """A model's endpoint, with the server that it needs as long as the context."""
    with serve_models([model]) as served:
        route, store = served.routes[model.name], Memory()
        few = min(_CONNECTIONS, model.limits.declared or _CONNECTIONS)
        # Attempts are counted here, so the client makes but one of each.
        once: dict[str, Any] = {"retries": 0, "patience": 0.0, "connections": few, "start": None}
        once |= {"batch": None, "stream": False, "response_bytes": _MOST_BYTES, "refusals": 0}
        plain = replace(route.endpoint, **once)
        engine = Engine({"plain": plain, "streamed": replace(plain, stream=True)}, store)
        try:
            yield Host(model, engine, store, most=most)
        finally:
            engine.close()
