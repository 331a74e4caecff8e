"""The verdict on a cube's evaluations as its report and the explorer show it, without anybody's asking for one."""

from __future__ import annotations

from evalcube.flows.errors import SweepError
from evalcube.flows.read.design import composite_settings
from evalcube.flows.read.reader import Reader
from evalcube.flows.read.verdict import cube_verdict
from evalcube.stages.analyze.render.verdicts import ShownVerdict, shown_verdict

MOST = 8
"""Evaluations up to which each is compared with the first, where no variant is declared to be in use."""


def shown_standing(reader: Reader) -> tuple[ShownVerdict | None, str]:
    """The verdict on all evaluations of a cube against the one in use, and why there is none.

    Returns
    -------
    tuple
        The verdict and an empty text; None and the reason in a sentence; None and nothing where outputs have no layers.
    """
    plan = reader.plan
    if not plan.layers:
        return None, ""
    control = composite_settings(reader.notes)[1]
    labels = [str(place) for place in range(len(plan.labels))]
    if control is None and len(labels) > MOST:
        return None, (
            f"There is no verdict: the config does not say which of the {len(labels)} variants is in use. Write "
            "composite: {control: NAME} there, or ask evalcube verdict."
        )
    try:
        place = 0 if control is None else reader.evaluation_index(control, "composite.control")
        others = [label for label in labels if label != str(place)]
        found = cube_verdict(reader.cube.url, str(place), others)
    except (
        SweepError
    ) as error:  # nothing is measured yet, or the variant in use is not in this part of a cube
        return None, f"There is no verdict: {error.message}."
    ids = {label: row.eval_id for label, row in zip(plan.labels, plan.evaluations, strict=True)}
    return shown_verdict(found.verdict, ids, declared=control is not None), ""
