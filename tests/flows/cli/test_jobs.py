"""`evalcube status --watch` beside a run, through the command line, and the file that it reads."""

import io
import json
import re
import signal
import threading
import time
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from evalcube.flows.cli import jobs
from evalcube.flows.cli.jobs import _line, _render
from evalcube.flows.config.load import as_config
from evalcube.flows.events import BlockDone, Finished, Started, Traffic
from evalcube.flows.plan.build import build_plan
from evalcube.flows.plan.targets import SampleTargets
from evalcube.flows.read.status import cube_status
from evalcube.flows.run.follow.progress import Tracker
from evalcube.flows.run.follow.records import LiveFile
from evalcube.flows.state.records import read_live
from evalcube.flows.state.store import SweepStore, open_store
from evalcube.storage.cube.directory import Directory
from evalcube.storage.errors import CubeDamagedError
from tests.flows.support import command, evalcube, refused, sweep_config, write_config
from tests.waiting import wait_until


def slow(tmp_path, simulator, trials):
    config = sweep_config(tmp_path, simulator.base_url, trials=trials)
    config["models"][0]["simulate"]["latency"] = 0.5
    config["models"][0]["prices"] = {"prompt": 1.0, "completion": 2.0}
    return write_config(tmp_path, config)


def test_watch__follows_a_run_to_its_end(tmp_path, simulator):
    path = slow(tmp_path, simulator, 20)
    run = command("run", path, "--quiet", "--json", "--log", "events.jsonl", cwd=tmp_path)
    while not (tmp_path / "cube.zarr" / "_evalcube" / "live.json").exists():
        assert run.poll() is None, run.communicate()
        time.sleep(0.05)
    # However slowly the one starts that watches, the run is under way when it does.
    run.send_signal(signal.SIGSTOP)
    watch = ("status", "cube.zarr", "--watch")
    with read(command(*watch, "--json", cwd=tmp_path)) as objects:
        wait_until(lambda: objects)
        run.send_signal(signal.SIGCONT)
        code, output, errors = evalcube(*watch, cwd=tmp_path)
        summary = json.loads(run.communicate()[0])
    looks = [json.loads(line) for line in objects]

    last = output.splitlines()[-1]
    assert (code, errors) == (0, "")
    assert "100 of 100 trials done" in last
    assert "running" not in last
    assert "running as process" in output
    assert looks[-1]["complete"]
    assert looks[-1]["live"] is None
    assert [look["done"] for look in looks] == sorted(look["done"] for look in looks)
    assert max(look["live"]["sent"] for look in looks if look["live"]) > 0
    check_summary(summary)
    logged = json.loads((tmp_path / "events.jsonl").read_text().splitlines()[-1])
    assert (logged["event"], logged["sent"]) == ("finished", 100)


def test_submit__of_a_slurm_job_says_which_one_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr("evalcube.flows.run.jobs.slurm_job.submit", lambda _: 4711)
    config = {**sweep_config(tmp_path, "http://127.0.0.1:9"), "cluster": {"slurm": {}}}

    code, output, errors = evalcube("submit", write_config(tmp_path, config), cwd=tmp_path)

    job, progress = output.splitlines()
    assert (code, errors) == (0, "")
    assert (job.split()[1].rstrip(","), job.split()[-1]) == ("4711", str(tmp_path / "cube.sbatch"))
    assert "scancel 4711" in progress


@contextmanager
def read(process):
    """The lines that a command has printed so far; in the end it is over, and all was well."""
    lines = []

    def follow():
        for line in process.stdout:
            lines.extend([line])

    reader = threading.Thread(target=follow)
    reader.start()
    try:
        yield lines
        reader.join()
        assert (process.communicate()[1], process.returncode) == ("", 0)
    finally:
        process.kill()
        reader.join()
        process.communicate()


def check_summary(summary):
    """What the run itself told at its end."""
    assert (summary["sent"], summary["graded"], summary["causes"]) == (100, 100, {})
    tokens = summary["prompt_tokens"] + 2 * summary["completion_tokens"]
    assert summary["usd"] == pytest.approx(tokens / 1e6)
    assert summary["trials_per_second"] == pytest.approx(100 / summary["seconds"])
    assert summary["asking_seconds"] < summary["seconds"]
    (limit,) = summary["limits"]
    assert (limit["limit"], limit["value"], limit["models"]) == ("connections", 8, ["alpha"])
    assert 0.0 < summary["efficiency"] == limit["used"] < 1.05


def test_watch__redraws_a_terminal_until_ctrl_c(tmp_path, monkeypatch):
    plan = build_plan(as_config(sweep_config(tmp_path, "http://127.0.0.1:9", trials=2)))
    store = open_store(plan, str(tmp_path / "cube.zarr"))
    SweepStore(store.cube, plan, SampleTargets.uniform(plan, 2, 1)).grow()
    waits = iter([lambda: None, lambda: signal.raise_signal(signal.SIGINT)])
    monkeypatch.setattr(jobs, "time", SimpleNamespace(sleep=lambda _: next(waits)()))
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes any file for a terminal
    monkeypatch.setenv("TERM", "xterm")

    code, shown, errors = evalcube("status", "cube.zarr", "--watch", cwd=tmp_path)

    assert (code, errors) == (130, "")
    assert shown.count("0 of 10 trials done; no run") >= 2
    assert "\x1b[1A" in shown  # the cursor goes up


def test_watch__of_no_cube_is_refused(tmp_path):
    refused(evalcube("status", "nothing.zarr", "--watch", cwd=tmp_path), "nothing.zarr")


@pytest.mark.parametrize(("failures", "borne"), [(5, True), (6, False)])
def test_watch__bears_five_failures_in_a_row(monkeypatch, capsys, failures, borne):
    away = [CubeDamagedError("its ledger cannot be read", "cube.zarr", "Wait")] * failures
    going = {
        "complete": False,
        "running": None,
        "live": None,
        "spent": None,
        "damaged": 0,
        "damaged_lines": 0,
        "done": 1,
        "trials": 2,
    }
    done = {**going, "complete": True}
    looks = iter([going, *away[:5], going, *away, done])

    def look(_):
        found = next(looks)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr("evalcube.flows.read.status.cube_status", look)
    monkeypatch.setattr(jobs, "_LOOK_SECONDS", 0.001)
    with nullcontext() if borne else pytest.raises(CubeDamagedError):
        jobs.follow("cube.zarr", as_json=True)

    said = [json.loads(line)["complete"] for line in capsys.readouterr().out.splitlines()]
    assert said == [*[False] * 12, True][: 13 if borne else 12]


def test_live__is_what_a_run_says_of_itself(tmp_path):
    tracker = Tracker()
    file = LiveFile(Directory(tmp_path), tracker)
    done = BlockDone((0,), 0, trials=4, cached=1, transport=1, missing=0)
    for event in (Started("r", "c", 20, 5, ("a",)), Traffic(sent=7, retries={"reset": 2}, worker="w"), done):
        tracker(event)
        file(event)
    file(Finished("stopped"))

    live = read_live(Directory(tmp_path))

    assert (live["done"], live["trials"], live["sent"], live["retries"]) == (9, 20, 7, {"reset": 2})
    assert (live["cached"], live["transport"], live["reason"]) == (1, 1, "stopped")
    assert [path.name for path in tmp_path.iterdir()] == ["live.json"]


WAITING = {"gpt": {"seconds": 44.5, "reason": "429: requests, Retry-After"}}


def test_live__says_what_is_waited_for(tmp_path):
    tracker = Tracker()
    file = LiveFile(Directory(tmp_path), tracker)
    for event in (
        Started("r", "c", 20, 5, ("a",)),
        Traffic(waiting=WAITING, worker="w"),
        Finished("stopped"),
    ):
        tracker(event)
        file(event)

    live = read_live(Directory(tmp_path))
    status = {
        "live": live,
        "done": 5,
        "trials": 20,
        "spent": None,
        "running": "",
        "complete": False,
        "damaged": 0,
        "damaged_lines": 0,
    }

    assert live["waiting"]["gpt"]["reason"] == "429: requests, Retry-After"
    assert " 45 s for gpt" in _line(status)


LIVE = dict.fromkeys(
    ("time", "seconds", "trials", "done", "sent", "in_flight", "cached", "transport", "rate"), 0
)


@pytest.mark.parametrize(
    ("waiting", "read"),
    [
        (None, False),
        ({}, True),
        (WAITING, True),
        ({"gpt": 45}, False),
        ({"gpt": {"seconds": 10**400, "reason": ""}}, False),
        ({"gpt": {"seconds": float("nan"), "reason": ""}}, False),
        ({"gpt": {"seconds": 1, "reason": 4}}, False),
    ],
)
def test_read_live__takes_waiting_in_another_form_for_damage(tmp_path, waiting, read):
    (tmp_path / "live.json").write_text(json.dumps({**LIVE, "retries": {}, "waiting": waiting}))

    assert (read_live(Directory(tmp_path)) is not None) == read


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"retries": {}, "done": "9"}', "[" * 100_000])
def test_read_live__takes_damage_for_nothing(tmp_path, text):
    (tmp_path / "live.json").write_text(text)

    assert read_live(Directory(tmp_path)) is None
    assert read_live(Directory(tmp_path / "none")) is None


def test_live__where_nothing_can_be_written_is_left_out(tmp_path):
    tracker = Tracker()
    started = Started("r", "c", 20, 5, ("a",))
    tracker(replace(started))

    LiveFile(Directory(tmp_path / "no"), tracker)(started)

    assert list(tmp_path.iterdir()) == []


def test_status__of_a_sweep_that_failed_before_its_first_request_is_not_complete(tmp_path):
    cube = str(tmp_path / "cube.zarr")
    open_store(build_plan(as_config(sweep_config(tmp_path, "http://127.0.0.1:9/v1", trials=4))), cube)

    status = cube_status(cube)

    assert not status["complete"]
    assert _line(status).startswith("not begun")


def rendered(document, **options):
    file = io.StringIO()
    Console(file=file, width=120).print(_render(document, **options))
    return file.getvalue()


@pytest.mark.parametrize(
    ("live", "heads", "line"),
    [
        (None, ("done", "missing"), "40 of 100 trials done"),
        ({"done": 64}, ("recorded", "not recorded"), "64 of 100 trials done; 40 recorded; 8 in flight"),
        ({"done": 40}, ("recorded", "not recorded"), "40 of 100 trials done; 40 recorded; 8 in flight"),
        ({"done": 64}, ("recorded", "not recorded"), "requests/s 0.5, ETA 1:12"),
    ],
)
def test_render__table_and_line_say_which_numbers_are_recorded(live, heads, line):
    told = {
        "trials": 100,
        "in_flight": 8,
        "sent": 70,
        "cached": 0,
        "rate": 0.5,
        "eta": 72.0,
        "retries": {},
        "transport": 0,
        "waiting": [],
    }
    row = {"model": "alpha", "trials": 100, "done": 40, "transport": 0, "missing": 60, "regions": 2}
    row |= {"regions_complete": 0, "answered_by": "", "warning": "", "causes": {}}
    document = {
        "models": [row],
        "unnamed": None,
        "refused": [],
        "driver": None,
        "trials": 100,
        "done": 40,
        "complete": False,
    }
    document |= {
        "damaged": 0,
        "damaged_lines": 0,
        "spent": None,
        "running": None,
        "live": None if live is None else told | live,
    }

    output = rendered(document)

    head, text = output.splitlines()[0], " ".join(output.split())
    assert re.split(r"\s{2,}", head.strip())[2::2] == list(heads)
    assert line in text


def test_line__says_only_what_there_is_to_say():
    document = {"trials": 100, "done": 40, "complete": False, "running": None, "live": None, "spent": None}
    document |= {"damaged": 0, "damaged_lines": 0}
    broken = {"damaged": 2, "damaged_lines": 3, "spent": {"usd": 0.5}, "running": "a run is working"}

    assert _line(document) == "40 of 100 trials done"
    assert _line(document | {"spent": {"usd": 0.0}}) == "40 of 100 trials done"
    assert _line(document, watched=True) == "40 of 100 trials done; no run is working on it now"
    assert _line(document | {"complete": True}, watched=True) == "40 of 100 trials done"
    assert _line(document | broken, watched=True).split("; ") == [
        "40 of 100 trials done",
        "2 regions damaged: the next run restores them from the cache",
        "3 lines of the ledger damaged: run the sweep again",
        "no request is repeated",
        "0.50 USD spent",
        "a run is working",
    ]


STATUS = {
    "models": [], "unnamed": None, "refused": [], "driver": None, "trials": 100, "done": 40, "complete": False,
    "damaged": 0, "damaged_lines": 0, "spent": None, "running": None, "live": None,
}  # fmt: skip


def test_render__says_of_each_evaluation_what_went_wrong_and_while_watched_the_first_of_it():
    row = {"model": "alpha", "trials": 100, "done": 40, "transport": 7, "missing": 53, "regions": 2}
    row |= {"regions_complete": 1, "answered_by": "another", "warning": "odd", "causes": {}}
    failing = row | {"model": "beta", "causes": {f"http {500 + number}": number for number in range(7)}}
    failing |= {"answered_by": "", "warning": ""}
    document = STATUS | {
        "models": [row, failing],
        "unnamed": {"models": ["alpha"], "points": {}, "trials": 3},
        "refused": ["write this"],
        "driver": {"scheduler": "tcp://s", "worker": "w", "lines": [f"line {number}" for number in range(7)]},
    }

    once, watched = rendered(document), rendered(document, watched=True)

    for output in (once, watched):
        for words in ("alpha: answered by another", "odd", "write this", "submitted to tcp://s", "line 2"):
            assert words in output
        assert re.search(r"alpha \(not in the run\) +100 +40 +7 +53 +1/2", output)
        assert "beta (not" not in output
        assert "line 1" not in output
        assert "(3 trials)" in output
    assert [output.count(" trials failed with http 50") for output in (once, watched)] == [7, 3]
    assert ["and 4 causes more" in output for output in (once, watched)] == [False, True]
    few = failing | {"causes": {f"http {500 + number}": number for number in range(5)}}
    assert "more" not in rendered(document | {"models": [few]}, watched=True)


def test_live__says_what_fails_is_retried_and_is_waited_for_only_if_something_does():
    live = dict.fromkeys(("in_flight", "sent", "cached", "transport", "rate", "done", "trials"), 3)
    live |= {"retries": {}, "eta": None, "waiting": {}}

    def parts(**changes):
        return _line(STATUS | {"live": live | changes}).split("; ")

    assert parts()[:3] == ["40 of 100 trials done", "40 recorded", "3 in flight, 3 sent, 3 cached"]
    assert "3 failed, 0 retried" in parts()
    assert "0 failed, 5 retried" in parts(transport=0, retries={"reset": 2, "timeout": 3, "odd": "x"})
    assert len(parts(transport=0)) == len(parts()) - 1 == len(parts(waiting=WAITING)) - 2
