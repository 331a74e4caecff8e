"""What is stored together, and before what."""

import threading

from evalcube.stages.infer import wire
from tests.stages.infer.conftest import kinds


def test_run__stores_what_comes_in_one_turn_together_and_before_its_connections_ask_again(
    engine_for, store, jobs, monkeypatch
):
    begun, unstored = [], []
    send = wire.Sender.send

    class Watched(type(store)):
        def put_all(self, records):
            unstored.append(len(begun) - len(self.records))
            threading.Event().wait(0.02)  # so that several replies come meanwhile
            super().put_all(records)

    monkeypatch.setattr(wire.Sender, "send", lambda self, *job: begun.append(job) or send(self, *job))
    engine = engine_for(watched := Watched(), connections=8)

    assert kinds(engine.run("m", jobs(200))) == ["stored"] * 200

    assert len(watched.records) == 200 > 2 * len(unstored)
    assert max(unstored) <= 8
