"""What a worker proves before it takes part in a run: that it reaches cube and cache, and has the keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evalcube import EvalcubeError
from evalcube.flows.config.models import Model
from evalcube.flows.plan.plan import Plan
from evalcube.flows.run.reach import cut_off
from evalcube.stages.infer.endpoint import Endpoint, InferenceError
from evalcube.stages.infer.keys import check_source
from evalcube.storage.reach import Token


@dataclass(frozen=True)
class Proof:
    """What workers have to prove."""

    tokens: tuple[Token, ...] = ()
    """What they find in the places that all see."""
    keyed: tuple[Endpoint, ...] = ()
    """Endpoints whose keys they need."""
    reached: tuple[Endpoint, ...] = ()
    """Endpoints that they connect to, where some of them may and others may not."""

    def lacking(self, who: str) -> str:
        """Runs on a worker: why it cannot take part; empty if it can.

        Parameters
        ----------
        who
            Unique name of its process.
        """
        for token in self.tokens:
            if problem := token.answer(who):
                return problem
        return missing_key(self.keyed)

    def cut_off(self) -> dict[str, str]:
        """Runs on a worker: addresses of endpoints that it cannot connect to, and why."""
        return cut_off(self.reached)


def unmade(plan: Plan) -> str:
    """Why this process cannot make a plan's questions from its data files; empty if it can: one of each is made.

    Parameters
    ----------
    plan
        The sweep's plan.
    """
    tried = set()
    for task in plan.tasks:
        for planned in task.cells:
            file = planned.cell.plain_params.get("file")
            if file is None or file in tried:
                continue
            tried.add(file)
            try:
                planned.cell.trial(0)
            except EvalcubeError as error:
                return str(error)
            except OSError as error:
                return f"cannot read {file}: {error}"
    return ""


def missing_key(endpoints: Sequence[Endpoint]) -> str:
    """Why a key is missing in this process; empty if none is known to be.

    Parameters
    ----------
    endpoints
        Their settings say where the keys are.
    """
    try:
        for endpoint in endpoints:
            check_source(endpoint)
    except InferenceError as error:
        return str(error)
    return ""


def keyed(model: Model, base_url: str = "") -> Endpoint:
    """An endpoint with the name and the key of a model, and whose certificates it trusts; nothing else.

    Parameters
    ----------
    model
        A model of the config.
    base_url
        Its address; not needed to look for its key.
    """
    return Endpoint(
        name=model.name,
        base_url=base_url,
        key_env=model.key_env,
        key_file=None if model.key_file is None else _place(model.key_file),
        key_command=model.key_command,
        ca_file=None if model.ca_file is None else _place(model.ca_file),
    )


def _place(path: str) -> str:
    """A path as workers, which may have another current folder, find it."""
    return str(Path(path).expanduser().absolute())
