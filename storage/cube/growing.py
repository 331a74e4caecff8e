"""How a cube becomes larger: more trials and repeats; more models, tasks, points, tiers and judges.

A cube only grows, and only at the ends of its dims, so that all that was written stays where it is and as it is. What
others see changes in one step, when the consolidated metadata are replaced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from evalcube.storage.cube.extension import Extension
from evalcube.storage.cube.layout import Coordinate
from evalcube.storage.cube.ledger import Receipt
from evalcube.storage.cube.regions import RegionShape
from evalcube.storage.cube.shared_arrays import SharedArrays
from evalcube.storage.errors import CubeDamagedError, guarded

_NOTHING: Mapping[str, Any] = {}


class GrowingCube(SharedArrays):
    """The part of `evalcube.storage.cube.cube.Cube` that changes shapes; for the driver only."""

    def grow(self, *, trial: int | None = None, repeat: int | None = None) -> None:
        """Enlarge the cube; cells that exist keep their bits, new ones are missing. For the driver only.

        A growth that a kill cut short is finished by the next, to the larger of both sizes; until then
        readers see the old size. Repeating a finished growth changes nothing. Other open `Cube` objects take
        up the new sizes at their next write.

        Parameters
        ----------
        trial, repeat
            New sizes; default as they are.

        Raises
        ------
        CubeMismatchError
            A size is smaller than the present one.
        StorageError
            It could not be written.
        """
        self._need_writable("grow")
        self.refresh()
        present = self._group.sizes
        target = {"trial": trial or present["trial"], "repeat": repeat or present["repeat"]}
        for dim, asked in (("trial", trial), ("repeat", repeat)):
            if asked is not None and asked < present[dim]:
                raise self._mismatch(
                    f"a cube never shrinks: {dim} is {present[dim]}, {asked} was asked for",
                    "Select the trials when reading, or create another cube.",
                )
        with guarded(self._where, "grow the cube"):
            self._group.resize(target)
        self.refresh()

    def extend(
        self,
        *,
        sizes: Mapping[str, int],
        coordinates: Sequence[Coordinate],
        attrs: Mapping[str, object],
        layers: Sequence[str] = (),
        shared: Mapping[str, NDArray[Any]] = _NOTHING,
    ) -> None:
        """Enlarge the cube along other dims than trial and repeat, with new labels and attributes: all or nothing.

        Cells that exist keep their bits, new ones are missing, uncounted and unplanned. No chunk of a trial array is
        written, and receipts stay true. After a kill the cube is the old or the new one.

        Parameters
        ----------
        sizes
            New cells along model, task, params, judge_name, judge_repeat; default as they are.
        coordinates
            All labels as they are to be, of the new sizes; those of trial, repeat and counter stay.
        attrs
            Attributes that are replaced (JSON values).
        layers
            Names of the arrays of `evalcube.storage.cube.schema.LAYERS` that the cube is to have.
        shared
            By name, counters and plans (model, task, params, ...) of the new sizes, where they are not to be as they
            were, since a place has got another meaning.

        Raises
        ------
        CubeMismatchError
            A size is smaller than the present one, or labels do not fit the sizes.
        StorageError
            It could not be written, or the cube was changed meanwhile; it is as before.
        """
        self._need_writable("grow")
        self.refresh()
        if not self._group.consolidated:
            self.grow()  # which puts the metadata of all arrays into one place
        extension = Extension(self._space, self._group, sizes, coordinates, attrs, layers, shared)
        with guarded(self._where, "grow the cube"):
            extension.write()
        self.refresh()

    @property
    def shapes(self) -> Sequence[RegionShape]:
        """What regions consisted of when the cube was made and after each growth that changed it; the last is today's.

        A receipt names one of them by its number.
        """
        return self._group.shapes

    @property
    def shape_number(self) -> int:
        """Number of the shape that regions have today."""
        return len(self._group.shapes) - 1

    def shape_of(self, receipt: Receipt) -> RegionShape:
        """What a region consisted of when it was recorded.

        Raises
        ------
        CubeDamagedError
            The receipt names a shape that the cube never had.
        """
        if receipt.shape >= len(self._group.shapes):
            raise CubeDamagedError(
                f"its ledger speaks of {receipt.shape} growths, and its zarr.json of {self.shape_number}",
                self._where,
                "Take both from the same copy of the cube.",
            )
        return self._group.shapes[receipt.shape]
