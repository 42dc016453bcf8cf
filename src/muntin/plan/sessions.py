"""The plan node of session windows: the rows of a stream with the bounds of their sessions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import pyarrow as pa

from muntin.model.clock import format_interval
from muntin.plan.description import Fact
from muntin.plan.node import Node

WINDOW_START = "window_start"
WINDOW_END = "window_end"
HIDDEN = 2
"""The last columns of the input: time and position of a row."""


class SessionEnds(StrEnum):
    """What rows have as the end of their window, and when they are present.

    EACH is what SQL says: the end of the session as it is at each instant. STEADY: the end if no
    further row came, which never changes; the greatest of a session is its end. FINAL: rows are
    present only in the instant before their session is over.
    """

    EACH = "each"
    STEADY = "steady"
    FINAL = "final"


@dataclass(frozen=True)
class SessionWindows(Node):
    """The rows of open sessions.

    Rows with equal values in the columns ``keys`` that are at most ``gap`` microseconds apart are
    one session, which is over a gap after its last row. The input is one stream, whose rows are
    taken as they come; its last columns are hidden.
    """

    input: Node
    keys: tuple[int, ...]
    gap: int
    ends: SessionEnds = SessionEnds.EACH

    @cached_property
    def schema(self) -> pa.Schema:
        """Return the columns of the stream and the bounds of sessions."""
        fields = list(self.input.schema)[:-HIDDEN]
        bounds = [pa.field(name, pa.timestamp("us")) for name in (WINDOW_START, WINDOW_END)]
        return pa.schema([*fields, *bounds])

    @property
    def label(self) -> str:
        """Return what it is, and its gap."""
        return f"sessions with gaps of {format_interval(self.gap)}"

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Its keys, and when ends change."""
        names = [self.input.schema.names[place] for place in self.keys]
        return (
            Fact("keys", names, f"by {', '.join(names)}" if names else "of all rows"),
            Fact("ends", self.ends.value),
        )

    @property
    def expires_in_order(self) -> bool:
        """No: sessions that began later may be over earlier."""
        return False
