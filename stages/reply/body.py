"""Reads bodies of HTTP replies: their JSON document, their token counts, and what an error says.

Shared by `infer`, which must know whether a reply counts, and `process`, which grades it later: both have to read the
same thing out of the same bytes. Nothing here raises, whatever an endpoint sends.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass

_TEXT_LIMIT = 4096
SHORT = 64
"""Characters of a name that an endpoint gives: of an engine, a version, a fingerprint."""
_CONTEXT_CODES = {"context_length_exceeded", "context_window_exceeded", "exceed_context_size_error"}
_FILTER_CODES = {"content_filter", "content_policy_violation", "responsibleaipolicyviolation"}

_FEW_VALUES, _VALUE_BYTES = 50_000, 4
"""JSON may have so many values and names, and beyond these one in so many bytes: an answer is mostly text. What has
more takes seconds to read, in which nobody else on the machine gets a reply."""

_TOO_LONG = re.compile(r"\b(?:prompt|input)\b.{0,20}\bis too long\b", re.DOTALL)
_LIMIT = re.compile(r"context (?:length|size|window)|maximum model length|input token count")
_EXCESS = re.compile(
    r"exceed|longer than|greater than|too long|too large|requested|resulted in|reduce the length"
)
_OUTPUT_LIMIT = re.compile(r"max_(?:completion_|new_|output_)?tokens")
_LIMIT_NUMBER = re.compile(r"(?:context (?:length|size|window)|model length)\D{0,24}(\d{1,12})\b")
_PROMPT_NUMBER = re.compile(
    r"\b(\d{1,12}) (?:tokens )?(?:in|from) the (?:input |prompt |messages)|\b(\d{1,12}) input tokens|"
    r"prompt \(length (\d{1,12})\)"
)


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """What an endpoint says of a request that it refuses; a field is empty where it says nothing."""

    code: str = ""
    """Machine-readable name or number, in lower case."""
    kind: str = ""
    """Class of errors that it belongs to (the field ``type``), in lower case."""
    message: str = ""
    """Text for people, at most 4096 characters."""

    @property
    def is_filter(self) -> bool:
        """Whether a content filter refused the prompt."""
        return bool({self.code, self.kind} & _FILTER_CODES)

    @property
    def is_context(self) -> bool:
        """Whether the prompt alone does not fit the model's context.

        A prompt that fits, with a ``max_tokens`` that does not, is a mistake of the config: no trial was cut, so it
        does not count. Nor does an error that merely mentions the context.
        """
        text = self.message.lower()
        limit, prompt = _LIMIT_NUMBER.search(text), _PROMPT_NUMBER.search(text)
        if limit is not None and prompt is not None:
            return int(prompt[prompt.lastindex or 1]) >= int(limit[1])
        if {self.code, self.kind} & _CONTEXT_CODES or _TOO_LONG.search(text):
            return True
        return bool(_LIMIT.search(text) and _EXCESS.search(text) and not _OUTPUT_LIMIT.search(text))

    @property
    def context_size(self) -> int | None:
        """Tokens of the model's context, as far as the error names them."""
        limit = _LIMIT_NUMBER.search(self.message.lower())
        return None if limit is None else int(limit[1])


def parse_body(body: bytes) -> object:
    """The JSON document in a body; None where there is none.

    A byte that is no UTF-8 becomes a replacement character: it is what the model said, and asking again would not
    change it.

    Parameters
    ----------
    body
        The body, decompressed. Nesting beyond Python's recursion limit counts as no JSON, and so does what is almost
        nothing but brackets, commas and colons.

    Examples
    --------
    >>> parse_body(b'{"a": 1}')
    {'a': 1}
    >>> parse_body(b"<html>") is None
    True
    """
    if _is_costly(body, len(body)) and _is_costly(_without_strings(body), len(body)):
        return None
    try:
        return _loads(body)
    except UnicodeDecodeError:
        text = body.decode("utf-8", "replace")
    except (ValueError, RecursionError):
        return None
    try:
        return _loads(text)
    except (ValueError, RecursionError):
        return None


def _is_costly(body: bytes, size: int) -> bool:
    """Whether JSON of a size has more values and names than it allows."""
    return sum(map(body.count, (b"[", b"{", b":", b","))) > _FEW_VALUES + size // _VALUE_BYTES


def _without_strings(body: bytes) -> bytes:
    """What is left of JSON without its texts, as a model may write brackets for pages."""
    return b"".join(body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])


def _loads(body: bytes | str) -> object:
    document: object = json.loads(body)
    return document


def read_error(document: object) -> ErrorBody:
    """What an error document says, whichever of the usual forms it has.

    Parameters
    ----------
    document
        What `parse_body` returned. An object with the key ``error`` (an object or a text), one with ``message`` or
        ``detail`` of its own, or a list whose first item is one of these; anything else says nothing.

    Examples
    --------
    >>> read_error({"error": {"message": "no", "code": 400, "type": "Bad"}})
    ErrorBody(code='400', kind='bad', message='no')
    >>> read_error({"detail": "Invalid API key"}).message
    'Invalid API key'
    """
    if isinstance(document, list) and document:
        document = document[0]
    if not isinstance(document, dict):
        return ErrorBody()
    error = document.get("error") or document
    if not isinstance(error, dict):
        return ErrorBody(message=_scalar(error))
    message = _scalar(error.get("message")) or _scalar(error.get("detail"))
    return ErrorBody(_scalar(error.get("code")).lower(), _scalar(error.get("type")).lower(), message)


def _scalar(value: object) -> str:
    """A text or number, bounded; containers are left out, as they may be nested beyond what `str` can write."""
    return str(value)[:_TEXT_LIMIT] if isinstance(value, (str, int, float)) else ""


def short_text(value: object) -> str:
    """A text that an endpoint gave, as it can be kept and shown anywhere: printable ASCII, at most `SHORT` long.

    Parameters
    ----------
    value
        Anything; what is no text is empty.

    Examples
    --------
    >>> short_text(" fp_1é "), short_text(5)
    ('fp_1?', '')
    """
    if not isinstance(value, str):
        return ""
    # Neither quotes nor backslashes either: they take twice their room in the lines of a ledger.
    kept = (c if " " <= c <= "~" and c not in '"\\' else "?" for c in value[: 2 * SHORT].strip())
    return "".join(kept)[:SHORT]


def token_count(value: object) -> int | None:
    """A token count as an endpoint gave it; None for anything that is no count (NaN, text, negative, huge).

    Parameters
    ----------
    value
        Any value of a JSON document. Counts are integers in [0, 2**31), as the cube stores int32; a float is cut.

    Examples
    --------
    >>> token_count(7), token_count(7.0), token_count(-1), token_count("7"), token_count(True)
    (7, 7, None, None, None)
    """
    if type(value) is int:
        return value if 0 <= value < 2**31 else None
    if not isinstance(value, float):
        return None
    if not math.isfinite(value):
        return None
    return int(value) if 0 <= value < 2**31 else None
