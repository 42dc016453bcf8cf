"""Results before the first row, such as a COUNT of 0, held until the first instant is known.

SQL gives an aggregate without GROUP BY a row over no rows, but no instant at which that row
begins. It takes effect at the first instant that the query has seen, together with the other
changes of that instant.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from muntin.expressions.duck import Duck
from muntin.operators.consolidate import consolidate
from muntin.operators.signed import BEGINNING


class Beginning:
    """The results of a query at ``BEGINNING``, until its first instant is known."""

    def __init__(self, duck: Duck) -> None:
        self._duck = duck
        self._held: list[pa.Table] = []

    def hold(self, results: pa.Table) -> pa.Table:
        """Take the results at ``BEGINNING`` out of others, and return the rest."""
        early = pc.equal(results.column("_ts").cast(pa.int64()), BEGINNING)
        if pc.any(early).as_py():
            self._held.append(results.filter(early))
            results = results.filter(pc.invert(early))
        return results

    def is_empty(self) -> bool:
        """Return whether nothing is held."""
        return not self._held

    def release(self, results: pa.Table, first: int) -> pa.Table:
        """Return the results with those that were held, which take effect at ``first``."""
        held = pa.concat_tables([results.schema.empty_table(), *self._held])
        times = pa.array([first] * len(held), pa.int64()).cast(results.schema.field("_ts").type)
        held = held.set_column(1, results.schema.field(1), times)
        return consolidate(pa.concat_tables([held, results]), self._duck)
