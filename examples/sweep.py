"""A sweep without a file: what is asked, what came out, one more model, and whether it may take the other's place.

python examples/sweep.py [FOLDER]: everything is simulated, so it costs nothing.
"""

import sys
from pathlib import Path

import evalcube as ec

if __name__ == "__main__":  # worker processes import this file
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    sweep = ec.Sweep(
        name="from a script",
        trials=8,
        cube=str(folder / "small.zarr"),
        cache=str(folder / "cache"),
        models=[ec.Model(name="small", endpoint="sim:", simulate=ec.config.SimulatedModel(ability=3))],
        samplers={"greedy": ec.Sampler(temperature=0, max_tokens=512)},
        tasks={
            "arithmetic": ec.config.TaskConfig(
                manifold=[
                    ec.Manifold(grid={"length": [4, 8], "max_depth": range(2)}, tiers=["easy"]),
                    ec.Manifold(grid={"length": [16]}, tiers=["hard"]),
                ],
                assertions=[{"type": "word_count_max", "value": 60}],
            )
        },
    )
    print(f"{ec.plan(sweep).requests} requests")
    ec.run(sweep, progress=False).raise_for_status()
    larger = sweep.add(ec.Model(name="large", endpoint="sim:", simulate=ec.config.SimulatedModel(ability=6)))
    ec.run(larger, cube=folder / "both.zarr", progress=False).raise_for_status()
    merged = ec.merge(folder / "merged.zarr", [folder / "small.zarr", folder / "both.zarr"])

    cube = ec.open_cube(merged)
    print(f"{cube.sizes['model']} models on tasks {cube['task'].values.tolist()}")
    board = ec.leaderboard(cube)
    print(", then ".join(row.model_name for row in board.rows))
    by_tier = ec.table(cube, by=["model", "tier"]).to_dataframe()
    print(by_tier.columns.tolist())
    print(f"{len(ec.trials(cube, status=['incorrect']))} wrong answers")
    print(ec.verdict(merged, "small", ["large"]).verdict.next_step)
    larger.to_yaml(folder / "sweep.yaml")
