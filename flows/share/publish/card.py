"""The data card of a publication: what was measured and how, by whom, with what result, and how to open it."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence

from evalcube.flows.plan.plan import Plan
from evalcube.flows.read.merged.joined import Joined
from evalcube.flows.read.selection import OpenPart
from evalcube.flows.read.statistics import leaderboard_of
from evalcube.flows.share.publish.record import Publication
from evalcube.flows.state.engines import Engines, origins_of
from evalcube.stages.analyze.render.board_spec import leaderboard_spec
from evalcube.stages.analyze.render.table import markdown_text
from evalcube.stages.analyze.render.text import cell_markdown, code, sentence
from evalcube.storage.cube.ledger import Receipt, graders_of
from evalcube.storage.urls import is_directory, is_zip

_MOST_POINTS = 12
_MOST_SAMPLERS = 20
_MOST_MODELS = 50
_INTRODUCTION = (
    "Results of language models on parametric reasoning tasks: a Zarr cube of single trials, which "
    "[xarray](https://xarray.dev) opens without any other program."
)


def data_card(
    facts: Publication,
    part: Joined,
    receipts: Sequence[Receipt],
    opened: OpenPart,
    address: str,
    sources: Sequence[str],
    engines: Engines,
) -> str:
    """The card, in Markdown, whose head is that of data cards on model hubs.

    Parameters
    ----------
    facts
        What is published.
    part
        What was copied.
    receipts
        Of the copy.
    opened
        The same part of the source, for the results.
    address
        Where others find it.
    sources
        Of a merged cube, a line each.
    engines
        What served the evaluations, as far as it is known.
    """
    name = facts.name or "evalcube sweep"
    sections = [
        _head(name, facts.licence),
        f"# {sentence(name)}" + (f", {sentence(facts.tag)}" if facts.tag else ""),
        _INTRODUCTION,
        "## What was measured\n\n" + _what(part, receipts),
        "## How it was measured\n\n" + _how(part.plan, receipts, engines),
        "## By whom\n\n" + _whom(facts, sources),
        "## Results\n\n" + _results(opened),
        "## How to open it\n\n" + _opening(facts, address),
        "## Licence\n\n"
        + (sentence(facts.licence) if facts.licence else "None was given: ask whoever published it."),
    ]
    return "\n\n".join(sections) + "\n"


def _head(name: str, licence: str) -> str:
    tags = json.dumps(["evaluation", "reasoning", "zarr", "evalcube"])
    fields = {"pretty_name": name, **({"license": licence} if licence else {})}
    lines = [f"{key}: {json.dumps(value)}" for key, value in fields.items()]
    return "\n".join(["---", *lines, f"tags: {tags}", "---"])


def _what(part: Joined, receipts: Sequence[Receipt]) -> str:
    plan = part.plan
    finished = sum(one.finished for one in receipts)
    planned, transport = sum(part.targets.counts), sum(one.transport for one in receipts)
    text = (
        f"{len(plan.evaluations)} evaluations on {plan.cells} points of {len(plan.tasks)} tasks: {finished:,} finished "
        f"trials of {planned:,} planned ones."
    )
    if transport:
        text += f" {transport:,} requests got no reply; these are no trials."
    rows = ["| task | generator | points | tiers |", "|---|---|---|---|"]
    for task in plan.tasks:
        tiers = ", ".join(dict.fromkeys(tier for cell in task.cells for tier in cell.tiers)) or "none"
        params = [
            ", ".join(f"{name}={value}" for name, value in cell.cell.plain_params.items())
            for cell in task.cells[:_MOST_POINTS]
        ]
        more = [f"and {len(task.cells) - _MOST_POINTS} more"] if len(task.cells) > _MOST_POINTS else []
        generator = f"{task.task.name} version {task.task.version}"
        rows.append(
            f"| {cell_markdown(task.label)} | {cell_markdown(generator)} "
            f"| {'<br>'.join(map(cell_markdown, params + more))} | {cell_markdown(tiers)} |"
        )
    return text + "\n\n" + "\n".join(rows)


def _how(plan: Plan, receipts: Sequence[Receipt], engines: Engines) -> str:
    rows = plan.evaluations
    templates = sorted({row.template.name for row in rows})
    samplers = {row.sampler.name: row.sampler.params for row in rows}
    listed = [
        f"  - {sentence(name)}: `{json.dumps(params, sort_keys=True).replace('`', '')}`"
        for name, params in sorted(samplers.items())[:_MOST_SAMPLERS]
    ]
    models = [
        f"  - {sentence(row.label)}: asked as {sentence(row.request_model)}"
        + (f", {sentence(row.revision)}" if row.revision else "")
        for row in rows[:_MOST_MODELS]
    ]
    if len(rows) > _MOST_MODELS:
        models.append(f"  - and {len(rows) - _MOST_MODELS} more")
    lines = [
        "- evaluations, each a model with a template and a sampler:",
        *models,
        f"- up to {plan.trials:,} questions of each point, each asked "
        + ("once" if plan.repeats == 1 else f"up to {plan.repeats} times"),
        f"- seed {plan.seed}: with it and the task's version, any question can be made again",
        f"- prompt templates: {', '.join(map(sentence, templates))}; their texts are in the attribute `spec`",
        "- samplers:",
        *listed,
        f"- version of the grader: {', '.join(map(sentence, graders_of(receipts))) or 'none'}",
    ]
    if plan.judges:
        lines.append(f"- judges: {', '.join(sentence(judge.name) for judge in plan.judges)}")
    named = [(row.label, row.eval_id) for row in rows]
    origins = [one for one in origins_of(named, engines, receipts) if str(one)]
    if origins:
        lines.append("- what answered, as servers and replies said:")
        lines += [f"  - {sentence(one.label)}: {sentence(str(one))}" for one in origins[:_MOST_MODELS]]
    times = [one.at for one in receipts]
    if times:
        first, last = (_date(time) for time in (min(times), max(times)))
        lines.append(f"- measured on {first}" if first == last else f"- measured from {first} to {last}")
    return "\n".join(lines)


def _whom(facts: Publication, sources: Sequence[str]) -> str:
    lines = [
        f"Published on {_date(facts.time)}"
        + (f" by {sentence(facts.by)}" if facts.by else "")
        + f" with evalcube {facts.evalcube}."
    ]
    if facts.grown_from:
        lines.append(f"Grown from the publication {code(facts.grown_from, cell=False)}.")
    lines += [f"- {sentence(source)}" for source in sources]
    return "\n".join(lines)


def _results(opened: OpenPart) -> str:
    table = markdown_text(leaderboard_spec(leaderboard_of(opened)))
    warnings = "".join(f"\n\n{sentence(text)}" for text in opened.warnings)
    return f"{table}{warnings}"


def _opening(facts: Publication, address: str) -> str:
    count = sum(one.entries for one in facts.replies)
    replies = (
        f" {count:,} replies of the models are packed beside it; `pull` puts them at hand." if count else ""
    )
    pulled = address if not facts.tag or is_zip(address) else address.rpartition("/")[0]
    tag = "" if not facts.tag or is_zip(address) else f" --tag {facts.tag}"
    return (
        f"```python\n{_code(address)}\n```\n\n"
        "Or with evalcube, which compares every object with its digest, and makes a copy that can be measured further:"
        f"\n\n```sh\nevalcube leaderboard {address}\nevalcube pull {pulled} copy.zarr{tag}\n```\n\n"
        f"`_evalcube/published.json` has size and SHA-256 of every object.{replies}"
    )


def _code(address: str) -> str:
    """Five lines that print how often each model was right."""
    if not is_directory(address):
        opening = [
            "import xarray as xr, zarr.storage, obstore.store",
            f'store = zarr.storage.ObjectStore(obstore.store.from_url("{address}"), read_only=True)',
            "cube = xr.open_zarr(store)",
        ]
    elif is_zip(address):
        opening = [
            "import xarray as xr, zarr.storage",
            f'store = zarr.storage.ZipStore("{address}", mode="r")',
            "cube = xr.open_zarr(store)",
        ]
    else:
        opening = ["import xarray as xr", f'cube = xr.open_zarr("{address}")']
    return "\n".join(
        [
            *opening,
            'right = (cube.status == 1).where(cube.status < 5).mean(["task", "params", "trial", "repeat"])',
            "print(dict(zip(cube.model_name.values, right.values)))",
        ]
    )


def _date(time: int) -> str:
    return datetime.datetime.fromtimestamp(time, tz=datetime.UTC).date().isoformat()
