"""Boards and rows as they are made, for tests that change some of their fields."""

from dataclasses import replace

from evalcube.stages.analyze.labelled.results import Composite, Estimate, Leaderboard, Row, TierEstimate

NAN = float("nan")
SOME = Estimate(0.5, 0.4, 0.6)
TIER = TierEstimate("easy", Estimate(500.0, 400.0, 600.0), SOME, 2, 2, 6, 6, 100.0)
COMPOSITE = Composite(Estimate(4.0, 3.5, 4.5), "4.00 (3/3)", {"fact": 4.0}, True, 10)


def row(name="m", **fields):
    """A row of a finished evaluation."""
    made = Row(
        rank=1,
        model_name=name,
        template="plain",
        sampler="greedy",
        eval_id=f"id-{name}",
        facets={},
        score=Estimate(500.0, 400.0, 600.0),
        tiers=(TIER,),
        score_per_token=Estimate(5.0, 4.0, 6.0),
        correct_per_1000_tokens=Estimate(4.0, 3.0, 5.0),
        score_v1=510.0,
        accuracy=SOME,
        pooled=0.5,
        rate=Estimate(0.45, 0.4, 0.5),
        guesser=NAN,
        tokens_per_trial=100.0,
        truncated=0.0,
        max_tokens=512,
        invalid=0.0,
        refused=0.0,
        trials=200,
        transport=0,
        missing=0,
        cost=1.0,
        cost_per_1000=5.0,
        unique=1.0,
        rank_interval=Estimate(1.0, 1.0, 1.0),
    )
    return replace(made, **fields)


def board(*rows, **fields):
    """A board of some rows that its score leads."""
    made = Leaderboard(
        rows=rows,
        tiers=("easy",),
        tasks=("sort", "dates"),
        basis="completed",
        confidence=0.95,
        draws=100,
        seed=0,
        version="auto",
        lead="score",
        size=100.0,
        enough=60,
        mode="C_P",
        uneven=False,
        weighed="",
        repeats=1,
        clustered=False,
        selection="",
    )
    return replace(made, **fields)
