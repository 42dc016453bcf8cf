"""Net changes are rows added more often than removed, the last of equal rows, in order."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.operators.net_changes import left_of
from muntin.operators.signed import Changes

_EVALUATOR = Evaluator(Duck())
_ROWS = st.tuples(st.none() | st.integers(0, 2), st.none() | st.sampled_from(["", "a"]))


@given(st.lists(_ROWS, max_size=12), st.data())
def test_net_changes_are_additions_minus_removals(
    rows: list[tuple[int | None, str | None]], data: st.DataObject
) -> None:
    went = [row for row in rows if data.draw(st.booleans())]
    changes = [(row, 1) for row in rows]
    for row in went:
        first = changes.index((row, 1))
        changes.insert(data.draw(st.integers(first + 1, len(changes))), (row, -1))
    table = pa.table(
        {
            "k": pa.array([row[0] for row, _ in changes], pa.int64()),
            "s": pa.array([row[1] for row, _ in changes], pa.string()),
        }
    )
    signs = np.array([sign for _, sign in changes], np.int64)
    left = left_of(Changes(table, np.arange(len(changes)), signs), _EVALUATOR)
    expected, wanted = [], Counter(rows) - Counter(went)
    for place in reversed(range(len(changes))):
        row, sign = changes[place]
        if sign > 0 and wanted[row]:
            wanted[row] -= 1
            expected.append(place)
    assert left.tolist() == expected[::-1]
