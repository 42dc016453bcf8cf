"""Every registered aggregate function is complete.

Its example runs in process, on partitions and in DuckDB, and it is documented.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import muntin
from muntin.aggregates import AggregateFunction, aggregate_functions, function_called
from muntin.testing.compare import assert_same_rows
from muntin.testing.connection import run_sql

FUNCTIONS = list(aggregate_functions().values())
REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "sql.md"
KINDS = {
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "varchar": pa.string(),
}
VALUES: dict[str, list[Any]] = {
    "bigint": [3, None, 3, -7, 12],
    "double": [0.5, -1.25, None, 1e6, 0.5],
    "boolean": [True, False, None, True, True],
    "varchar": ["b", "a", "", None, "ä"],
}
CASES = [
    (function, kind) for function in FUNCTIONS for kind in KINDS if function.accepts(KINDS[kind])
]


def oracle_of(function: AggregateFunction) -> str:
    return function.oracle.format(
        name=function.name, distinct="", argument="x", fraction="", key="y", order="ts"
    )


@pytest.mark.parametrize(("function", "kind"), CASES, ids=lambda case: getattr(case, "name", case))
def test_the_example_follows_duckdb_as_rows_come_and_expire(
    function: AggregateFunction, kind: str
) -> None:
    engine = muntin.Engine()
    engine.stream("A", {"k": "bigint", "x": kind, "y": "bigint", "ts": "timestamp"})
    query = engine.query(f"SELECT k, {function.example} AS v FROM A GROUP BY k WINDOW 3 SECONDS")
    rows = [
        (number % 2, value, 10 - number, number * 1_000_000)
        for number, value in enumerate(VALUES[kind])
    ]
    call = function.example.replace(f"{function.name.upper()}(x)", oracle_of(function))
    columns = pa.schema(
        [("k", pa.int64()), ("x", KINDS[kind]), ("y", pa.int64()), ("ts", pa.int64())]
    )
    for second in range(len(rows) + 3):
        engine.push("A", rows[second : second + 1])
        engine.advance(second * 1_000_000)
        inside = [
            dict(zip(columns.names, row, strict=True))
            for row in rows[max(second - 2, 0) : second + 1]
        ]
        sql = f"SELECT k, {call} AS v FROM inside GROUP BY k"
        expected = run_sql(sql, {"inside": pa.Table.from_pylist(inside, columns)})
        assert_same_rows(expected.cast(query.answer().schema), query.answer())


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_names_are_found_and_documented(function: AggregateFunction) -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    for spelling in function.spellings:
        assert function_called(spelling) is function
        assert f"`{spelling.upper()}" in text or f"{spelling.upper()}(" in text, spelling


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_partial_results_can_be_merged(function: AggregateFunction) -> None:
    partial = function.partial(pa.int64())
    for name, _ in partial.parts if partial else ():
        assert aggregate_functions()[name].merged_by in aggregate_functions()


def test_no_spelling_is_taken_twice() -> None:
    spellings = [spelling for function in FUNCTIONS for spelling in function.spellings]
    assert len(spellings) == len(set(spellings))
