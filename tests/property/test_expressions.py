"""Every row has the values it has alone: those of DuckDB, or NULL where DuckDB fails on the row."""

from __future__ import annotations

import duckdb
import pyarrow as pa
from hypothesis import assume, given, note
from hypothesis import strategies as st

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.plan.query import Expression

_DUCK = Duck()
_SCHEMA = pa.schema(
    {"k": pa.int64(), "i": pa.int32(), "g": pa.int8(), "x": pa.float64(), "s": pa.string()}
)
_EDGES = [0, 1, -1, 2, 127, -128, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
_TEXTS = ["", "1", " 2 ", "x", "-3", "1e3", "99999999999", "2020-01-01", "true", "7.5", "0"]


def _integers(bits: int) -> st.SearchStrategy[int]:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return st.sampled_from([edge for edge in _EDGES if least <= edge <= most]) | st.integers(-3, 3)


_ROW = st.fixed_dictionaries(
    {
        "k": st.none() | _integers(64),
        "i": st.none() | _integers(32),
        "g": st.none() | _integers(8),
        "x": st.none()
        | st.sampled_from([0.0, -1.5, 1e300, -1e300, float("inf"), float("nan"), 3.0]),
        "s": st.none() | st.sampled_from(_TEXTS),
    }
)


def _deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Numbers made of numbers, with repeated parts, conditions and casts in between."""
    arithmetic = st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner)
    compared = st.tuples(inner, st.sampled_from(["<", ">", "=", "<>", "<="]), inner)
    condition = compared.map(lambda part: f"(({part[0]}) {part[1]} ({part[2]}))")
    joined = st.tuples(condition, st.sampled_from(["AND", "OR"]), condition)
    boolean = condition | joined.map(lambda part: f"({part[0]} {part[1]} {part[2]})")
    kinds = st.sampled_from(["TINYINT", "INTEGER", "BIGINT", "DOUBLE", "DECIMAL(9, 2)"])
    return st.one_of(
        arithmetic.map(lambda part: f"(({part[0]}) {part[1]} ({part[2]}))"),
        inner.map(lambda part: f"(({part}) + ({part}))"),
        st.tuples(inner, kinds).map(lambda part: f"CAST({part[0]} AS {part[1]})"),
        st.tuples(boolean, inner, inner).map(
            lambda part: f"(CASE WHEN {part[0]} THEN {part[1]} ELSE {part[2]} END)"
        ),
        st.tuples(boolean, inner).map(lambda part: f"(CASE WHEN {part[0]} THEN {part[1]} END)"),
        st.tuples(inner, inner).map(lambda part: f"coalesce({part[0]}, {part[1]})"),
        boolean.map(lambda part: f"CAST(({part}) AS INTEGER)"),
    )


_LEAVES = st.sampled_from(
    [
        "k",
        "i",
        "g",
        "x",
        "CAST(s AS INTEGER)",
        "CAST(s AS BIGINT)",
        "CAST(s AS DOUBLE)",
        "1",
        "3",
        "length(s)",
    ]
)
_EXPRESSIONS = st.recursive(_LEAVES, _deeper, max_leaves=6)


_NEIGHBORS = pa.Table.from_pylist(
    [{"k": 2, "i": 2, "g": 2, "x": 2.0, "s": "2"}, {"k": None}], _SCHEMA
)
_FAILED = "failed"


def _run(text: str, rows: pa.Table) -> str:
    """The value of an expression for the first row, computed where it stands: nothing is hoisted out of it."""
    try:
        return repr(
            _DUCK.run_strictly(f"SELECT {text} AS c FROM batch", batch=rows).column(0)[0].as_py()
        )
    except duckdb.Error:
        return _FAILED


def _alone(text: str, row: pa.Table) -> set[str]:
    """The value of an expression for one row, or that it fails.

    It can be both: DuckDB skips the second operand where the first is the same NULL or FALSE in all
    rows of a batch, so whether a row fails can depend on its neighbors.
    """
    assume(_run(text, _NEIGHBORS) != _FAILED)
    value = _run(text, row)
    return (
        {value, _FAILED} if _run(text, pa.concat_tables([row, _NEIGHBORS])) == _FAILED else {value}
    )


@given(
    st.lists(_ROW, min_size=1, max_size=12),
    st.lists(_EXPRESSIONS, min_size=1, max_size=3),
    st.sampled_from([0, 1]),
)
def test_rows_have_the_values_they_have_alone(
    rows: list[dict[str, object]], texts: list[str], repeated: int
) -> None:
    texts = [*texts, f"({texts[0]}) + 1", texts[-1]] if repeated else texts
    note(" | ".join(texts))
    batch = pa.Table.from_pylist(rows, _SCHEMA)
    alone = [[_alone(text, batch.slice(place, 1)) for text in texts] for place in range(len(rows))]
    evaluator = Evaluator(_DUCK)
    found = [list(map(repr, column.to_pylist())) for column in evaluator.raw(texts, batch)]
    for row, values in zip(zip(*found, strict=True), alone, strict=True):
        for value, allowed in zip(row, values, strict=True):
            assert value in allowed or (value == "None" and _FAILED in allowed)
    surely = sum(any(values == {_FAILED} for values in row) for row in alone)
    perhaps = sum(any(_FAILED in values for values in row) for row in alone)
    assert surely <= evaluator.failures <= perhaps


@given(st.lists(_ROW, min_size=1, max_size=12), st.lists(_EXPRESSIONS, min_size=1, max_size=3))
def test_rows_pass_that_pass_alone(rows: list[dict[str, object]], texts: list[str]) -> None:
    predicates = [Expression(f"({text}) > 1", (), pa.bool_()) for text in texts]
    whole = " AND ".join(f"({predicate.sql})" for predicate in predicates)
    note(whole)
    batch = pa.Table.from_pylist(rows, _SCHEMA)
    passed = Evaluator(_DUCK).holds(predicates, batch).tolist()
    for place, passes in enumerate(passed):
        allowed = _alone(whole, batch.slice(place, 1))
        assert "True" in allowed if passes else allowed != {"True"}
