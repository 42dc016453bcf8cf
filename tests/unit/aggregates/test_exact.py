"""Rounding: multiply-add is rounded once; quantiles are DuckDB's to the last bit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

import muntin
from muntin.aggregates.exact import multiply_add
from muntin.testing.connection import run_sql

NUMBERS = st.floats(-1e9, 1e9)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_multiply_add_is_rounded_once(left: float, right: float, addend: float) -> None:
    (found,) = multiply_add(np.array([left]), np.array([right]), np.array([addend]))
    expected = float(Fraction(left) * Fraction(right) + Fraction(addend))
    assert abs(found - expected) <= np.spacing(abs(expected))


@given(
    st.lists(st.integers(-1000, 1000), min_size=1, max_size=6),
    st.sampled_from(["0.1", "0.3", "0.9", "0.333"]),
)
@example([25, 25], "0.333")  # not 25: DuckDB rounds between equal values, too
def test_quantiles_are_those_of_duckdb(values: list[int], fraction: str) -> None:
    engine = muntin.Engine()
    engine.stream("A", {"x": "bigint", "ts": "timestamp"})
    query = engine.query(f"SELECT QUANTILE_CONT(x, {fraction}) AS q FROM A WINDOW 1 HOUR")
    engine.push("A", [(value, number) for number, value in enumerate(values)])
    engine.advance(len(values))
    expected = run_sql(
        f"SELECT QUANTILE_CONT(x, {fraction}) AS q FROM t", {"t": pa.table({"x": values})}
    )
    assert query.answer().to_pylist() == expected.to_pylist()
