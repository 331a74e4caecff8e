"""Each known suite, end to end, on rows of its form and replies of all styles: it agrees with what they say."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from evalcube.flows.config.load import from_mapping
from evalcube.flows.config.models import Sweep
from evalcube.flows.config.recipes import recipe_names, suite_section
from evalcube.flows.plan.build import build_plan
from evalcube.flows.run.sweep import run
from evalcube.stages.reply.status import Status
from evalcube.storage.cube.cube import Cube
from tests.flows.config.recipe_replies import RECIPES, ROWS, cases, rows

pytestmark = pytest.mark.cluster


def sweep(name: str, folder: Path, endpoint: str) -> Sweep:
    """A sweep whose one task is a recipe on our rows, as a user would write it."""
    file = folder / f"{name}.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows(name)))
    section = suite_section(name)
    (task,) = section["tasks"].values()
    own: dict[str, Any] = {"suite": name, "params": {"file": str(file)}}
    if shots := task["params"].get("fewshot"):
        own["params"]["fewshot"] = {**shots, "from": {"file": str(file)}}
    if "manifold" in task:
        own = {"suite": name, "manifold": [{"points": [{"file": str(file)}]}]}
    fields = {key: section[key] for key in ("templates", "samplers")}
    models = [{"name": "m", "endpoint": endpoint}]
    places = {"cube": str(folder / "c.zarr"), "cache": str(folder / "cache")}
    return from_mapping({**fields, **places, "models": models, "trials": ROWS, "tasks": {name: own}})


class Model(BaseHTTPRequestHandler):
    """Says what the cases have for a prompt."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(asked)  # type: ignore[attr-defined]
        case = self.server.cases[asked["messages"][-1]["content"]]  # type: ignore[attr-defined]
        finish = "length" if case.status == "truncated" else "stop"
        choice = {
            "index": 0,
            "finish_reason": finish,
            "message": {"role": "assistant", "content": case.reply},
        }
        body = json.dumps({"choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.mark.parametrize("name", RECIPES)
def test_recipe__agrees_with_what_replies_say(name: str, tmp_path: Path) -> None:
    cell = build_plan(sweep(name, tmp_path, "sim:")).tasks[0].cells[0].cell
    listed = list(cases(name, cell))
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        server.asked, server.cases = [], {case.trial.prompt: case for case in listed}  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        run(sweep(name, tmp_path, f"http://127.0.0.1:{server.server_port}/v1"))
        server.shutdown()

    found = Cube.open(tmp_path / "c.zarr").dataset()["status"]
    codes = found.isel(model=0, task=0, params=0, trial=slice(ROWS), repeat=0).to_numpy().tolist()
    wrong = [
        (case.reply, case.status, Status(code).name)
        for case, code in zip(listed, codes, strict=True)
        if Status(code).name.lower() != case.status
    ]
    assert wrong == []
    stops = suite_section(name)["tasks"][name]["params"].get("fewshot", {}).get("stop")
    assert all(asked.get("stop") == stops for asked in server.asked)  # type: ignore[attr-defined]


def test_recipes__all_but_the_judged_one_are_held_against_replies() -> None:
    assert {*RECIPES, "simpleqa-verified"} == {*recipe_names()}
