"""When to try again: a policy as a generator that receives replies and yields seconds to wait. No clock, no socket."""

from __future__ import annotations

from collections.abc import Generator

from stages.infer.reply import Reply


def backoff(
    retries: int, *, base: float = 0.5, cap: float = 60.0, longest: float = 600.0, jitter: float = 0.5
) -> Generator[float, Reply, Reply]:
    """Yield the seconds to wait before each attempt; return the first reply that is not worth a retry, or the last.

    Parameters
    ----------
    retries
        Further attempts after the first.
    base, cap
        Seconds before the first retry, doubled for each further one up to `cap`.
    longest
        Bound on a wait that the endpoint itself asks for, seconds.
    jitter
        Number in [0, 1) that spreads a wait over 50-150 % of its length; give each request its own.

    Examples
    --------
    >>> policy = backoff(1, jitter=0.5)
    >>> next(policy)
    0.0
    >>> from stages.infer.reply import Reply, Verdict
    >>> policy.send(Reply(Verdict.RETRY, "timeout"))
    0.5
    """
    reply = yield 0.0
    for attempt in range(retries):
        if not reply.retryable:
            break
        if reply.retry_after is not None:
            reply = yield min(reply.retry_after, longest)
        else:
            reply = yield min(base * 2.0**attempt, cap) * (0.5 + jitter)
    return reply
