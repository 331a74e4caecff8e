"""The parts of a run that has no cluster, for tests of what works on it."""

from types import SimpleNamespace

from evalcube.flows.events import Announcer
from evalcube.flows.run.workers import RunParts
from evalcube.stages.infer.sharing import Shared

EVERYBODY = SimpleNamespace(admit=lambda there, *_: sorted(there), describe=str, undecided=False)
"""Admits whoever is there."""


def run_parts(connection, emit=lambda _: None, admission=EVERYBODY, sharing=None, **routes):
    """The parts of the run `run`; of its models only the digests of their endpoints are known."""
    known = {
        name: SimpleNamespace(endpoint=SimpleNamespace(digest=digest)) for name, digest in routes.items()
    }
    context = SimpleNamespace(run="run", routes=known)
    return RunParts(
        connection,
        context,
        admission,
        None,
        Announcer([emit]),
        sharing or Shared(),
        None,
        lambda _: False,
        1.0,
    )
