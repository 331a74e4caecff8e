"""Guesses how many tokens a request will take, from its length and from what earlier ones took. Pure."""

from __future__ import annotations

import re

from evalcube.stages.infer.reply import Reply

_BYTES_PER_TOKEN = 4.0
_UNBOUNDED_COMPLETION = 1024.0
_WEIGHT = 0.05
"""Weight of the newest reply in the running means."""
_UNSENT = frozenset({"connect", "dns", "tls", "address"})
_BOUND = re.compile(rb'"max_(?:completion_)?tokens":(\d{1,9})')


class TokenEstimate:
    """Estimates one model's tokens per request, better with every reply.

    A prompt is guessed from the request's length. Before the first reply a completion is taken to be as long as the
    request allows: that starts slowly, but never too fast.
    """

    def __init__(self) -> None:
        self._per_byte = 1.0 / _BYTES_PER_TOKEN
        self._completion: float | None = None

    def guess(self, body: bytes) -> float:
        """Tokens of prompt and completion together that a request with the canonical JSON `body` will take."""
        return sum(self._parts(body))

    def taken(self, body: bytes, reply: Reply) -> tuple[float, float]:
        """Tokens of prompt and of completion that `reply` to `body` took: those that it reports, or else a guess."""
        if reply.prompt_tokens or reply.completion_tokens or reply.cause:
            return reply.prompt_tokens, reply.completion_tokens
        return self._parts(body)

    def _parts(self, body: bytes) -> tuple[float, float]:
        completion = self._completion
        if completion is None:
            bound = _BOUND.search(body)
            completion = float(bound[1]) if bound else _UNBOUNDED_COMPLETION
        return len(body) * self._per_byte, completion

    def excess(self, guessed: float, body: bytes, reply: Reply) -> float:
        """Tokens that a request took beyond what was guessed, negative if it took less; learns from it.

        A refused request took none. Where nothing is reported, as after a timeout, the guess stands.

        Parameters
        ----------
        guessed
            Tokens that `guess` returned before it was sent.
        body
            The request's body.
        reply
            Its reply.
        """
        self._learn(body, reply.prompt_tokens, reply.completion_tokens)
        used = reply.prompt_tokens + reply.completion_tokens
        if used:
            return used - guessed
        refused = (
            reply.cause in _UNSENT or reply.cause.startswith("http ") or (reply.is_final and reply.cause)
        )
        return -guessed if refused else 0.0

    def _learn(self, body: bytes, prompt_tokens: int, completion_tokens: int) -> None:
        if prompt_tokens:
            self._per_byte += _WEIGHT * (prompt_tokens / max(len(body), 1) - self._per_byte)
        if completion_tokens:
            known = self._completion
            self._completion = (
                float(completion_tokens) if known is None else known + _WEIGHT * (completion_tokens - known)
            )
