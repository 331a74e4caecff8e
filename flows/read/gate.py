"""Decide by a policy whether a treatment may replace the control: GO, NO-GO or INCONCLUSIVE, line by line."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from evalcube import known_as
from evalcube.flows.config.views import EACH, LEVELS, Policy, PolicyRule, as_policy, doubts, refuse_unknown
from evalcube.flows.cube_like import CubeLike, need_addresses
from evalcube.flows.errors import SweepError
from evalcube.flows.read.design import composite_settings
from evalcube.flows.read.selection import Part
from evalcube.flows.read.sides import SideBySide, side_by_side
from evalcube.flows.state.records import read_notes
from evalcube.stages.analyze.formulas import margins
from evalcube.stages.analyze.formulas.compare.paired import holm
from evalcube.stages.analyze.labelled.axes import names
from evalcube.storage.cube.cube import Cube

if TYPE_CHECKING:
    from evalcube.stages.analyze.labelled.pairing import PairedDifference

Outcome = Literal["shown", "refuted", "open", "not measured"]
Decision = Literal["GO", "NO-GO", "INCONCLUSIVE"]
_HOPELESS = 1e4
"""Times as many questions as there are that nobody will ask."""
FUTILE = 0.15
"""Chance of being shown in the end, and of being refuted, below which a line is asked no further."""
EXIT_CODES: dict[Decision, int] = {"GO": 0, "NO-GO": 1, "INCONCLUSIVE": 3}


@dataclass(frozen=True)
class PolicyLine:
    """One line of a policy on one task and tier, or on several together."""

    role: str
    """critical, supporting or advisory."""
    task: str
    """Empty for all together."""
    tier: str
    """Empty for all points."""
    claim: str
    """noninferior, equivalent or superior."""
    margin: float
    """As a share of 1; of a relative margin, what it is here. NaN where nothing was compared."""
    questions: int = 0
    """That both answered."""
    lacking: int = 0
    """Questions that were put to both, or to the control alone at points of its own, and not answered by both."""
    control: float = math.nan
    """Share right of the control, of the questions that both answered."""
    treatment: float = math.nan
    change: float = math.nan
    """The treatment's share less the control's."""
    lower: float = math.nan
    """Of its interval, which is that of this line alone."""
    upper: float = math.nan
    lowest: float = math.nan
    """The lower bound if every question that is lacking had gone against the treatment; `lower` if none is."""
    highest: float = math.nan
    """The upper bound if every one had gone for it."""
    p_shown: float = math.nan
    """One-sided: that the claim does not hold; with the lacking questions at their worst."""
    p_refuted: float = math.nan
    """One-sided: that it does hold, with these at their best; adjusted by Holm over the lines of this role."""
    e: float = math.nan
    """What speaks against the change being the margin itself, however often one looks: 20 is 5%."""
    more: int | None = None
    """Further questions with which an open line is expected to be shown; None where no number would do."""
    assumed: float = math.nan
    """The true change at which that is so with power .8."""
    worth: float = math.nan
    """Independent questions that the change is worth, as in `evalcube.stages.analyze.labelled.pairing`."""
    level: float = 1.0 - 2.0 * margins.LEVEL
    """Of the interval. At a planned look more than 95%, so that those of all looks hold together with 95%."""
    look: int = 0
    """Of how many planned ones this is; 0 where all there is was looked at once."""
    looks: int = 0
    chance: float = math.nan
    """At a planned look before the last: of being shown at the last one if nothing changed in truth; of a gain, if the
    change is the one observed."""
    chance_refuted: float = math.nan
    """Of being refuted there, if the change is the one observed."""
    outcome: Outcome = "not measured"


@known_as("evalcube.results")
@dataclass(frozen=True)
class GateResult:
    """The decision of a policy on a treatment."""

    decision: Decision
    reason: str
    control: str
    treatment: str
    cubes: tuple[str, ...]
    selection: str
    lines: tuple[PolicyLine, ...]
    """Critical ones first."""
    warnings: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 for GO, 1 for NO-GO, 3 for INCONCLUSIVE."""
        return EXIT_CODES[self.decision]

    def to_dict(self) -> dict[str, Any]:
        """The decision as JSON values."""
        return {"schema": "evalcube.gate", "schema_version": 1, **asdict(self), "confidence": 0.95}


def gate(
    policy: Policy | Mapping[str, Any] | str | Path,
    cubes: CubeLike,
    control: str | None = None,
    treatment: str | None = None,
    part: Part | None = None,
) -> GateResult:
    """Decide by a policy whether a treatment may replace the control.

    Truncated answers count as wrong. Missing answers are taken at their worst when a line is to be shown, and
    at their best when it is to be refuted.

    Parameters
    ----------
    policy
        What has to be shown: the path of a YAML file with a section ``policy``, that section as a mapping, or an
        `evalcube.config.Policy`.
    cubes
        A cube with both variants, or a list of the control's cube and the treatment's.
    control, treatment
        The two variants, by label, model name or number (from 0). Both may be left out if the cube has just two
        evaluations, or each of two cubes one.
    part
        Which part of the cubes to read; default: all.

    Returns
    -------
    GateResult
        The decision, GO, NO-GO or INCONCLUSIVE, and the lines of the policy that it rests on.

    Raises
    ------
    ConfigError
        If the policy has problems.
    StorageError
        If there is no cube, or it cannot be read.
    SweepError
        If the two variants are not named clearly, a name is unknown, or the part is wrong.

    Examples
    --------
    >>> import evalcube as ec
    >>> ec.gate({"critical": [{"noninferior": 5}]}, "results/sweep.zarr", "small", "large").decision
    'GO'
    """
    addresses = need_addresses(cubes, "cubes")
    return gate_of(as_policy(policy), addresses, given_names(addresses, control, treatment), part)


def given_names(
    cubes: Sequence[str | Path], control: str | None, treatment: str | None, others: Sequence[str] = ()
) -> list[str]:
    """Return the given names: the control's is first and the treatment's last."""
    models = [str(name) for name in (control, *others, treatment) if name is not None]
    if len(cubes) == 2 and len(models) == 1 and not others:
        raise SweepError(
            f"`control`, `treatment`: one alone, '{models[0]}', would be looked for in both cubes",
            "Name both, or neither where each cube has one evaluation",
        )
    return models


def gate_of(
    policy: Policy, cubes: Sequence[str | Path], models: Sequence[str] = (), part: Part | None = None
) -> GateResult:
    """The decision about two models, named as for `evalcube.flows.read.sides.side_by_side`."""
    opened = [Cube.open(cube) for cube in cubes]
    labels = ([text for cube in opened for text in cube.whole_label(axis)] for axis in ("task", "tier"))
    refuse_unknown(policy, *labels)
    sides = side_by_side(cubes, models, part)
    sides.refuse_altered()
    return conclude(
        sides,
        [line for role in LEVELS for line in judge(sides, policy, role)],
        [*doubts(policy), *note_if_swapped(sides)],
    )


def conclude(sides: SideBySide, lines: Sequence[PolicyLine], doubted: Sequence[str] = ()) -> GateResult:
    """The decision that follows from the lines, with all that is to be known of it."""
    names = sides.first.label, sides.second.label
    cubes = tuple(dict.fromkeys((sides.first.address, sides.second.address)))
    asked = np.asarray(sides.planned.any(axis=-1))
    apart = (asked[0] != asked[1])[asked.any(axis=-1).all(axis=0)].sum()
    left_out = f"{apart:,} questions that only one of the two was asked are left out."
    warnings = (*sides.warnings, *doubted, *[left_out] * bool(apart))
    return GateResult(*decide(lines), *names, cubes, sides.selection, tuple(lines), warnings)


def note_if_swapped(sides: SideBySide) -> Iterator[str]:
    """A sentence if the treatment is what the config of the cube declares as the control."""
    address, label = sides.second.address, sides.second.label
    declared = composite_settings(read_notes(Cube.open(address).records))[1]
    if sides.first.address == address and declared == label:
        yield f"The treatment, '{label}', is the control that the sweep's config declares: are the two swapped?"


def decide(lines: Sequence[PolicyLine]) -> tuple[Decision, str]:
    """What follows from the lines, and why.

    All critical ones must be shown, so that each may be tested at the full level: the chance of a false GO is that of
    one line. One refuted line is enough for NO-GO, so that there the lines of a role share the level.
    """
    there = {role: [line.outcome for line in lines if line.role == role] for role in LEVELS}
    if "refuted" in there["critical"]:
        return "NO-GO", "a critical line is refuted"
    if not there["critical"] or set(there["critical"]) != {"shown"}:
        return "INCONCLUSIVE", "not every critical line is shown, and none is refuted"
    if "refuted" in there["supporting"]:
        return "INCONCLUSIVE", "a supporting line is refuted: a person has to decide"
    if "not measured" in there["supporting"]:
        return "INCONCLUSIVE", "a supporting line was not measured: a person has to decide"
    supported = ", and no supporting line is refuted" if there["supporting"] else ""
    return "GO", f"every critical line is shown{supported}"


def judge(sides: SideBySide, policy: Policy, role: str) -> list[PolicyLine]:
    """The lines of a role, with their outcomes."""
    lines = [
        measure(sides, rule, PolicyLine(role, task, tier, rule.claim, math.nan), cells)
        for rule, task, tier, cells in places(sides, policy, role)
    ]
    adjusted = holm([line.p_refuted for line in lines]).tolist() if lines else []
    return [settle(replace(line, p_refuted=p)) for line, p in zip(lines, adjusted, strict=True)]


def places(
    sides: SideBySide, policy: Policy, role: str
) -> Iterator[tuple[PolicyRule, str, str, npt.NDArray[np.bool_]]]:
    """Rule, task, tier and points, shape (task, params), of each line of a role."""
    tasks, tiers = sides.tasks, names(sides.dataset, "tier")
    for rule in getattr(policy, role):
        pairs = list(product(_chosen(rule.tasks, tasks), _chosen(rule.tiers, tiers)))
        if EACH in (rule.tasks, rule.tiers):
            # `each` means the pairs that there are: not every task has every tier.
            # A name that no pair has is not passed over.
            there = [pair for pair in pairs if _cells(sides, *pair).any()]
            named = [side for side, wanted in enumerate((rule.tasks, rule.tiers)) if wanted != EACH]
            met = {pair[side] for pair in there for side in named}
            pairs = there + [pair for pair in pairs if named and pair[named[0]] not in met] or [("", "")]
        for task, tier in pairs:
            yield rule, task, tier, _cells(sides, task, tier)


def _chosen(wanted: tuple[str, ...] | str | None, known: Sequence[str]) -> Sequence[str]:
    """Names, each to be taken by itself; an empty one is all together."""
    if wanted is None:
        return ("",)
    return known if isinstance(wanted, str) else wanted


def _cells(sides: SideBySide, task: str, tier: str) -> npt.NDArray[np.bool_]:
    """Points of a task in a tier, shape (task, params)."""
    dataset = sides.dataset
    counts = np.array([len(points) for points in sides.points])
    cells = np.arange(dataset.sizes["params"]) < counts[:, np.newaxis]
    if task:
        cells &= (np.array(sides.tasks) == task)[:, np.newaxis]
    if tier:
        inside = [name == tier for name in names(dataset, "tier")]
        cells &= dataset["in_tier"].values[inside].any(axis=0)
    return cells


def measure(
    sides: SideBySide, rule: PolicyRule, line: PolicyLine, cells: npt.NDArray[np.bool_]
) -> PolicyLine:
    """A line with what was measured of it."""
    here = sides.cut(cells)
    lost, both = here.lacking(), here.both().any(axis=-1)
    line = replace(line, lacking=int((lost.any(axis=-1) & ~both).sum()))

    def borders(pair: PairedDifference) -> list[float]:
        """Those of the claim, as differences of control − treatment."""
        ends = margins.borders(rule.claim, min(rule.margin(pair.first_rate), 1.0))
        return [-end for end in ends if math.isfinite(end)]

    pair = here.compare(lost=lost, borders=borders)
    if pair is None:
        return line
    total, (worst, best) = pair.overall, pair.ends or (pair.overall, pair.overall)
    margin = min(rule.margin(total.first_rate), 1.0)
    seen = [(-paired.difference.value, paired.worth) for paired in (total, worst, best)]
    low, high = margins.claim_scores(seen, rule.claim, margin)
    more, assumed = _more(total, rule.claim, margin)
    return replace(
        line,
        margin=margin,
        questions=total.questions,
        control=total.first_rate,
        treatment=total.second_rate,
        change=-total.difference.value,
        lower=-total.difference.upper,
        upper=-total.difference.lower,
        lowest=-best.difference.upper,
        highest=-worst.difference.lower,
        p_shown=margins.tail(low),
        p_refuted=margins.tail(-high),
        e=total.e,
        more=more,
        assumed=assumed,
        worth=total.worth,
    )


def _more(total: PairedDifference, claim: str, margin: float) -> tuple[int | None, float]:
    """Further questions until the claim is expected to be shown, and the change that is assumed for it.

    Of none, if that is inside the borders; where there should be enough questions for that, of the one observed.
    """
    for assumed in (0.0, -total.difference.value):
        ratio = margins.enough_worth(assumed, claim, margin) / total.worth
        if 1.0 < ratio < _HOPELESS:
            return math.ceil(total.questions * (ratio - 1.0)), assumed
    return None, math.nan


def settle(line: PolicyLine, shown: float = margins.LEVEL, refuted: float = margins.LEVEL) -> PolicyLine:
    """The line with what its p values say at these levels, if it was measured."""
    if not line.questions:
        return replace(line, outcome="not measured")
    held, broken = line.p_shown <= shown, line.p_refuted <= refuted
    return replace(line, outcome="shown" if held else "refuted" if broken else "open")
