"""EMIT FINAL: the last answer of each window, from the changes of the answer.

All rows of a window leave the answer when it ends. Those that leave earlier were replaced or
removed by another row, so they leave before that instant; and at that instant no row of the window
comes. So the last answer of a window is what leaves when it ends, and nothing has to be kept.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from muntin.plan.query import WindowEnd
from muntin.state.columns import sign_column


def final_rows(changes: pa.Table, closes: WindowEnd, schema: pa.Schema) -> pa.Table:
    """Return the rows that leave when their window ends as rows that come then.

    ``changes`` cancel out at no instant; behind the columns of ``schema`` are hidden ones.
    """
    times = changes.column("_ts").cast(pa.int64()).to_numpy()
    ends = changes.column(closes.column + 2).cast(pa.int64())
    known = ends.is_valid().to_numpy()
    leaving = pc.equal(changes.column("_op"), "-").to_numpy()
    last = leaving & known & (ends.fill_null(0).to_numpy() + closes.micros == times)
    found = changes.filter(pa.array(last))
    signs = sign_column(None, int(np.count_nonzero(last)))
    return pa.table([signs, *found.columns[1 : len(schema)]], schema=schema)
