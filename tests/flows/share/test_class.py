"""Twelve people around one cube: wrong keys, renamed models, edited files and interrupted runs end in one board."""

import json
import re

import pytest

from tests.flows.support import evalcube, sweep_config, write_config

pytestmark = pytest.mark.integration
PEOPLE = [f"p{number:02}" for number in range(12)]


def hand_in(folder, person, number, base_url):
    """Measure one person's part, with what happens to people."""
    own = folder / person
    own.mkdir()
    version = number % 3 == 0
    rows = [
        {"id": f"r{i}", "prompt": f"What is {i}+{int(version)}?", "answer": str(i + version)}
        for i in range(6)
    ]
    (own / "sheet.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    label = "model" if number < 6 else f"model-{person}"
    config = sweep_config(own, base_url, models=(label,), trials=4, cells=1, cube=f"{person}.zarr")
    points = [{"file": str(own / "sheet.jsonl"), "id": "id"}]
    config["tasks"] |= {"sheet": {"task": "dataset", "manifold": [{"points": points}]}}
    if number == 1:
        config["samplers"]["greedy"]["temperature"] = 0.7
    if number == 2:
        config["samplers"]["greedy"]["max_tokens"] = 100
    if number == 7:
        config["models"][0]["key_env"] = "NO_SUCH_KEY"
        code, _, said = evalcube("run", write_config(own, config), "--quiet", cwd=own)
        assert code == 2
        assert "NO_SUCH_KEY" in said
        del config["models"][0]["key_env"]
    part = ("--trials", 2) if number == 8 else ()
    code, _, said = evalcube("run", write_config(own, config), "--quiet", *part, cwd=own)
    assert code == 0, said
    return config["cube"]


def test_class__of_twelve_has_one_board(tmp_path, simulator):
    cubes = [hand_in(tmp_path, person, number, simulator.base_url) for number, person in enumerate(PEOPLE)]

    code, _, said = evalcube("merge", "class.zarr", *cubes, cwd=tmp_path)
    assert code == 2
    assert "temperature 0 / 0.7" in said
    assert "max_tokens 200 / 100" in said
    renames = re.findall(r"--rename \S+", said)
    assert len(renames) == 2

    line = [word for rename in renames for word in rename.split(" ")]
    code, _, said = evalcube("merge", "class.zarr", *cubes, "--prefer", "first", *line, cwd=tmp_path)
    assert code == 0, said
    names = {"model", "model-p01", "model-p02", *(f"model-{person}" for person in PEOPLE[6:])}
    code, board, _ = evalcube("leaderboard", "class.zarr", "--json", cwd=tmp_path)
    assert {row["model_name"] for row in json.loads(board)["rows"]} == names
    code, table, _ = evalcube("table", "class.zarr", "--by", "file", "--json", cwd=tmp_path)
    assert code == 0
    assert len({row["file"] for row in json.loads(table)["rows"]}) == 2
    code, table, _ = evalcube("table", "class.zarr", "--by", "source", "--json", cwd=tmp_path)
    sources = {row["source"] for row in json.loads(table)["rows"]}
    named = {name for source in sources for name in source.split(", ")}
    # The same results, written in the same second, are one source: p05 may have those of p04.
    assert named | {"p05"} == set(PEOPLE)
    assert str(tmp_path) not in table
    assert evalcube("bundle", "class.zarr", "-o", "page", cwd=tmp_path)[0] == 0
    assert (tmp_path / "page" / "index.html").is_file()
