"""What the tables of analyses show of each row, and when a column or a note is there."""

from dataclasses import replace

import numpy as np
import pytest

from evalcube.stages.analyze.labelled.pairing import Pair, PairedDifference
from evalcube.stages.analyze.labelled.results import LACKING, Estimate
from evalcube.stages.analyze.render import table_specs
from evalcube.stages.analyze.render.table_specs import (
    clip_spec,
    compression_spec,
    cost_spec,
    group_spec,
    metric_spec,
    pair_in_words,
    pair_spec,
    pairs_spec,
)
from evalcube.stages.analyze.render.text import ABSENT

NAN = float("nan")
OVERALL = PairedDifference("", 100, 100, 4, 20, 10, 0.6, 0.5, Estimate(0.1, 0.02, 0.18), 0.03, 0.03, 4.0)
PAIR = Pair("a", "b", (replace(OVERALL, task="sort"),), OVERALL, (0, 0))


def shown(spec):
    """Texts by head, row by row."""
    heads = [column.head for column in spec.columns]
    return [dict(zip(heads, texts, strict=True)) for texts in spec.texts()]


def group(points=4, trials=100.0, missing=0.0, transport=0.0, **more):
    counters = {"trials": trials, "missing": missing, "transport": transport}
    return {
        "task": "sort",
        "point": 0.5,
        "lower": 0.4,
        "upper": 0.6,
        "points": points,
        "points_planned": 4,
    } | {
        "truncated": 0.0,
        "counters": counters,
        **more,
    }


@pytest.mark.parametrize(
    ("row", "lacks"),
    [
        (group(), False),
        (group(points=3), True),
        (group(trials=1000.0, missing=1000 * LACKING / (1 - LACKING) - 0.5), False),
        (group(trials=1000.0, missing=1000 * LACKING / (1 - LACKING) + 0.5), True),
        (group(trials=1000.0, transport=1000 * LACKING / (1 - LACKING) + 0.5), True),
        (group(trials=0.0), False),
    ],
)
def test_group_spec__marks_groups_that_lack_points_or_trials(row, lacks):
    spec = group_spec([row], ["task"], "C_P", 0.95)

    (cells,) = shown(spec)
    assert cells["C_P"] == ("50.0%*" if lacks else "50.0%")
    assert spec.dim(row) == lacks
    assert ("done" in cells) == lacks == any(note.startswith("*") for note in spec.notes)
    assert (cells["points"], cells["95%"]) == (f"{row['points']}/4", "40.0–60.0")


def test_group_spec__rounds_what_is_done_down_and_names_values_of_any_kind():
    rows = [
        group(trials=999.0, missing=1.0, points=3, param_length=3.0, facet_size="big"),
        group(trials=0.0, points=3, param_length=0.12345678, facet_size=None, lower=NAN),
        group(trials=50.0, missing=40.0, transport=10.0, param_length=16, facet_size="small"),
    ]

    cells = shown(group_spec(rows, ["param_length", "facet_size"], "C_P", 0.9))

    assert [row["done"] for row in cells] == ["99%", ABSENT, "50%"]
    assert [row["length"] for row in cells] == ["3", "0.1235", "16"]
    assert [row["size"] for row in cells] == ["big", "None", "small"]
    assert cells[1]["90%"] == ABSENT


@pytest.mark.parametrize(("truncated", "gives_way"), [(0.0, True), (table_specs.CUT, True), (0.5, False)])
def test_group_spec__keeps_the_share_that_was_cut_where_it_is_large(truncated, gives_way):
    spec = group_spec([group(), group(truncated=truncated)], ["task"], "C_P", 0.95)

    assert bool(spec.columns[-1].gives_way) == gives_way


def test_pair_spec__has_questions_only_where_they_were_repeated():
    (task, overall) = shown(pair_spec(PAIR))
    repeated = pair_spec(replace(PAIR, overall=replace(OVERALL, questions=50)))

    assert (task["task"], overall["task"]) == ("sort", "all tasks")
    assert (overall["difference"], overall["95%"], overall["p (Holm)"]) == ("+10.0", "+2.0 to +18.0", "0.03")
    assert (overall["e"], overall["first only"], overall["second only"]) == ("4", "20", "10")
    assert (overall["trials"], overall["points"]) == ("100", "4")
    assert "questions" not in overall
    assert shown(repeated)[1]["questions"] == "50"
    assert len(repeated.notes) == len(pair_spec(PAIR).notes) + 1
    assert repeated.dim(replace(OVERALL, trials=0))
    assert not repeated.dim(OVERALL)


def test_pairs_spec__has_a_row_for_each_pair_and_what_lost_answers_could_change():
    ends = (
        replace(OVERALL, difference=Estimate(-0.02, 0, 0)),
        replace(OVERALL, difference=Estimate(0.3, 0, 0)),
    )
    lossy, repeated = replace(PAIR, second="c", ends=ends), replace(OVERALL, questions=50)

    spec = pairs_spec([PAIR, lossy], ("own",))

    assert [(row["first"], row["second"], row["trials"]) for row in shown(spec)] == [
        ("a", "b", "100"),
        ("a", "c", "100"),
    ]
    assert [note for note in spec.notes if "lost answers" in note] == [spec.notes[-1]]
    assert "a − c" in spec.notes[-1]
    assert "from -2.0 to +30.0 points" in spec.notes[-1]
    assert spec.notes[-2] == "own"
    assert len(pairs_spec([PAIR, replace(PAIR, overall=repeated)]).notes) == len(pairs_spec([PAIR]).notes) + 1


def words(**changes):
    return pair_in_words(replace(PAIR, overall=replace(OVERALL, **changes)))


def test_pair_in_words__names_the_better_one_from_a_significant_difference_on():
    down = Estimate(-0.1, -0.18, -0.02)

    assert words().startswith("'a' is right more often than 'b', by 10.0 points (2.0 to 18.0), p = 0.03. ")
    assert words(difference=down).startswith("'b' is right more often than 'a', by 10.0 points (2.0 to 18.0)")
    assert "Minimum detectable difference: 11.4 points" in words()
    assert words(p_holm=0.05).startswith(
        "No significant difference between 'a' and 'b' in 100 trials: +10.0 points"
    )
    assert "(95% CI +2.0 to +18.0), p = 0.05" in words(p_holm=0.05)
    assert "p < 0.0001" in words(p_holm=1e-9)


def test_pair_in_words__warns_where_one_look_or_one_pair_was_assumed():
    looks, alone = "with repeated looks, e must reach 20, and is 4", "as it is for this pair alone"

    assert looks in words()
    assert "repeated looks" not in words(e=20.0) + words(e=30.0)
    assert alone not in words()
    assert alone in words(p_holm=0.05)
    assert alone not in words(p=0.05, p_holm=0.05)


@pytest.mark.parametrize(
    ("low", "high", "is_open"), [(-0.1, 0.1, True), (0.0, 0.3, True), (0.01, 0.3, False)]
)
def test_pair_in_words__says_whether_lost_answers_decide(low, high, is_open):
    ends = tuple(replace(OVERALL, difference=Estimate(value, 0, 0)) for value in (low, high))

    text = pair_in_words(replace(PAIR, ends=ends))

    assert ("was right more often in the answers that arrived" in text) == is_open
    assert ("which of the two is right" in text) == is_open
    assert f"from {100 * low:+.1f} to {100 * high:+.1f} points" in text


def metric(k=1, **more):
    values = {
        "model": "m",
        "k": k,
        "questions": 3000,
        "questions_incomplete": 0,
        "points": 2,
        "points_planned": 2,
    }
    for name, value in {"pass_at_k": 0.5, "pass_hat_k": 0.25, "avg": 0.75}.items():
        values |= {name: value, f"{name}_lower": value - 0.1, f"{name}_upper": value + 0.1}
    interval = {
        "pass_at_k_ci_mu": 0.4,
        "pass_at_k_ci_lo": 0.3,
        "pass_at_k_ci_hi": 0.6,
        "pass_at_k_ci_sigma": 0.07,
    }
    return values | interval | {"avg_sigma": 0.02} | more


def test_metric_spec__few_metrics_stand_side_by_side_with_their_intervals():
    spec = metric_spec([metric()], ["model"], ["pass_at_k", "pass_hat_k"])

    assert spec.texts() == [["m", "1", "0.500", "0.400–0.600", "0.250", "0.150–0.350", "3,000"]]
    assert [column.full_head for column in spec.columns][2:6] == [
        "pass_at_k",
        "pass_at_k 95%",
        "pass_hat_k",
        "pass_hat_k 95%",
    ]
    assert len(spec.notes) == 1


def test_metric_spec__metrics_with_parts_stand_below_each_other_and_those_without_k_once():
    rows = [metric(1), metric(2)]

    spec = metric_spec(rows, ["model"], ["pass_at_k_ci", "avg", "pass_at_k"], confidence=0.9)

    cells = shown(spec)
    assert [(row["k"], row["metric"]) for row in cells] == [
        ("1", "pass_at_k_ci"),
        (ABSENT, "avg"),
        ("1", "pass_at_k"),
        ("2", "pass_at_k_ci"),
        ("2", "pass_at_k"),
    ]
    assert [(row["value"], row["90%"], row["σ"]) for row in cells[:3]] == [
        ("0.400", "0.300–0.600", "0.070"),
        ("0.750", ABSENT, "0.020"),
        ("0.500", "0.400–0.600", ABSENT),
    ]
    assert any(note.startswith("_ci: Bayesian") for note in spec.notes)


def test_metric_spec__marks_groups_whose_points_have_not_enough_answers():
    few = metric(points=1)

    spec = metric_spec(
        [metric(), few], ["model"], ["pass_at_k"], "where task=sort", weighed=True, more=("own",)
    )

    assert [row["questions"] for row in shown(spec)] == ["3,000", "3,000*"]
    assert [spec.dim(row) for row in spec.rows] == [False, True]
    assert spec.notes[0] == "Part of the cube (where task=sort)."
    assert "own" in spec.notes
    assert spec.notes[-1].startswith("* Some points")
    assert "first run" in spec.notes[1]
    assert not any(note.startswith("*") for note in metric_spec([metric()], ["model"], ["pass_at_k"]).notes)


def test_metric_spec__of_many_metrics_stands_below_each_other(monkeypatch):
    def heads(names):
        return [column.head for column in metric_spec([metric()], ["model"], names).columns]

    monkeypatch.setattr(table_specs, "_WIDE", 2)

    assert "metric" not in heads(["pass_at_k", "pass_hat_k"])
    assert "metric" in heads(["pass_at_k", "pass_hat_k", "pass_at_k"])


def test_compression_spec__is_by_outcome():
    row = {
        "model": "m",
        "outcome": "right",
        "traces": 9,
        "ratio": 0.4,
        "ratio_lower": 0.35,
        "ratio_upper": NAN,
    }
    row |= {"bytes_per_token": 4.25, "compressed_per_token": 1.7}
    spec = compression_spec([row, row | {"ratio_lower": NAN}], ["model"])

    assert spec.texts()[0] == ["m", "right", "9", "0.400", f"0.350–{ABSENT}", "4.25", "1.70"]
    assert spec.texts()[1][4] == ABSENT


def cost(**more):
    return {"model": "m", "total": 1.5, "per_trial": 0.999, "per_correct": 0.004} | {
        "per_correct_lower": 0.003,
        "per_correct_upper": 0.005,
        **more,
    }


def test_cost_spec__has_a_front_where_evaluations_are_scored():
    scored = cost(score=700, tokens=90, on_token_front=True, on_cost_front=True)

    plain, (full, last) = (
        shown(cost_spec(rows, ["model"]))
        for rows in (
            [cost(), cost(per_correct_upper=np.inf), cost(per_correct_lower=NAN)],
            [
                scored,
                scored | {"on_token_front": False, "on_cost_front": False},
            ],
        )
    )

    assert [row["95%"] for row in plain] == ["3.00–5.00", "3.00 or more", ABSENT]
    assert (plain[0]["USD"], plain[0]["per 1000 trials"], plain[0]["per 1000 correct"]) == (
        "1.50",
        "999",
        "4.00",
    )
    assert "score" not in plain[0]
    assert (full["score"], full["tokens"], full["Pareto front"]) == ("700", "90", "tokens + cost")
    assert last["Pareto front"] == ABSENT
    assert "score" not in shown(cost_spec([scored, cost()], ["model"]))[0]
    assert shown(cost_spec([scored | {"on_token_front": False}], ["model"]))[0]["Pareto front"] == "cost"


def clip(**more):
    return {"model": "m", "limit": None, "score": 700, "score_lower": 650, "score_upper": 750, "rank": 1} | {
        "accuracy": 0.5,
        "accuracy_lower": 0.4,
        "accuracy_upper": 0.6,
        "accuracy_most": 0.5,
        "truncated": 0.1,
        "tokens": 90,
        "cost_per_1000": 2.0,
        **more,
    }


def test_clip_spec__shows_limits_and_what_is_open():
    rows = [clip(), clip(limit=1024, rank=None)]

    cells = shown(clip_spec(rows))

    assert [(row["limit"], row["rank"]) for row in cells] == [("as run", "1"), ("1,024", ABSENT)]
    assert (cells[0]["95%"], cells[0]["C_P 95%"], cells[0]["truncated"]) == ("650–750", "40.0–60.0", "10.0%")
    assert (cells[0]["tokens"], cells[0]["USD/1000"]) == ("90", "2.00")
    assert clip_spec(rows, ("own",)).notes == ("own",)
    assert len(clip_spec([*rows, clip(accuracy_most=0.51)]).notes) == 1
    assert "USD/1000" not in shown(clip_spec([clip(cost_per_1000=NAN)]))[0]


@pytest.mark.parametrize(
    ("low", "high", "digits", "text"),
    [(1, 2, 0, "1–2"), (1, 1.2, 0, "1"), (1, 1.2, 1, "1.0–1.2"), (NAN, 2, 0, ABSENT), (1, NAN, 0, ABSENT)],
)
def test_span__is_one_number_where_both_ends_are_shown_alike(low, high, digits, text):
    assert table_specs.span(Estimate(1.0, low, high), digits) == text


def test_numbers_of_tests__have_limits_beyond_which_they_are_not_spelled_out():
    assert [table_specs.p_text(p) for p in (1e-4, 0.99e-4)] == ["0.0001", "<0.0001"]
    assert [table_specs.e_text(e) for e in (9.96, 10, 9999, 9999.1)] == ["10", "10", "9999", ">9999"]
    assert [table_specs.points(value) for value in (-0.0004, -0.0006, NAN)] == ["+0.0", "-0.1", ABSENT]
    assert table_specs.point_span(Estimate(0.1, NAN, 0.2)) == ABSENT
