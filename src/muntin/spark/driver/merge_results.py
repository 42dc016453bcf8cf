"""Merge the results of all partitions into one table in the order of time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.expressions.duck import Duck
from muntin.operators.consolidate import consolidate
from muntin.plan.query import Emit, Query
from muntin.state.columns import take


def merged(
    query: Query, tables: Sequence[pa.Table], duck: Duck, *, apart: bool = False
) -> pa.Table:
    """Return the results of a batch in the order of time, without changes that cancel out.

    With ``apart``, rows of different partitions are never equal, so that none cancel out.
    """
    table = pa.concat_tables([query.output_schema.empty_table(), *tables])
    changes = query.emit is Emit.CHANGES or (query.emit is Emit.INSERTS and not query.is_join)
    if changes and not apart:
        table = consolidate(table, duck)
    elif len(tables) > 1:
        table = _in_order(table, signs=changes)
    return (
        table.filter(pc.equal(table.column("_op"), "+"))
        if changes and query.emit is Emit.INSERTS
        else table
    )


def _in_order(table: pa.Table, *, signs: bool) -> pa.Table:
    """Merge runs that are sorted by time; NumPy's stable sort takes linear time for that.

    Columns are combined first, because Arrow would search the chunk of every value. Without
    ``signs`` all values of ``_op`` are equal.
    """
    values = (table if signs else table.drop_columns(["_op"])).combine_chunks()
    order = np.argsort(values.column("_ts").cast(pa.int64()).to_numpy(), kind="stable")
    taken = [take(column, order) for column in values.columns]
    return pa.table(taken if signs else [table.column("_op"), *taken], schema=table.schema)
