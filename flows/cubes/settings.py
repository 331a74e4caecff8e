"""What the config of a cube says about composites: the weights of layers, and the variant in use."""

from __future__ import annotations

from collections.abc import Mapping

from evalcube.flows.errors import SweepError


def composite_settings(notes: Mapping[str, object]) -> tuple[Mapping[str, float] | None, str | None]:
    """Weights of the layers by name, None where all are the same, and the control; None where it is not declared.

    Parameters
    ----------
    notes
        What the last run noted beside the cube.

    Returns
    -------
    tuple
        The weights, and the control.

    Raises
    ------
    SweepError
        If the config there says what no config may.
    """
    config = notes.get("config")
    declared = config.get("composite") if isinstance(config, Mapping) else None
    if declared is None:
        return None, None
    from pydantic import ValidationError

    from evalcube.flows.config.judges import (
        CompositeConfig,  # with pydantic, which most boards need nothing of
    )

    try:
        found = CompositeConfig.model_validate(declared)
    except ValidationError as error:
        raise SweepError(
            "the config that the cube was made with has a section `composite` that says what none may",
            "See what is damaged: evalcube cube verify CUBE, or run its sweep again",
        ) from error
    return None if found.weights is None else found.weights.model_dump(), found.control
