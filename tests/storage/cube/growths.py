"""A small cube that was recorded, and growths of it."""

import numpy as np
from storage_workers import make_cube, region_arrays

from evalcube.storage.cube.cube import Coordinate
from evalcube.storage.cube.ledger import Ledger, Receipt
from evalcube.storage.cube.schema import LAYERS

SMALL = {"model": 2, "task": 2, "params": 3, "trial": 8, "repeat": 1}


def labels(models, tasks, params, tiers=("easy", "hard")):
    cells = (tasks, params)
    return [
        Coordinate("model_name", ("model",), np.array([f"m{i}" for i in range(models)], dtype=object), {}),
        Coordinate("task", ("task",), np.array([f"t{i}" for i in range(tasks)], dtype=object), {}),
        Coordinate("tier", ("tier",), np.array(tiers, dtype=object), {}),
        Coordinate("params", ("params",), np.arange(params), {}),
        Coordinate("in_tier", ("tier", "task", "params"), np.ones((len(tiers), *cells), dtype=bool), {}),
    ]


def recorded(path, **more):
    """A small cube with its regions written and recorded, counters and plans."""
    cube = make_cube(path, sizes=SMALL, **more)
    with Ledger(cube.records) as ledger:
        for region in cube.regions():
            digest = cube.write_region(region, arrays_of(cube, region))
            ledger.append(receipt(cube, region, digest))
    cube.write_counters({model: np.full((2, 3, 20), model + 1.0) for model in range(2)})
    for dim in ("trial", "repeat"):
        cube.write_planned(dim, np.full((2, 2, 3), 1, np.int32))
    return cube


def arrays_of(cube, region):
    arrays = region_arrays(cube, region)
    for name in set(cube.trial_arrays) & set(LAYERS):
        more = (cube.sizes["judge_name"], cube.sizes["judge_repeat"]) if name == "judge_readings" else ()
        value = max(LAYERS[name].allowed[:2], default=4)  # one that may be there
        arrays[name] = np.full((*cube.region_shape(region), *more), value, LAYERS[name].dtype)
    return arrays


def receipt(cube, region, digest, generation=1):
    shape = cube.region_shape(region)
    return Receipt(region, generation, shape[2], shape[3], 1, True, 0, 0, {}, digest, shape=cube.shape_number)


def grown(cube, **changes):
    sizes = {"model": 3, "task": 4, "params": 5}
    cube.extend(
        **{
            "sizes": sizes,
            "coordinates": labels(3, 4, 5, ("easy", "hard", "extreme")),
            "attrs": {"name": "grown"},
            **changes,
        }
    )
