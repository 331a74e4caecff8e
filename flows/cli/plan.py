"""The command that tells what a sweep would ask and cost: plan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from evalcube.flows.cli import options
from evalcube.flows.cli.output import ExitStatus, complain, exclusive, safe, show, show_json, show_table

if TYPE_CHECKING:
    from evalcube.flows.config.models import Sweep
    from evalcube.flows.read.detect import Detection
    from evalcube.flows.read.estimate import EvaluationEstimate, PlannedPoint, SweepEstimate
    from evalcube.stages.analyze.render.table import TableSpec


def print_points(task: str, points: Sequence[PlannedPoint]) -> None:
    """Print the points of a task: the parameters in which they differ, their tiers and difficulty."""
    from evalcube.stages.analyze.render.table import Column, TableSpec

    first = points[0].params
    constant = {
        name: value for name, value in first.items() if all(point.params[name] == value for point in points)
    }
    varied = [name for name in first if name not in constant]
    columns = [
        *(Column(name, lambda point, name=name: safe(str(point.params[name]))) for name in varied),  # type: ignore[misc]
        Column("tiers", lambda point: safe(", ".join(point.tiers)), right=False),
        Column("difficulty", lambda point: f"{point.difficulty:.1f}"),
    ]
    show(safe(f"{task}: {len(points)} points"))
    if constant:
        show(safe(f"all with {', '.join(f'{name}={value}' for name, value in constant.items())}"))
    show_table(TableSpec(tuple(columns), points))


def print_estimate(result: SweepEstimate) -> None:
    """Print what a sweep would ask and cost."""
    from evalcube.stages.analyze.labelled.axes import count_text

    per_cell = f"{result.trials} trials" + (f" × {result.repeats} repeats" if result.repeats > 1 else "")
    show(safe(f"{result.name}: {count_text(result.cells, 'point')} × {per_cell} for each evaluation"))
    if result.most_trials > result.trials:
        show(f"then rounds of more trials where they are needed, up to {result.most_trials} for each point")
    for line in (f"cube {result.cube}, cache {result.cache}", *result.notes, ""):
        show(safe(line))
    show_table(_points(result))
    show("")
    show_table(_requests(result))
    for line in ("", *_sums(result)):
        show(safe(line))


def _sums(result: SweepEstimate) -> list[str]:
    """What is to say of all requests together."""
    lines = [] if result.unnamed is None else [str(result.unnamed)]
    if result.pending:
        lines.append(f"beside these, {result.pending:,} trials of the plan are pending")
    if result.power is not None:
        lines.append(result.power.text)
    if len(result.evaluations) > 1:
        lines.append(_detectable(result))
    lines += [
        f"{task}: {count} of the easiest points {'repeats' if count == 1 else 'repeat'} a few problems "
        "in more than half of the trials, which add no evidence"
        for task, count in result.few_problems.items()
    ]
    basis = {row.completion_basis for row in result.rows if row.to_send}
    if basis:
        lines.append(f"tokens out, estimated from: {'; '.join(sorted(basis))}")
    lines += _ways(result)
    most = "at most " if any(row.to_send for row in result.judges) else ""  # equal answers are judged once
    return [*lines, f"{most}{result.to_send:,} requests to send{about(result)}"]


def _ways(result: SweepEstimate) -> Iterator[str]:
    """Which of two ways the config takes, and what the other one would cost."""
    for batch in (False, True):
        rows = [row for row in result.rows if row.other_cost is not None and row.in_batches == batch]
        if not rows or not any(row.to_send for row in rows):
            continue
        taken, alternative = (
            sum(filter(None, costs)) for costs in zip(*((r.cost, r.other_cost) for r in rows), strict=True)
        )
        way, instead = ("in batches", "live") if batch else ("live", "in batches, with `batch: true`")
        names = ", ".join(safe(row.evaluation) for row in rows)
        yield f"{names}: sent {way}, {_how_near(rows)} {_money(taken)} USD; {instead}, {_money(alternative)} USD"


def _detectable(result: SweepEstimate) -> str:
    """The smallest difference of right answers that the sweep can tell, if models disagree as they often do."""
    from evalcube.flows.read.detect import ASSUMED
    from evalcube.stages.analyze.formulas.detect import Spread, told_difference

    questions = min(row.requests for row in result.evaluations) // max(result.repeats, 1)
    points = 100 * told_difference(result.worth, Spread.of_discordance(ASSUMED))
    gap = "no difference" if math.isnan(points) else f"a true difference of {points:.2g} percentage points"
    return (
        f"with {questions:,} questions per model, {gap} is detected with 80% power (assuming that two models "
        f"disagree on {100 * ASSUMED:g}% of questions; see --detect){_limited(result)}"
    )


def _limited(result: SweepEstimate | Detection) -> str:
    """Why many questions tell little, where a task has few of them."""
    if not result.limiting:
        return ""
    few = f"'{safe(result.limiting)}' has so few that all are worth {result.worth:,.0f}"
    return f": tasks have equal weight, and {few}"


def about(result: SweepEstimate) -> str:
    """The cost of all, and what is left out of it because nobody declared its price."""
    asked = [row for row in result.rows if row.to_send]
    unpriced = sum(row.prompt_cost is None for row in asked)
    if unpriced == len(asked):
        return "; cost unknown, as no prices are declared" if asked else ""
    cost = f", {_how_near(asked)} {_money(sum(_known_cost(row) for row in result.rows))} USD"
    cost += f" and the cost of {unpriced} of {len(asked)} without declared prices" if unpriced else ""
    endless = [row.evaluation for row in asked if row.cost is None and row.prompt_cost is not None]
    if not endless:
        return cost
    more = f" and {len(endless) - 1} more" if len(endless) > 1 else ""
    return f"{cost}, without the answers of {safe(endless[0])}{more}: they may have any length unless max_tokens is set"


def _how_near(asked: Sequence[EvaluationEstimate]) -> str:
    """How the cost of some requests is to be taken."""
    priced = [row for row in asked if row.prompt_cost is not None]
    if not any(row.at_most for row in priced) or any(row.cost is None for row in priced):
        return "about"
    return "up to" if all(row.at_most for row in priced) else "up to about"


def _known_cost(row: EvaluationEstimate) -> float:
    return (row.prompt_cost or 0.0) if row.cost is None else row.cost


def _money(amount: float) -> str:
    """Dollars with cents; small amounts with two digits."""
    from evalcube.stages.analyze.render.text import significant

    return f"{amount:.2f}" if amount >= 1 or not amount else significant(amount, 2)


def _points(result: SweepEstimate) -> TableSpec:
    """Number of points by task and tier, and of all."""
    from evalcube.stages.analyze.render.table import Column, TableSpec

    columns = [
        Column("points", lambda row: safe(row[0]), right=False, name=True),
        *(Column(safe(name), lambda row, name=name: str(row[1][name])) for name in result.totals),  # type: ignore[misc]
    ]
    return TableSpec(tuple(columns), [*result.points.items(), ("all tasks", result.totals)])


def _requests(result: SweepEstimate) -> TableSpec:
    """Requests of each evaluation, and what is left of them."""
    from evalcube.stages.analyze.render.table import Column, TableSpec

    def about(row: EvaluationEstimate, count: int) -> str:
        return f"{'' if row.exact else '~'}{count}"

    def answers(row: EvaluationEstimate) -> str:
        if row.completion_tokens is None:
            return "?"
        return f"{_sign(row)}{row.completion_tokens}" if row.completion_tokens else "0"

    def cost(row: EvaluationEstimate) -> str:
        if row.prompt_cost is None:
            return "–"
        if row.cost is None:
            return f">{_money(row.prompt_cost)}"
        return f"{_sign(row)}{_money(row.cost)}" if row.cost else "0"

    columns = (
        Column("evaluation", lambda row: safe(row.evaluation), right=False, name=True),
        Column("requests", lambda row: str(row.requests), 6),
        Column("done", lambda row: str(row.done), 4),
        Column("cached", lambda row: about(row, row.cached), 5),
        Column("to send", lambda row: about(row, row.to_send)),
        Column("tokens in", lambda row: f"~{row.prompt_tokens}" if row.prompt_tokens else "0", 7),
        Column("tokens out", answers, 7),
        Column("USD", cost),
    )
    return TableSpec(columns, result.rows)


def _sign(row: EvaluationEstimate) -> str:
    """How a number of answers is to be taken: at most so many, or about."""
    return "≤" if row.at_most else "~"


def plan(
    config: options.Configs,
    models: options.Endpoints = None,
    key_envs: options.Keys = None,
    judges: options.Judges = None,
    cube: options.Results = None,
    cache: str | None = None,
    task: str | None = None,
    only: list[str] | None = None,
    trials: options.AskedTrials = None,
    repeats: int | None = None,
    check: Annotated[bool, typer.Option("--check")] = False,
    detect: float | None = None,
    power: float | None = None,
    against: str | None = None,
    scheduler: str | None = None,
    cluster: str | None = None,
    as_json: options.Json = False,
) -> None:
    """Show what a run would ask and cost, without sending a request.

    Parameters
    ----------
    task
        List the points of this task instead of the plan.
    check
        Instead of the plan, check each worker as a run does before its first request.
    detect : POINTS
        Instead of the plan, show how many questions detect a difference of POINTS percentage points between two
        models.
    power
        With --detect: probability of detecting the difference; default: 0.8.
    against : CUBE|SHARE
        With --detect: the share of questions that only one of two models gets right, or a cube from which to compute
        it; default: the sweep's own cube, else 0.2.
    """
    from dataclasses import asdict

    from evalcube.flows.config.suites import load_sweep
    from evalcube.flows.errors import SweepError
    from evalcube.flows.plan.part import Only
    from evalcube.flows.read.estimate import estimate, planned_points

    way = exclusive({"--check": check, "--detect": detect is not None, "--task": task is not None})
    for name, value in {"--only": only, "--trials": trials, "--repeats": repeats}.items():
        exclusive({way: bool(way), name: value not in (None, [])})
    if way != "--check" and (scheduler is not None or cluster is not None):
        raise SweepError("--scheduler and --cluster go with --check", "Add --check, or leave them out")
    if way != "--detect" and (power is not None or against is not None):
        raise SweepError("--power and --against go with --detect", "Add --detect 2, or leave them out")
    Only.of(only or (), trials)  # what is wrong with these is told before a data set is fetched
    sweep = load_sweep(config, models or (), key_envs or (), judges or ())
    if check:
        from evalcube.flows.config.load import as_config

        _check(as_config(sweep, cube=cube, cache=cache), scheduler, cluster, as_json=as_json)
        return
    if detect is not None:
        _detect(sweep, detect, power, against, cube, cache, as_json=as_json)
        return
    if task is not None:
        points = planned_points(sweep, task)
        if as_json:
            show_json([asdict(point) for point in points])
        else:
            print_points(task, points)
        return
    result = estimate(sweep, cube=cube, cache=cache, only=only or (), trials=trials, repeats=repeats)
    if as_json:
        show_json(result.to_dict(), "plan")
    else:
        print_estimate(result)


def _detect(
    sweep: Sweep,
    difference: float,
    power: float | None,
    against: str | None,
    cube: str | None,
    cache: str | None,
    *,
    as_json: bool,
) -> None:
    from evalcube.flows.read.detect import detect

    options = {} if power is None else {"power": power}
    study = detect(sweep, difference, against=against, cube=cube, cache=cache, **options)
    if as_json:
        show_json(study.to_dict(), "detect")
        return
    for line in _detection(study):
        show(safe(line))


_DOUBTED = 0.1
"""Points of 100, below which a share was meant, perhaps."""


def _detection(study: Detection) -> Iterator[str]:
    """What it takes to tell a difference, in sentences."""
    asked = f", each asked {study.repeats} times" if study.repeats > 1 else ""
    head = f"to detect a difference of {study.difference:g} percentage points with power {study.power:g}: "
    if study.questions is None:
        needed = "too many questions to ask" if study.needed is None else f"{study.needed:,} questions"
        alike = " of equal weight" if study.limiting else ""
        yield f"{head}{needed}{alike} for each model{asked}; there are {study.most:,}"
        yield f"  {_with_repeats(study)}"
    else:
        yield f"{head}{study.questions:,} questions for each model{asked} (--trials {study.trials})"
        if study.estimate is not None:
            yield f"  {study.estimate.to_send:,} requests to send{about(study.estimate)}"
    if study.difference < _DOUBTED:
        share = study.difference / 100
        yield f"  {study.difference:g} percentage points are {share:g} of all: did you mean {100 * study.difference:g}?"
    yield f"  {study.basis}"
    if study.planned:
        difference = "no difference" if math.isnan(study.told) else f"{study.told:.1f} percentage points"
        yield f"this sweep can detect {difference}: {study.planned:,} questions for each model{asked}{_limited(study)}"
    share = study.spread.share_within
    if math.isnan(share):
        yield "it is unknown how much repeats would help: no question was asked twice"
        return
    worth = _worth_of_repeat(study)
    much = f"{worth:.1f} times" if math.isfinite(worth) else "infinitely more than"
    yield (
        f"variance of single answers: {100 * (1 - share):.0f}% from the questions, {100 * share:.0f}% from repeats; "
        f"a new question is worth {much} a second answer to an old one"
    )


def _with_repeats(study: Detection) -> str:
    if math.isnan(study.spread.within):
        return "take another data set, or a larger difference"
    if study.again is None:
        return "asking them again does not help enough: take another data set, or a larger difference"
    return f"asking each {study.again} times is enough: `repeats: {study.again}`"


def _worth_of_repeat(study: Detection) -> float:
    """By how much more a new question with one answer narrows the interval than a second answer to each."""
    once, twice = (study.spread.per_question(repeats) for repeats in (1, 2))
    return (once / 2) / (once - twice) if once > twice else math.inf


def _check(sweep: Sweep, scheduler: str | None, cluster: str | None, *, as_json: bool) -> None:
    from evalcube.flows.run.cluster import check_workers

    problems = check_workers(sweep, cluster=cluster, scheduler=scheduler, note=complain)
    fit = sum(not problem for problem in problems.values())
    if as_json:
        show_json({"workers": problems})
    else:
        for address, problem in problems.items():
            show(safe(f"{address}: {problem or 'ok'}"))
        show(f"{fit} of {len(problems)} workers are ready")
    if fit < len(problems):
        raise typer.Exit(ExitStatus.REFUSED)
