"""Long and deep queries work or get a clear error; none exceeds Python's stack."""

from __future__ import annotations

from collections import Counter

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin import Engine
from muntin.errors import SqlError

OPERATORS = ["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"]
ROWS = {"A": [1, 1, 2, 3], "B": [2, 3, 3, 4], "C": [1, 3, 5, 5]}


def make_engine() -> Engine:
    engine = Engine()
    for name, values in ROWS.items():
        engine.execute(f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP)")
        engine.push(name, [(value, "2026-01-01 00:00:00") for value in values])
    return engine


def answer_of(sql: str) -> Counter[object]:
    engine = Engine()
    for name in ROWS:
        engine.execute(f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP)")
    query = engine.query(f"{sql} WINDOW 1 HOUR")
    for name, values in ROWS.items():
        engine.push(name, [(value, "2026-01-01 00:00:00") for value in values])
    engine.advance("2026-01-01 00:00:01")
    return Counter(query.answer().column(0).to_pylist())


def answer_of_duckdb(sql: str) -> Counter[object]:
    with duckdb.connect() as connection:
        for name, values in ROWS.items():
            connection.register(name, pa.table({"k": values}))
        return Counter(row[0] for row in connection.sql(sql).fetchall())


@pytest.mark.parametrize(
    ("operator", "answer"),
    [
        ("UNION ALL", {1: 1_000, 2: 500, 3: 500}),
        ("UNION", {1: 1, 2: 1, 3: 1}),
        ("INTERSECT", {1: 1, 2: 1, 3: 1}),
        ("INTERSECT ALL", {1: 2, 2: 1, 3: 1}),
    ],
)
def test_a_chain_of_500_selects_works(operator: str, answer: dict[object, int]) -> None:
    assert answer_of(f" {operator} ".join(["SELECT k FROM A"] * 500)) == answer


SELECTS = st.sampled_from(
    [
        f"SELECT {kind} AS k FROM {name}"
        for name in ROWS
        for kind in ("k", "k::INTEGER", "k::DOUBLE", "k::DECIMAL(9, 1)")
    ]
)


@given(st.lists(st.tuples(st.sampled_from(OPERATORS), SELECTS), min_size=1, max_size=9), SELECTS)
def test_chains_of_any_operators_mean_what_they_mean_in_duckdb(
    rest: list[tuple[str, str]], first: str
) -> None:
    sql = " ".join([first, *(f"{operator} {select}" for operator, select in rest)])
    assert answer_of(sql) == answer_of_duckdb(sql)


@pytest.mark.parametrize(
    "sql",
    [
        " EXCEPT ".join(["SELECT k FROM A"] * 300),
        "SELECT k FROM (" * 300 + "SELECT k FROM A" + ") AS t" * 300,
        "SELECT DISTINCT k FROM (" * 90 + "SELECT k FROM A" + ") AS t" * 90,
        "(SELECT k FROM A EXCEPT " * 300 + "SELECT k FROM A" + ")" * 300,
        "SELECT " + "(" * 2_000 + "k" + ")" * 2_000 + " AS x FROM A",
        "SELECT " + "+".join(["k"] * 3_000) + " AS x FROM A",
        "SELECT " + "lower(" * 500 + "'x'" + ")" * 500 + " AS x FROM A",
        "SELECT " + "-" * 1 + "(-" * 500 + "k" + ")" * 500 + " AS x FROM A",
        "SELECT " + "CASE WHEN k > 1 THEN " * 300 + "1" + " END" * 300 + " AS x FROM A",
        "SELECT k FROM A WHERE " + "NOT " * 2_000 + "k = 1",
        "SELECT " + "[" * 500 + "k" + "]" * 500 + " AS x FROM A",
    ],
    ids=lambda sql: sql[:40],
)
def test_what_is_too_deep_is_refused_with_a_place_and_a_hint(sql: str) -> None:
    with pytest.raises(SqlError, match=r"levels of|nested too deeply|expression depth") as caught:
        make_engine().query(f"{sql} WINDOW 1 HOUR")
    assert caught.value.place.line == 1
    assert caught.value.hint


def test_as_many_levels_as_are_allowed_work() -> None:
    sql = " EXCEPT ".join(["SELECT k FROM A"] + ["SELECT k FROM B"] * 99)
    assert answer_of(sql) == answer_of_duckdb(sql)
    with pytest.raises(SqlError, match="more than 100 levels"):
        make_engine().query(f"{sql} EXCEPT SELECT k FROM C WINDOW 1 HOUR")


def test_a_sum_of_300_terms_works() -> None:
    assert answer_of("SELECT " + " + ".join(["k"] * 300) + " AS x FROM B") == {
        600: 1,
        900: 2,
        1_200: 1,
    }
