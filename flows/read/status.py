"""How far a sweep is, from the records beside its cube."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from evalcube.flows.cube_like import OneCube, need_address
from evalcube.flows.plan.evaluations import Evaluation, labels_of
from evalcube.flows.plan.spec import parse_spec
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.state.beside_config import KEY, noted_unnamed
from evalcube.flows.state.engines import origins_of, read_engines
from evalcube.flows.state.records import read_driver, read_live, read_notes, read_spent
from evalcube.flows.state.shared_arrays import refuse_unrecorded
from evalcube.stages.infer.apis import APIS, EFFORT
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.holder import apparent_holder
from evalcube.storage.cube.ledger import Ledger, Receipt, graders_of

_CAUSE = re.compile(r"http (?P<status>\d{3}): (?:(?P<name>\w+)(?:, |$))?(?:(?P<wanted>\w+) wanted)?")
_STREAM = frozenset({"stream", "stream_options"})
_PLAIN = re.compile(r"[A-Za-z_][\w./-]*")
_USUAL_LIMIT = 4096
"""Tokens, where a limit is wanted and none was given."""


def refusal_lines(evaluations: Iterable[Evaluation], causes: Mapping[int, Iterable[str]]) -> list[str]:
    """Return a line for each evaluation whose parameters its endpoint does not take, with what to write instead."""
    planned = list(evaluations)
    lines = []
    for number, named in causes.items():
        row = planned[number]
        for match in filter(None, map(_CAUSE.fullmatch, named)):
            name, wanted = match["name"] or "", match["wanted"] or ""
            refusal = f"refuses `{name}`" if name else f"wants `{wanted}`"
            advice = _advice(planned, row, name, wanted)
            lines.append(f"{row.model}: its endpoint {refusal} (http {match['status']}). {advice}")
    return list(dict.fromkeys(lines))


def _advice(planned: list[Evaluation], evaluation: Evaluation, name: str, wanted: str) -> str:
    if name in _STREAM:
        return f"Write `stream: false` at the model {evaluation.model}."
    if name in APIS[evaluation.api].required and not wanted:
        return f"Write another value of `{name}` under samplers, {evaluation.sampler.name}."
    before = dict(evaluation.sampler.params)
    if EFFORT in before and name == APIS[evaluation.api].effort.partition(".")[0]:
        name = EFFORT  # as the config has it
    after = {key: value for key, value in before.items() if key != name}
    after |= {wanted: before.get(name, _USUAL_LIMIT)} if wanted else {}
    if not any(e.sampler.name == evaluation.sampler.name and e.model != evaluation.model for e in planned):
        return f"Write `samplers: {{{_yaml_name(evaluation.sampler.name)}: {flow(after)}}}`."
    # The others keep theirs: with other parameters all that they have answered would be asked again.
    new = _yaml_name(f"{evaluation.sampler.name}-{evaluation.model}")
    return f"Add `samplers: {{{new}: {flow(after)}}}`, and name it under `evaluations` for {evaluation.model} alone."


def flow(params: Mapping[str, Any]) -> str:
    """Parameters as a config has them."""
    return "{" + ", ".join(f"{_yaml_name(name)}: {json.dumps(value)}" for name, value in params.items()) + "}"


def _yaml_name(name: str) -> str:
    """A name as YAML has it."""
    return name if _PLAIN.fullmatch(name) else json.dumps(name)


def cube_status(cube: OneCube) -> dict[str, Any]:
    """Return the progress of a sweep, as JSON values.

    Only recorded trials count; ``live`` has the numbers that a running sweep reported a moment ago.

    Parameters
    ----------
    cube
        A cube: its address, or the result of a function that made it.

    Returns
    -------
    dict
        JSON values: totals, ``damaged`` regions, ``damaged_lines`` of the ledger, ``models`` with their counts,
        causes and what answered, ``running``, ``live``, ``refused`` (what to write in the config where an endpoint
        does not take a parameter), ``spent``, ``driver`` (of a sweep that was submitted to a Dask cluster: where it
        is, and its last lines), ``unnamed`` (what the config of the last run does not name), ``notes``.

    Raises
    ------
    StorageError
        If there is no cube, or its ledger is gone.
    SweepError
        If it is not a sweep's, or its description is damaged.

    Examples
    --------
    >>> import evalcube as ec
    >>> ec.status("results/sweep.zarr")["complete"]
    True
    """
    cube = need_address(cube)
    opened = Cube.open(cube)
    notes = read_notes(opened.records)
    # Not the whole plan: what its tasks are takes a while, and may be installed elsewhere only.
    evaluations = parse_spec(opened.attrs.get("spec"), opened.sizes).evaluations
    labels = labels_of(evaluations)
    ledger = Ledger(opened.records)
    receipts, holder = ledger.newest(), apparent_holder(opened.records)
    running = holder and f"running as process {holder.process.pid} on {holder.process.host}"
    # A store gets the first receipts of a run a moment after the counters.
    if not (running and opened.is_object_store):
        refuse_unrecorded(opened, receipts)
    # Nothing that is recorded is taken for done if it is not there; what is in it is the business of others.
    damaged = {
        region
        for region, receipt in receipts.items()
        if opened.apparent_problems(region, opened.shape_of(receipt))
    }
    counts = SampleTargets(*opened.read_targets()).counts
    regions = math.prod(-(-opened.sizes[dim] // opened.chunks[dim]) for dim in ("trial", "repeat"))
    named = [(label, row.eval_id) for label, row in zip(labels, evaluations, strict=True)]
    whole = [receipt for region, receipt in receipts.items() if region not in damaged]
    origins = origins_of(named, read_engines(opened.records), receipts.values())
    models = [
        {
            "model": label,
            **_progress(counts[i], regions, [entry for entry in whole if entry.region.model == i]),
            "engines": [info._asdict() for info in origins[i].engines],
            "fingerprints": dict(origins[i].fingerprints),
            "answered_by": str(origins[i]),
            "warning": origins[i].warning,
        }
        for i, label in enumerate(labels)
    ]
    refused = refusal_lines(evaluations, {i: list(model["causes"]) for i, model in enumerate(models)})
    total = sum(counts)
    done = sum(int(str(model["done"])) for model in models)
    unnamed = noted_unnamed(notes)
    spent = read_spent(opened.records)
    return {
        "cube": str(cube),
        "sizes": opened.sizes,
        "trials": total,
        "done": done,
        # Before its first request a sweep has no plan: a run that failed until then left nothing to be done with.
        "complete": done == total and bool(total or receipts),
        "damaged": len(damaged),
        "damaged_lines": ledger.damaged,
        "graders": list(graders_of(receipts.values())),
        "models": models,
        "refused": refused,
        "running": running,
        "live": read_live(opened.records) if running else None,
        "spent": None if spent is None else asdict(spent),
        "unnamed": None if unnamed is None else unnamed.to_dict(),
        "driver": read_driver(opened.records),
        "notes": {name: value for name, value in notes.items() if name not in ("config", "files", KEY)},
    }


def _progress(trials: int, regions: int, receipts: Sequence[Receipt]) -> dict[str, Any]:
    """How far one evaluation is, by the receipts of its whole regions."""
    finished = sum(receipt.finished for receipt in receipts)
    transport = sum(receipt.transport for receipt in receipts)
    causes = Counter[str]()
    for receipt in receipts:
        causes.update(receipt.causes)
    return {
        "trials": trials,
        "done": finished,
        "transport": transport,
        "missing": trials - finished - transport,
        "regions": regions,
        "regions_complete": sum(receipt.complete for receipt in receipts),
        "causes": dict(causes) if transport else {},
    }
