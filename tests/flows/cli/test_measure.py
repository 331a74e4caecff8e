"""Commands that ask models: what they import while answers are awaited, what they take, and what they print."""

from types import SimpleNamespace

from evalcube.flows.cli import measure
from evalcube.flows.events import Noted, Traffic
from evalcube.flows.run.probe.checks import ProbeFinding
from evalcube.flows.run.probe.probe import ProbeResult
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
