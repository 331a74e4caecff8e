"""Makes and grades the items of reasoning-gym; runs in a bounded process, the only place where that is imported."""

from __future__ import annotations

import json
import random
from typing import Any


def warm() -> None:
    """Import what costs time."""
    import reasoning_gym  # noqa: F401


def answer(request: dict[str, Any]) -> object:
    """Rows for the seeds of a request to render; the score, from 0 to 1, of a request to grade."""
    if "render" in request:
        asked = request["render"]
        return [row(asked["name"], asked["config"], seed) for seed in asked["seeds"]]
    return score(request["name"], request["answer"], request["entry"])


def row(name: str, config: dict[str, Any], seed: int) -> dict[str, Any]:
    """The first item of a seed: question, reference answer, and what its own scorer needs, as plain JSON.

    Never the second one: with most generators that is the first of the next seed.
    """
    import numpy as np
    import reasoning_gym
    from reasoning_gym.dataset import ProceduralDataset

    # Some draw from the module's own stream beside that of the item.
    random.seed(seed)
    np.random.seed(seed)
    dataset = reasoning_gym.create_dataset(name, **config, seed=seed, size=1)
    item = dataset[0]
    fields = {"prompt": str(item["question"]), "target": str(item["answer"])}
    if type(dataset).score_answer is ProceduralDataset.score_answer:
        return fields | {"entry": None}
    return fields | {"entry": {"config": config, "item": plain(item)}}


def plain(value: object) -> Any:  # noqa: ANN401
    """A value as JSON holds it; what JSON has not is text."""
    return json.loads(json.dumps(value, default=_other))


def _other(value: Any) -> object:  # noqa: ANN401
    return value.tolist() if hasattr(value, "tolist") else str(value)


def score(name: str, reply: str, entry: dict[str, Any]) -> float:
    """What the generator's own scorer gives an answer."""
    import reasoning_gym

    random.seed(0)
    dataset = reasoning_gym.create_dataset(name, **entry["config"], seed=0, size=1)
    return float(dataset.score_answer(reply, entry["item"]))
