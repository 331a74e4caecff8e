"""How each provider's batches are asked: paths, what is sent, and what comes back. Pure: `wire` does the sending.

`OPENAI` is what most speak; others name what they have otherwise. Whatever one sends, nothing here raises: what cannot
be read is None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from evalcube.stages.infer.apis import APIS
from evalcube.stages.infer.batch.lines import Batch, Line, Note, identifier
from evalcube.stages.infer.jobs import Job
from evalcube.stages.infer.reply import Reply, RetryClass, classify, error_status, one_line
from evalcube.stages.reply.body import parse_body, read_error
from evalcube.stages.reply.forms import MESSAGES

Fields = dict[str, object]

_KEY = "evalcube"
"""Key of a batch's metadata under which its token stands."""
_NOT_REACHED = frozenset({"batch_expired", "batch_cancelled"})
"""Codes of lines that say no more than that there is no answer."""
_ADDRESS = re.compile(r"https?://[\w.:\[\]-]+/[\w./:?=&%~-]{0,1000}", re.ASCII)


class UploadForm(NamedTuple):
    """How a file of requests is uploaded: one body in parts, of which the last is the file."""

    path: str
    content_type: str
    """Without the boundary."""
    parts: tuple[str, ...]
    """Headers and content of each part, with ``{token}`` for a name; of the last the headers alone."""


def target(api: str) -> str:
    """The path that requests of a batch go to, by name of the API."""
    return f"/v1{APIS[api].path}"


def request_line(job: Job, api: str) -> bytes:
    r"""One line of a batch's file; a request's own headers, which real endpoints never get, stand beside its body.

    Examples
    --------
    >>> request_line(Job("ab", b"{}"), "chat")
    b'{"custom_id":"ab","method":"POST","url":"/v1/chat/completions","body":{}}\n'
    """
    head = f'{{"custom_id":"{job.digest}","method":"POST","url":"{target(api)}",{_headers(job)}"body":'
    return head.encode() + job.body + b"}\n"


def _messages_line(job: Job, api: str) -> bytes:  # noqa: ARG001 - as `request_line`
    """One entry of the list that creates a batch of messages, after a comma."""
    return f',{{"custom_id":"{job.digest}",{_headers(job)}"params":'.encode() + job.body + b"}"


def _headers(job: Job) -> str:
    return f'"headers":{json.dumps(dict(job.headers))},' if job.headers else ""


def order(note: Note, api: str, window: str) -> Fields:
    """The request that creates a batch of an uploaded file."""
    return {**_documented_order(note, api, window), "metadata": {_KEY: note.token}}


def _documented_order(note: Note, api: str, window: str) -> Fields:
    return {"input_file_id": note.file, "endpoint": target(api), "completion_window": window}


def read_batch(document: object) -> Batch | None:
    """The batch that `document` describes as OpenAI's API does; None if it describes none."""
    if not isinstance(document, dict):
        return None
    name, status = identifier(document.get("id")), document.get("status")
    if not name or not isinstance(status, str):
        return None
    token = _inner(document, "metadata").get(_KEY)
    problems = _inner(document, "errors").get("data")
    detail = ""
    if isinstance(problems, list) and problems:
        detail = read_error({"error": problems[0]}).message
    return Batch(
        id=name,
        status=status,
        input=identifier(document.get("input_file_id")),
        output=identifier(document.get("output_file_id")),
        errors=identifier(document.get("error_file_id")),
        token=token if isinstance(token, str) else "",
        detail=one_line(detail),
    )


def _read_messages_batch(document: object) -> Batch | None:
    """A batch of messages; it says how many requests it has, and nothing else of them while it lasts."""
    if not isinstance(document, dict):
        return None
    name, status = identifier(document.get("id")), document.get("processing_status")
    if not name or not isinstance(status, str):
        return None
    request_counts = _inner(document, "request_counts")
    counts = {kind: count for kind, count in request_counts.items() if isinstance(count, int)}
    if status == "ended":
        status = next((end for kind, end in _UNFINISHED.items() if counts.get(kind)), "completed")
    address = document.get("results_url")
    return Batch(
        id=name,
        status=status,
        output=address if isinstance(address, str) and _ADDRESS.fullmatch(address) else "",
        size=sum(counts.values()),
    )


_UNFINISHED = {"expired": "expired", "canceled": "cancelled"}


def _read_native_batch(document: object) -> Batch | None:
    """An entry of Gemini's own list; how far it is, its other door says."""
    if not isinstance(document, dict) or not (name := identifier(document.get("name"))):
        return None
    source = _inner(_inner(document, "metadata"), "inputConfig").get("fileName")
    return Batch(id=name, status="in_progress", input=identifier(source))


def _inner(document: Mapping[str, object], name: str) -> Mapping[str, object]:
    value = document.get(name)
    return value if isinstance(value, dict) else {}


Page = tuple[object, str]
"""The entries of a page of batches, and what the address of the next one has more; empty if it is the last."""


def _page(document: Fields) -> Page:
    entries = document.get("data")
    last = entries[-1] if isinstance(entries, list) and entries else None
    name = identifier(last.get("id")) if isinstance(last, dict) else ""
    return entries, f"&after={name}" if name and document.get("has_more") is True else ""


def _messages_page(document: Fields) -> Page:
    name = identifier(document.get("last_id"))
    return document.get("data"), f"&after_id={name}" if name and document.get("has_more") is True else ""


def _native_page(document: Fields) -> Page:
    name = identifier(document.get("nextPageToken"))
    return document.get("operations", []), f"&pageToken={name}" if name else ""


Said = tuple[int, object]
"""Status and body of the response to a request; status 0 with an error of the batch."""


def _answer(document: Fields) -> Said | None:
    response = document.get("response")
    status = response.get("status_code") if isinstance(response, dict) else None
    if isinstance(response, dict) and isinstance(status, int) and 100 <= status <= 999:
        return int(status), response.get("body")
    return None if read_error(document).code in _NOT_REACHED else (0, document)


def _messages_answer(document: Fields) -> Said | None:
    result = _inner(document, "result")
    if result.get("type") == "succeeded":
        return 200, result.get("message")
    if result.get("type") != "errored":
        return None  # canceled, or expired
    error = result.get("error")
    return error_status(error), error


def read_line(
    data: bytes, now: float, api: str, answer: Callable[[Fields], Said | None] = _answer
) -> Line | None:
    """What a line says of a request; None if it cannot be read, or says that the request was not reached."""
    document = parse_body(data)
    if not isinstance(document, dict):
        return None
    digest = document.get("custom_id")
    outcome = answer(document) if isinstance(digest, str) else None
    if outcome is None or not isinstance(digest, str):
        return None
    status, response = outcome
    if not status:
        error = read_error(response)
        return Line(digest, Reply(RetryClass.RETRY, "batch error", one_line(error.message or error.code)))
    body = _compact(response)
    return Line(digest, classify(status, {}, body, now, api), status, body)


def _compact(body: object) -> bytes:
    """A response's body as JSON; a text, as which some put what is no JSON, as it stands."""
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode("utf-8", "replace")
    try:
        try:
            return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        except UnicodeEncodeError:  # half a surrogate pair
            return json.dumps(body, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return b""


_FILE = (
    'content-disposition: form-data; name="file"; filename="{token}.jsonl"\r\ncontent-type: application/jsonl'
)
_PURPOSE = 'content-disposition: form-data; name="purpose"\r\n\r\nbatch'
_NAME = 'content-type: application/json\r\n\r\n{{"file":{{"displayName":"{token}","mimeType":"application/jsonl"}}}}'


_UPLOAD = UploadForm("files", "multipart/form-data", (_PURPOSE, _FILE))


@dataclass(frozen=True)
class Protocol:
    """How one kind of provider is asked. A path that begins with ``/`` is below what stands before `suffix`."""

    batches: str = "batches"
    """Path to create a batch at; with an id behind it, to look at one."""
    listing: str = "batches?limit=100"
    """Path of the list of batches, the newest first."""
    page: Callable[[Fields], Page] = _page
    """Reads a page of the list."""
    entry: Callable[[object], Batch | None] = read_batch
    """Reads an entry of it."""
    read: Callable[[object], Batch | None] = read_batch
    """Reads a batch that was created or looked at."""
    form: UploadForm | None = _UPLOAD
    """How requests are uploaded; None where they travel in what creates the batch."""
    line: Callable[[Job, str], bytes] = request_line
    """A request and the name of its API as a line of the file, or as an entry of the list."""
    order: Callable[[Note, str, str], Fields] = order
    """What creates a batch of an uploaded file, from its note, the name of the API and the window."""
    content: str = "files/{}/content"
    """Path of a file of answers, for its id."""
    answer: Callable[[Fields], Said | None] = _answer
    """What a line of answers says; None for a request that was not reached."""
    suffix: str = ""
    """End of the base URLs by which it is known."""
    key_header: str = ""
    """Header that carries the key to paths that begin with ``/``."""


OPENAI = Protocol()
ANTHROPIC = Protocol(
    batches="messages/batches",
    listing="messages/batches?limit=100",
    page=_messages_page,
    entry=_read_messages_batch,
    read=_read_messages_batch,
    form=None,
    line=_messages_line,
    content="{}",
    answer=_messages_answer,
)
GEMINI = Protocol(
    listing="/v1beta/batches?pageSize=100",
    page=_native_page,
    entry=_read_native_batch,
    form=UploadForm("/upload/v1beta/files?uploadType=multipart", "multipart/related", (_NAME, _FILE)),
    order=_documented_order,
    content="/download/v1beta/{}:download?alt=media",
    suffix="/v1beta/openai",
    key_header="x-goog-api-key",
)


def protocol_of(api: str, base_url: str) -> Protocol:
    """How the batches of an endpoint are asked.

    Examples
    --------
    >>> protocol_of("chat", "https://generativelanguage.googleapis.com/v1beta/openai") is GEMINI
    True
    """
    if api == MESSAGES:
        return ANTHROPIC
    return GEMINI if base_url.endswith(GEMINI.suffix) else OPENAI
