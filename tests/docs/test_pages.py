"""What pages say is true: their commands run, their configs load, their Python works, and outputs are as shown."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tomllib
from contextlib import closing, contextmanager
from functools import cache

import pytest
import typer
from ruamel.yaml import YAML

from evalcube.flows.cli.app import app
from evalcube.flows.config.models import Sweep
from tests.docs.pages import LANGUAGES, PAGES, ROOT, are_separate, blocks, indented, needs_environment
from tests.docs.typed import Reader
from tests.installed import environment_with
from tests.storage.support.cache_stores import s3_server

BLOCKS = [block for page in PAGES for block in blocks(page)]
MINIMAL = {
    "models": [{"name": "gpt", "endpoint": "sim:"}],
    "tasks": {"boolean": {"params": {"length": 3}}},
}
"""What a piece of a config lacks to be a whole one."""


def here(page):
    """The blocks of a page that run here."""
    return [block for block in blocks(page) if not block.reason]


def runs(page):
    """Whether a page has anything to run."""
    return any(block.language in ("sh", "python") for block in here(page))


# The form of blocks


def test_blocks__are_fenced_in_a_language():
    assert [(page.name, found) for page in PAGES if (found := indented(page))] == []
    assert [str(block) for block in BLOCKS if block.language not in LANGUAGES] == []


def test_blocks__of_text_are_no_commands():
    told = [
        str(block)
        for block in BLOCKS
        if block.language == "text" and block.text.startswith(("evalcube ", "$ "))
    ]

    assert told == []


def test_blocks__that_do_not_run_name_the_service_that_is_missing(tmp_path):
    page = tmp_path / "page.md"
    for reason, good in (
        ("it needs a GPU", True),
        ("it needs a package index, the Hugging Face Hub and a model server", True),
        ("it needs a GPU and patience", False),
        ("it is about a config of yours", False),
        ("", False),
    ):
        page.write_text(f"<!-- not run here: {reason} -->\n```sh\nevalcube tasks\n```\n")
        (block,) = blocks(page)
        assert block.names_service is good

    assert [str(block) for block in BLOCKS if block.reason and not block.names_service] == []


# Pieces of files


def test_pieces__load():
    """Each piece of a config is one, each other file has its form; those that do not run are looked at, too."""
    failed = []
    for block in BLOCKS:
        try:
            check(block)
        except Exception as error:  # noqa: BLE001 - all of them at once
            failed.append(f"{block}: {error}")

    assert failed == []


def check(block):
    """Raise an error if a block is not in the form of its language."""
    if block.language == "json":
        json.loads(block.text)
    elif block.language == "toml":
        tomllib.loads(block.text)
    elif block.language == "python":
        compile(
            block.text.replace(">>> ", "").replace("... ", ""), str(block), "exec"
        ) if ">>>" not in block.text else None
    elif block.language == "sh" and block.reason:
        for line in block.text.replace("\\\n", "").splitlines():
            check_command(line)
    elif block.language == "yaml":
        piece = YAML(typ="safe", pure=True).load(block.text)
        if isinstance(piece, dict) and piece.keys() <= Sweep.model_fields.keys() and not block.file:
            load_piece(piece)
        for text in texts_of(piece):
            check_command(text)


def texts_of(piece):
    """Every text in a piece of YAML, such as the commands of a pipeline."""
    if isinstance(piece, str):
        return [piece]
    parts = piece.values() if isinstance(piece, dict) else piece if isinstance(piece, list) else ()
    return [text for part in parts for text in texts_of(part)]


def load_piece(piece):
    """Load a piece of a config as if it were whole; data files that it names need not be there."""
    config = {**MINIMAL, **piece}
    for task in config["tasks"].values():
        if task.get("task") == "dataset" or "file" in json.dumps(task):
            task.clear()
            task.update(MINIMAL["tasks"]["boolean"])
    return Sweep.model_validate(config)


@cache
def commands():
    """The command line's tree."""
    return typer.main.get_command(app)


def check_command(line):
    """Raise an error if a line calls a command of ours with what it does not take."""
    if "evalcube " not in line:
        return
    words = [word for word in shlex.split(line, comments=True) if not re.match(r"\w+=", word)]
    if not words or words[0].rpartition("/")[2] != "evalcube":
        return
    words = words[1:]
    command, path = commands(), "evalcube"
    while hasattr(command, "commands"):
        if words[0].startswith("-"):
            return
        assert words[0] in command.commands, f"no command {path} {words[0]}"
        path, command, words = f"{path} {words[0]}", command.commands[words[0]], words[1:]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    unknown = [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]
    assert unknown == [], f"{path} has no {unknown}"


def test_check_command__finds_what_is_not_there():
    check_command("evalcube run sweep.yaml --only model=x")
    check_command("KEY=1 .venv/bin/evalcube cache gc results/cache --keep CUBE")

    for line in ("evalcube walk sweep.yaml", "evalcube cache drop x", "evalcube run sweep.yaml --olny x"):
        with pytest.raises(AssertionError):
            check_command(line)


# Whole pages


@contextmanager
def stores_of(found):
    """The environment that leads to the stores which commands name."""
    if any("s3://" in block.text for block in found if block.language == "sh" and not block.reason):
        with s3_server() as environment:
            yield environment
    else:
        yield {}


def typed(found, reader):
    """Have a reader type blocks."""
    with stores_of(found) as environment, closing(reader):
        reader.environment |= environment
        for block in found:
            reader.type(block)


NEW = [page for page in PAGES if needs_environment(page)] + [ROOT / "docs" / "tutorial.md"]
PROGRESSIVE = [page for page in PAGES if runs(page) and not are_separate(page) and page not in NEW]
SEPARATE = [page for page in PAGES if runs(page) and are_separate(page)]
LENGTHY = {"statistics.md", "costs.md", "ci.md", "suites.md", "## Publish and pull", "## On object stores"}
"""Pages and sections that take as long as all the others, or need packages that `make integration` installs."""


def one(*parts, named):
    """The parameters of a test that types a page or a section of that name."""
    return pytest.param(*parts, marks=pytest.mark.integration if named in LENGTHY else pytest.mark.cluster)


@pytest.mark.parametrize(
    "page", [one(page, named=page.name) for page in PROGRESSIVE], ids=lambda page: page.name
)
def test_page__is_true(page, tmp_path):
    typed(blocks(page), Reader(tmp_path / "here"))


def sections(page):
    """Section -> its blocks."""
    found = {}
    for block in blocks(page):
        found.setdefault(block.section, []).append(block)
    return found


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A function that gives the folder in which the first section of a page was typed."""

    @cache
    def begin(page):
        folder = tmp_path_factory.mktemp("begun") / "here"
        typed(next(iter(sections(page).values())), Reader(folder))
        return folder

    return begin


@pytest.mark.parametrize(
    ("page", "section"),
    [one(page, section, named=section) for page in SEPARATE for section in list(sections(page))[1:]],
    ids=lambda part: part.name if hasattr(part, "name") else part.removeprefix("## "),
)
def test_section__is_true(page, section, begun, tmp_path):
    folder = tmp_path / "here"
    shutil.copytree(begun(page), folder)

    typed(sections(page)[section], Reader(folder))


# In a new environment


@pytest.fixture(scope="module")
def binaries(wheel, tmp_path_factory):
    """The programs of a new environment with the wheel, in which pages install packages."""
    python = environment_with(wheel, tmp_path_factory.mktemp("new"))
    for name in ("pip", "pytest"):  # as programs of the environment itself
        program = python.with_name(name)
        program.write_text(f'#!/bin/sh\nexec "{python}" -m {name} "$@"\n')
        program.chmod(0o755)
    return python.parent


@pytest.mark.integration
@pytest.mark.parametrize("page", NEW, ids=lambda page: page.name)
def test_page__is_true_in_a_new_environment(page, binaries, tmp_path):
    # No index and no isolation: what builds a package is here, and nothing is fetched.
    environment = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    typed(blocks(page), Reader(tmp_path / "here", environment, binaries))
