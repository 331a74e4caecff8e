# ruff: noqa: PLC0414 - the one list of the names, which is handed on to type checkers
"""What subscribers of a run are called with, and how a run ends that a signal stops."""

from evalcube.flows.run.follow.events import Asked as Asked
from evalcube.flows.run.follow.events import BlockDone as BlockDone
from evalcube.flows.run.follow.events import Event as Event
from evalcube.flows.run.follow.events import Extended as Extended
from evalcube.flows.run.follow.events import Finished as Finished
from evalcube.flows.run.follow.events import Noted as Noted
from evalcube.flows.run.follow.events import RegionWritten as RegionWritten
from evalcube.flows.run.follow.events import Started as Started
from evalcube.flows.run.follow.events import Subscriber as Subscriber
from evalcube.flows.run.follow.events import Traffic as Traffic
from evalcube.flows.run.stopping import RunInterrupted as RunInterrupted
from evalcube.stages.infer.jobs import Slowdown as Slowdown

__all__ = [name for name in dir() if not name.startswith("_")]
