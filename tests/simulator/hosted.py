"""The simulator's batches as Anthropic and Gemini have them, over those that OpenAI has.

Anthropic's requests travel in what creates a batch, which carries nothing of its creator's; its answers are at an
address of their own. Gemini's files have a door of its own, with another header for the key, and its list too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from tests.simulator.batches import Batch, Batches, Route
from tests.simulator.wire import Response, error_response, json_response

MESSAGES = "/v1/messages/batches"
NATIVE = ("/upload/v1beta/files", "/download/v1beta/", "/v1beta/batches")
"""Where Gemini's own door is; its key is in a header of its own."""
PREFIXES = ("/v1/files", "/v1/batches", MESSAGES, "/v1beta/openai/batches", *NATIVE)
"""Where there are batches of any kind."""

_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_KINDS = {"expired": "expired", "cancelled": "canceled"}
_ORDER = {"input_file_id", "endpoint", "completion_window"}


class HostedBatches(Batches):
    """The files and batches of one server, by all three protocols."""

    def routes(self, body: bytes, query: str) -> list[Route]:
        """What there is, for a request's body and query."""
        return [
            *super().routes(body, query),
            ("POST", MESSAGES, "create", lambda: self._create_messages(body)),
            ("GET", MESSAGES, "list", lambda: self._list_messages(query)),
            ("GET", rf"{MESSAGES}/([^/]+)", "poll", self._poll_messages),
            ("GET", rf"{MESSAGES}/([^/]+)/results", "download", self._results),
            ("POST", "/upload/v1beta/files", "upload", lambda: self._upload_native(body, query)),
            ("GET", r"/download/v1beta/files/([^/:]+):download", "download", self._content),
            ("POST", "/v1beta/openai/batches", "create", lambda: self._create_native(body)),
            ("GET", "/v1beta/openai/batches/batches/([^/]+)", "poll", lambda name: _named(self._poll(name))),
            ("GET", "/v1beta/batches", "list", lambda: self._list_native(query)),
        ]

    def _create_messages(self, body: bytes) -> Response:
        try:
            rows = json.loads(body)["requests"]
            asked = [
                (row["custom_id"], {"body": row["params"], "headers": row.get("headers")}) for row in rows
            ]
        except (ValueError, KeyError, TypeError):
            return error_response(400, "the batch cannot be read", "invalid_request_error")
        if (
            not asked
            or len(dict(asked)) < len(rows)
            or not all(_CUSTOM_ID.fullmatch(name) for name, _ in asked)
        ):
            return error_response(400, "each request needs a custom_id of its own", "invalid_request_error")
        return self._poll_messages(self._begin({"messages": True}, "/v1/messages", asked))

    def _poll_messages(self, name: str) -> Response:
        batch = self._batches.get(name)
        if batch is None or "messages" not in batch.fields:
            return error_response(404, f"no such batch: {name[:100]}", "not_found_error")
        return json_response(self._message_batch(batch))

    def _message_batch(self, batch: Batch) -> dict[str, Any]:
        record = self._state(batch)
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        over, origin = record["status"] == batch.settings.outcome, self.settings.origin
        if not over:
            counts["processing"] = record["size"]
        for line in _result_lines(batch) if over else ():
            counts[line["result"]["type"]] += 1
        return {
            "id": record["id"],
            "type": "message_batch",
            "processing_status": "ended" if over else "in_progress",
            "request_counts": counts,
            "results_url": f"{origin}{MESSAGES}/{record['id']}/results" if over else None,
        }

    def _results(self, name: str) -> Response:
        batch = self._batches.get(name)
        if batch is None or "status" not in batch.fields:
            return error_response(404, "no results yet", "not_found_error")
        lines = b"".join(json.dumps(line).encode() + b"\n" for line in _result_lines(batch))
        return Response(lines, content_type="application/x-jsonl")

    def _list_messages(self, query: str) -> Response:
        wanted = parse_qs(query)
        names = [name for name in reversed(self._batches) if "messages" in self._batches[name].fields]
        after, limit = wanted.get("after_id", [""])[0], int(wanted.get("limit", ["20"])[0])
        start = names.index(after) + 1 if after in names else 0
        size = min(limit, int(self.settings.page))
        page = [self._message_batch(self._batches[name]) for name in names[start : start + size]]
        ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {}
        return json_response({"data": page, "has_more": start + size < len(names), **ends})

    def _upload_native(self, body: bytes, query: str) -> Response:
        if query != "uploadType=multipart" or b'{"file":{"displayName":"' not in body:
            return error_response(400, "the body must be a file's metadata and the file", "invalid")
        stored = self._upload(body.replace(b"{", b'name="purpose"\r\n\r\nbatch\r\n{', 1))
        if stored.status != 200:
            return stored
        return json_response({"file": {"name": f"files/{json.loads(stored.body)['id']}"}})

    def _create_native(self, body: bytes) -> Response:
        order = json.loads(body)
        if set(order) != _ORDER:
            return error_response(400, f"unknown name in {sorted(order)}", "invalid_argument")
        order["input_file_id"] = order["input_file_id"].removeprefix("files/")
        return _named(self._create(json.dumps(order).encode()))

    def _list_native(self, query: str) -> Response:
        token = parse_qs(query).get("pageToken", ["0"])[0]
        names = list(reversed(self._batches))
        start, end = int(token), int(token) + int(self.settings.page)
        if not names:
            return json_response({})
        found = [
            {
                "name": f"batches/{name}",
                "metadata": {
                    "inputConfig": {"fileName": f"files/{self._batches[name].fields['input_file_id']}"}
                },
            }
            for name in names[start:end]
        ]
        more = {"nextPageToken": str(end)} if end < len(names) else {}
        return json_response({"operations": found, **more})


def _result_lines(batch: Batch) -> list[dict[str, Any]]:
    """What Anthropic says of each request."""
    found = []
    for line in map(json.loads, filter(None, (batch.output + batch.errors).splitlines())):
        response = line["response"]
        result: dict[str, Any] = {"type": _KINDS.get(batch.settings.outcome, "canceled")}
        if response is not None and response["status_code"] == 200:
            result = {"type": "succeeded", "message": response["body"]}
        elif response is not None:
            result = {"type": "errored", "error": response["body"]}
        found.append({"custom_id": line["custom_id"], "result": result})
    return found


def _named(response: Response) -> Response:
    """A batch with the names that Gemini gives it and its files."""
    record = json.loads(response.body)
    if response.status != 200:
        return response
    named = {"id": f"batches/{record['id']}"}
    for name in ("input_file_id", "output_file_id", "error_file_id"):
        if record.get(name):
            named[name] = f"files/{record[name]}"
    return json_response({**record, **named})


def let_in(path: str, keys: Mapping[bytes, bytes], key: bytes | None) -> Response | None:
    """The refusal of a request about batches whose headers are not as its door wants them; None if they are."""
    native = path.startswith(NATIVE)
    if native and len(keys) > 1:
        return error_response(400, "Multiple authentication credentials received.", "invalid_argument")
    if path.startswith(MESSAGES) and not keys.get(b"anthropic-version"):
        return error_response(400, "anthropic-version: header is required", "invalid_request_error")
    if key is None:
        return None
    name, prefix = (b"x-goog-api-key", b"") if native else (b"authorization", b"Bearer ")
    if path.startswith(MESSAGES):
        name, prefix = b"x-api-key", b""
    return (
        None
        if keys.get(name) == prefix + key
        else error_response(401, "wrong or missing API key", "invalid_api_key")
    )
