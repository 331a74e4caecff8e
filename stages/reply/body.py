"""Reads bodies of HTTP replies: their JSON document, their token counts, and what an error says.

Names of parameters that an endpoint does not take are told here too, so that it is not asked a thousand times. Shared
by `infer`, which must know whether a reply counts, and `process`, which grades it later: both have to read the
same thing out of the same bytes. Nothing here raises, whatever an endpoint sends.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from pydantic_core import from_json

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
_LONG = re.compile(r"context|too (?:long|large|big|many)|exceed|length|maximum|tokens|shorten")
_MODERATION = re.compile(r"moderat|flagged|content.{0,12}(?:filter|polic)|safety|guardrail|harm|prohibited")
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
    def is_moderation(self) -> bool:
        """Whether it speaks of what the prompt says, and not of the account."""
        return self.is_filter or _MODERATION.search(self.message.lower()) is not None

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
    def is_long(self) -> bool:
        """Whether a prompt that alone was refused is too long, as far as the error says so."""
        return self.is_context or _LONG.search(self.message.lower()) is not None

    @property
    def context_size(self) -> int | None:
        """Tokens of the model's context, as far as the error names them."""
        limit = _LIMIT_NUMBER.search(self.message.lower())
        return None if limit is None else int(limit[1])


def parse_body(body: bytes) -> object:
    """The JSON document in a body; None where there is none.

    A byte that is no UTF-8 becomes a replacement character: it is what the model said, and asking again would not
    change it.

    Examples
    --------
    >>> parse_body(b'{"a": 1}')
    {'a': 1}
    >>> parse_body(b"<html>") is None
    True
    """
    if _is_costly(body, len(body)) and _is_costly(_without_strings(body), len(body)):
        return None
    with suppress(ValueError):
        # A third of the time of Python's own, which takes a little more: half a surrogate pair, a mark before the text.
        return from_json(body, cache_strings="keys")
    with suppress(ValueError, RecursionError):
        try:
            return json.loads(body)
        except UnicodeDecodeError:
            return json.loads(body.decode("utf-8", "replace"))
    return None


def _is_costly(body: bytes, size: int) -> bool:
    """Whether JSON of a size has more values and names than it allows."""
    most = _FEW_VALUES + size // _VALUE_BYTES
    # Most bodies are shorter than that, and need not be looked through.
    return len(body) > most and sum(map(body.count, (b"[", b"{", b":", b","))) > most


def _without_strings(body: bytes) -> bytes:
    """What is left of JSON without its texts, as a model may write brackets for pages."""
    return b"".join(body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])


def read_error(document: object) -> ErrorBody:
    """What an error document says, whichever of the usual forms it has.

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
    listed = document.get("errors") or document.get("detail")
    error = document.get("error") or (listed[0] if listed and isinstance(listed, list) else document)
    if not isinstance(error, dict):
        return ErrorBody(message=_scalar(error))
    message = next(filter(None, (_scalar(error.get(name)) for name in _MESSAGES)), "")
    code = _scalar(error.get("code")) or _scalar(error.get("status"))
    return ErrorBody(code.lower(), _scalar(error.get("type")).lower(), message)


_MESSAGES = ("message", "detail", "msg", "reason", "title", "description")


def _scalar(value: object) -> str:
    """A text or number, bounded; containers are left out, as they may be nested beyond what `str` can write."""
    return str(value)[:_TEXT_LIMIT] if isinstance(value, (str, int, float)) else ""


def short_text(value: object) -> str:
    """A text that an endpoint gave, as it can be kept and shown anywhere: printable ASCII, at most `SHORT` long.

    Examples
    --------
    >>> short_text(" fp_1é "), short_text(5)
    ('fp_1?', '')
    """
    if not isinstance(value, str):
        return ""
    # Neither quotes nor backslashes either: they take twice their room in the lines of a ledger.
    printable = (c if " " <= c <= "~" and c not in '"\\' else "?" for c in value[: 2 * SHORT].strip())
    return "".join(printable)[:SHORT]


def name_code(name: str) -> int:
    """A number above 0 that stands for a name among few, the same wherever it is met; 0 for no name.

    Examples
    --------
    >>> name_code(""), name_code("fp_1") == name_code("fp_1") != name_code("fp_2")
    (0, True)
    """
    return max(1, int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) >> 1) if name else 0


def ending_code(word: str) -> int:
    """Return a byte above 0 that stands for the mark of a reply's end, see `forms.Ending.unusual_word`; 0 for none.

    Examples
    --------
    >>> ending_code(""), ending_code("OTHER") == ending_code("OTHER") > 0
    (0, True)
    """
    return name_code(word) % 255 + 1 if word else 0


UNKNOWN_END = "unknown end: "
"""What stands before such a word where it is shown, or counted beside other names that replies give."""


def token_count(value: object) -> int | None:
    """A token count as an endpoint gave it; None for anything that is no count (NaN, text, negative, huge).

    Examples
    --------
    >>> token_count(7), token_count(7.0), token_count(-1), token_count("7"), token_count(True)
    (7, 7, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if 0 <= value < 2**31 else None


_OWN = frozenset({"input", "messages", "model", "prompt", "system"})
"""Fields that are no parameters of a sampler: an error about them is about one prompt, or about the model."""
_LIMITS = ("max_tokens", "max_completion_tokens")
"""One parameter under two names: which of them a model takes depends on its age."""
_UNMISTAKABLE = frozenset({"temperature", "logprobs"})
"""Names that are no words of prose, although they have no underscore."""
_SHOWN_BYTES = 4096

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_PLACE = re.compile(r"['\"]?loc\\*['\"]?: ?[\[(]\\*['\"]body\\*['\"], ?\\*['\"](\w+)")
"""Where validators say that the mistake is: in the words of pydantic, be it JSON or Python."""
_BEFORE, _AFTER = re.compile(r"['\"`:=\[(] ?$"), re.compile(r"\\*['\"`:=\])]")
_UNKNOWN = re.compile(r"extra_forbidden|extra inputs|unrecognized|unknown|unexpected", re.IGNORECASE)
_LACKING = re.compile(r"required|missing|must be (?:set|given|provided|specified)", re.IGNORECASE)


def refused_parameter(status: int, reply: bytes, request: bytes) -> str:
    r"""What is wrong with a request's parameters, in a few words of our own; empty where the reply does not say.

    Examples
    --------
    >>> said = b'{"error": {"message": "Unsupported parameter: \'temperature\' is not supported with this model."}}'
    >>> refused_parameter(400, said, b'{"messages": [], "model": "m", "temperature": 0}')
    'temperature'
    """
    sent = parse_body(request)
    if status not in (400, 422) or not isinstance(sent, dict):
        return ""
    params = {name: value for name, value in sent.items() if name not in _OWN}
    document = parse_body(reply)
    error = read_error(document)
    limit = error.context_size
    if limit is not None:
        # A longer prompt than others: its own matter, unless the completion alone does not fit beside any prompt.
        return next((name for name in _LIMITS if _number(params.get(name)) >= limit), "")
    raw = reply[:_SHOWN_BYTES].decode("utf-8", "replace")
    for text, exact in _places_of_name(document, error.message, raw):
        name = _first_name(text, params, exact=exact)
        if name:
            preferred = _other_name(name, raw, params)
            return f"{name}, {preferred} wanted" if preferred else name
    wanted = _first_name(error.message, dict.fromkeys(_LIMITS), exact=False)
    return f"{wanted} wanted" if wanted and _LACKING.search(error.message) else ""


def _places_of_name(document: object, message: str, raw: str) -> Iterator[tuple[str, bool]]:
    """Where the name may stand, the surest place first; and whether nothing but a name stands there."""
    error = document.get("error") if isinstance(document, dict) else None
    param = error.get("param") if isinstance(error, dict) else None
    if isinstance(param, str):
        yield param[:_SHOWN_BYTES], True
    places = _PLACE.findall(raw)
    if places:
        # Else a name in the input that it quotes would be taken for the one that is meant.
        yield from ((name, True) for name in places)
        return
    yield message, False
    yield raw, False


def _first_name(text: str, names: Mapping[str, object], *, exact: bool) -> str:
    """The first of the names in a text, in whichever way it writes them: as presencePenalty, too."""
    by_spelling = {name.replace("_", "").lower(): name for name in names}
    for match in _WORD.finditer(text):
        name = by_spelling.get(match[0].replace("_", "").lower(), "")
        if name and (exact or _is_meant(name, text, match)):
            return name
    return ""


def _is_meant(name: str, text: str, match: re.Match[str]) -> bool:
    """Whether a word is a parameter's name, and none of prose, as ``stop``, ``user`` and ``n`` may be."""
    if "_" in name or name in _UNMISTAKABLE or not match.start():
        return True
    before, after = text[max(match.start() - 2, 0) : match.start()], text[match.end() : match.end() + 4]
    return bool(_BEFORE.search(before) or _AFTER.match(after))


def _other_name(name: str, text: str, params: Mapping[str, object]) -> str:
    """The other name of a limit of tokens, where it is wanted in place of this one."""
    if name not in _LIMITS:
        return ""
    alternative = _LIMITS[1 - _LIMITS.index(name)]
    named = alternative in _WORD.findall(text) and "too large" not in text
    return alternative if alternative not in params and (named or _UNKNOWN.search(text)) else ""


def _number(value: object) -> float:
    return value if isinstance(value, (int, float)) else 0.0
