"""What is kept per group of an argument, for all aggregates over it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import pyarrow as pa

from muntin.aggregates.function import ArgumentSummary
from muntin.model.arrays import Integers
from muntin.state.group_sums import PerGroup
from muntin.state.group_table import Slots


class ArgumentState(ABC):
    """The state of an argument, in parts that have a place per group."""

    @property
    @abstractmethod
    def _parts(self) -> Sequence[PerGroup]: ...

    def reserve(self, capacity: int) -> None:
        """Make room for a number of groups."""
        for part in self._parts:
            part.reserve(capacity)

    def forget(self, groups: Integers) -> None:
        """Reset groups."""
        for part in self._parts:
            part.forget(groups)

    def nbytes(self) -> int:
        """Return the bytes of all that is kept."""
        return sum(part.nbytes() for part in self._parts)

    @abstractmethod
    def run(
        self, slots: Slots, signs: Integers, column: pa.ChunkedArray | None, order: pa.Table
    ) -> ArgumentSummary:
        """Take changes, and return what is kept before and after them."""
