"""Builds the canonical bytes of a request, and their digest: the key of its reply in the cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalcube.stages.infer.apis import APIS
from evalcube.stages.reply.forms import CHAT


@dataclass(frozen=True, slots=True)
class Request:
    """One request in its only form: sent as it stands, and digested as it stands."""

    body: bytes
    """Canonical JSON: keys sorted, no spaces, ASCII."""
    digest: str
    """SHA-256 over the body and the repeat index, 64 hex digits.

    Where the API is not chat, its name enters, too; and the model's revision, where one is declared. Neither the
    endpoint's address nor any secret does, so that a moved server or a new key keeps its cache; nor whether the reply
    is streamed, as the answer is the same.
    """


def build_request(
    model: str,
    messages: Sequence[Mapping[str, object]],
    sampler: Mapping[str, object],
    repeat: int = 0,
    api: str = CHAT,
    revision: str = "",
) -> Request:
    """The request for one trial's repeat.

    Parameters
    ----------
    model
        Name that the endpoint knows the model by.
    messages
        Chat messages, each with ``role`` and ``content``.
    sampler
        Further request parameters; a ``seed`` among them is the seed of repeat 0, and every later repeat gets
        one of its own derived from it, since equal seeds would give equal answers.
    repeat
        Index of the repeat; part of the digest, not of the body.
    api
        One of `evalcube.stages.infer.apis.APIS`.
    revision
        What tells the model from others that answer to the same name; part of the digest, not of the body.

    Raises
    ------
    ValueError
        If a parameter is NaN or infinite, which JSON cannot carry, or if the API cannot carry the messages or the
        sampler (`evalcube.stages.infer.apis.ApiError`).

    Examples
    --------
    >>> build_request("m", [{"role": "user", "content": "hi"}], {"temperature": 0}).body
    b'{"messages":[{"content":"hi","role":"user"}],"model":"m","temperature":0}'
    """
    if api == CHAT:
        fields: dict[str, object] = {**sampler, "messages": messages, "model": model}
        head = b'{"repeat":%d,"request":' % repeat
    else:
        kind = APIS[api]
        fields = {**kind.params(sampler), **kind.write(messages), "model": model}
        head = b'{"api":"%s","repeat":%d,"request":' % (api.encode(), repeat)
    seed = fields.get("seed")
    if isinstance(seed, int) and not isinstance(seed, bool):
        fields["seed"] = repeat_seed(seed, repeat)
    body = json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    # Canonical JSON of {"repeat": ..., "request": ...}, without encoding the request twice.
    tail = b',"revision":%s}' % json.dumps(revision).encode() if revision else b"}"
    digest = hashlib.sha256(head + body + tail).hexdigest()
    return Request(body, digest)


def repeat_seed(seed: int, repeat: int) -> int:
    """A 31-bit seed of its own for each repeat; repeat 0 keeps the declared one.

    Parameters
    ----------
    seed
        Declared in the sampler.
    repeat
        Index of the repeat.

    Examples
    --------
    >>> repeat_seed(7, 0)
    7
    >>> repeat_seed(7, 1) == repeat_seed(7, 1) != repeat_seed(7, 2)
    True
    """
    if repeat == 0:
        return seed
    return int.from_bytes(hashlib.sha256(f"{seed}/{repeat}".encode()).digest()[:4], "big") >> 1
