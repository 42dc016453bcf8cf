"""The results of all buckets as one table."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from muntin.expressions.duck import Duck
from muntin.operators.consolidate import consolidate
from muntin.plan.query import Emit, Query


def gathered(query: Query, tables: Sequence[pa.Table], duck: Duck) -> pa.Table:
    """The results of a batch in the order of time; changes of one instant that cancel out are left out."""
    table = pa.concat_tables([query.output_schema.empty_table(), *tables])
    if query.emit is Emit.CHANGES:
        return consolidate(table, duck)
    return table.sort_by("_ts") if len(tables) > 1 else table
