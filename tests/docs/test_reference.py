"""The reference has every key, task and command, and refuses what nobody has described."""

from __future__ import annotations

import importlib.util
import re
import sys

import pytest
from pydantic import Field

from evalcube.flows.config.models import Sweep
from evalcube.flows.config.section import Section
from evalcube.stages.generate import TASKS
from tests.docs.pages import ROOT


def load():
    """The module beside the pages, as Sphinx's configuration has it."""
    spec = importlib.util.spec_from_file_location("docs_reference", ROOT / "docs" / "reference.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


reference = load()


def test_config_keys__has_every_section_and_key():
    text = reference.config_keys()

    for heading in ("The file", "`models[]`", "`models[].limits`", "`tasks.NAME.manifold[]`", "`judges[]`"):
        assert f"## {heading}\n" in text
    for key in Sweep.model_fields:
        assert f"- `{key}` (" in text
    assert (
        "- `connections` (integer or `auto` or [section](#modelslimitsconnections); default `auto`): Req"
        in text
    )
    assert "- `target` (above 0 below 0.5; required): Half-width" in text
    assert "- `name` (text; required): Unique label" in text


def test_config_keys__of_a_section_without_a_description_are_refused():
    class Bare(Section):
        """A section."""

        known: int = Field(1, description="Known.")
        unknown: int = 2

    with pytest.raises(reference.UndescribedError, match=r"Bare\.unknown has no description"):
        reference._fields(Bare)


def test_task_params__has_every_task():
    text = reference.task_params()

    assert re.findall(r"^## `(\w+)`$", text, re.MULTILINE) == sorted(TASKS)
    assert "- `length` (3 to 50; default `8`): Terms in" in text


def test_task_params__of_data_sets_are_named_on_their_page():
    page = (ROOT / "docs" / "datasets.md").read_text("utf-8")

    assert [key for key in TASKS["dataset"].Params.model_fields if not re.search(rf"`{key}[`:]", page)] == []


def test_commands__has_every_command_with_its_options():
    text = reference.commands()

    assert {"### evalcube run", "### evalcube cache gc", "### evalcube analyze cost"} <= set(
        text.splitlines()
    )
    assert "- `--workers NUMBER`: Local worker processes" in text
    assert text.count("- `--json`:") == 1
    assert text.count("`--json`.\n") > 30
    assert "\n`evalcube compare CUBE [MODELS...]`\n" in text
    assert "| 130 | stopped by Ctrl-C" in text


def test_commands__without_a_help_text_are_refused():
    def command(option: str = "x") -> None:
        """Do it."""

    import typer

    app = typer.Typer()
    app.command()(command)
    with pytest.raises(reference.UndescribedError, match="--option VALUE` has no help text"):
        list(reference._command("evalcube command", typer.main.get_command(app)))


@pytest.mark.parametrize("page", ["config", "tasks", "cli", "suites", "api"])
def test_filled__pages_say_what_the_program_does(page):
    text = (ROOT / "docs" / f"{page}.md").read_text("utf-8")

    assert len(text.splitlines()) > 30
    assert reference.filled(text) == text, "run: python docs/reference.py"
