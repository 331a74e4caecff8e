"""The report of a cube as one self-contained HTML page without network, which can be read without scripts, too."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from types import MappingProxyType

import jinja2
from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined, Template
from jinja2.bccache import Bucket
from markupsafe import Markup

from evalcube._arrays import Dataset
from evalcube.stages.analyze.formulas.design import WEIGHING, Weigh
from evalcube.stages.analyze.labelled import ranking, report_data
from evalcube.stages.analyze.labelled.axes import plain
from evalcube.stages.analyze.labelled.columns import COLUMNS
from evalcube.stages.analyze.labelled.counters import unique_shares
from evalcube.stages.analyze.labelled.leaderboard import row_order
from evalcube.stages.analyze.labelled.pairing import Pair
from evalcube.stages.analyze.labelled.remarks import label_rows
from evalcube.stages.analyze.labelled.results import Estimate, Leaderboard
from evalcube.stages.analyze.render import charts as figures
from evalcube.stages.analyze.render import meaning
from evalcube.stages.analyze.render.board_spec import MOST_MET, leading_text, places, value_text
from evalcube.stages.analyze.render.cover import cover
from evalcube.stages.analyze.render.table_specs import pair_in_words, point_span, points, span
from evalcube.stages.analyze.render.text import ABSENT, number, percent, printable, shorten, significant
from evalcube.stages.analyze.render.verdicts import ShownDecision, ShownVerdict
from evalcube.stages.analyze.verdict.composite import LAYERS
from evalcube.stages.reply.status import OUTCOMES, QUESTION_MOMENTS

MOST_LINES = 6
"""Curves per chart: more cannot be told apart."""
MOST_SAMPLES = 500
MOST_SAMPLE_TEXT = 3_000_000
"""Characters of all samples together: a page should open at once."""
MOST_TEXT = 4000
"""Characters shown of a prompt or a response."""
CUT_MARK = 0.1
"""Share of truncated trials from which a cell of the task table is marked."""
SHADES = 10
MOST_NAME = 72

MODES_IN_WORDS = {
    "E_I": "share of right answers among completed trials",
    "E_P": "share of right answers, truncated trials counting as wrong",
    "E_O": "share of right answers, truncated trials counting as right",
    "C_I": "over completed trials, with the share won by guessing taken out",
    "C_P": "with the share won by guessing taken out, truncated trials counting as wrong",
    "C_O": "with the share won by guessing taken out, truncated trials counting as right",
}


@dataclass(frozen=True)
class SampleTrial:
    """One trial to show in the report, with its texts."""

    model: str
    task: str
    status: str
    """The outcome in a word, as in `evalcube.stages.reply.status.Status`."""
    prompt: str
    response: str
    parsed: str | None
    """The answer read from the response; None if there was none."""
    reference: str
    note: str = ""
    """Anything else that tells the trial apart, such as its point and index."""
    eval_id: str = ""
    """Of its evaluation, so that cells of tables lead to it."""


def render_report(
    ds: Dataset,
    board: Leaderboard,
    *,
    facts: Mapping[str, str],
    samples: Sequence[SampleTrial] = (),
    weigh: Weigh = "tasks",
    failures: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
    verdict: ShownVerdict | None = None,
    no_verdict: str = "",
    decisions: Sequence[ShownDecision] = (),
    no_decision: str = "",
    pair: Pair | None = None,
    warnings: Sequence[str] = (),
) -> str:
    """The report as the text of one HTML file.

    All text that comes from outside (names, facts, samples) is escaped. The page forbids itself any request.
    """
    order = row_order(ds, board)
    loaded = _load(ds)
    labels = [shorten(label, MOST_NAME) for label in label_rows(board.rows)]
    tasks = report_data.task_views(loaded, order, mode=board.mode, weigh=weigh, confidence=board.confidence)
    standings = ranking.rank_rows(loaded, board) if len(labels) > 1 else None
    return _page(_names_with_ticks(board, labels)).render(
        board=board,
        title=plain(facts.get("title", "Evaluation report")),
        facts=[(plain(name), plain(value)) for name, value in facts.items() if name != "title"],
        headline=headline(board, labels, pair),
        labels=labels,
        ranking=figures.tracks(board),
        initials=figures.initials(board.tiers),
        **_by_task(tasks),
        weighing=WEIGHING[weigh],
        mode_words=MODES_IN_WORDS[board.mode],
        standings=standings,
        groups=[[labels[index] for index in members] for members in standings.clusters] if standings else [],
        unique=unique_shares(loaded, "task").tolist(),
        columns=[column for column in COLUMNS if column.is_plain(board)],
        cut_mark=CUT_MARK,
        most_points=report_data.MOST_POINTS,
        by_score=board.lead == "score",
        leading=[leading_text(board, row) for row in board.rows],
        **_curves(loaded, order, board, labels),
        figures=figures,
        outcomes=report_data.outcome_shares(loaded, order),
        outcome_names=list(OUTCOMES),
        failures=_failure_rows(failures),
        **_sample_fields(samples, board, labels),
        cover=cover(board, labels, standings, warnings),
        **_script(),
        meaning=meaning,
        most_met=MOST_MET,
        composites=[index for index, row in enumerate(board.rows) if row.composite is not None],
        verdict=verdict,
        no_verdict=plain(no_verdict),
        decisions=decisions,
        no_decision=plain(no_decision),
        layer_names=LAYERS,
        absent=ABSENT,
    )


def _load(ds: Dataset) -> Dataset:
    """Load the arrays of a report into memory."""
    used = ("counters", "duplicate", "planned_trials", "planned_repeats", QUESTION_MOMENTS)
    loaded = ds.drop_vars([name for name in ds.data_vars if name not in used]).compute()
    if "status" in ds and ds.sizes["repeat"] > 1:
        return loaded.assign(status=ds["status"])  # read model by model, as intervals go by question
    return loaded


def _by_task(tasks: Sequence[Sequence[report_data.TaskView]]) -> dict[str, object]:
    """Each evaluation on each task, how its accuracy is coloured, and the longest bar of tokens."""
    return {
        "tasks": tasks,
        "shades": [[_shade(view.accuracy.value, view.truncated) for view in row] for row in tasks],
        # Of an endpoint that counts none they are NaN, which may be the maximum of anything.
        "most_tokens": max((view.tokens for row in tasks for view in row if view.tokens > 0), default=1.0),
    }


class _CompiledPages(FileSystemBytecodeCache):
    """Compiled templates in a temporary folder that only this user may use: to compile one takes half of a report."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a compiled template, where the disk takes one."""
        with suppress(OSError):
            super().dump_bytecode(bucket)


def _page(ticked: Sequence[str]) -> Template:
    """Return the template, in which values come from anyone, with what shows these."""
    environment = Environment(
        loader=PackageLoader("evalcube.stages.analyze.render"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    with suppress(OSError, RuntimeError):  # there is no such folder, or somebody else's
        environment.bytecode_cache = _CompiledPages(pattern=f"jinja2-{jinja2.__version__}-%s")
    environment.filters.update(
        data=_data,
        bounds=_bounds,
        number=number,
        percent=percent,
        significant=significant,
        plain=plain,
        interval=_interval,
        points=points,
        point_span=point_span,
        span=span,
        places=places,
        letter=ranking.cluster_name,
        value_text=value_text,
        broken=lambda text: Markup("<br>").join(text.split("\n")),
        code=partial(_code, names=ticked),
    )
    return environment.get_template("report.html.j2")


def _script() -> dict[str, str]:
    """Return the page's own script, and the digest by which its policy lets it run."""
    script = files(__package__).joinpath("templates/report.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {"script": Markup(script), "script_digest": digest}  # noqa: S704 - our own file


def _curves(
    ds: Dataset, order: Sequence[int], board: Leaderboard, labels: Sequence[str]
) -> dict[str, object]:
    """Accuracy by difficulty: the charts, the tasks with a single difficulty, and the legend."""
    curves = report_data.curve_views(ds, order, mode=board.mode, confidence=board.confidence)
    shown = labels[:MOST_LINES]
    charts, single = [], []
    for view in curves:
        if len(view.difficulty) == 1:
            single.append(plain(view.task))
            continue
        cuts = [[share > CUT_MARK for share in row] for row in view.truncated]
        series = list(zip(range(len(shown)), shown, view.accuracy, cuts, strict=False))
        charts.append(figures.curve_chart(plain(view.task), view.difficulty, series))
    legend = [(kind, label, figures.mark(kind, 8, 8, 4.2)) for kind, label in enumerate(shown)]
    return {"charts": charts, "single": single, "legend": legend}


def _failure_rows(failures: Mapping[str, Mapping[str, int]]) -> list[tuple[str, str, int]]:
    return [
        (shorten(plain(label), MOST_NAME), plain(cause), count)
        for label, causes in failures.items()
        for cause, count in causes.items()
    ]


def close_rows(board: Leaderboard) -> list[int]:
    """Places of the first complete row, and of those whose intervals overlap with its own; empty without a row."""
    complete = [index for index, row in enumerate(board.rows) if row.rank is not None and not row.incomplete]
    leads = [board.leading(board.rows[index]) for index in complete]
    return [
        index
        for number, (index, estimate) in enumerate(zip(complete, leads, strict=True))
        if not number or (estimate.upper >= leads[0].lower and estimate.lower <= leads[0].upper)
    ]


def headline(board: Leaderboard, labels: Sequence[str], pair: Pair | None = None) -> str:
    """The main result in a sentence or two: who leads among complete rows, and what tells them apart."""
    named = [
        label + (f" (so far {row.trials:,} of {row.planned:,} trials)" if row.partial else "")
        for row, label in zip(board.rows, labels, strict=True)
    ]
    complete = [index for index, row in enumerate(board.rows) if row.rank is not None and not row.incomplete]
    if not complete:
        return "No evaluation is complete yet: these scores rest on part of the questions."
    first, by_score, rivals = complete[0], board.lead == "score", close_rows(board)[1:]
    value, interval = leading_text(board, board.rows[first])
    lead = f"{named[first]} scores {value} of 1000 ({interval})"
    if not by_score:
        lead = f"{named[first]} solves {value} ({interval}%; {MODES_IN_WORDS[board.mode]})"
    if len(complete) == 1:
        return f"{lead}; it is the only complete evaluation."
    if not rivals:
        second = complete[1]
        gap = board.leading(board.rows[first]).value - board.leading(board.rows[second]).value
        ahead = number(gap) if by_score else f"{100 * gap:.1f} percentage points"
        return f"{lead}, {ahead} ahead of {named[second]}; their intervals do not overlap."
    close = f"that of {named[rivals[0]]}" if len(rivals) == 1 else f"those of {len(rivals)} other evaluations"
    hint = "Intervals are of each by itself; what both did with the same questions may still tell them apart."
    if pair:
        hint = f"On the questions that both answered: {plain(pair_in_words(pair))}"
    return f"{lead}, the highest. Its interval overlaps with {close}. {hint}"


def _sample_fields(
    samples: Sequence[SampleTrial], board: Leaderboard, labels: Sequence[str]
) -> dict[str, object]:
    """The trials that are shown, how many are left out, and where each is."""
    placed = _samples(samples, board, labels)
    anchors = {
        (model, board.tasks.index(item.task)): anchor
        for item, model, anchor in reversed(placed)
        if anchor and item.task in board.tasks
    }
    return {"samples": placed, "samples_left": len(samples) - len(placed), "anchors": anchors}


def _samples(
    samples: Sequence[SampleTrial], board: Leaderboard, labels: Sequence[str]
) -> list[tuple[SampleTrial, int | None, str | None]]:
    """Those that are shown, short and safe, with the number of their row, and what a link to them is called."""
    rows = {row.eval_id: index for index, row in enumerate(board.rows) if row.eval_id}
    trials: list[tuple[SampleTrial, int | None, str | None]] = []
    size = 0
    for index, item in enumerate(map(_sample, samples[:MOST_SAMPLES])):
        size += len(item.prompt) + len(item.response)
        if size > MOST_SAMPLE_TEXT:
            break
        model = rows.get(item.eval_id)
        name = item.model if model is None else labels[model]  # called as in the tables
        trials.append((replace(item, model=plain(name)), model, None if model is None else f"trial-{index}"))
    return trials


def _data(value: Estimate | float | None) -> str:
    """A number with all its digits for the page's script, with its bounds if it has some; empty if undefined."""
    if isinstance(value, Estimate):
        parts = [value.value, value.lower, value.upper]
        return "" if math.isnan(value.value) else " ".join(_data(part) for part in parts)
    return "" if value is None or math.isnan(value) else f"{value:.10g}"


def _bounds(value: Estimate) -> str:
    """The ends of an interval, as `_data` has them."""
    return "" if math.isnan(value.lower) else f"{value.lower:.10g} {value.upper:.10g}"


def _sample(item: SampleTrial) -> SampleTrial:
    return replace(
        item,
        task=plain(item.task),
        status=plain(item.status),
        prompt=printable(item.prompt, MOST_TEXT),
        response=printable(item.response, MOST_TEXT),
        parsed=None if item.parsed is None else printable(item.parsed, MOST_TEXT // 8),
        reference=printable(item.reference, MOST_TEXT // 8),
        note=plain(item.note),
    )


def _interval(estimate: Estimate, digits: int = 0, *, share: bool = False) -> str:
    if math.isnan(estimate.lower):
        return ABSENT
    if share:
        return f"{100 * estimate.lower:.{digits}f}–{100 * estimate.upper:.{digits}f}%"
    return f"{number(estimate.lower, digits)}–{number(estimate.upper, digits)}"


def _code(text: str, names: Sequence[str]) -> Markup:
    """A sentence with what stands in backticks marked as code, all of it escaped; those of names are signs."""
    for name in names:
        text = text.replace(name, name.replace("`", "\0"))
    parts = text.split("`")
    parts = parts if len(parts) % 2 else ["`".join(parts)]  # one has no counterpart
    return Markup("").join(
        (Markup("<code>{}</code>") if index % 2 else Markup("{}")).format(part.replace("\0", "`"))
        for index, part in enumerate(parts)
    )


def _names_with_ticks(board: Leaderboard, labels: Sequence[str]) -> list[str]:
    """Names with backticks that sentences may quote, the longest first."""
    rows = [name for row in board.rows for name in (row.model_name, row.template, row.sampler)]
    names = {*labels, *map(plain, (*rows, *board.tasks, *board.tiers))}
    return sorted((name for name in names if "`" in name), key=len, reverse=True)


def _shade(share: float, truncated: float) -> int:
    """Index of the colour of a share in [0, 1]; what was cut off is never among the darkest."""
    if math.isnan(share):
        return 0
    return min(SHADES - 1 if truncated <= CUT_MARK else SHADES // 2, int(SHADES * share))
