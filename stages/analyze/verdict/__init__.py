"""Whether a treatment may replace the control: one verdict from scores on the same units."""

from evalcube.stages.analyze.verdict.result import Verdict
from evalcube.stages.analyze.verdict.verdict import verdict

__all__ = ["Verdict", "verdict"]
