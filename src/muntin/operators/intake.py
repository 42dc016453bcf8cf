"""One input of an operator: rows wait for its clock, and rows with an end leave by that clock.

This makes any operator on signs window-aware ([HammadTR, section 3.1]): rows that end are kept in
front of it, and it receives their ends as negative rows. Where the input has no ends, nothing is
kept and nothing waits.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from muntin.model.clock import BEFORE_ALL
from muntin.operators.expire import Expire
from muntin.operators.signed import Changes, merged


class Intake:
    """One input of an operator; ``expires``: the operator keeps rows, so ends retract rows."""

    def __init__(self, schema: pa.Schema, *, expires: bool) -> None:
        self._schema = schema
        self._nothing = self._waiting = Changes.none(schema)
        self.expire = Expire(schema) if expires else None
        self.newest = BEFORE_ALL
        """The time of the last row that has come, or to which it was moved."""

    def put(self, changes: Changes) -> None:
        """Take what the input has sent."""
        if len(changes):
            self.newest = max(self.newest, int(changes.times[-1]))
            self._waiting = merged([self._waiting, changes], self._schema)

    def is_due(self, clock: int) -> bool:
        """Return whether a row that came before arrives or ends up to an instant."""
        waits = len(self._waiting) > 0 and self._waiting.times[0] <= clock
        return waits or (self.expire is not None and self.expire.next <= clock)

    def take(self, clock: int) -> Changes:
        """Return the rows that arrived and those that end up to an instant; ends are kept."""
        ready, self._waiting = self._waiting, self._nothing
        if len(ready) and ready.times[-1] > clock:
            ready, self._waiting = ready.until(clock)
        if self.expire is None:
            return ready
        self.expire.take(ready)
        if self.expire.next > clock:
            return ready
        due = self.expire.due(clock)
        return merged([replace(due, ends=due.times), ready], self._schema) if len(due) else ready
