"""The node of outer, semi and anti joins that emit inserts only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import pyarrow as pa

from muntin.plan.description import Fact
from muntin.plan.node import Node


class Kept(StrEnum):
    """Which rows such a join emits."""

    OUTER = "outer"
    SEMI = "semi"
    ANTI = "anti"


@dataclass(frozen=True)
class OuterInserts(Node):
    """The matches of an inner join as they arise, and the rows of ``sides`` that never had one.

    The first ``shown`` columns of ``matches`` are those of the result; the others identify the rows
    of each side by their positions in their streams. A side has columns of the same names, all that
    identify its rows and some of the result; the rest is NULL. SEMI emits a row of its side when it
    gets its first match, ANTI emits no matches.

    The rows of ``history`` count for nothing. Their windows are long enough to keep what a row may
    have matched as long as the row itself, so whether it had a match follows from the rows that are
    kept, after a restart too.

    At an instant, the answer is that of SQL: matches, and rows without one now.
    """

    matches: Node
    sides: tuple[Node, ...]
    history: tuple[Node, ...]
    kept: Kept
    shown: int

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return pa.schema([self.matches.schema.field(place) for place in range(self.shown)])

    def identity(self, side: Node) -> list[str]:
        """Return the columns that identify the rows of a side."""
        return [
            name for name in self.matches.schema.names[self.shown :] if name in side.schema.names
        ]

    @property
    def label(self) -> str:
        """Which rows it emits."""
        if self.kept is Kept.SEMI:
            return "rows when they are matched first"
        never = "rows that leave without ever having had a match"
        return never if self.kept is Kept.ANTI else f"matches, and {never}"

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Its columns."""
        return (Fact("columns", self.schema.names),)
