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


def merged(query: Query, tables: Sequence[pa.Table], duck: Duck, *, final: bool) -> pa.Table:
    """Return the results of a batch in the order of time, without changes that cancel out.

    If they are ``final``, none cancel out.
    """
    tables = [query.output_schema.empty_table(), *tables]
    if final:
        return in_order(tables)
    return net_changes(tables, duck, inserts_only=query.emit is Emit.INSERTS)


def net_changes(tables: Sequence[pa.Table], duck: Duck, *, inserts_only: bool) -> pa.Table:
    """Return the net changes of each instant in the order of time, or only the inserts of them."""
    return inserts(consolidate(pa.concat_tables(tables), duck), only=inserts_only)


def inserts(changes: pa.Table, *, only: bool) -> pa.Table:
    """Return all changes, or the inserts ``only``."""
    return changes.filter(pc.equal(changes.column("_op"), "+")) if only else changes


def in_order(tables: Sequence[pa.Table]) -> pa.Table:
    """Merge tables that are sorted by time; NumPy's stable sort takes linear time for that.

    Columns are combined first, because Arrow would search the chunk of every value.
    """
    filled = [table for table in tables if len(table)]
    if len(filled) <= 1:
        return filled[0] if filled else tables[0]
    table = pa.concat_tables(filled)
    signs = table.column("_op")
    # Texts are expensive to move, and mostly all rows are inserts.
    same = pc.all(pc.equal(signs, "+")).as_py()
    values = (table.drop_columns(["_op"]) if same else table).combine_chunks()
    order = np.argsort(values.column("_ts").cast(pa.int64()).to_numpy(), kind="stable")
    taken = [take(column, order) for column in values.columns]
    return pa.table([signs, *taken] if same else taken, schema=table.schema)
