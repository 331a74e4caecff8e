"""What the explorer's filters offer of each task."""

import xarray as xr

from evalcube.flows.explore.overview import _tasks
from evalcube.stages.analyze.labelled.selection import Key


def test_tasks__offer_the_levels_of_their_own_points():
    cells = ("task", "params")
    dataset = xr.Dataset({"cell_id": (cells, [["a", "b"], ["c", ""]])}, {"task": ["sort", "sums"]})
    table = {
        "param_length": Key(cells, [8, 4, None, None]),
        "param_order": Key(cells, [None, None, "down", None]),
        "param_steps": Key(cells, [[1, 2], True, 3, None]),
        "tier": Key(cells, ["easy"] * 4),
    }

    def params(name, levels, *, numeric=False):
        return {"name": name, "numeric": numeric, "dated": False, "levels": levels}

    assert _tasks(dataset, table) == [
        {
            "label": "sort",
            "params": [
                params("param_length", [4, 8], numeric=True),
                params("param_steps", ["[1, 2]", True]),
            ],
        },
        {
            "label": "sums",
            "params": [params("param_order", ["down"]), params("param_steps", [3], numeric=True)],
        },
    ]
