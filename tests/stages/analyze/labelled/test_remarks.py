"""Which warnings and explanations stand below a board, and of which evaluations."""

from dataclasses import replace

import pytest

from evalcube.stages.analyze.labelled.remarks import (
    CLIPPED,
    first_few,
    label_rows,
    named_readers,
    notes_of,
    remarks_of,
)
from evalcube.stages.analyze.labelled.results import Estimate
from tests.cases import with_cases
from tests.stages.analyze.labelled.boards import COMPOSITE, NAN, TIER, board, row

LACKS = (replace(TIER, tasks_present=1),)


def about(texts, *words):
    """Those of some sentences that have all of these words."""
    return [text for text in texts if all(word in text for word in words)]


def estimates(*values):
    return [Estimate(value, value, value) for value in values]


def test_notes__of_a_finished_board_are_none():
    assert notes_of(board(row("a"), row("b", rank=2))) == remarks_of(board(row("a"))) == []


@pytest.mark.parametrize(("count", "said"), [(2, "a; b"), (3, "a; b; c"), (4, "a; b; c; and 1 more")])
def test_first_few__are_three(count, said):
    assert first_few(list("abcd")[:count]) == said


@pytest.mark.parametrize(
    ("readers", "said"),
    [
        ({"sums": "strict", "sort": "strict"}, "strict"),
        ({"sums": "strict"}, "strict (sums)"),
        ({"sums": "strict", "sort": "lax"}, "strict (sums), lax (sort)"),
        (dict.fromkeys("abcdef", "strict"), "strict (a, b, c and 3 more)"),
    ],
)
def test_named_readers__say_their_tasks_where_these_are_not_all(readers, said):
    assert named_readers(readers, ["sums", "sort"]) == said


@with_cases(
    ("fields", "words"),
    [
        ({"lead": "rate"}, ["needs about 60", "there are 40, so", "ranked by C_P"]),
        ({"lead": "rate", "weighed": "base"}, ["needs about 60", "these count as 40 independent ones"]),
        ({"lead": "rate", "mode": "E_P"}, ["ranked by accuracy"]),
        ({"lead": "score"}, None),
        ({"lead": "rate", "data_sets": True}, None),
        ({"lead": "rate", "size": NAN}, None),
    ],
)
def test_notes__say_why_no_score_leads(fields, words):
    notes = notes_of(board(row(), **{"size": 40.4, **fields}))

    assert len(about(notes, *(words or ["ReasonScore"]))) == (words is not None)


def test_notes__name_the_part_and_end_with_cautions():
    assert notes_of(board(row(), selection="tier=easy", cautions=("care",))) == [
        "Part of the cube (tier=easy).",
        "care",
    ]


def test_notes__name_who_was_truncated_most_and_how_far_others_were():
    rows = [row(name, truncated=share) for name, share in (("a", 0.011), ("b", 0.5), ("c", 0.3), ("d", 0.01))]

    (said,) = notes_of(board(*rows))

    assert said.startswith("b: 50% truncated at max_tokens 512: raise it (also truncated: a 1%, c 30%); ")
    assert "v1 subtracts" not in said
    assert "v1 subtracts" in notes_of(board(*rows, version="v1"))[0]
    assert "1% truncated: raise max_tokens;" in notes_of(board(row(truncated=0.0101, max_tokens=None)))[0]


def test_notes__of_a_limit_that_nobody_can_raise_do_not_say_so():
    clipped = f"{CLIPPED} 512"

    assert (
        "50% truncated at the limit of 512 tokens;"
        in notes_of(board(row(truncated=0.5), selection=clipped))[1]
    )
    assert "do not fit" in notes_of(board(row(truncated=1.0, tokens_per_trial=0.0)))[0]
    assert "do not fit" in notes_of(board(row(truncated=1.0, tokens_per_trial=NAN)))[0]
    assert "do not fit" not in notes_of(board(row(truncated=1.0)))[0]
    assert "do not fit" not in notes_of(board(row(truncated=0.9, tokens_per_trial=0.0)))[0]


def test_notes__count_rows_and_trials_that_lack():
    rows = (
        row("a", tiers=LACKS),
        row("b", missing=1500, trials=5000),
        row("c", missing=1, transport=2000, trials=4000),
    )

    notes = notes_of(board(*rows))

    assert len(about(notes, "1 of 3", "not ranked")) == 1
    assert len(about(notes, "not counted: 1,501")) == 1
    assert len(about(notes, "after the last retry: 2,000")) == 1
    assert about(notes, "Partly measured", "c has 4,000 of 6,001; b has 5,000 of 6,500")


def test_notes__say_of_each_that_is_not_ranked_why():
    rows = (
        row("a", others="lacks sort"),
        row("b", behind=True, trials=10, missing=190),
        row("c", behind=True, tiers=LACKS),
        row("d"),
    )

    notes = notes_of(board(*rows))

    (unlike,), (behind,) = about(notes, "other questions"), about(notes, "far behind")
    assert "a lacks sort" in unlike
    assert "b has 10 of 200." in behind  # what is incomplete is said to be so
    assert not about(notes, "Partly measured")


@pytest.mark.parametrize(
    ("mode", "truncated", "said"), [("C_I", 0.001, True), ("C_I", 0.0, False), ("C_P", 0.001, False)]
)
def test_notes__say_that_a_mode_leaves_truncated_trials_out(mode, truncated, said):
    assert bool(about(notes_of(board(row(truncated=truncated), mode=mode)), mode, "leaves")) == said


def test_remarks__say_how_rows_are_sorted_if_not_by_what_leads():
    assert about(remarks_of(board(row(), sort="cost")), "Sorted by cost", "rank by score")
    assert remarks_of(board(row(), sort="score")) == []


def test_remarks__say_in_which_other_order_the_ranked_rows_would_be():
    high, low = estimates(9.0, 1.0)
    rows = [
        row("b", rank=2, score_per_token=high, accuracy=high),
        row("a", score_per_token=low, accuracy=low),
    ]
    apart = row("c", rank=None, score_per_token=Estimate(99.0, 0.0, 0.0), accuracy=high)
    unknown = row("d", rank=3, score_per_token=Estimate(NAN, NAN, NAN), accuracy=Estimate(NAN, NAN, NAN))

    remarks = remarks_of(board(*rows, apart, unknown))

    assert len(remarks) == 2
    assert about(remarks, "score per token differs: b, a.")
    assert about(remarks, "accuracy", "differs: b, a.")
    assert len(remarks_of(board(*rows, sort="score/token"))) == 2  # it is sorted by it: no need to say so
    assert not about(remarks_of(board(*rows, sort="score/token")), "per token differs")
    same = [replace(item, score_per_token=low, accuracy=low) for item in rows]
    assert remarks_of(board(*same)) == []
    by_rate = [replace(item, correct_per_1000_tokens=item.accuracy) for item in rows]
    assert about(remarks_of(board(*by_rate, lead="rate")), "correct answers per 1000 tokens differs")


def test_remarks__explain_composites_with_their_weights():
    weighty = board(
        row(composite=COMPOSITE), row("n"), layer_weights={"fact": 2.0, "judge": 0.0, "behavior": 0.5}
    )

    assert about(remarks_of(weighty), "(weights fact 2, behavior 0.5)")
    assert about(remarks_of(replace(weighty, layer_weights={})), "(equal weights)")
    assert remarks_of(replace(weighty, rows=(row(),))) == []


def test_remarks__explain_what_the_best_can_reach_where_one_is_always_right():
    right = row(accuracy=Estimate(1.0, 0.9, 1.0))
    found = board(right, row("n", rank=2), ceiling=950.0)

    assert about(remarks_of(found), "scores 950")
    for other in (replace(found, ceiling=1000.0), replace(found, lead="rate"), replace(found, rows=(row(),))):
        assert not about(remarks_of(other), "always right")


def test_remarks__explain_second_readers_and_open_places():
    found = board(row(rank_interval=Estimate(1.5, 1.0, 2.0)), readers={"sort": "strict"})

    assert about(remarks_of(found), "strict (sort)")
    assert about(remarks_of(found), "Rank 1–2")


def test_label_rows__have_what_tells_them_apart():
    assert label_rows([row("a"), row("a", sampler="hot"), row("b", revision="may")]) == [
        "a · greedy", "a · hot", "b · greedy · may"
    ]  # fmt: skip
