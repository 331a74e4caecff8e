"""How often `plan --detect` and `gate` are right: simulated pairs with repeats, clusters and lost answers.

    python -m benchmarks.gate_operating detect [SIMULATIONS]
    python -m benchmarks.gate_operating gate [SIMULATIONS]

Both models answer a question with chances that vary over questions, and that questions of a cluster have in part in
common. Outcomes are compared as a cube's are.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr
from scipy.special import ndtr

from evalcube.flows.config.views import Policy
from evalcube.flows.read.gate import judge
from evalcube.flows.read.sides import Side, SideBySide, SidePoint
from evalcube.flows.run.gate import LOOKS, progress
from evalcube.stages.analyze.formulas.detect import Spread, enough_questions
from evalcube.stages.analyze.labelled import pairing
from evalcube.stages.analyze.labelled.pairing import PairedDifference
from evalcube.stages.reply.status import Status


@dataclass(frozen=True)
class Design:
    """Two models on questions: latent normal ability, of which a part is the question's, a part the cluster's."""

    name: str
    rate: float = 0.7
    change: float = 0.0
    """Treatment − control."""
    easy: float = 1.5
    """Standard deviation over questions of what both find hard, beside 1 for each single answer."""
    own: float = 0.5
    """Of what only one of them does."""
    together: float = 0.0
    """Share of that variance that a cluster has in common."""
    cluster: int = 1
    repeats: int = 1
    lost: float = 0.0
    """Share of answers that are lost, in the treatment."""

    def draw(self, rng: np.random.Generator, questions: int) -> np.ndarray:
        """Whether answers are right: (model, question, repeat)."""
        place = np.arange(questions) // self.cluster
        common = self._mixed(rng, place) * self.easy
        scale = math.sqrt(1 + self.easy**2 + self.own**2)
        rates = (self.rate, self.rate + self.change)
        found = []
        for rate in rates:
            chance = ndtr(_quantile(rate) * scale + common + self.own * self._mixed(rng, place))
            found.append(rng.random((questions, self.repeats)) < chance[:, None])
        return np.array(found)

    def _mixed(self, rng: np.random.Generator, place: np.ndarray) -> np.ndarray:
        shared = rng.normal(size=place.max() + 1)[place]
        return math.sqrt(self.together) * shared + math.sqrt(1 - self.together) * rng.normal(size=len(place))

    def spread(self) -> Spread:
        """What the difference varies by, from very many questions."""
        rng = np.random.default_rng(5)
        number = 400_000 - 400_000 % self.cluster
        place = np.arange(number) // self.cluster
        common = self._mixed(rng, place) * self.easy
        scale = math.sqrt(1 + self.easy**2 + self.own**2)
        chances = [
            ndtr(_quantile(rate) * scale + common + self.own * self._mixed(rng, place))
            for rate in (self.rate, self.rate + self.change)
        ]
        apart = chances[1] - chances[0]
        apart -= apart.mean()
        within = float(sum((one * (1 - one)).mean() for one in chances))
        shared = 0.0
        if self.cluster > 1:
            sums = apart.reshape(-1, self.cluster).sum(axis=1)
            shared = float(((sums**2).sum() - (apart**2).sum()) / (number * (self.cluster - 1)))
        return Spread(float(apart.var()), within, max(shared, 0.0), self.cluster, self.cluster)

    def dataset(self, right: np.ndarray, lost: np.ndarray | None = None) -> xr.Dataset:
        """As `compare` takes it, the control first."""
        status = np.where(right, int(Status.CORRECT), int(Status.INCORRECT)).astype(np.uint8)
        if lost is not None:
            status[1][lost] = int(Status.MISSING)
        dims = ("model", "task", "params", "trial", "repeat")
        found = xr.Dataset(
            {"status": (dims, status[:, None, None])}, {"model_name": ("model", ["a", "b"]), "task": ["t"]}
        )
        if self.cluster > 1:
            groups = np.arange(right.shape[1]) // self.cluster + 1
            found["cluster"] = (dims, np.broadcast_to(groups[:, None], status[:, None, None].shape).copy())
        return found


def _quantile(rate: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(rate))


def compared(dataset: xr.Dataset) -> PairedDifference:
    """Control less treatment."""
    return pairing.compare_evaluations(dataset, [0, 1])[0].overall


def detect(simulations: int) -> None:
    """Print the power that `enough_questions` promises and the one that is there."""
    print("| design | difference | questions | power | s.e. |\n|---|---|---|---|---|")
    for design in (
        Design("one answer", change=0.05),
        Design("one answer", change=0.02),
        Design("easy: 93 and 96 % right", rate=0.93, change=0.03),
        Design("4 repeats", change=0.05, repeats=4),
        Design("4 repeats, models alike", change=0.03, repeats=4, own=0.1),
        Design("clusters of 8", change=0.08, cluster=8, together=0.6, own=1.0),
        Design("clusters of 20, few of them", change=0.12, cluster=20, together=0.5, own=1.0),
        Design("clusters of 5, 3 repeats", change=0.05, cluster=5, together=0.7, own=0.8, repeats=3),
    ):
        spread = design.spread()
        number = int(enough_questions(design.change, spread, design.repeats))
        number += -number % design.cluster
        rng = np.random.default_rng(7)
        hits = sum(compared(design.dataset(design.draw(rng, number))).p < 0.05 for _ in range(simulations))
        power = hits / simulations
        error = math.sqrt(power * (1 - power) / simulations)
        print(
            f"| {design.name} | {100 * design.change:.0f} | {number:,} | {power:.3f} | {error:.3f} |",
            flush=True,
        )


def sides_of(dataset: xr.Dataset) -> SideBySide:
    """The two as a gate takes them, with one point."""
    full = dataset.assign_coords(tier=["all"], in_tier=(("tier", "task", "params"), np.ones((1, 1, 1), bool)))
    both = [Side("cube.zarr", name, name, full) for name in ("a", "b")]
    planned = np.ones(full["status"].shape, bool)
    full["planned_trials"] = (("model", "task", "params"), planned[..., 0].sum(axis=-1))
    return SideBySide(*both, "", (), ((SidePoint("t", "p", "{}"),),), full, planned)


def decided(
    design: Design, rng: np.random.Generator, questions: int, policy: Policy
) -> tuple[str, float, str]:
    """Outcome at the looks, the share of the questions that were asked, and the outcome of all of them at once."""
    right = design.draw(rng, questions)
    lost = rng.random(right[1].shape) < design.lost
    sides = sides_of(design.dataset(right, lost if design.lost else None))
    if design.lost:  # asked, and not answered
        status = sides.dataset["status"]
        failed = status.where(status != int(Status.MISSING), int(Status.TRANSPORT)).astype(np.uint8)
        sides = replace(sides, dataset=sides.dataset.assign(status=failed))
    (one,) = progress(sides, policy, questions, {("t", "p"): questions})
    (fixed,) = judge(sides, policy, "critical")
    return one.line.outcome, LOOKS[one.line.look - 1], fixed.outcome


def gates(simulations: int) -> None:
    """Print how often a gate at planned looks errs and decides, beside one look at all questions: looks / one look.

    At the margin a line is false, and refuting it is false, too.
    """
    print(
        "| design | margin | questions | at it: GO | NO-GO | no change: GO | asked | twice it: NO-GO | asked |"
    )
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for margin, design in (
        (0.03, Design("one answer")),
        (0.02, Design("one answer, 95 % right", rate=0.95)),
        (0.05, Design("4 repeats", repeats=4)),
        (0.06, Design("clusters of 8", cluster=8, together=0.6, own=0.8)),
        (0.05, Design("clusters of 5, 3 repeats", cluster=5, together=0.6, own=0.8, repeats=3)),
        (0.05, Design("1 % lost", lost=0.01)),
        (0.05, Design("clusters of 5, 2 repeats, 1 % lost", cluster=5, together=0.6, repeats=2, lost=0.01)),
    ):
        policy = Policy.model_validate({"critical": [{"noninferior": 100 * margin}]})
        number = int(enough_questions(margin, design.spread(), design.repeats))
        number += -number % design.cluster
        rng = np.random.default_rng(11)
        cells = [design.name, f"{100 * margin:.0f}", f"{number:,}"]
        for times, outcomes in ((1, ("shown", "refuted")), (0, ("shown",)), (2, ("refuted",))):
            changed = replace(design, change=-times * margin)
            found = [decided(changed, rng, number, policy) for _ in range(simulations)]
            for outcome in outcomes:
                looks, once = (100 * np.mean([one[place] == outcome for one in found]) for place in (0, 2))
                cells.append(f"{looks:.1f} / {once:.1f} %")
            if times != 1:
                cells.append(f"{100 * np.mean([share for _, share, _ in found]):.0f} %")
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    simulations = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    {"detect": detect, "gate": gates}[sys.argv[1]](simulations)
