"""Verdicts as oh-my-knowledge 0.54 (omk) computes them: its roundings, random numbers, tables and rules, bit for bit.

For reports that must be comparable with that tool's. Its percentile bootstrap rejects a true null far too often when
units are few; use the reference engine for decisions of your own.
"""

from evalcube.stages.analyze.verdict.omk054.answer import verdict
from evalcube.stages.analyze.verdict.omk054.bootstrap import DRAWS
from evalcube.stages.analyze.verdict.omk054.engine import Evaluation, Settings, evaluate
from evalcube.stages.analyze.verdict.omk054.mulberry import SEED

__all__ = ["DRAWS", "SEED", "Evaluation", "Settings", "evaluate", "verdict"]
