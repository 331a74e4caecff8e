"""What `verdict --length-bias` asks and prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalcube.flows.cli.output import number, safe, show
from evalcube.flows.cli.running import subscribers

if TYPE_CHECKING:
    from evalcube.flows.rework.length_bias import LengthBiasCheck
    from evalcube.flows.run.summary import RunSummary


def run_check(
    check: LengthBiasCheck,
    *,
    yes: bool,
    log: str | None,
    quiet: bool,
    scheduler: str | None,
    workers: int | None,
) -> RunSummary | None:
    """The run of a check; None if it would ask something and nobody said yes."""
    if not yes and check.price().to_send:
        return None
    with subscribers(log, quiet=quiet) as followers:
        return check.run(scheduler=scheduler, workers=workers, subscribers=followers)


def check_values(check: LengthBiasCheck, checked: RunSummary | None) -> dict[str, object]:
    """A check as JSON values: its price before it has run, then what came of it."""
    if checked is None:
        price = check.price()
        return {"asked": False, "to_send": price.to_send, "cost": price.cost}
    measured = [one.to_dict() for one in check.measure()]
    return {"asked": True, "sent": checked.sent, "usd": checked.usd, "judges": measured}


def print_check(check: LengthBiasCheck, checked: RunSummary | None) -> None:
    """Print a check: its price before it has run, then what came of it."""
    from evalcube.flows.cli.planned import about
    from evalcube.flows.plan.acting import what_is_asked

    show("length bias (readings without against with the sentence that length is no quality)")
    if checked is None:
        price = check.price()
        asked = what_is_asked(check.config)
        show(f"  at most {price.to_send} requests to send, {about(price)}:")
        for line in asked:
            show(f"    {safe(line)}")
        show("  nothing is asked yet: run again with --yes")
        return
    for one in check.measure():
        measured = one.measured
        # A shift of neutral - original; shown the other way round, so that + is what length earns.
        earned, low, high = (
            0.0 - value for value in (measured.shift.estimate, measured.shift.high, measured.shift.low)
        )
        slope = f"{number(measured.slope_low, sign=True)} to {number(measured.slope_high, sign=True)}"
        show(
            f"  {safe(one.judge)} of {safe(one.variant)}: {number(earned, sign=True)} "
            f"({number(low, sign=True)} to {number(high, sign=True)}), "
            f"per doubling of length {number(measured.slope, sign=True)} ({slope}), {measured.units} questions"
            f"{': length moves it' if measured.biased else ''}"
        )
