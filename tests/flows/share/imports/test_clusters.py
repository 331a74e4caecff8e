"""Imported questions that share a passage are one draw."""

import numpy as np

import evalcube as ec
from evalcube.flows.read.trials.flips import flips
from evalcube.flows.share.imports.logs import import_logs
from evalcube.stages.analyze.labelled.forensics import cost_table
from tests.flows.share.imports.logs import INSPECT, LM_EVAL, write_lines
from tests.flows.share.imports.test_logs import imported


def test_import__questions_of_a_cluster_are_one_draw_on_every_page(tmp_path):
    rows = [
        {
            "id": i,
            "prompt": f"Q{i}",
            "response": "x",
            "correct": int((i // 10 + m) % 3 > 0),
            "model": name,
            "page": i // 10,
            "tokens": 100 + 200 * (i // 10 % 4),
        }
        for m, name in enumerate("ab")
        for i in range(120)
    ]
    write_lines(tmp_path / "own.jsonl", rows)
    found = [
        import_logs([tmp_path / "own.jsonl"], tmp_path / f"{name}.zarr", cache=tmp_path / name, map=given)
        for name, given in (("plain", {}), ("by", {"cluster": "page"}))
    ]

    plain, by = (ec.open_cube(one.cube) for one in found)

    assert "cluster" not in plain
    assert len(np.unique(by["cluster"].values)) == 12
    board = {"by": ec.leaderboard(by), "plain": ec.leaderboard(plain)}
    assert _board_width(board["by"]) > 2 * _board_width(board["plain"])
    for page in (_table_width, _pair_width, _metric_width, _verdict_width):
        assert page(by) > 2 * page(plain)
    mixed = by["tokens"].copy(data=by["tokens"].values[..., np.arange(120).reshape(12, 10).T.ravel(), :])
    mixed = by.assign(tokens=mixed)  # of tokens, too, and not of right answers alone
    boards = board["by"], ec.leaderboard(mixed), board["plain"]
    for widths in (map(_tokens_width, boards), map(_cost_width, (by, mixed, plain))):
        clustered, shuffled, single = widths
        assert clustered > 1.1 * shuffled > 1.5 * single
    both = [one.cube for one in found]
    ec.merge(tmp_path / "both.zarr", both, prefer="first")
    merged = ec.open_cube(tmp_path / "both.zarr")
    assert np.unique(merged["cluster"].values).tolist() == [0, *np.unique(by["cluster"].values).tolist()]
    assert float(ec.table(both).estimates["upper"][0]) == float(ec.table(merged).estimates["upper"][0])


def test_import__logs_of_other_tools_have_clusters_if_a_field_is_named(tmp_path):
    (sums,) = INSPECT.glob("alfa-sums*")
    cubes = {}
    for name, logs in (("level", [INSPECT, LM_EVAL]), ("label", [LM_EVAL]), ("page", [sums])):
        summary = imported(tmp_path, *logs, cube=f"{name}.zarr", map=f"cluster={name}")
        cubes[name] = ec.open_cube(summary.cube), summary.notes

    number = {
        name: len(np.unique(ds["cluster"].values)) for name, (ds, _) in cubes.items() if "cluster" in ds
    }
    assert set(number) == {"level", "label"}
    assert min(number.values()) > 2
    notes = cubes["page"][1]
    assert any(note.startswith(f"{sums.name}: ") and "'page'" in note for note in notes)


def test_flips__of_two_cubes_go_by_cluster(tmp_path):
    gaps = {}
    for kind, given in (("plain", {}), ("by", {"cluster": "page"})):
        cubes = []
        for name in ("old", "new"):
            rows = [
                {"id": i, "prompt": f"Q{i}", "response": "x", "page": i // 10, "model": name}
                | {"correct": int((i // 10 + (name == "old")) % 3 > 0)}
                for i in range(120)
            ]
            (tmp_path / name).mkdir(exist_ok=True)
            log = write_lines(tmp_path / name / "asked.jsonl", rows)
            cube = tmp_path / f"{name}-{kind}.zarr"
            cubes.append(import_logs([log], cube, cache=tmp_path / kind, map=given).cube)
        gaps[kind] = flips(cubes).pair.overall.difference

    assert gaps["by"].value == gaps["plain"].value
    assert gaps["by"].upper - gaps["by"].lower > 2 * (gaps["plain"].upper - gaps["plain"].lower)


def _table_width(ds):
    found = ec.table(ds).estimates
    return float(found["upper"][0] - found["lower"][0])


def _board_width(board):
    row = board.rows[0].accuracy
    return row.upper - row.lower


def _tokens_width(board):
    row = board.rows[0].correct_per_1000_tokens
    return np.log(row.upper / row.lower)


def _cost_width(ds):
    prices = {name: ("model", np.ones(ds.sizes["model"])) for name in ("price_prompt", "price_completion")}
    found = cost_table(ds.assign_coords(prices)).isel(model=0)
    return float(np.log(found["per_correct_upper"] / found["per_correct_lower"]))


def _verdict_width(ds):
    found = ec.verdict(ds, "a", ["b"]).verdict.pairs[0].composite
    return found.high - found.low


def _pair_width(ds):
    gap = ec.compare(ds).pairs[0].overall.difference
    return gap.upper - gap.lower


def _metric_width(ds):
    found = ec.metrics(ds).estimates
    return float((found["pass_at_k_upper"] - found["pass_at_k_lower"])[0, 0])
