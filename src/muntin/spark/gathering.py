"""The results of all buckets as one table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.expressions.duck import Duck
from muntin.operators.consolidate import consolidate
from muntin.plan.pipeline import Pipeline
from muntin.plan.query import Emit, Query
from muntin.state.columns import take


def gathered(query: Query, tables: Sequence[pa.Table], duck: Duck) -> pa.Table:
    """The results of a batch in the order of time; changes of one instant that cancel out are left out."""
    table = pa.concat_tables([query.output_schema.empty_table(), *tables])
    if isinstance(query, Pipeline) and query.emit is Emit.INSERTS:
        changes = consolidate(table, duck)
        return changes.filter(pc.equal(changes.column("_op"), "+"))
    if query.emit is Emit.CHANGES:
        return consolidate(table, duck)
    return _in_order(table) if len(tables) > 1 else table


def _in_order(table: pa.Table) -> pa.Table:
    """Runs of inserts that are in order each, as one; numpy's stable sort merges them in linear time.

    Values are taken from whole columns, since Arrow would look for the chunk of every one; signs are all the same.
    """
    values = table.drop_columns(["_op"]).combine_chunks()
    order = np.argsort(values.column("_ts").cast(pa.int64()).to_numpy(), kind="stable")
    return pa.table([table.column("_op"), *(take(column, order) for column in values.columns)], schema=table.schema)
