"""Numbers on the command line in; one line per strike and a verdict out: `python -m tests.chaos --kills 200`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.chaos.campaign import Campaign, Outcome, run_campaign


def main() -> int:
    """Run a campaign; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description="Strike a sweep and see it resume."
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="keep everything there; default: a temporary folder")
    options = parser.parse_args()
    campaign = Campaign(options.seed, options.kills, options.trials, workers=options.workers)
    if options.folder is not None:
        options.folder.mkdir(parents=True)
        return _report(campaign, run_campaign(campaign, options.folder.absolute(), _say))
    with tempfile.TemporaryDirectory(prefix="evalcube-chaos-") as folder:
        return _report(campaign, run_campaign(campaign, Path(folder), _say))


def _report(campaign: Campaign, outcome: Outcome) -> int:
    struck = ", ".join(f"{kind} {count}" for kind, count in sorted(outcome.struck.items()))
    _say(
        f"\nseed {campaign.seed}: {campaign.strikes} strikes ({struck}), {outcome.runs} runs, {outcome.seconds:.0f} s"
    )
    _say(
        f"{outcome.trials} trials, {outcome.requests} requests: {outcome.requests - outcome.trials} more than trials; "
        f"{outcome.allowed - outcome.trials} allowed, {outcome.in_flight} seen in flight at the strikes"
    )
    _say(outcome.garbage)
    for violation in outcome.violations:
        _say(f"VIOLATION: {violation}")
    _say("broken" if outcome.violations else "kept: the cube is the calm run's, bit for bit")
    return 1 if outcome.violations else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
