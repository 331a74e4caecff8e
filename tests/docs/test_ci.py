"""The pipelines of docs/ci.md: they parse, ask for what there is, and end as the page says."""

import re
import shlex
import subprocess

import pytest
import typer.main
from ruamel.yaml import YAML

from evalcube.flows.cli.app import app
from tests.cases import with_cases
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "ci.md").read_text("utf-8")
GITLAB, GITHUB = (
    YAML(typ="safe").load(text) for text in re.findall(r"```yaml\n# \.git.*?\n(.*?)```", PAGE, re.DOTALL)
)
JOB = GITLAB["evaluate"]
STEPS = GITHUB["jobs"]["evaluate"]["steps"]
LINES = [*JOB["script"], *JOB["after_script"], *(step["run"] for step in STEPS if "run" in step)]


@with_cases("line", [line for line in LINES if line.startswith("evalcube ")])
def test_pipelines__name_commands_and_options_that_there_are(line):
    _, name, *words = shlex.split(line.partition(">")[0])
    command = typer.main.get_command(app).commands[name]
    options = {
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
    }

    assert {word for word in (*words,) if word.startswith("-")} <= options


def test_pipelines__keep_answers_and_show_the_decision_whatever_it_is():
    gate = next(place for place, step in enumerate(STEPS) if "evalcube gate" in step.get("run", ""))
    restored, saved = (
        next(step["with"] for step in STEPS if step.get("uses", "").startswith(f"actions/cache/{name}@"))
        for name in ("restore", "save")
    )

    assert all(step["if"] == "always()" for step in STEPS[gate + 1 :])
    assert STEPS[gate]["run"].endswith("> gate.md")
    assert STEPS[gate + 1]["run"] == 'cat gate.md >> "$GITHUB_STEP_SUMMARY"'
    assert (restored["path"], restored["key"]) == (saved["path"], saved["key"])
    assert restored["key"].startswith(restored["restore-keys"])
    assert "github.run_attempt" in restored["key"]
    assert JOB["cache"]["when"] == "always"
    assert JOB["cache"]["paths"] == [restored["path"]]


@pytest.mark.cluster
@pytest.mark.parametrize(("code", "ends"), [(0, 0), (1, 1), (2, 1), (3, 0)])
def test_pipelines__let_inconclusive_pass_as_the_page_says(code, ends, tmp_path):
    way = re.search(r"in GitHub, `([^`]+)` after the command", PAGE)[1]
    step = next(line for line in LINES if line.startswith("evalcube gate"))

    asked = subprocess.run(
        ["bash", "-e", "-c", f"evalcube() {{ return {code}; }}\n{step} {way}\ntrue"],
        cwd=tmp_path,
        check=False,
    )

    assert asked.returncode == ends
