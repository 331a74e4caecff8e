"""Scores of variants around given means, and the verdict on them."""

import numpy as np

from evalcube.stages.analyze.verdict import verdict

UNITS = [f"u{place:02}" for place in range(24)]


def noisy(*means, units=24, seed=0, spread=0.3):
    """Layers (variant, unit, layer) around one mean per variant (or one per layer)."""
    rng = np.random.default_rng(seed)
    centre = np.stack([np.broadcast_to(np.asarray(mean, dtype=float), (units, 3)) for mean in means])
    return np.clip(centre + rng.normal(0.0, spread, centre.shape), 1, 5)


def ask(layers, variants=None, **options):
    count, units = layers.shape[-3], layers.shape[-2]
    names = variants or ["base", *(f"t{place}" for place in range(1, count))]
    return verdict(layers, names, UNITS[:units], **{"draws": 500, **options})
