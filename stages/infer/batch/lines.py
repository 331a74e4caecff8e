"""Writes the lines of a batch's file, and reads what the endpoint says of a batch and of its requests. Pure.

Whatever an endpoint sends, nothing here raises: what cannot be read is None or empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from evalcube.stages.infer.apis import APIS
from evalcube.stages.infer.jobs import Job
from evalcube.stages.infer.reply import Reply, RetryClass, classify, one_line
from evalcube.stages.reply.body import parse_body, read_error

WRAPPING_BYTES = 8192
"""What a line may have beside the response's body."""
_ID = re.compile(r"[\w:-][\w./:-]{0,511}", re.ASCII)
_CUSTOM_ID = re.compile(rb'"custom_id"\s*:\s*"([0-9a-f]{64})"')
_KEY = "evalcube"
"""Key of a batch's metadata under which its token stands."""
_NOT_REACHED = frozenset({"batch_expired", "batch_cancelled"})
"""Codes of lines that say no more than that there is no answer."""
_ENDED = {
    "completed": "",
    "failed": "batch failed",
    "expired": "batch expired",
    "cancelled": "batch cancelled",
}
_NO_ANSWER = "no answer in batch"


def target(api: str) -> str:
    """The path that requests of a batch go to, by name of the API."""
    return f"/v1{APIS[api].path}"


def request_line(job: Job, api: str) -> bytes:
    r"""One line of a batch's file; a request's own headers, which real endpoints never get, stand beside its body.

    Parameters
    ----------
    job
        The request.
    api
        One of `evalcube.stages.infer.apis.APIS`.

    Examples
    --------
    >>> request_line(Job("ab", b"{}"), "chat")
    b'{"custom_id":"ab","method":"POST","url":"/v1/chat/completions","body":{}}\n'
    """
    own = f'"headers":{json.dumps(dict(job.headers))},' if job.headers else ""
    head = f'{{"custom_id":"{job.digest}","method":"POST","url":"{target(api)}",{own}"body":'
    return head.encode() + job.body + b"}\n"


def order(file: str, api: str, window: str, token: str) -> dict[str, object]:
    """The request that creates a batch.

    Parameters
    ----------
    file
        Id of the uploaded file.
    api
        One of `evalcube.stages.infer.apis.APIS`.
    window
        Time that the endpoint may take, as ``24h``.
    token
        See `evalcube.stages.infer.batch.note.Note.token`.
    """
    return {
        "input_file_id": file,
        "endpoint": target(api),
        "completion_window": window,
        "metadata": {_KEY: token},
    }


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as the endpoint describes it."""

    id: str
    status: str
    """The endpoint's word: ``in_progress``, ``completed``, ``failed``..."""
    input: str = ""
    """Ids of files; empty where there is none."""
    output: str = ""
    errors: str = ""
    token: str = ""
    """See `evalcube.stages.infer.batch.note.Note.token`; empty where the batch is not ours."""
    detail: str = ""
    """What was wrong with the whole of it."""

    @property
    def over(self) -> bool:
        """Whether nothing more comes."""
        return self.status in _ENDED

    @property
    def missing(self) -> Reply:
        """What became of requests of which its files say nothing."""
        return Reply(RetryClass.FAILED, _ENDED.get(self.status) or _NO_ANSWER, self.detail)


def read_batch(document: object) -> Batch | None:
    """The batch that `document` describes; None if it describes none."""
    if not isinstance(document, dict):
        return None
    name, status = identifier(document.get("id")), document.get("status")
    if not name or not isinstance(status, str):
        return None
    metadata, errors = document.get("metadata"), document.get("errors")
    token = metadata.get(_KEY) if isinstance(metadata, dict) else None
    problems = errors.get("data") if isinstance(errors, dict) else None
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


def identifier(value: object) -> str:
    """The id `value` if it may stand in an address; empty if not."""
    return value if isinstance(value, str) and _ID.fullmatch(value) and ".." not in value else ""


class Line(NamedTuple):
    """One line of a batch's output or errors."""

    digest: str
    reply: Reply
    status: int = 0
    """HTTP status of the request's response; 0 where there is none."""
    body: bytes = b""
    """The response's body as JSON."""


def read_line(data: bytes, now: float, api: str) -> Line | None:
    """What a line says of a request; None if it cannot be read, or says that the request was not reached.

    Parameters
    ----------
    data
        The line, without its end.
    now
        Unix time in seconds.
    api
        One of `evalcube.stages.reply.forms.FORMS`.
    """
    document = parse_body(data)
    if not isinstance(document, dict):
        return None
    digest, response = document.get("custom_id"), document.get("response")
    if not isinstance(digest, str):
        return None
    status = response.get("status_code") if isinstance(response, dict) else None
    if isinstance(response, dict) and isinstance(status, int) and 100 <= status <= 999:
        body = _compact(response.get("body"))
        return Line(digest, classify(status, {}, body, now, api), int(status), body)
    error = read_error(document)
    if error.code in _NOT_REACHED:
        return None
    return Line(digest, Reply(RetryClass.RETRY, "batch error", one_line(error.message or error.code)))


def long_line(head: bytes, limit: int) -> Line | None:
    """The failure of a request whose line is too long to be kept; None if its beginning does not name one.

    Parameters
    ----------
    head
        Beginning of the line.
    limit
        Most bytes of a response, for the message.
    """
    found = _CUSTOM_ID.search(head)
    if found is None:
        return None
    reply = Reply(RetryClass.FAILED, "too large", f"the response is larger than {limit} bytes")
    return Line(found[1].decode(), reply)


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


class LineSplitter:
    """Cuts a stream of bytes into lines, and keeps no more of one than its limit.

    Parameters
    ----------
    limit
        Bytes of the longest line that is kept whole.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, part: bytes) -> Iterator[tuple[bytes, bool]]:
        """The lines that end in `part` of the stream, with True; of one that is too long the beginning, with False."""
        start = 0
        while (end := part.find(b"\n", start)) >= 0:
            self._keep(part[start:end])
            yield from self.rest()
            start = end + 1
        self._keep(part[start:])

    def rest(self) -> Iterator[tuple[bytes, bool]]:
        """The line that has no end, as the last of a file may have none; nothing if it is blank."""
        line, whole = b"".join(self._parts), self._size <= self._limit
        self._parts, self._size = [], 0
        if line.strip():
            yield line, whole

    def _keep(self, piece: bytes) -> None:
        if self._size <= self._limit and piece:
            self._parts.append(piece[: self._limit + 1 - self._size])
        self._size += len(piece)
        if self._size > self._limit:
            self._parts = [b"".join(self._parts)[:WRAPPING_BYTES]]
