"""The oracle for sessions: all rows of a stream up to an instant, cut where a gap is too long.

Rows of equal keys, NULL equal to NULL, are in the order of time. A row that comes more than the gap
after the one before it begins a session. At an instant the sessions are there that are not over; of
those that are FINAL, the ones that are over at the next instant, whatever comes after it.
"""

from __future__ import annotations

import pyarrow as pa

from muntin.plan.expression import quote
from muntin.plan.sessions import HIDDEN, SessionEnds, SessionWindows
from muntin.testing.connection import run_sql
from muntin.testing.oracle import Oracle


class SessionOracle:
    """Computes the sessions of one node from the rows of its stream, given by their oracle."""

    def __init__(self, node: SessionWindows, rows: Oracle, every: int | None) -> None:
        self._node, self._every = node, every or 1
        self._rows = rows.lifetimes()

    def present(self, at: int, *, answer: bool = False) -> pa.Table:
        """Return the rows that are there at an instant; for an ``answer``, those of open sessions.

        Columns are those of the rows, then the bounds of sessions.
        """
        names = self._node.input.schema.names
        keys = ", ".join(quote(names[place]) for place in self._node.keys)
        by = f"PARTITION BY {keys}" if keys else ""
        time = f"epoch_us({quote(names[-HIDDEN])})"
        order = f"OVER ({by} ORDER BY {time}, {quote(names[-1])})"
        session = f"OVER ({f'{by}, ' if by else 'PARTITION BY '}session)"
        final = self._node.ends is SessionEnds.FINAL and not answer
        now = at // self._every * self._every
        upto = "true" if final else f"begins <= {now}"
        there = f"= {now + 1}" if final else f"> {now}"
        return run_sql(
            f"WITH cut AS (SELECT *, CASE WHEN {time} - lag({time}) {order} <= {self._node.gap} "
            f"THEN 0 ELSE 1 END AS first FROM rows WHERE {upto}), "
            f"numbered AS (SELECT *, sum(first) {order} AS session FROM cut), "
            f"bound AS (SELECT *, min({time}) {session} AS began, "
            f"max({time}) {session} + {self._node.gap} AS ended FROM numbered) "
            f"SELECT {', '.join(map(quote, names[:-HIDDEN]))}, make_timestamp(began) AS "
            f"window_start, make_timestamp(ended) AS window_end FROM bound WHERE ended {there}",
            {"rows": self._rows},
        )
