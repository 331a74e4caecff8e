"""The values of one column for some rows, kept as they are cheapest until they become Arrow or Python values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

Places = npt.NDArray[np.intp]


class Values(Protocol):
    """One column of some rows."""

    def to_list(self) -> list[Any]:
        """As Python values; None where there is none."""

    def to_arrow(self, kind: pa.DataType) -> pa.Array:
        """As an Arrow array of a type."""


@dataclass(frozen=True, eq=False, slots=True)
class Numbers:
    """Numbers or flags, one for each row."""

    values: npt.NDArray[Any]
    missing: npt.NDArray[np.bool_]

    def to_list(self) -> list[Any]:
        """As Python values; those in single precision in as few digits as tell them apart."""
        values = self.values
        plain = [float(str(one)) for one in values] if values.dtype == np.float32 else values.tolist()
        if not self.missing.any():
            return plain
        return [None if absent else one for one, absent in zip(plain, self.missing.tolist(), strict=True)]

    def to_arrow(self, kind: pa.DataType) -> pa.Array:
        """As an Arrow array of a type."""
        import pyarrow as pa

        return pa.array(self.values, type=kind, mask=self.missing)


@dataclass(frozen=True, eq=False, slots=True)
class Labels:
    """Values of which there are few, by number."""

    levels: Sequence[Any]
    codes: npt.NDArray[Any]

    def to_list(self) -> list[Any]:
        """As Python values."""
        levels = self.levels
        return [levels[code] for code in self.codes.tolist()]

    def to_arrow(self, kind: pa.DataType) -> pa.Array:
        """As an Arrow array of a type."""
        import pyarrow as pa

        return pa.array(list(self.levels), type=kind).take(pa.array(self.codes))


@dataclass(frozen=True, eq=False, slots=True)
class Plain:
    """Python values as they are."""

    values: list[Any]

    def to_list(self) -> list[Any]:
        """As Python values."""
        return self.values

    def to_arrow(self, kind: pa.DataType) -> pa.Array:
        """As an Arrow array of a type."""
        import pyarrow as pa

        return pa.array(self.values, type=kind)
