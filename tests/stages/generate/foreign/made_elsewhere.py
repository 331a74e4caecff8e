"""A task whose questions stand for those of another package: no process is started for them, and they are counted."""

from typing import ClassVar

from pydantic import Field

from evalcube.stages.generate.base import TaskParams, Trial
from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.foreign.rendered import RenderedTask


class Sums(RenderedTask):
    """Asks for sums; `rendered` has the seeds of each call, and `missing` stands for a package that is not there."""

    name: ClassVar[str] = "made:sums"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "sums"
    guess_rule: ClassVar[str] = "0"

    class Params(TaskParams):
        """Params of `Sums`."""

        level: int = Field(0, ge=0, le=5, description="Digits; more is harder.")

    missing = False

    def __init__(self):
        self.rendered = []

    def check_package(self):
        if self.missing:
            raise TaskError("the package is missing")

    def render(self, params, seeds):
        self.check_package()
        self.rendered.append(list(seeds))
        most = 10 ** (params.level + 1)
        return [
            {"prompt": f"{seed} + {params.level}?", "target": str(seed % most), "entry": [seed]}
            for seed in seeds
        ]

    def trial(self, params, row):  # noqa: ARG002
        return Trial(row["prompt"], row["target"], extras={"entry": row["entry"]})

    def parse(self, text):
        return text.rpartition("Answer: ")[2] or None

    def difficulty(self, params):
        return 1.0 + params.level
