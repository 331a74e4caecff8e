"""What displays say of a run beside how far it is, as texts; alone, since a notebook needs nothing of a terminal."""

from __future__ import annotations

from evalcube.flows.run.events import Noted
from evalcube.flows.run.progress import RunProgress
from evalcube.flows.run.subscribers.duration import duration


def note_of(event: Noted) -> str:
    """What a person should read of an event; others' words in it are as they came."""
    return f"{event.message}: {event.said}" if event.said else event.message


def facts_of(now: RunProgress) -> list[tuple[str, str]]:
    """What a display says of a run beside how far it is, each with its name."""
    errors = str(now.errors) + (f" (+{now.retried} retried)" if now.retried else "")
    in_flight = f"{now.in_flight} of {now.connections}" if now.connections else str(now.in_flight)
    facts = [
        ("ETA", "–" if now.eta is None else duration(now.eta)),
        ("after", duration(now.seconds)),
        ("requests/s", f"{now.replies:.1f}"),
        ("tokens/s", f"{now.tokens:.0f}"),
        ("in flight", in_flight),
        ("cached", str(now.cached)),
        ("errors", errors),
    ]
    if now.usd is not None:
        end = "" if now.usd_at_end is None else f", {money(now.usd_at_end)} at the end"
        facts.append(("USD", f"{money(now.usd)}{end}"))
    return facts


def money(amount: float) -> str:
    """Dollars with cents; small amounts with two digits.

    Examples
    --------
    >>> money(12.3), money(0.00123), money(0.0)
    ('12.30', '0.0012', '0')
    """
    return f"{amount:.2f}" if amount >= 1 else f"{amount:.2g}"
