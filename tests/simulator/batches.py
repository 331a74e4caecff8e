"""The simulator's files and batches, as OpenAI's API has them.

Each request of a batch is answered, and counted, when the batch is created. A line may carry headers of its own
beside its body, which have the meaning of a request's.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any
from urllib.parse import parse_qs

from evalcube.deploy.errors import SimulatorError
from tests.simulator.wire import Ending, Response, error_response, json_response

Answer = Callable[[str, bytes, bytes], Response | None]
"""Returns the response to a request's path, body and truth; None for a path that batches do not have."""

Route = tuple[str, str, str, Callable[..., Response]]
"""Method, pattern of the path, step, and what answers it."""

_MOST_FILES = 1000
_FILE = re.compile(rb'name="file"(?:;[^\r\n]*)?(?:\r\n[^\r\n]+)*\r\n\r\n')
_OUTCOMES = ("completed", "failed", "expired", "cancelled")
_STEPS = ("upload", "create", "poll", "list", "download")


@dataclass(frozen=True)
class Settings:
    """How batches go.

    Raises
    ------
    SimulatorError
        A value is of a wrong type or out of range.
    """

    seconds: float = 0.5
    """Seconds from the creation of a batch to its end, for all batches that have not ended."""
    outcome: str = "completed"
    """How batches end that are created from now on: completed, failed, expired or cancelled."""
    share: float = 1.0
    """Share of the requests that are answered, the first ones."""
    garbage: bool = False
    """Whether the output also has lines that nobody asked for or that are no JSON."""
    page: int = 100
    """Most entries of a listing."""
    origin: str = "https://elsewhere.example"
    """What addresses of answers begin with."""
    faults: Mapping[str, list[int]] = field(default_factory=dict)
    """By step, the statuses that its next requests get; 0 does what is asked and then resets the connection, -1 never
    answers."""

    def __post_init__(self) -> None:
        _check("seconds", self.seconds, 0, 86_400)
        _check("share", self.share, 0, 1)
        _check("page", self.page, 1, 100)
        if self.outcome not in _OUTCOMES:
            raise SimulatorError("outcome", self.outcome, f"must be one of {', '.join(_OUTCOMES)}")
        if not isinstance(self.faults, dict) or not set(self.faults) <= set(_STEPS):
            raise SimulatorError("faults", self.faults, f"must be an object; there are {', '.join(_STEPS)}")


def _check(name: str, value: object, low: float, high: float) -> None:
    if not isinstance(value, (int, float)) or not low <= value <= high:
        raise SimulatorError(name, value, f"must be a number from {low} to {high}")


def parse_settings(text: bytes) -> Settings:
    """The settings in a JSON object; what it leaves out has its default.

    Raises
    ------
    SimulatorError
        The text is no such object, or a setting is wrong.
    """
    try:
        entries = json.loads(text)
    except ValueError as error:
        raise SimulatorError("batches", text, f"must be JSON ({error})") from None
    names = [each.name for each in fields(Settings)]
    if not isinstance(entries, dict) or not set(entries) <= set(names):
        raise SimulatorError("batches", entries, f"must be an object; there are {', '.join(names)}")
    return Settings(**entries)


@dataclass
class Batch:
    fields: dict[str, Any]
    created: float
    settings: Settings
    output: bytes
    errors: bytes


class Batches:
    """The files and batches of one server.

    Parameters
    ----------
    answer
        Answers a single request of a batch.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._files: dict[str, bytes] = {}
        self._batches: dict[str, Batch] = {}
        self._serial = 0
        self.settings = Settings()
        self.requests = 0
        """Requests of all batches so far."""
        self._steps = dict.fromkeys(_STEPS, 0)
        """How often each step was taken."""

    def handle(self, method: str, path: str, body: bytes) -> Response | None:
        """The response to a request about files or batches; None for a path or method that they do not have."""
        path, _, query = path.partition("?")
        for wanted, pattern, step, action in self.routes(body, query):
            match = re.fullmatch(pattern, path)
            if match is not None and wanted == method:
                self._steps[step] += 1
                planned = self.settings.faults.get(step)
                fault = planned.pop(0) if planned else None
                if fault and fault > 0:
                    return error_response(fault, "a simulated fault", "simulated")
                response = action(*match.groups())
                ending = Ending.HANG if fault else Ending.RESET
                return response if fault is None else response._replace(head_share=0.0, ending=ending)
        return None

    def routes(self, body: bytes, query: str) -> list[Route]:
        """What there is, for a request's body and query."""
        return [
            ("POST", r"/v1/files", "upload", lambda: self._upload(body)),
            ("GET", r"/v1/files/([^/]+)/content", "download", self._content),
            ("POST", r"/v1/batches", "create", lambda: self._create(body)),
            ("GET", r"/v1/batches", "list", lambda: self._list(query)),
            ("GET", r"/v1/batches/([^/]+)", "poll", self._poll),
        ]

    def summary(self) -> dict[str, object]:
        """Counts of batches, their requests, files and steps, as JSON has them."""
        return {
            "batches": len(self._batches),
            "requests": self.requests,
            "files": len(self._files),
            **self._steps,
        }

    def settings_record(self) -> dict[str, object]:
        """The settings as JSON has them."""
        return asdict(self.settings)

    def _name(self, kind: str) -> str:
        self._serial += 1
        return f"{kind}-{self._serial:06d}"

    def _store(self, data: bytes) -> str:
        name = self._name("file")
        self._files[name] = data
        while len(self._files) > _MOST_FILES:
            self._files.pop(next(iter(self._files)))
        return name

    def _upload(self, body: bytes) -> Response:
        mark, found = body[:200].partition(b"\r\n")[0], _FILE.search(body)
        end = body.rfind(b"\r\n" + mark) if mark.startswith(b"--") else -1
        if found is None or end < found.end() or b'name="purpose"\r\n\r\nbatch\r\n' not in body:
            return error_response(
                400, "the body must be a form with purpose batch and a file", "invalid_form"
            )
        data = body[found.end() : end]
        name = self._store(data)
        return json_response({"id": name, "object": "file", "bytes": len(data), "purpose": "batch"})

    def _content(self, name: str) -> Response:
        if name not in self._files:
            return error_response(404, f"no such file: {name[:100]}", "not_found")
        return Response(self._files[name], content_type="application/octet-stream")

    def _create(self, body: bytes) -> Response:
        try:
            order = json.loads(body)
            file, path, window = order["input_file_id"], order["endpoint"], order["completion_window"]
            lines = [json.loads(line) for line in self._files[file].splitlines() if line.strip()]
            asked = [(line["custom_id"], line) for line in lines if line["url"] == path != "/v1/messages"]
        except (ValueError, KeyError, TypeError):
            return error_response(400, "the batch cannot be read", "invalid_batch")
        if not asked or len(dict(asked)) < len(lines):
            message = "each line needs a custom_id of its own and the batch's url"
            return error_response(400, message, "invalid")
        record = {
            "object": "batch",
            "endpoint": path,
            "input_file_id": file,
            "completion_window": window,
            "metadata": order.get("metadata"),
        }
        return self._poll(self._begin(record, path, asked))

    def _begin(self, record: dict[str, Any], path: str, asked: list[tuple[str, Any]]) -> str:
        """Answer the requests of a new batch; returns its id."""
        settings, name = self.settings, self._name("batch")
        output, errors = self._work(path, asked, settings) if settings.outcome != "failed" else (b"", b"")
        whole = {"id": name, **record, "size": len(asked)}
        self._batches[name] = Batch(whole, time.monotonic(), settings, output, errors)
        return name

    def _work(self, path: str, asked: list[tuple[str, Any]], settings: Settings) -> tuple[bytes, bytes]:
        """Output and error file of a batch; with a share below 1 its last requests are not reached."""
        reached = round(len(asked) * settings.share)
        good: list[bytes] = []
        bad: list[bytes] = []
        for name, line in asked[:reached]:
            headers = line.get("headers") or {}
            truth = str(next(iter(headers.values()), "")).encode()
            text = json.dumps(line["body"], sort_keys=True, separators=(",", ":")).encode()
            response = self._answer(path, text, truth)
            self.requests += 1
            if response is None:
                bad.append(_line(name, error={"code": "invalid_url", "message": "no such path"}))
                continue
            whole = {"status_code": response.status, "request_id": name[:8], "body": _body(response)}
            (good if response.status == 200 else bad).append(_line(name, response=whole))
        if settings.outcome in ("expired", "cancelled"):
            error = {"code": f"batch_{settings.outcome}", "message": "This request was not executed in time."}
            bad += [_line(name, error=error) for name, _ in asked[reached:]]
        good.reverse()  # the order says nothing
        if settings.garbage:
            good = list(_with_garbage(good))
        return b"".join(good), b"".join(bad)

    def _poll(self, name: str) -> Response:
        batch = self._batches.get(name)
        if batch is None:
            return error_response(404, f"no such batch: {name[:100]}", "not_found")
        return json_response(self._state(batch))

    def _state(self, batch: Batch) -> dict[str, Any]:
        """A batch as the API describes it; the first request after its end stores its files."""
        record = batch.fields
        if "status" not in record:
            if time.monotonic() < batch.created + self.settings.seconds:
                return {**record, "status": "in_progress"}
            record["status"] = batch.settings.outcome
            record["output_file_id"] = self._store(batch.output) if batch.output else None
            record["error_file_id"] = self._store(batch.errors) if batch.errors else None
            if record["status"] == "failed":
                record["errors"] = {"object": "list", "data": [{"code": "invalid", "message": "a bad file"}]}
        return record

    def _list(self, query: str) -> Response:
        names, wanted = list(reversed(self._batches)), parse_qs(query)
        after, limit = wanted.get("after", [""])[0], wanted.get("limit", ["20"])[0]
        start = names.index(after) + 1 if after in self._batches else 0
        size = min(int(limit) if limit.isdecimal() else 20, int(self.settings.page))
        page = [self._state(self._batches[name]) for name in names[start : start + size]]
        return json_response({"object": "list", "data": page, "has_more": start + size < len(names)})


def _line(name: str, response: object = None, error: object = None) -> bytes:
    whole = {"id": f"batch_req_{name[:8]}", "custom_id": name, "response": response, "error": error}
    return json.dumps(whole).encode() + b"\n"


def _body(response: Response) -> object:
    """A response's body as an output file has it: what is no JSON stays a text."""
    try:
        return json.loads(response.body)
    except ValueError:
        return response.body.decode(errors="replace")


def _with_garbage(lines: list[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield b"\xff not json\n"
        yield line
        yield _line("f" * 64, response={"status_code": 200, "body": {}})
        yield line  # a second time
    yield b'{"custom_id": 7}\n[]\n"'
