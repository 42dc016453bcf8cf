"""The answer at every instant of EVERY has the rows that are present then.

This holds however changes and instants are grouped into calls.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.operators import snapshots
from muntin.operators.signed import Changes
from muntin.operators.snapshots import Snapshots

_EVALUATOR = Evaluator(Duck())
_SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])
Row = tuple[int | None, str | None]
_ROWS: st.SearchStrategy[Row] = st.tuples(
    st.none() | st.integers(0, 2), st.none() | st.sampled_from(["", "a"])
)


def _changes(rows: list[tuple[int, int, Row]], numbers: list[int] | None) -> Changes:
    table = pa.table(
        [[row[0] for _, _, row in rows], [row[1] for _, _, row in rows]], schema=_SCHEMA
    )
    times, signs = (np.array([change[place] for change in rows], np.int64) for place in range(2))
    return Changes(
        table, times, signs, numbers=None if numbers is None else np.array(numbers, np.int64)
    )


@pytest.mark.parametrize("equal", ["by values", "by numbers"])
@pytest.mark.parametrize("at_once", [1, 1 << 20])
@given(every=st.integers(1, 4), data=st.data())
def test_answers_have_the_rows_added_and_not_removed(
    equal: str, at_once: int, every: int, data: st.DataObject
) -> None:
    """Rows are equal by their values, or by numbers that the caller assigns."""
    taken = Snapshots(_SCHEMA, _EVALUATOR)
    there: list[tuple[int, Row]] = []
    answers: dict[int, Counter[Row]] = defaultdict(Counter)
    now, following, number = data.draw(st.sampled_from([-7, 0])), -4, 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "_AT_ONCE", at_once)
        for _ in range(data.draw(st.integers(0, 4))):
            came: list[tuple[int, int, Row]] = []
            numbers: list[int] = []
            for _ in range(data.draw(st.integers(0, 8))):
                before = now
                now += data.draw(st.integers(0, 3))
                _show(answers, there, before, now)
                leaves: bool = bool(there) and data.draw(st.booleans())
                if leaves:
                    gone, row = there.pop(data.draw(st.integers(0, len(there) - 1)))
                    came.append((now, -1, row))
                    numbers.append(gone)
                else:
                    there.append((number, data.draw(_ROWS)))
                    came.append((now, 1, there[-1][1]))
                    numbers.append(number)
                    number += 1
            taken.take(_changes(came, numbers if equal == "by numbers" else None))
            until = max(now, following) + data.draw(st.integers(0, 9))
            _show(answers, there, now, until + 1)
            now = until + 1
            found: dict[int, Counter[Row]] = {}
            for table, instants in taken.show(following, every, until):
                assert table.schema == _SCHEMA
                for instant, row in zip(
                    instants.tolist(),
                    zip(*(c.to_pylist() for c in table.columns), strict=True),
                    strict=True,
                ):
                    found.setdefault(instant, Counter())[row] += 1
            wanted = range(following, until + 1, every)
            assert found == {instant: answers[instant] for instant in wanted if answers[instant]}
            following = wanted[-1] + every if wanted else following


def _show(
    answers: dict[int, Counter[Row]], there: list[tuple[int, Row]], since: int, until: int
) -> None:
    """Record the answers at the instants from one on, before another."""
    for instant in range(since, until):
        answers[instant] = Counter(row for _, row in there)


def test_shown_rows_are_stored_once() -> None:
    """This holds however often it is shown."""
    taken = Snapshots(_SCHEMA, _EVALUATOR)
    taken.take(_changes([(0, 1, (place, "x")) for place in range(1_000)], None))
    assert [len(table) for table, _ in taken.show(0, 1, 99)] == [100_000]
    once = taken.nbytes()
    for first in range(100, 110):
        assert [len(table) for table, _ in taken.show(first, 1, first)] == [1_000]
    assert taken.nbytes() == once
