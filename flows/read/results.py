"""Results of analyses as Python users get them: tables to look at, values to compute with, figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from evalcube import known_as
from evalcube._arrays import Dataset, as_xarray
from evalcube.flows.read.selection import OpenPart
from evalcube.stages.analyze.formulas.design import WEIGHING
from evalcube.stages.analyze.labelled import axes
from evalcube.stages.analyze.labelled.pairing import Pair
from evalcube.stages.analyze.labelled.ranking import Ranking
from evalcube.stages.analyze.labelled.results import Leaderboard
from evalcube.stages.analyze.render.shown import Shown

if TYPE_CHECKING:
    import xarray as xr

    from evalcube.stages.analyze.render.charts import Picture
    from evalcube.stages.analyze.render.table import TableSpec


@known_as("evalcube.results")
@dataclass(frozen=True)
class LeaderboardResult(Leaderboard, Shown):
    """A leaderboard that is shown as a table."""

    @classmethod
    def of(cls, board: Leaderboard) -> Self:
        """The same values.

        Parameters
        ----------
        board
            A leaderboard.
        """
        return cls(**{field.name: getattr(board, field.name) for field in fields(Leaderboard)})

    def _table(self) -> TableSpec:
        from evalcube.stages.analyze.render.board_spec import leaderboard_spec

        return leaderboard_spec(self)

    def plot(self) -> Picture:
        """Draw what leads the board with its intervals, best first.

        Returns
        -------
        Picture
            An SVG file as text, which notebooks show.
        """
        from evalcube.stages.analyze.render.charts import board_picture

        return board_picture(self)


class _Standing(NamedTuple):
    part: OpenPart
    ranking: Ranking
    board: LeaderboardResult


@known_as("evalcube.results")
class RankingResult(Shown, _Standing):
    """Ranks of models: `part` that was read, its `ranking`, and `board`, the leaderboard that is ranked."""

    __slots__ = ()

    def _table(self) -> TableSpec:
        from evalcube.stages.analyze.render.board_spec import ranking_spec

        return ranking_spec(self.ranking, self.board)

    def to_dict(self) -> dict[str, object]:
        """Plain JSON values, as ``evalcube rank --json`` prints them."""
        return self.ranking.to_dict(self.board)

    def records(self) -> list[dict[str, Any]]:
        """The ``rows`` of `to_dict`."""
        rows: Any = self.to_dict()["rows"]
        return list(rows)

    def plot(self) -> Picture:
        """Draw the ranks that each evaluation takes when the questions are drawn again.

        Returns
        -------
        Picture
            An SVG file as text, which notebooks show.
        """
        from evalcube.stages.analyze.render.charts import rank_picture

        return rank_picture(self.ranking)


class _Compared(NamedTuple):
    part: OpenPart
    pairs: tuple[Pair, ...]


@known_as("evalcube.results")
class ComparisonResult(Shown, _Compared):
    """Paired comparisons: `part` that was read, and a `Pair` for each pair of evaluations."""

    __slots__ = ()

    def _table(self) -> TableSpec:
        from evalcube.stages.analyze.render.table_specs import pair_spec, pairs_spec

        return pair_spec(self.pairs[0]) if len(self.pairs) == 1 else pairs_spec(self.pairs)

    def to_dict(self) -> dict[str, object]:
        """Plain JSON values: the pairs with their tasks, and what each says in words."""
        from evalcube.stages.analyze.render.rows import pair_row
        from evalcube.stages.analyze.render.table_specs import pair_conclusion

        return {
            "selection": self.part.selection,
            "warnings": list(self.part.warnings),
            "pairs": [pair_row(pair) | {"words": pair_conclusion(pair)} for pair in self.pairs],
        }

    def records(self) -> list[dict[str, Any]]:
        """A row for each task of each pair, and one without a task for all tasks together."""
        from evalcube.stages.analyze.render.rows import pair_records

        return pair_records(self.pairs)

    def plot(self) -> Picture:
        """Draw the differences with their intervals: by task of one pair, overall of several.

        Returns
        -------
        Picture
            An SVG file as text, which notebooks show.
        """
        from evalcube.stages.analyze.render.charts import difference_picture

        return difference_picture(self.pairs)


class _Found(NamedTuple):
    part: OpenPart
    arrays: Dataset


class _Grouped(Shown, _Found):
    """Groups of what was read; it unpacks into `part` and `estimates`."""

    __slots__ = ()
    _SCHEMA: tuple[str, int]

    @property
    def estimates(self) -> xr.Dataset:
        """Of the groups, which are its dimensions; what was asked for stands in its ``attrs``."""
        return as_xarray(self.arrays)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.part, self.estimates))

    def __getitem__(self, place: Any) -> Any:  # noqa: ANN401 - as of a tuple
        return tuple(self)[place]

    @property
    def by(self) -> list[str]:
        """What was grouped by."""
        return [str(name) for name in self.arrays["points_planned"].dims]

    def to_dict(self) -> dict[str, object]:
        """Plain JSON values, as the command prints them with ``--json``."""
        name, version = self._SCHEMA
        head = {"schema": f"evalcube.{name}", "schema_version": version, **self.arrays.attrs, "by": self.by}
        return {**head, "selection": self.part.selection, "rows": self.records()}


@known_as("evalcube.results")
class TableResult(_Grouped):
    """Success rates of groups: `part` that was read, and `estimates`."""

    __slots__ = ()
    _SCHEMA = ("table", 2)

    def _table(self) -> TableSpec:
        from evalcube.stages.analyze.render.table_specs import group_spec

        attrs = self.arrays.attrs
        notes = [f"Part of the cube ({self.part.selection})."] if self.part.selection else []
        notes.append(f"Weights: {WEIGHING[attrs['weigh']]}.")
        notes += attrs["points_told"]
        if axes.most_repeats(self.part.arrays) > 1:
            notes.append(
                "Questions were asked several times: intervals count the answers to one question as one."
            )
        return group_spec(self.records(), self.by, attrs["mode"], attrs["confidence"], tuple(notes))

    def records(self) -> list[dict[str, Any]]:
        """A row for each group that has planned points."""
        from evalcube.stages.analyze.render.rows import group_rows

        return group_rows(self.arrays, axes.evaluation_labels(self.part.arrays))


@known_as("evalcube.results")
class MetricsResult(_Grouped):
    """Metrics of repeated answers: `part` that was read, and `estimates`."""

    __slots__ = ()
    _SCHEMA = ("metrics", 1)

    def _table(self) -> TableSpec:
        from evalcube.stages.analyze.render.table_specs import metric_spec
        from evalcube.stages.reply.status import BASE

        attrs = self.arrays.attrs
        return metric_spec(
            self.records(),
            self.by,
            attrs["metrics"],
            self.part.selection,
            float(attrs["settings"].get("confidence", 0.95)),
            weighed=BASE in self.part.arrays.coords,
            more=attrs["points_told"],
        )

    def records(self) -> list[dict[str, Any]]:
        """A row for each group and k."""
        from evalcube.stages.analyze.render.rows import metric_rows

        labels = axes.evaluation_labels(self.part.arrays)
        return metric_rows(self.arrays, self.arrays.attrs["metrics"], labels)
