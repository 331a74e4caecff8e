"""What `plan` says of requests, costs and detectable differences."""

import json
from dataclasses import replace

import pytest

from evalcube.flows.cli import plan
from evalcube.flows.read.detect import Detection
from evalcube.flows.read.estimate import LIMITED, EvaluationEstimate, PlannedPoint, SweepEstimate
from evalcube.stages.analyze.formulas.detect import Spread
from tests.cases import with_cases
from tests.flows.support import evalcube, refused, sweep_config, write_config

ROW = EvaluationEstimate("m", 100, 10, 30, 60, True, 600, 1200, "cached replies", 2.5, 0.5)
LIMIT = replace(ROW, completion_basis=LIMITED)
FREE = replace(ROW, evaluation="free", cost=None, prompt_cost=None)
ENDLESS = replace(ROW, evaluation="endless", completion_tokens=None, completion_basis="nothing", cost=None)
DONE = replace(
    ROW, evaluation="done", to_send=0, completion_basis="", prompt_tokens=0, completion_tokens=0, cost=0.0
)
SWEEP = SweepEstimate(
    "s", "cube", "cache", 3, {"sort": {"easy": 2, "all": 3}}, {"easy": 2, "all": 3}, 8, 8, 1, (ROW,)
)


@with_cases(
    ("rows", "told"),
    [
        ((ROW,), ", about 2.50 USD"),
        ((LIMIT,), ", up to 2.50 USD"),
        ((LIMIT, ROW), ", up to about 5.00 USD"),
        ((ROW, DONE), ", about 2.50 USD"),
        ((ROW, FREE), ", about 2.50 USD and the cost of 1 of 2 without declared prices"),
        ((LIMIT, FREE), ", up to 2.50 USD and the cost of 1 of 2 without declared prices"),
        ((FREE,), "; cost unknown, as no prices are declared"),
        ((DONE,), ""),
        ((LIMIT, ENDLESS), ", about 3.00 USD, without the answers of endless: they may have any length"),
        ((ENDLESS, ENDLESS, ENDLESS), ", about 1.50 USD, without the answers of endless and 2 more: they"),
    ],
)
def test_about__says_how_near_the_cost_is_and_what_is_left_out(rows, told):
    found = plan.about(replace(SWEEP, evaluations=rows))

    assert found.startswith(told) if told.endswith(("length", "they")) else found == told


@with_cases(
    ("amount", "text"),
    [(0.0, "0.00"), (1.0, "1.00"), (12.345, "12.35"), (0.99, "0.99"), (0.00123, "0.0012")],
)
def test_money__has_cents_or_two_digits(amount, text):
    assert plan._money(amount) == text


def printed(capsys, result):
    plan.print_estimate(result)
    return capsys.readouterr().out


def test_print_estimate__has_a_row_for_each_that_is_asked(capsys):
    some = replace(ROW, exact=False, evaluation="some")
    output = printed(capsys, replace(SWEEP, evaluations=(ROW, some, LIMIT, FREE, ENDLESS, DONE)))

    cells = {tuple(line.split()) for line in output.splitlines()}
    assert ("m", "100", "10", "30", "60", "~600", "~1200", "~2.50") in cells
    assert ("some", "100", "10", "~30", "~60", "~600", "~1200", "~2.50") in cells
    assert ("m", "100", "10", "30", "60", "~600", "≤1200", "≤2.50") in cells
    assert ("free", "100", "10", "30", "60", "~600", "~1200", "–") in cells
    assert ("endless", "100", "10", "30", "60", "~600", "?", ">0.50") in cells
    assert ("done", "100", "10", "30", "0", "0", "0", "0") in cells
    assert ("sort", "2", "3") in cells
    starts = {line.index(line.split()[0]) for line in output.splitlines() if line.strip()}
    assert len(starts) == 1  # names stand at the left
    assert ("all", "tasks", "2", "3") in cells
    assert "\n300 requests to send" in output


def test_print_estimate__says_what_applies_alone(capsys):
    plain = printed(capsys, SWEEP)
    full = replace(
        SWEEP,
        repeats=2,
        most_trials=64,
        pending=1200,
        notes=("a note",),
        judges=(replace(ROW, evaluation="j"),),
    )
    output = printed(capsys, replace(full, few_problems={"sort": 1, "dates": 2}))

    assert "s: 3 points × 8 trials for each evaluation" in plain
    assert "s: 3 points × 8 trials × 2 repeats for each evaluation" in output
    for words in (
        "up to 64 for each point",
        "a note",
        "1,200 trials",
        "at most 120 requests to send",
        "few problems",
    ):
        assert words in output
        assert words not in plain
    assert "1 of the easiest points repeats a" in output
    assert "2 of the easiest points repeat a" in output
    assert "estimated from: cached replies" in plain
    assert "percentage points" not in plain  # one model has nobody to differ from
    assert "\n60 requests to send, about 2.50 USD\n" in plain


def test_print_estimate__of_two_models_says_what_difference_they_tell(capsys):
    two = (ROW, replace(ROW, requests=80))
    wide = printed(capsys, replace(SWEEP, evaluations=two, repeats=4, worth=20.0, limiting="sort"))
    none = printed(capsys, replace(SWEEP, evaluations=two, worth=1.0))

    assert "with 20 questions per model, a true difference of" in wide
    assert "'sort' has so few that all are worth 20" in wide
    assert "with 80 questions per model, no difference is detected" in none
    assert "equal weight" not in none


def test_print_estimate__cuts_no_name_where_space_is_short(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    name = "arithmetic with many operators and parentheses"
    output = printed(
        capsys, replace(SWEEP, evaluations=(replace(ROW, evaluation=name),), points={name: SWEEP.totals})
    )

    assert all(output.count(word) == 2 for word in name.split())


def test_ways__are_compared_where_both_have_prices(capsys):
    live = replace(ROW, other_cost=1.25)
    both = (
        live,
        replace(live, evaluation="n", in_batches=True, other_cost=9.0),
        replace(ROW, evaluation="o"),
    )
    output = printed(capsys, replace(SWEEP, evaluations=both))

    assert "m: sent live, about 2.50 USD; in batches, with `batch: true`, 1.25 USD" in output
    assert "n: sent in batches, about 2.50 USD; live, 9.00 USD" in output
    assert "live, 9.00 USD" in printed(capsys, replace(SWEEP, evaluations=both[1:]))
    assert "sent live" not in printed(capsys, replace(SWEEP, evaluations=(replace(live, to_send=0),)))


def test_print_points__shows_what_differs_and_says_once_what_does_not(capsys):
    points = [PlannedPoint({"length": length, "depth": 2}, ("easy",), 1.25 * length) for length in (3, 4)]

    plan.print_points("sort", points)

    output = capsys.readouterr().out
    assert "sort: 2 points\nall with depth=2\n" in output
    assert [line.split() for line in output.splitlines()[-2:]] == [["3", "easy", "3.8"], ["4", "easy", "5.0"]]
    plan.print_points("sort", [replace(point, params={"length": point.params["length"]}) for point in points])
    assert "all with" not in capsys.readouterr().out


STUDY = Detection(
    2.0, 0.8, "as assumed", Spread(0.1, 0.05), 1000, 1200, 40, 1, 300, 300.0, "", 4.0, None, None, SWEEP
)


def told(**changes):
    return list(plan._detection(replace(STUDY, **changes)))


def test_detection__says_how_many_questions_tell_a_difference_and_what_they_cost():
    lines = told()

    assert lines[0].endswith("power 0.8: 1,200 questions for each model (--trials 40)")
    assert lines[1] == "  60 requests to send, about 2.50 USD"
    assert lines[2] == "  as assumed"
    assert lines[3] == "this sweep can detect 4.0 percentage points: 300 questions for each model"
    assert lines[4].startswith("variance of single answers: 67% from the questions, 33% from repeats")
    assert len(lines) == 5
    assert "questions for each model, each asked 3 times (--trials" in told(repeats=3)[0]
    assert "requests" not in told(estimate=None)[1]
    assert len(told(planned=0)) == 4
    assert "no difference" in told(told=float("nan"))[3]


@pytest.mark.parametrize(("difference", "doubted"), [(0.02, True), (0.099, True), (0.1, False), (2.0, False)])
def test_detection__asks_whether_a_share_was_meant(difference, doubted):
    assert any("did you mean" in line for line in told(difference=difference)) == doubted


@pytest.mark.parametrize(
    ("changes", "first", "second"),
    [
        (
            {"needed": 5000, "most": 900, "again": 4},
            "5,000 questions for each model; there are 900",
            "asking each 4 times",
        ),
        (
            {"needed": 5000, "most": 900, "limiting": "sort"},
            "5,000 questions of equal weight for",
            "does not help enough",
        ),
        ({"needed": None, "most": 900}, "too many questions to ask", "does not help enough"),
        (
            {"needed": 5000, "most": 900, "spread": Spread(0.1, float("nan"))},
            "5,000",
            "take another data set",
        ),
    ],
)
def test_detection__of_too_few_questions_says_what_else_would_do(changes, first, second):
    lines = told(questions=None, trials=None, **changes)

    assert first in lines[0]
    assert second in lines[1]
    assert ("again" in lines[1]) == ("does not" in second)


@pytest.mark.parametrize(
    ("spread", "worth"),
    [(Spread(0.1, 0.05), 3.0), (Spread(0.0, 0.05), 1.0), (Spread(0.1, 0.0), float("inf"))],
)
def test_worth_of_repeat__is_that_of_a_new_question_in_second_answers(spread, worth):
    assert plan._worth_of_repeat(replace(STUDY, spread=spread)) == pytest.approx(worth)


def test_detection__where_no_question_was_asked_twice_says_so():
    assert "unknown" in told(spread=Spread(0.1, float("nan")))[-1]
    assert "infinitely more" in told(spread=Spread(0.1, 0.0))[-1]


@pytest.fixture
def config(tmp_path):
    return write_config(tmp_path, sweep_config(tmp_path, "http://127.0.0.1:9/v1", trials=4))


def test_plan__answers_in_each_way(config, tmp_path):
    asked = json.loads(evalcube("plan", config, "--json", cwd=tmp_path)[1])
    fewer = json.loads(evalcube("plan", config, "--trials", "2", "--json", cwd=tmp_path)[1])
    points = json.loads(evalcube("plan", config, "--task", "arithmetic", "--json", cwd=tmp_path)[1])
    study = json.loads(
        evalcube("plan", config, "--detect", "20", "--power", "0.9", "--json", cwd=tmp_path)[1]
    )
    text = evalcube("plan", config, "--detect", "20", cwd=tmp_path)[1]

    assert asked["to_send"] == 2 * fewer["to_send"] > 0
    assert len(points) == asked["points"]["arithmetic"]["all"]
    assert (study["power"], study["difference"]) == (0.9, 20.0)
    assert text.startswith("to detect a difference of 20 percentage points with power 0.8")
    assert "arithmetic: " in evalcube("plan", config, "--task", "arithmetic", cwd=tmp_path)[1]


@pytest.mark.parametrize(
    "options",
    [
        ["--check", "--detect", "2"],
        ["--check", "--task", "arithmetic"],
        ["--detect", "2", "--trials", "2"],
        ["--task", "arithmetic", "--repeats", "2"],
        ["--check", "--only", "task=arithmetic"],
        ["--scheduler", "tcp://x"],
        ["--cluster", "x"],
        ["--power", "0.9"],
        ["--against", "0.2"],
    ],
)
def test_plan__refuses_options_of_another_way(config, tmp_path, options):
    named = [option for option in options if option.startswith("--")]

    refused(evalcube("plan", config, *options, cwd=tmp_path), *named[:2])


@pytest.mark.parametrize(
    ("problems", "code", "ready"),
    [({"a": "", "b": ""}, 0, "2 of 2"), ({"a": "", "b": "no key"}, 2, "1 of 2")],
)
def test_check__ends_well_only_if_all_workers_are_ready(config, tmp_path, monkeypatch, problems, code, ready):
    seen = {}
    monkeypatch.setattr(
        "evalcube.flows.run.cluster.check_workers", lambda _, **options: seen.update(options) or problems
    )

    status, output, _ = evalcube("plan", config, "--check", "--scheduler", "tcp://x", cwd=tmp_path)
    listed = evalcube("plan", config, "--check", "--json", cwd=tmp_path)

    assert (status, listed[0]) == (code, code)
    assert seen["scheduler"] is None
    assert f"{ready} workers are ready" in output
    assert f"b: {problems['b'] or 'ok'}" in output
    assert json.loads(listed[1]) == {"workers": problems}
