"""Commands that ask models: what they import while answers are awaited, what they take, and what they print."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import typer

from evalcube.flows.cli import measure
from evalcube.flows.events import Noted, Traffic
from evalcube.flows.run.probe.checks import ProbeFinding
from evalcube.flows.run.probe.probe import ProbeResult
from evalcube.flows.run.stopping import RunInterrupted
from evalcube.flows.run.summary import RunSummary
from tests.cases import with_cases
from tests.flows.support import evalcube, refused, sweep_config, write_config


def test_subscribers__import_what_draws_the_leaderboard_once_at_the_first_request(monkeypatch):
    imported = []
    monkeypatch.setattr(measure, "import_module", imported.append)
    monkeypatch.setattr(
        measure, "Thread", lambda target, args, **_: SimpleNamespace(start=lambda: target(*args))
    )
    seen = []
    with measure.subscribers(None, quiet=True, draws=True) as followers:
        for event in (Noted("a note"), Traffic(), Traffic(sent=1), Traffic(sent=2)):
            for follower in followers:
                follower(event)
            seen.append(len(imported))
    assert seen == [0, 0, 1, 1]
    assert imported == ["evalcube.flows.read.statistics"]


def test_probe__prints_each_finding_and_ends_by_its_vices(monkeypatch, tmp_path):
    findings = ProbeFinding("stop", "ok", "heeds it", "2 of 2"), ProbeFinding("seed", "vice", "heeds no seed")
    result = ProbeResult("m", "http://there/v1", 7, findings, ("models:", "- name: m"))
    monkeypatch.setattr("evalcube.flows.run.probe.probe.probe", lambda *_: result)

    code, output, _ = evalcube("probe", "http://there/v1#m", cwd=tmp_path)

    assert code == 1
    assert "m at http://there/v1, 7 requests" in " ".join(output.split())
    for part in ("heeds it (2 of 2)", "vice: heeds no seed", "! heeds no seed", "models:\n- name: m"):
        assert part in output


def test_plan__takes_keys_for_models_alone(tmp_path):
    path = write_config(tmp_path, sweep_config(tmp_path, "http://127.0.0.1:9/v1"))

    refused(evalcube("plan", path, "--key-env", "A_KEY", cwd=tmp_path), "--key-env")


SUMMARY = RunSummary("incomplete", "c.zarr", "cache", 4.0, 40, 30, 10, 0, 40, 90, 40)
STOPPED = replace(SUMMARY, reason="stopped")
AGAIN, FIRST, RAISE = "Run the same command again", "Fix the causes above", "Raise the bound"


@with_cases(
    ("summary", "complaints", "remedy"),
    [
        (SUMMARY, [], AGAIN),
        (
            replace(SUMMARY, causes={"timeout": 2, "connect": 8}, details={"connect": "no route"}),
            ["8 trials: connect (no route)", "2 trials: timeout"],
            AGAIN,
        ),
        (replace(SUMMARY, causes={"worker killed": 3}), ["3 trials: worker killed", "--workers"], AGAIN),
        (replace(SUMMARY, in_batches=7), ["7 requests are in batches"], AGAIN),
        (replace(SUMMARY, unrated=6), ["6 recorded trials still lack ratings"], AGAIN),
        (STOPPED, [], AGAIN),
        (replace(STOPPED, ordered="by a colleague"), ["by a colleague"], AGAIN),
        (replace(STOPPED, bound="2 USD are spent"), ["2 USD are spent"], RAISE),
        *(
            (replace(SUMMARY, causes={f"http {status}: why": 1}), [f"1 trials: http {status}"], FIRST)
            for status in (400, 401, 402, 403, 404, 405, 413, 422)
        ),
        *(
            (replace(SUMMARY, causes={"http 401": 2, cause: 1}), ["2 trials", f"1 trials: {cause}"], AGAIN)
            for cause in ("http 408", "http 429", "http 500", "timeout")
        ),
    ],
)
def test_tell__says_what_is_left_why_and_what_to_do(summary, complaints, remedy, capsys):
    with pytest.raises(typer.Exit) as end:
        measure.tell_what_is_left(summary)

    *lines, last = capsys.readouterr().err.splitlines()
    assert end.value.exit_code == (130 if summary.reason == "stopped" else 1)
    assert [words in line for words, line in zip(complaints, lines, strict=True)] == [True] * len(lines)
    assert "10 trials left" in last
    assert remedy in last


@with_cases(("as_json", "done", "shown"), [(False, 30, ["c.zarr"]), (False, 0, []), (True, 30, [])])
def test_tell__shows_how_models_stand_where_people_read_and_something_is_done(
    as_json, done, shown, capsys, monkeypatch
):
    drawn = []
    monkeypatch.setattr(measure, "_print_standing", drawn.append)
    measure.tell(replace(SUMMARY, reason="complete", done=done), as_json=as_json)

    output, errors = capsys.readouterr()
    assert (drawn, errors) == (shown, "")
    assert ("schema" in output) == as_json
    assert ("trials done; this run" in output) == (not as_json)


@with_cases(
    ("ranked", "layers", "labels", "board", "compares"),
    [
        (True, {}, ("a", "b"), True, False),
        (False, {}, ("a", "b"), True, False),
        (True, {"fact": ()}, ("a", "b"), True, True),
        (False, {"fact": ()}, ("a", "b c"), False, True),
        (False, {"fact": ()}, ("a",), False, False),
    ],
)
def test_standing__is_a_leaderboard_or_how_to_compare_variants(
    ranked, layers, labels, board, compares, capsys, monkeypatch
):
    plan = SimpleNamespace(ranked=np.array([False, ranked]), layers=layers, labels=labels)
    monkeypatch.setattr("evalcube.flows.read.reader.Reader", lambda _: SimpleNamespace(plan=plan))
    drawn = []
    monkeypatch.setattr(measure, "print_leaderboard", drawn.append)

    measure._print_standing("c.zarr")

    output = capsys.readouterr().out
    assert drawn == ["c.zarr"] * board
    assert ("verdict c.zarr --control a --treatment" in output) == compares
    assert ("'b c'" in output) == ("b c" in labels)


@with_cases(("words", "function"), [("run", "sweep.run"), ("upsample", "upsample.upsample")])
def test_commands__that_are_stopped_say_what_they_did(words, function, monkeypatch, tmp_path):
    def interrupted(*_, **__):
        raise RunInterrupted(STOPPED)

    monkeypatch.setattr("evalcube.flows.config.suites.load_sweep", lambda *_: None)
    monkeypatch.setattr(f"evalcube.flows.run.{function}", interrupted)
    monkeypatch.setattr(measure, "_print_standing", lambda _: None)

    code, output, errors = evalcube(words, "s.yaml", "--quiet", cwd=tmp_path)

    assert code == 130
    assert "30 of 40 trials done" in output
    assert "stopped with 10 trials left" in errors


@with_cases(
    ("fresh", "there", "called"),
    [
        ("all", True, None),
        ("refused", True, ("forget", "c.zarr", ("task=sort", "status=refused"))),
        ("unrated", True, ("forget_unrated", "c.zarr", ["task=sort"])),
        ("refused", False, None),
        ("unrated", False, None),
    ],
)
def test_run__fresh_forgets_what_is_asked_again(fresh, there, called, monkeypatch, tmp_path):
    seen = []
    settings = SimpleNamespace(cube="c.zarr", cache="cache")
    forget = "evalcube.flows.keep.forget."
    for where, result in {
        "evalcube.flows.config.suites.load_sweep": None,
        "evalcube.flows.config.load.as_config": settings,
        "evalcube.storage.cube.cube.Cube.exists": there,
        "evalcube.flows.run.sweep.run": replace(SUMMARY, reason="complete", done=0),
    }.items():
        monkeypatch.setattr(where, lambda *_, result=result, **__: result)
    monkeypatch.setattr(
        f"{forget}forget", lambda cube, choice, cache: seen.append(("forget", cube, choice.where, cache))
    )
    monkeypatch.setattr(f"{forget}forget_unrated", lambda *given: seen.append(("forget_unrated", *given)))

    code, _, errors = evalcube(
        "run", "s.yaml", "--fresh", fresh, "--only", "task=sort", "--quiet", cwd=tmp_path
    )

    assert (code, errors) == (0, "")
    assert seen == ([] if called is None else [(*called, "cache")])
