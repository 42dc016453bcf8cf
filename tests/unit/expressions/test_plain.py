"""Plain conditions are decided as DuckDB decides them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.expressions.plain import plain_mask
from muntin.plan.expression import ColumnRef, Expression

_DUCK = Duck()
_BITS = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}
_OPERATORS = ("=", "<>", "!=", "<", "<=", ">", ">=")


@given(st.sampled_from(list(_BITS)), st.sampled_from(_OPERATORS), st.data())
def test_plain_conditions_decide_as_duckdb_does(
    kind: pa.DataType, sign: str, data: st.DataObject
) -> None:
    """NULL is not true, and numbers may be too large for the column."""
    values = st.integers(-(2 ** _BITS[kind]), 2 ** _BITS[kind] - 1)
    rows = data.draw(st.lists(st.none() | st.integers(-2, 2) | values, max_size=20))
    number = data.draw(
        st.integers(-2, 2)
        | st.integers(-(10**18) + 1, 10**18 - 1)
        | st.sampled_from([row or 0 for row in rows] or [0])
    )
    number = max(min(number, 10**18 - 1), -(10**18) + 1)
    chunks = [pa.array(rows[:7], kind), pa.array(rows[7:], kind)]
    table = pa.table([pa.chunked_array(chunks, kind)], names=['0.a "b"'])
    text = f'"0.a ""b""" {sign} {number}'
    mask = plain_mask(text, table)
    assert mask is not None
    (column,) = _DUCK.run(f"SELECT ({text})::BOOLEAN FROM batch", batch=table).columns
    assert mask.tolist() == column.fill_null(False).to_pylist()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('"0.x" > 1', pa.float64()),
        ('"0.x" > 1', pa.uint64()),
        ('"0.x" > 1', pa.bool_()),
        ('"0.x" > 1.0', pa.int64()),
        ('"0.x" > 1234567890123456789', pa.int64()),
        ('"0.x" + 1 > 1', pa.int64()),
        ('"0.x" > 1 OR "0.x" < 0', pa.int64()),
        ('1 > "0.x"', pa.int64()),
        ('"0.x" > "0.x"', pa.int64()),
    ],
)
def test_all_other_conditions_are_left_to_duckdb(text: str, kind: pa.DataType) -> None:
    assert plain_mask(text, pa.table({"0.x": pa.array([1, 0], pa.int8()).cast(kind)})) is None


def test_several_conditions_must_all_be_true() -> None:
    """This holds whether or not DuckDB evaluates them."""
    x = ColumnRef(0, "x")
    few, odd = (
        Expression('"0.x" < 4', (x,), pa.bool_()),
        Expression('"0.x" % 2 = 1', (x,), pa.bool_()),
    )
    some = Expression('"0.x" >= 1', (x,), pa.bool_())
    batch = pa.table({"0.x": np.arange(6)})
    evaluator = Evaluator(_DUCK)
    assert np.flatnonzero(evaluator.holds([few, some], batch)).tolist() == [1, 2, 3]
    assert np.flatnonzero(evaluator.holds([few, odd], batch)).tolist() == [1, 3]
