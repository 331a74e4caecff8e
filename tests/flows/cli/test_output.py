"""The command line where things are odd: closed pipes, full devices, foreign text, hostile cubes, defects."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from evalcube.flows.cli.output import MOST_ROWS, Output, complain, emit_with, number, print_rows, show_json
from evalcube.flows.errors import SweepError
from evalcube.flows.read.report import report
from evalcube.flows.run.stopping import RunInterrupted
from evalcube.stages.analyze.render.table import Column, TableSpec
from tests.cases import with_cases
from tests.flows.support import (
    change_attributes,
    evalcube,
    refused,
    set_faults,
    sweep_config,
    write_config,
)
from tests.waiting import PATIENCE


def _to(arguments, cwd, output):
    """Run with standard output at an open file: (exit code, standard error)."""
    result = subprocess.run(
        [sys.executable, "-m", "evalcube", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    return result.returncode, result.stderr


@pytest.fixture
def nobody():
    """The end of a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


def test_output__loses_what_nobody_reads_unless_its_command_ends_then(nobody):
    output = Output(nobody, "w", closefd=False)

    assert (output.write(b"text"), output.failure) == (4, None)
    output.ends = True
    with pytest.raises(BrokenPipeError):
        output.write(b"text")
    assert isinstance(output.failure, BrokenPipeError)


@pytest.mark.cluster
def test_readers__end_quietly_when_nobody_reads_on(nobody, tmp_path):
    assert _to(["--help"], tmp_path, nobody) == (0, "")


@pytest.mark.cluster
@pytest.mark.parametrize("words", [["tasks", "sort", "--json"], ["--help"]], ids=["at its end", "amid it"])
def test_readers__say_that_their_output_is_full(words, tmp_path):
    with Path("/dev/full").open("w") as full:
        code, errors = _to(words, tmp_path, full)

    assert code == 2
    assert errors.startswith("evalcube: cannot write")
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("closed", "cube", "code"), [("2>&-", "cube.zarr", 0), ("<&- >&- 2>&-", "nowhere.zarr", 2)]
)
def test_readers__with_closed_streams_do_the_same_and_say_nothing_there(closed, cube, code, small_sweep):
    result = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m evalcube status {cube} {closed}'],
        cwd=small_sweep,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )

    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    assert bool(result.stdout) == (closed == "2>&-")


def test_commands__escape_what_a_console_has_no_character_for(small_sweep):
    commands = [
        ["leaderboard", "cube.zarr"],
        ["tasks"],
        ["run", "--help"],
        ["status", "no → → cube.zarr"],
    ]
    script = (
        "import json, sys\nfrom evalcube.__main__ import main\nfor words in json.loads(sys.argv[1]):\n"
        "    sys.argv = ['evalcube', *words]\n    try:\n        main()\n"
        "    except SystemExit as end:\n        print(end.code, flush=True)\n"
    )
    result = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", script, json.dumps(commands)],
        cwd=small_sweep,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
        timeout=3 * PATIENCE,
    )
    output, errors = (text.decode("ascii") for text in (result.stdout, result.stderr))

    assert result.returncode == 0, errors
    assert "Traceback" not in errors
    assert re.findall(r"(?m)^\d+$", output) == ["0"] * 3 + ["2"]
    assert "no \\u2192 \\u2192 cube.zarr: there is no cube" in errors


@pytest.mark.cluster
def test_readers__whose_messages_are_lost_keep_their_code(tmp_path):
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "evalcube", "status", "nowhere.zarr"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
            stderr=full,
            check=False,
            timeout=PATIENCE,
        )

    assert result.returncode == 2


def test_run__goes_on_when_nobody_reads_and_ends_with_its_own_code(tmp_path, simulator, nobody):
    config = sweep_config(tmp_path, simulator.base_url, trials=4)
    config["models"][0]["limits"] = {"retries": 1}
    set_faults(simulator, [{"kind": "status", "status": 500, "share": 1.0}])
    result = subprocess.run(
        [sys.executable, "-m", "evalcube", "run", write_config(tmp_path, config), "--workers", "1"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        stdout=nobody,
        stderr=nobody,
        check=False,
        timeout=PATIENCE,
    )

    assert result.returncode == 1
    status = json.loads(evalcube("status", config["cube"], "--json", cwd=tmp_path)[1])
    assert status["models"][0]["transport"] == 20


def test_report_and_init__refuse_to_replace_what_is_no_file(small_sweep, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(pipe)

    for path in (pipe, link):
        refused(evalcube("report", "cube.zarr", "-o", path, cwd=small_sweep), str(path), "not a regular file")
        refused(evalcube("init", "--force", path, cwd=tmp_path), str(path), "not a regular file")
    refused(evalcube("init", "--force", tmp_path, cwd=tmp_path), "PATH: ", "is a directory")
    refused(
        evalcube("report", "cube.zarr", "--output", tmp_path, cwd=small_sweep), f"--output: '{tmp_path}' is a"
    )
    with pytest.raises(SweepError, match=r"`output`: '.*' is a directory"):
        report(small_sweep / "cube.zarr", tmp_path)
    assert pipe.is_fifo()
    assert link.is_symlink()


def test_show__has_the_key_on_one_line_to_be_copied(small_sweep):
    code, output, _ = evalcube("show", "cube.zarr", "--task", "boolean", cwd=small_sweep, columns=40)

    assert code == 0
    assert any(re.fullmatch(r"cache key [0-9a-f]{64}", line.strip()) for line in output.splitlines())


def test_init__writes_through_a_link_to_a_file(tmp_path):
    (tmp_path / "real.yaml").write_text("old")
    (tmp_path / "link.yaml").symlink_to("real.yaml")

    assert evalcube("init", "--force", "link.yaml", cwd=tmp_path)[0] == 0

    assert (tmp_path / "link.yaml").is_symlink()
    assert "models:" in (tmp_path / "real.yaml").read_text()


def test_leaderboard__refuses_two_formats(small_sweep):
    refused(evalcube("leaderboard", "cube.zarr", "--json", "--markdown", cwd=small_sweep), "--markdown")


@pytest.mark.parametrize("given", ["²", "9" * 5000, "foo=null", "{" * 3000])
def test_show__odd_params_match_nothing(given, small_sweep):
    refused(
        evalcube("show", "cube.zarr", "--task", "boolean", "--params", given, cwd=small_sweep), "--params"
    )


@pytest.mark.parametrize("command", [("run",), ("cache", "stats"), ("run", "sweep.yaml", "--cube")])
def test_commands__a_name_longer_than_any_file_may_have_is_refused(command, small_sweep):
    refused(evalcube(*command, "a" * 300, cwd=small_sweep), "too long")


def test_readers__foreign_labels_do_nothing_to_the_terminal(small_sweep, tmp_path):
    shutil.copytree(small_sweep / "cube.zarr", tmp_path / "cube.zarr")
    bell = "al\x1b[2Jpha"
    change_attributes(tmp_path / "cube.zarr", lambda spec: spec["evaluations"][0].update(model=bell))

    for arguments in (
        ("status",),
        ("show", "--task", "boolean"),
        ("show", "--task", "boolean", "--model", "x"),
    ):
        name, *more = arguments
        _, output, errors = evalcube(name, "cube.zarr", *more, cwd=tmp_path)
        assert "\x1b[2J" not in output + errors
        assert "al\\x1b[2Jpha" in output + errors


def test_show__json_of_a_reply_with_a_lone_surrogate(capsys):
    show_json({"response": "a\ud800b"})

    assert json.loads(capsys.readouterr().out.encode()) == {"response": "a\ud800b"}


def test_complain__shows_control_characters(capsys):
    complain("http 500 (\x1b]0;title\x07)\nnext")

    assert capsys.readouterr().err == "evalcube: http 500 (\\x1b]0;title\\x07)\nnext\n"


def _failing(monkeypatch, error):
    """Have `evalcube status` fail in code that is nobody's plug-in."""
    monkeypatch.setattr("evalcube.flows.read.status.cube_status", Mock(side_effect=error))


def test_main__a_defect_has_a_code_and_a_traceback_of_its_own(tmp_path, monkeypatch):
    _failing(monkeypatch, ZeroDivisionError("boom"))

    code, _, errors = evalcube("status", "x", cwd=tmp_path)

    assert code == 70
    assert "ZeroDivisionError: boom" in errors
    assert "please report" in errors.splitlines()[-1]


@pytest.mark.parametrize(
    ("interrupt", "said"),
    [
        (KeyboardInterrupt(), "stopped at once; run the same command again to resume"),
        (RunInterrupted(None), "the run was stopped by a signal; run it again to go on"),
    ],
    ids=["at once", "in good order"],
)
def test_main__ctrl_c_outside_of_a_run_is_told_and_so_is_one_that_ended_in_good_order(
    tmp_path, monkeypatch, interrupt, said
):
    _failing(monkeypatch, interrupt)

    code, _, errors = evalcube("status", "x", cwd=tmp_path)

    assert (code, errors) == (130, f"evalcube: {said}\n")


def test_commands__refuse_python_without_assertions_in_a_line(small_sweep):
    done = subprocess.run(
        [sys.executable, "-O", "-m", "evalcube", "leaderboard", "cube.zarr"],
        cwd=small_sweep,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert done.returncode == 2
    assert done.stderr.startswith("evalcube: Python: runs")
    assert done.stderr.count("\n") == 1


def test_show_json__names_its_schema_and_has_no_nan(capsys):
    show_json({"a": float("nan"), "b": "é"}, "thing")
    first = capsys.readouterr().out
    show_json({"schema": "evalcube.own", "schema_version": 3, "a": [1.0, float("inf")]}, "thing")
    second = capsys.readouterr().out
    show_json([1])

    assert json.loads(first) == {"schema": "evalcube.thing", "schema_version": 1, "a": None, "b": "é"}
    assert first.isascii()
    assert json.loads(second) == {"schema": "evalcube.own", "schema_version": 3, "a": [1.0, None]}
    assert capsys.readouterr().out == "[\n  1\n]\n"


def test_number__has_two_decimals_and_perhaps_a_sign():
    assert [number(value) for value in (1.005, -0.5, float("nan"))] == ["1.00", "-0.50", "-"]
    assert [number(value, sign=True) for value in (0.5, 0.0, float("nan"))] == ["+0.50", "+0.00", "-"]


def test_complain__bounds_each_line(capsys):
    complain("a\x1b\n" + "x" * 100_000)

    first, second = capsys.readouterr().err.splitlines()
    assert first == "evalcube: a\\x1b"
    assert second.endswith("x…")
    assert len(second) < 20_000


@with_cases(
    ("form", "output"),
    [
        ("csv", "model\na\n"),
        ("markdown", "| model |\n| --: |\n| a |\n\n\nmind this\n"),
        ("json", {"cubes": ["a.zarr", "b.zarr"], "rows": [{"model": "a"}], "warnings": ["mind this"]}),
    ],
)
def test_emit__has_warnings_in_each_form_that_has_a_place_for_them(form, output, capsys):
    sheet = TableSpec((Column("model", lambda row: row["model"]),), [{"model": "a"}])
    result = SimpleNamespace(sheet=lambda: sheet, to_dict=lambda: {"rows": sheet.rows})

    emit_with(("mind this",), result, ["a.zarr", "b.zarr"], form)

    text, errors = capsys.readouterr()
    assert errors == "evalcube: mind this\n"
    assert (json.loads(text) if form == "json" else text) == output
    emit_with((), result, ["a.zarr"], "json")
    assert json.loads(capsys.readouterr().out) == {"rows": [{"model": "a"}]}


@with_cases(("more", "cut", "shown"), [(2, True, MOST_ROWS), (2, False, MOST_ROWS + 2), (0, True, MOST_ROWS)])
def test_print_rows__says_how_many_more_there_are_where_it_cuts(more, cut, shown, capsys):
    print_rows(("name",), [(f"row {number}",) for number in range(MOST_ROWS + more)], cut=cut)

    output = capsys.readouterr().out
    assert output.count("row ") == shown
    assert ("... and 2 more" in output) == ("more" in output) == (shown < MOST_ROWS + more)
