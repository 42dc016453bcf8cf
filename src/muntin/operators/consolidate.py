"""Consolidating changes: at one instant no equal row is both removed and added.

Equal means equal in every selected value, NULL equal to NULL, as in DISTINCT. Instants at which rows only
come or only go are left alone, which is nearly all of them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.expressions.duck import Duck
from muntin.plan.query import quote

_SQL = """
SELECT row FROM (
  SELECT row, sign,
    row_number() OVER (PARTITION BY {columns}, sign ORDER BY row) AS number,
    count(*) FILTER (sign = '+') OVER (PARTITION BY {columns}) AS added,
    count(*) FILTER (sign = '-') OVER (PARTITION BY {columns}) AS removed
  FROM changes
) WHERE number > least(added, removed) ORDER BY row
"""


def consolidate(changes: pa.Table, duck: Duck) -> pa.Table:
    """The net changes of each instant, by time, otherwise in the order they were in."""
    times = changes.column("_ts").cast(pa.int64()).to_numpy()
    if len(times) > 1 and (times[1:] < times[:-1]).any():
        order = np.argsort(times, kind="stable")
        changes, times = changes.take(pa.array(order)), times[order]
    if not len(times):
        return changes
    leaving = pc.equal(changes.column("_op"), "-").to_numpy()
    starts = np.flatnonzero(np.diff(times, prepend=times[0] - 1))
    minus = np.add.reduceat(leaving.astype(np.int64), starts)
    lengths = np.diff(np.append(starts, len(times)))
    mixed = np.repeat((minus > 0) & (minus < lengths), lengths)
    if not mixed.any():
        return changes
    touched = np.flatnonzero(mixed)
    some = changes.take(pa.array(touched))
    names = [f"c{number}" for number in range(some.num_columns)]
    named = some.rename_columns(names).append_column("row", pa.array(touched)).append_column("sign", some.column(0))
    kept = duck.run(_SQL.format(columns=", ".join(quote(name) for name in names[1:])), changes=named).column("row").to_numpy()
    keep = ~mixed
    keep[kept] = True
    return changes.filter(pa.array(keep))
