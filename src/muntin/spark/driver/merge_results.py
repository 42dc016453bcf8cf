"""The results of all partitions as one table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.expressions.duck import Duck
from muntin.operators.consolidate import consolidate
from muntin.plan.query import Emit, Query
from muntin.state.columns import take


def gathered(
    query: Query, tables: Sequence[pa.Table], duck: Duck, *, apart: bool = False
) -> pa.Table:
    """The results of a batch in the order of time; changes of one instant that cancel out are left out.

    ``apart``: rows of different partitions are never equal, so that there are none.
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
    """Runs that are in order each, as one; numpy's stable sort merges them in linear time.

    Values are taken from whole columns, since Arrow would look for the chunk of every one; without ``signs`` all are the same.
    """
    values = (table if signs else table.drop_columns(["_op"])).combine_chunks()
    order = np.argsort(values.column("_ts").cast(pa.int64()).to_numpy(), kind="stable")
    taken = [take(column, order) for column in values.columns]
    return pa.table(taken if signs else [table.column("_op"), *taken], schema=table.schema)
