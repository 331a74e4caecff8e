"""What a newcomer types: known suites by name, on rows of their form that we wrote, from a hub that is then gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalcube.flows.config.recipes import suite_section
from evalcube.stages.generate.dataset.hub.address import Address
from tests.flows.support import evalcube, refused
from tests.hub import GSM, Hub, cut_network, jsonl, parquet

pytestmark = pytest.mark.cluster
ROWS: dict[str, list[dict[str, Any]]] = {
    "gsm8k": GSM,
    "mmlu-pro": [
        {"question_id": n, "question": f"Which is {n}?", "options": [f"{n}{c}" for c in "abcdefghij"]}
        | {"answer": "C", "category": "law", "cot_content": "A: So it is. The answer is (C)."}
        for n in range(12)
    ],
    "musr": [
        {
            "narrative": f"Tale {n}.",
            "question": "Who?",
            "choices": "['Ann', \"Bob's aunt\"]",
            "answer_index": n % 2,
        }
        for n in range(6)
    ],
    "simpleqa-verified": [
        {"original_index": n, "problem": f"Who was {n}th?", "answer": f"Ann {n}"} for n in range(8)
    ],
}


@pytest.fixture
def suites(hub: Hub) -> Hub:
    """A hub that has rows of ours where the recipes look for theirs."""
    for name, rows in ROWS.items():
        (task,) = suite_section(name)["tasks"].values()
        points = [point for entry in task.get("manifold", ()) for point in entry["points"]]
        asked = [Address.parse({**task["params"], **point}["file"]) for point in points or [{}]]
        if points:
            files = {
                f"{one.split}.jsonl": jsonl(
                    [{**row, "narrative": f"{row['narrative']} {one.split}"} for row in rows]
                )
                for one in asked
            }
        else:
            shots = task["params"].get("fewshot", {}).get("from", {}).get("split", "other")
            parts = {asked[0].split: rows[:-6], shots: rows[-6:]}
            folder = asked[0].config or "data"
            files = {f"{folder}/{split}-0.parquet": parquet(part) for split, part in parts.items()}
        hub.add(asked[0].repo, files, branches={one.revision: files for one in asked if one.revision})
    return hub


def test_known_suites__run_by_name_without_a_network_once_fetched(
    suites: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = evalcube("data", "fetch", "gsm8k", "mmlu-pro", "musr", cwd=tmp_path)
    cut_network(monkeypatch)

    planned = evalcube("plan", "gsm8k", "--model", "sim:", "--limit", "10", "--repeats", "2", cwd=tmp_path)
    run = evalcube("run", "gsm8k", "--model", "sim:", "--limit", "10", "--repeats", "2", cwd=tmp_path)
    several = evalcube("run", "musr", "mmlu-pro", "--model", "sim:", "--quiet", "--json", cwd=tmp_path)
    board = evalcube("leaderboard", "results/mmlu-pro-musr.zarr", "--json", cwd=tmp_path)
    absent = [
        evalcube(command, "simpleqa-verified", "--model", "sim:", "--limit", "abc", cwd=tmp_path)
        for command in ("plan", "run")
    ]

    for one in absent:  # told before anything is fetched
        refused(one, "'abc' is no range of trials")
    assert fetched[0] == planned[0] == run[0] == several[0] == 0, (fetched, planned, run, several)
    assert suites.asked
    assert "verified: no (gsm8k)" in planned[1]
    assert "20 requests to send" in planned[1]
    assert "20 of 20 trials done" in run[1]
    assert "accuracy" in run[1]
    assert "ReasonScore" not in run[1]
    assert "verified: no (gsm8k)" in run[2]
    assert json.loads(several[1])["done"] == 6 + 3 * 6
    document = json.loads(board[1])
    assert (document["lead"], document["mode"]) == ("rate", "E_P")
    assert any("(mmlu-pro, musr)" in text for text in document["warnings"])


def test_known_suites__a_judge_says_what_is_right(suites: Hub, tmp_path: Path) -> None:  # noqa: ARG001 - serves
    words = ("simpleqa-verified", "--model", "sim:")

    alone = evalcube("run", *words, cwd=tmp_path)
    run = evalcube("run", *words, "--judge", "sim:", "--quiet", "--json", cwd=tmp_path)
    board = evalcube("leaderboard", "results/simpleqa-verified.zarr", "--json", cwd=tmp_path)

    refused(alone, "tasks.simpleqa-verified.rubric: nobody judges by it", "--judge")
    assert run[0] == 0, run
    (row,) = json.loads(board[1])["rows"]
    assert row["model_name"] == "simulated"
    assert row["trials"] == 2
    assert row["accuracy"]["value"] > 0
