"""Finds out which parameter of a request an endpoint does not take, so that it is not asked a thousand times.

Pure. What an endpoint says is hostile text: it decides nothing but which of our own names is meant, and no word of it
is in what is returned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from evalcube.stages.reply.body import parse_body, read_error

_OWN = frozenset({"messages", "model", "prompt", "system"})
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

    Parameters
    ----------
    status
        The HTTP status.
    reply
        The body of the reply.
    request
        The body of the request.

    Returns
    -------
    str
        ``NAME``, ``NAME, OTHER wanted`` or ``OTHER wanted``; the names are parameters.

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
    for text, exact in _texts(document, error.message, raw):
        name = _first(text, params, exact=exact)
        if name:
            other = _other_name(name, raw, params)
            return f"{name}, {other} wanted" if other else name
    wanted = _first(error.message, dict.fromkeys(_LIMITS), exact=False)
    return f"{wanted} wanted" if wanted and _LACKING.search(error.message) else ""


def _texts(document: object, message: str, raw: str) -> Iterator[tuple[str, bool]]:
    """Where the name may stand, the surest place first; and whether nothing but a name stands there."""
    error = document.get("error") if isinstance(document, dict) else None
    param = error.get("param") if isinstance(error, dict) else None
    if isinstance(param, str):
        yield param[:_SHOWN_BYTES], True
    places = _PLACE.findall(raw)
    if places:
        # Else a name in the input that it quotes would be taken for the one that is meant.
        yield from ((place, True) for place in places)
        return
    yield message, False
    yield raw, False


def _first(text: str, names: Mapping[str, object], *, exact: bool) -> str:
    """The first of the names in a text, in whichever way it writes them: as presencePenalty, too."""
    known = {name.replace("_", "").lower(): name for name in names}
    for match in _WORD.finditer(text):
        name = known.get(match[0].replace("_", "").lower(), "")
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
    other = _LIMITS[1 - _LIMITS.index(name)]
    named = other in _WORD.findall(text) and "too large" not in text
    return other if other not in params and (named or _UNKNOWN.search(text)) else ""


def _number(value: object) -> float:
    return value if isinstance(value, (int, float)) else 0.0
