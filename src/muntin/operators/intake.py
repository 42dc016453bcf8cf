"""What comes to an operator from one input: rows wait until its clock has come to them, and those with an end leave by that clock.

So an operator that knows signs only is window-aware (paper 2, section 3.1): in front of it everything that ends is remembered, and it sees
what ends as negative rows. Without ends in the input nothing is remembered and nothing waits.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from muntin.model.clock import BEFORE_ALL
from muntin.operators.expire import Expire
from muntin.operators.signed import Changes, merged


class Intake:
    """One input of an operator; ``expires``: the operator keeps rows, so what ends is taken back from it."""

    def __init__(self, schema: pa.Schema, *, expires: bool) -> None:
        self._schema = schema
        self._waiting = Changes.none(schema)
        self.expire = Expire(schema) if expires else None
        self.newest = BEFORE_ALL
        """The time of the last row that has come."""

    def put(self, changes: Changes) -> None:
        """Take what the input has sent."""
        if len(changes):
            self.newest = int(changes.times[-1])
            self._waiting = merged([self._waiting, changes], self._schema)

    def take(self, clock: int) -> Changes:
        """What has come and what ends up to an instant; rows keep their ends, since some operators ask for them."""
        ready, self._waiting = self._waiting.until(clock)
        if self.expire is None:
            return ready
        self.expire.take(ready)
        due = self.expire.due(clock)
        return merged([replace(due, ends=due.times), ready], self._schema) if len(due) else ready
