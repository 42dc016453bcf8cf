"""The plan node of window functions: values of rows around each row, in an order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import pyarrow as pa

from muntin.plan.description import Fact
from muntin.plan.node import Node
from muntin.plan.top_n import SortKey


class FrameMode(StrEnum):
    """How the rows of a frame are counted: one by one, or by the key that orders them."""

    ROWS = "ROWS"
    RANGE = "RANGE"


class BoundKind(StrEnum):
    """Where a frame begins or ends; ``OFFSET`` is before or behind the row by a distance."""

    FIRST = "UNBOUNDED PRECEDING"
    CURRENT = "CURRENT ROW"
    OFFSET = "offset"
    LAST = "UNBOUNDED FOLLOWING"


@dataclass(frozen=True)
class Bound:
    """A bound of a frame; ``distance`` is in rows or in units of the key, negative if before.

    Times have microseconds. ``text`` is the distance without its sign, as SQL.
    """

    kind: BoundKind
    distance: int | float = 0
    text: str = ""

    @property
    def sql(self) -> str:
        """Return it as SQL."""
        if self.kind is not BoundKind.OFFSET:
            return self.kind.value
        return f"{self.text} {'PRECEDING' if self.distance < 0 else 'FOLLOWING'}"


@dataclass(frozen=True)
class Frame:
    """The rows that a call is over, for each row."""

    mode: FrameMode
    start: Bound
    end: Bound

    @property
    def sql(self) -> str:
        """Return it as SQL."""
        return f"{self.mode} BETWEEN {self.start.sql} AND {self.end.sql}"


class RowFunction(StrEnum):
    """A function that takes the value of one row of the frame."""

    LAG = "lag"
    LEAD = "lead"
    FIRST_VALUE = "first_value"
    LAST_VALUE = "last_value"
    NTH_VALUE = "nth_value"


@dataclass(frozen=True)
class WindowCall:
    """One call: a function, the column of the input it is over, its frame.

    The function is an aggregate or a :class:`RowFunction`; ``number`` is the offset of LAG and LEAD
    and the row of NTH_VALUE, and ``default`` the column that LAG and LEAD take where there is no
    row. ``text`` is the call as users read it.
    """

    name: str
    function: str
    argument: int | None
    type: pa.DataType
    frame: Frame
    number: int = 1
    default: int | None = None
    text: str = ""


@dataclass(frozen=True)
class WindowFunctions(Node):
    """The rows of the input, each with the values of calls behind it.

    ``keys`` are the columns by which rows are grouped. ``order`` has the user's sort keys, which
    are ``peers``, then those that break ties.
    """

    input: Node
    keys: tuple[int, ...]
    order: tuple[SortKey, ...]
    peers: int
    calls: tuple[WindowCall, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        """Return the columns of the input, and one per call."""
        fields = [pa.field(call.name, call.type) for call in self.calls]
        return pa.schema([*self.input.schema, *fields])

    @property
    def label(self) -> str:
        """Return what it does."""
        return f"window functions{' per group' if self.keys else ''}"

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Keys, order and calls."""
        names = self.input.schema.names
        order = [
            f"{names[key.column]}{' desc' if key.descending else ''}"
            for key in self.order[: self.peers]
        ]
        calls = [call.text for call in self.calls]
        return (
            Fact("keys", [names[place] for place in self.keys]),
            Fact("order", order, f"by {', '.join(order)}" if order else ""),
            Fact("calls", calls, ", ".join(calls)),
        )
