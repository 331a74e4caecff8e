"""What a report says first: the headline, and what to distrust."""

from dataclasses import replace
from types import SimpleNamespace

from evalcube.stages.analyze.labelled.leaderboard import leaderboard
from evalcube.stages.analyze.labelled.pairing import Pair, PairedDifference
from evalcube.stages.analyze.labelled.ranking import rank_rows
from evalcube.stages.analyze.labelled.results import Estimate
from evalcube.stages.analyze.render.cover import cover
from evalcube.stages.analyze.render.report import (
    close_rows,
    headline,
    render_report,
)
from evalcube.stages.analyze.render.text import number
from tests.stages.analyze.synthetic import PROFILES, Profile, dataset


def test_cover__says_what_to_distrust_and_when_there_is_nothing():
    ds = dataset(PROFILES[:2], tasks=2, trials=200)
    board = leaderboard(ds, draws=20)
    labels = [row.model_name for row in board.rows]
    bad = replace(board.rows[0], invalid=0.3, refused=0.1, unique=0.5, trials=100)

    worse = cover(replace(board, rows=(bad, board.rows[1]), repeats=4), labels, None)

    assert any(f"{labels[0]} 30%: replies without a readable answer" in text for text in worse.doubts)
    assert any("10%: refused" in text for text in worse.doubts)
    assert any("(up to 50% of an evaluation's)" in text for text in worse.doubts)
    assert any(text.startswith("Unequal sampling") for text in worse.doubts)
    assert any("4 times" in text for text in worse.measured)
    good = tuple(replace(row, truncated=0.0, invalid=0.0, refused=0.0) for row in board.rows)
    calm = replace(board, rows=good, uneven=False, weighed="")
    assert cover(calm, labels, None).doubts == ()
    assert "Nothing found" in render_report(ds, calm, facts={})


def test_cover__says_what_trials_are_worth_and_compares_nobody_with_himself():
    ds = dataset(PROFILES[:2], tasks=2, trials=200)
    board = leaderboard(ds, draws=20)
    labels = [row.model_name for row in board.rows]
    alone = replace(board, rows=(board.rows[0], replace(board.rows[1], rank=None)))
    standings = rank_rows(ds, alone)

    sure = cover(board, labels, None).sure
    ends = [board.leading(row) for row in board.rows]
    assert number(sum(end.upper - end.lower for end in ends) / 4) in sure[0].replace("\u00a0", " ").split()
    assert any(text.startswith("Each task has at least ") for text in sure)
    many = cover(replace(board, repeats=4, clustered=True), labels, None).sure
    assert any(text.startswith("Each task has trials worth at least ") for text in many)
    assert len(standings.clusters) == 1
    assert not any("intervals overlap" in text for text in cover(alone, labels, standings).sure)


def test_cover__says_how_many_groups_intervals_separate_and_what_is_many():
    board = leaderboard(dataset(PROFILES[:2], tasks=2, trials=200), draws=20)
    labels = [row.model_name for row in board.rows]

    none, one, two = (
        " ".join(cover(board, labels, SimpleNamespace(clusters=[()] * groups)).sure) for groups in range(3)
    )
    assert ["All intervals overlap" in text for text in (none, one, two)] == [False, True, False]
    assert ["separate 2 groups" in text for text in (none, one, two)] == [False, False, True]

    def doubts(**changes):
        calm = [
            replace(row, truncated=0.0, invalid=0.0, refused=0.0, unique=1.0, trials=100)
            for row in board.rows
        ]
        rows = (replace(calm[0], **changes), calm[1])
        return cover(replace(board, rows=rows, uneven=False, weighed=""), labels, None, ["own\x1b"]).doubts

    assert doubts() == doubts(invalid=0.05) == doubts(refused=0.05) == doubts(trials=150) == ("own⟨U+001B⟩",)
    assert [len(doubts(**many)) for many in ({"invalid": 0.051}, {"refused": 0.051}, {"trials": 151})] == [
        2
    ] * 3


def test_headline__tells_a_clear_lead_from_an_open_order():
    clear = leaderboard(dataset([Profile("a", ability=9), Profile("b", ability=3)]), draws=50)
    near = leaderboard(dataset([Profile("a", ability=5), Profile("b", ability=5)]), draws=50)

    assert "do not overlap" in headline(clear, ["a", "b"])
    assert "may still tell them apart" in headline(near, ["a", "b"])
    assert "only complete" in headline(leaderboard(dataset([Profile("a")]), draws=5), ["a"])


def test_headline__goes_by_the_questions_of_both_where_intervals_overlap():
    near = leaderboard(dataset([Profile("a", 0.3), Profile("b", 0.3)], trials=8), draws=50)
    gap = PairedDifference("", 96, 96, 3, 19, 9, 0.6, 0.5, Estimate(0.1, 0.05, 0.15), 1e-6, 1e-6, 1e-6)
    pair = Pair("a", "b", (), gap, (0, 0))

    ahead = headline(near, ["a", "b"], pair)
    even = headline(near, ["a", "b"], replace(pair, overall=replace(gap, p_holm=0.4)))

    assert close_rows(near) == [0, 1]
    assert "by 10.0 points (5.0 to 15.0), p < 0.0001" in ahead
    assert "No significant difference" in even
    assert "open" not in ahead + even


def test_headline__says_of_whom_only_a_part_is_measured():
    board = leaderboard(dataset([Profile("a", ability=9), Profile("b", ability=3)]), draws=50)
    whole, half = board.rows[0], replace(board.rows[1], missing=board.rows[1].trials)

    told = headline(replace(board, rows=(whole, half)), ["a", "b"])

    assert f"ahead of b (so far {half.trials:,} of {half.planned:,} trials); their" in told
    assert f"a (so far {whole.trials:,}" not in told
