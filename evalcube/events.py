# ruff: noqa: PLC0414 - the one list of the names, which is handed on to type checkers
"""What subscribers are called with, by a run and other long work, and how a run ends that a signal stops."""

from evalcube.flows.events import Asked as Asked
from evalcube.flows.events import BlockDone as BlockDone
from evalcube.flows.events import Counted as Counted
from evalcube.flows.events import Event as Event
from evalcube.flows.events import Extended as Extended
from evalcube.flows.events import Finished as Finished
from evalcube.flows.events import Noted as Noted
from evalcube.flows.events import RegionWritten as RegionWritten
from evalcube.flows.events import Started as Started
from evalcube.flows.events import Subscriber as Subscriber
from evalcube.flows.events import Traffic as Traffic
from evalcube.flows.run.stopping import RunInterrupted as RunInterrupted
from evalcube.stages.infer.jobs import Slowdown as Slowdown

__all__ = [name for name in dir() if not name.startswith("_")]
