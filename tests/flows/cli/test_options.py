"""Options that commands share are defined once."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock, patch

import dask
import pytest
import typer.main
from dask.threaded import get
from typer.testing import CliRunner

from evalcube.flows import cli
from evalcube.flows.cli import options
from evalcube.flows.cli.app import OWN_CODES, app, app_with
from evalcube.flows.cli.options import MEANINGS, parse_docstring
from evalcube.flows.cli.output import EXIT_CODES, ExitStatus
from tests.cases import with_cases

FOLDER = Path(cli.__file__).parent
COMMANDS = typer.main.get_command(app)


def meanings():
    """What the source says of each option and argument: in a docstring, or beside its type."""
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield from parse_docstring(ast.get_docstring(node) or "")[1].values()
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("Option", "Argument"):
                yield from (("", ast.literal_eval(key.value)) for key in node.keywords if key.arg == "help")


def test_help__names_no_type_beside_a_flag():
    names = ["", "cube", "analyze", *(name for name, _ in commands(typer.main.get_command(app)))]
    pages = {name: CliRunner().invoke(app, [*name.split(), "--help"]).stdout for name in names}

    assert len(pages) > 40
    assert [path for path, page in pages.items() if "<bool>" in page or "--help" not in page] == []
    assert "<str>" in pages["run"]
    assert "CONFIG" in pages["run"]


def test_help__is_what_a_group_says_alone():
    groups = [name for name, command in COMMANDS.commands.items() if hasattr(command, "commands")]

    assert len(groups) == 5
    for name in ["", *groups]:
        alone, page = (CliRunner().invoke(app, [*name.split(), *more]).output for more in ([], ["--help"]))
        assert alone.split() == page.split(), name


def test_help__says_of_each_command_what_its_own_exit_codes_mean():
    for name, command in COMMANDS.commands.items():
        if hasattr(command, "commands"):
            continue
        codes = re.findall(r"[:;] (\d+) ", command.epilog)
        own = OWN_CODES.get(name, {})
        assert codes == [str(code) for code in sorted({0, 2, 70, 130, *own})], name
        assert EXIT_CODES[ExitStatus.REFUSED] in command.epilog, name


def test_options__flags_are_off_unless_given():
    flags = [
        (name, parameter.name, parameter.default)
        for name, command in commands(COMMANDS)
        for parameter in command.params
        if getattr(parameter, "is_flag", False)
    ]

    assert len(flags) > 50
    assert [flag for flag in flags if flag[2] is not False] == []


def test_options__what_is_typed_daily_has_a_short_form():
    short = {"quiet": "-q", "output": "-o"}

    for name, command in commands(typer.main.get_command(app)):
        for parameter in command.params:
            if parameter.param_type_name == "option" and parameter.name in short:
                assert short[parameter.name] in parameter.opts, name


def test_options__no_help_text_is_written_twice():
    found = Counter(text for _, text in meanings())

    assert len(found) > 40
    assert [text for text, count in found.items() if count > 1] == []


def test_options__of_several_commands_stand_together():
    """What only one command has is defined there, and what several have in `evalcube.flows.cli.options`."""
    found = list(commands(typer.main.get_command(app)))
    uses = Counter(parameter.name for _, command in found for parameter in command.params)

    assert MEANINGS
    assert {name: uses[name] for name in MEANINGS if uses[name] < 2} == {}


def test_described__parts_what_a_command_does_from_what_its_options_mean():
    text = """Do it.

    Or not.

    Parameters
    ----------
    cube
        Where it is, or
        was.
    tag : NAME
        Which one.
    """

    assert parse_docstring(text) == (
        "Do it.\n\nOr not.",
        {"cube": ("", "Where it is, or was."), "tag": ("NAME", "Which one.")},
    )


PASTED = {"leaderboard", "table", "rank", "compare", "trials"}
"""Commands whose tables are put into other documents; programs take `--json`."""


@pytest.mark.parametrize("form", ["--csv", "--markdown"])
def test_tables__that_are_pasted_have_the_form(form):
    found = {
        name
        for name, command in commands(typer.main.get_command(app))
        if any(form in one.opts for one in command.params)
    }

    assert found - {"gate"} == PASTED  # its decision is a comment on a merge request


def commands(group, before=()):
    """Commands with their whole names."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*before, name))
        else:
            yield " ".join((*before, name)), command


def test_named__is_the_one_command_that_is_asked_for_and_all_where_there_is_no_such():
    everything = typer.main.get_command(app).commands

    assert all(list(typer.main.get_command(app_with(name)).commands) == [name] for name in everything)
    assert app_with("--help") is app_with("leaderbord") is app


@pytest.mark.parametrize(
    ("typed", "named"), [((), "--output"), (("-o",), "-o"), (("-q", "--output"), "--output")]
)
def test_flag__is_the_one_that_was_typed_or_the_longest(typed, named):
    context = SimpleNamespace(meta={options.__name__: typed})

    assert options._flag(SimpleNamespace(opts=["-o", "--output"]), context) == named


@with_cases(("imported", "scheduler"), [(True, "sync"), (False, get)])
def test_part__is_computed_by_threads_unless_a_cluster_may_be_there(imported, scheduler, monkeypatch):
    with monkeypatch.context() as patched, dask.config.set(scheduler="sync"):
        patched.delitem(sys.modules, "distributed", raising=False)
        if imported:
            patched.setitem(sys.modules, "distributed", None)
        options._compute_here()

        assert dask.config.get("scheduler") == scheduler


HANDED = {
    "leaderboard c.zarr": ("read.statistics.rated_part read.statistics.leaderboard_of", "plot"),
    "report c.zarr": ("read.report.report", ""),
    "table c.zarr": ("read.statistics.table", ""),
    "rank c.zarr": ("read.statistics.rank", ""),
    "compare c.zarr": ("read.statistics.compare", "flips limit cache"),
    "compare c.zarr --flips": ("read.trials.flips.flips", "limit weigh"),
    "metrics c.zarr": ("read.statistics.metrics", ""),
    "analyze compression c.zarr": ("read.forensics.compression", ""),
    "analyze hazard c.zarr": ("read.forensics.hazard", ""),
    "analyze clip c.zarr": ("read.forensics.clip", ""),
    "analyze cost c.zarr": ("read.forensics.cost", ""),
    "verdict c.zarr": ("read.verdict.cube_verdict", ""),
    "gate p.yaml c.zarr": (
        "config.views.load_policy read.gate.given_names read.gate.gate_of",
        "config to_the_end",
    ),
    "gate p.yaml --run s.yaml": (
        "config.views.load_policy config.suites.load_sweep run.gate.run_gate",
        "control treatment",
    ),
    "trials c.zarr": ("read.trials.read.trials", "count jsonl parquet"),
    "export c.zarr -o out": ("share.export.export", ""),
    "explore c.zarr": ("explore.server.serve", "browser"),
    "bundle c.zarr -o out": ("explore.bundle.bundle", ""),
    "merge out.zarr c.zarr": ("share.merge.merge_cubes", ""),
    "publish c.zarr url": ("share.publish.publish.publish_cube", ""),
    "pull url out": ("share.publish.pull.pull_cube", ""),
    "import log --into c.zarr": ("share.imports.logs.import_logs", ""),
    "rescore c.zarr": ("keep.rescore.rescore_cube", ""),
    "forget c.zarr --where tier=easy": ("keep.forget.forget", "yes"),
    "cube verify c.zarr": ("state.verify.verify_cube", ""),
    "cache verify cache": ("keep.cache.verify", ""),
    "cache gc cache": ("keep.cache.collect", ""),
    "cache export cache file": ("keep.cache.export", ""),
    "run s.yaml": ("config.suites.load_sweep run.sweep.run", "log"),
    "upsample s.yaml": ("run.upsample.upsample", "log"),
    "probe m": ("run.probe.probe.probe", ""),
    "submit s.yaml": (
        "config.suites.load_sweep config.load.as_config run.cluster.chosen_cluster run.jobs.dask_driver.submit_to",
        "dry_run",
    ),
    "plan s.yaml": (
        "config.suites.load_sweep read.estimate.estimate",
        "check detect power against task scheduler cluster",
    ),
    "plan s.yaml --detect 3": (
        "config.suites.load_sweep read.detect.detect",
        "check task only trials repeats scheduler cluster",
    ),
    "plan s.yaml --task sort": (
        "config.suites.load_sweep read.estimate.planned_points",
        "check detect power against scheduler cluster cube cache only trials repeats",
    ),
    "plan s.yaml --check": (
        "config.suites.load_sweep config.load.as_config run.cluster.check_workers",
        "detect task power against only trials repeats",
    ),
    "sample sort": ("read.catalogue.find_task read.catalogue.sample_trials", ""),
}
"""Commands, the functions that take their options, and options that are used elsewhere."""
FORMS = {"as_json", "markdown", "as_csv", "quiet"}
VALUES = {
    "where": "task=sort", "only": "task=sort", "weights": "fact=2", "settings": "tau=0.5", "params": "length=4",
    "trials": "3", "k": "2", "grader": "pinned", "fresh": "all", "reader": "theirs",
    "cluster": "tcp://host:8786",
}  # fmt: skip
STEPS = {int: 1, float: 0.25}


def argument_of(option):
    """A value of the option that is not its default; nothing for a flag."""
    if option.is_flag:
        return []
    step = STEPS.get(option.type_descriptor.annotation)
    return [
        VALUES.get(option.name, f"a-{option.name}") if step is None else str((option.default or 0) + step)
    ]


@with_cases(("words", "functions", "elsewhere"), [(words, *row) for words, row in HANDED.items()])
def test_commands__hand_each_of_their_options_on(words, functions, elsewhere):
    def calls(*more):
        everything = MagicMock()
        with ExitStack() as stack:
            for number, function in enumerate(functions.split()):
                stack.enter_context(
                    patch(f"evalcube.flows.{function}", getattr(everything, f"function_{number}"))
                )
            getattr(everything, f"function_{number}").side_effect = InterruptedError
            with pytest.raises(InterruptedError):
                COMMANDS.main([*words.split(), *more], standalone_mode=False)
        return re.sub(r"id='\d+'|0x[0-9a-f]+", "", str(everything.mock_calls))

    command = COMMANDS
    for word in words.split():
        command = command.commands[word] if hasattr(command, "commands") else command
    quiet = ["--quiet"] * any(option.name == "quiet" for option in command.params)
    plain = calls(*quiet)
    assert calls(*quiet) == plain
    tried = [
        option
        for option in command.params
        if option.param_type_name == "option"
        and option.name not in {*FORMS, *elsewhere.split()}
        and not set(option.opts) & set(words.split())
    ]
    dropped = []
    for option in tried:
        argument = argument_of(option)
        handed = calls(*quiet, option.opts[0], *argument)
        text = argument and option.type_descriptor.annotation not in STEPS and option.name != "fresh"
        if handed == plain or (text and argument[0].rpartition("=")[2] not in handed):
            dropped.append(option.name)
    assert dropped == []
