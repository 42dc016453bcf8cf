"""The plan node of top-n, for all rows or per group, and of row numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import pyarrow as pa

from muntin.plan.description import Fact
from muntin.plan.node import Node


@dataclass(frozen=True)
class SortKey:
    """A column that orders rows; ``hidden`` ones, added to break ties, are never NULL."""

    column: int
    descending: bool = False
    nulls_first: bool = False
    hidden: bool = False


class RowNumbering(StrEnum):
    """How the rows of a group are numbered."""

    ROW_NUMBER = "row_number"
    RANK = "rank"
    DENSE_RANK = "dense_rank"


@dataclass(frozen=True)
class TopN(Node):
    """The rows of each group from ``offset`` up to ``offset + limit``, in order.

    ``keys`` are the columns of the input by which rows are grouped. ``order`` has the user's sort
    keys, ``peers`` of them, then those that break ties. ``columns`` are passed on, and behind them
    the ``number`` of each row if a name for it is given. The bound of RANK and DENSE_RANK is on the
    numbers: rows with equal sort keys have the same one.
    """

    input: Node
    keys: tuple[int, ...]
    order: tuple[SortKey, ...]
    peers: int
    limit: int | None
    offset: int
    columns: tuple[int, ...]
    numbering: RowNumbering = RowNumbering.ROW_NUMBER
    number: str = ""

    @cached_property
    def schema(self) -> pa.Schema:
        """Return the columns that are passed on, and the number."""
        fields = [self.input.schema.field(place) for place in self.columns]
        return pa.schema([*fields, *([pa.field(self.number, pa.int64())] if self.number else [])])

    @property
    def stop(self) -> int | None:
        """Return the number of the last row that is kept."""
        return None if self.limit is None else self.offset + self.limit

    @property
    def label(self) -> str:
        """Return which rows are kept, in words."""
        per = " per group" if self.keys else ""
        if self.limit is None and not self.number:
            return "sort"
        if self.limit is None:
            return f"{self.numbering}{per}"
        what = f"first {self.limit} rows" if self.offset == 0 else f"{self.limit} rows"
        behind = f" behind the first {self.offset}" if self.offset else ""
        return f"{what}{behind}{per}"

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Keys, order and columns."""
        names = self.input.schema.names
        order = [
            f"{names[key.column]}{' desc' if key.descending else ''}"
            for key in self.order[: self.peers]
        ]
        return (
            Fact("keys", [names[place] for place in self.keys]),
            Fact("order", order, f"by {', '.join(order)}"),
            Fact("columns", self.schema.names),
        )
