"""What draws the leaderboard is imported while answers are awaited: the end of a run does not wait for it."""

from types import SimpleNamespace

from evalcube.flows.cli import measure
from evalcube.flows.events import Noted, Traffic


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
