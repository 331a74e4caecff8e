"""Scores of a control and its treatments on the same units -> one verdict, whether the change may ship."""

from stages.analyze.verdict.result import Verdict
from stages.analyze.verdict.verdict import verdict

__all__ = ["Verdict", "verdict"]
