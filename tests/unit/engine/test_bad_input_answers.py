"""Bad input gets a clear error, none of it is accepted, and the engine is unaffected."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import muntin
from muntin.runtime.holdings import state_rows

SECOND = 1_000_000
EDGE = 2**63 - 1
COLUMNS = {"k": "bigint", "v": "double", "s": "varchar", "ts": "timestamp"}


@pytest.fixture
def engine() -> muntin.Engine:
    engine = muntin.Engine()
    for name in "AB":
        engine.stream(name, COLUMNS, time="ts")
    engine.query(
        "SELECT A.k, A.v AS av, B.v AS bv FROM A, B WHERE A.k = B.k WINDOW 10 SECONDS", name="pairs"
    )
    engine.push("A", [(1, 1.5, "x", 1 * SECOND)])
    return engine


def assert_goes_on(engine: muntin.Engine) -> None:
    """Check that only the rows pushed before are there and that new rows join."""
    engine.push("B", [(1, 2.5, "y", 2 * SECOND), (9, 0.0, "z", 3 * SECOND)])
    engine.advance(5 * SECOND)
    pairs = next(query for query in engine.queries() if query.name == "pairs")
    assert pairs.poll().select(["k", "av", "bv"]).to_pylist() == [{"k": 1, "av": 1.5, "bv": 2.5}]
    assert state_rows(engine.dataflow) == {"A": 1, "B": 2}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [(1, 1.0, "x")],
            r"row 0 for stream A does not have 4 values: .* Its columns are k int64, v double",
        ),
        ([(1, 1.0, "x", 0, 5)], "row 0 for stream A does not have 4 values"),
        (
            [{"k": 1, "ts": 0, "nosuch": 2}],
            "the rows for stream A have a column 'nosuch' that does not belong there",
        ),
        ([(1, 1.0, "x", 5), {"k": 1}], "row 1 for stream A does not have 4 values"),
        ([{"k": 1, "ts": 0}, (1, 1.0, "x", 5)], "row 1 for stream A is not a dict"),
        ([("one", 1.0, "x", 0)], "row 0 for stream A: column 'k' is int64 and cannot be 'one'"),
        (
            [(1, 1.0, "x", 0), (1.5, 1.0, "x", 1)],
            "row 1 for stream A: column 'k' is int64 and cannot be 1.5",
        ),
        ([(Decimal("1.5"), 1.0, "x", 0)], "cannot be Decimal"),
        (
            [(EDGE + 1, 1.0, "x", 0)],
            "row 0 for stream A: column 'k' is int64 and cannot be 9223372036854775808",
        ),
        ([(1, 1.0, 7, 0)], "column 's' is string and cannot be 7"),
        ([(1, 1.0, "x", None)], "row 0 for stream A has no time: column 'ts' is NULL"),
        ([(1, 1.0, "x", EDGE)], "a row for stream A has a time out of range"),
        ([(1, 1.0, "x", "yesterday")], "column 'ts' is timestamp.* and cannot be 'yesterday'"),
        (None, "cannot take rows from NoneType for stream A"),
        (5, "cannot take rows from int for stream A"),
        ("rows", "cannot take rows from str for stream A"),
        ((row for row in [(1, 1.0, "x", 0)]), "cannot take rows from generator for stream A"),
        (pa.table({"k": [1]}), "the rows for stream A have no column 'v', 's', 'ts'"),
        (
            pa.table({"k": ["a"], "v": [1.0], "s": ["x"], "ts": [0]}),
            "column 'k' of the rows for stream A is string and cannot become int64",
        ),
        (
            pd.DataFrame({"k": [1, "a"], "v": 1.0, "s": "x", "ts": 0}),
            "the DataFrame for stream A cannot be converted",
        ),
    ],
)
def test_a_push_with_rows_that_do_not_fit_is_refused_completely(
    engine: muntin.Engine, rows: Any, message: str
) -> None:
    with pytest.raises(muntin.InputError, match=message):
        engine.push("A", rows)
    assert_goes_on(engine)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT nosuch FROM A WINDOW 1 SECOND", "query bad, line 1, column 8: .*'nosuch'"),
        ("SELECT A.k FROM Nosuch A WINDOW 1 SECOND", "query bad, line 1, column 17: .*Nosuch"),
        ("SELECT k FROM A WINDOW 0 SECONDS", "line 1, column 24"),
        ("SELECT k FROM A WINDOW -5 SECONDS", "line 1, column 24"),
        ("SELECT k FROM A [ROWS 0]", "line 1, column 23"),
        ("SELECT k FROM A", "A.*window"),
        ("SELECT k + s FROM A WINDOW 1 SECOND", "line 1"),
        ("SELECT * FROM read_csv('secret.csv') WINDOW 1 SECOND", "line 1"),
        ("SELECT * FROM 'secret.csv' WINDOW 1 SECOND", "line 1"),
        ("SELECT k, (SELECT content FROM read_text('secret')) FROM A WINDOW 1 SECOND", "line 1"),
        ("SELECT read_text('secret') FROM A WINDOW 1 SECOND", "line 1"),
        ("SELECT SUM(COUNT(*)) FROM A WINDOW 1 SECOND", "line 1"),
        ("SELECT DISTINCT ON (k) k FROM A WINDOW 1 SECOND", "line 1"),
        ("SELECT random() FROM A WINDOW 1 SECOND", "line 1"),
        (
            "SELECT k FROM A WINDOW 1 SECOND WITH (expiry = 'never')",
            "setting expiry cannot be 'never'",
        ),
        ("SELECT k FROM A WINDOW 1 SECOND WITH (speed = 'high')", "there is no setting 'speed'"),
        ("SELEC k FROM A", "line 1"),
        ("", "line 1"),
    ],
)
def test_queries_that_make_no_sense_are_refused_with_their_place(
    engine: muntin.Engine, sql: str, message: str
) -> None:
    with pytest.raises(muntin.MuntinError, match=message):
        engine.query(sql, name="bad")
    assert [query.name for query in engine.queries()] == ["pairs"]
    assert_goes_on(engine)


@pytest.mark.parametrize(
    ("columns", "time", "message"),
    [
        ({"k": "bigint"}, None, "time"),
        ({"k": "bigint", "ts": "timestamp"}, "nosuch", "nosuch"),
        ({"k": "bigint", "ts": "timestamp"}, "k", "k"),
        ({"a": "timestamp", "b": "timestamp"}, None, "time"),
        ({"k": "wibble", "ts": "timestamp"}, "ts", "wibble"),
        ({"k": "int", "K": "int", "ts": "timestamp"}, "ts", "K"),
        ({}, None, "there are no columns"),
    ],
)
def test_streams_without_a_sound_time_or_type_are_refused(
    engine: muntin.Engine, columns: dict[str, str], time: str | None, message: str
) -> None:
    with pytest.raises(muntin.MuntinError, match=message):
        engine.stream("C", columns, time=time)
    assert_goes_on(engine)


@pytest.mark.parametrize("slack", [None, 1.5, True, 2**62, "soon"])
def test_slack_must_be_an_interval(engine: muntin.Engine, slack: Any) -> None:
    with pytest.raises(muntin.InputError):
        engine.stream("C", COLUMNS, time="ts", slack=slack)
    assert_goes_on(engine)


@pytest.mark.parametrize("to", [None, 1.5, True, "soon", [], pd.NaT, 2**63])
def test_advance_needs_an_instant(engine: muntin.Engine, to: Any) -> None:
    with pytest.raises(muntin.InputError):
        engine.advance(to)
    assert_goes_on(engine)


def test_unknown_names_are_reported_with_the_known_ones(engine: muntin.Engine) -> None:
    with pytest.raises(muntin.CatalogError, match=r"there is no stream 'Aa'\. Did you mean 'A'"):
        engine.push("Aa", [])
    with pytest.raises(muntin.InputError, match="the name of a stream must be text, not NoneType"):
        engine.push(None, [])  # type: ignore[arg-type]
    with pytest.raises(muntin.CatalogError, match=r"there is no query 'pair'\. There are pairs"):
        engine.drop("pair")
    with pytest.raises(
        muntin.SqlError,
        match=r"line 1, column 1: stream A is read by query pairs\. Drop those queries first",
    ):
        engine.execute("DROP STREAM A")
    with pytest.raises(muntin.CatalogError, match="there is already a stream A"):
        engine.stream("a", COLUMNS, time="ts")
    with pytest.raises(muntin.CatalogError, match="the name PAIRS is taken"):
        engine.query("SELECT k FROM A WINDOW 1 SECOND", name="PAIRS")
    assert_goes_on(engine)


def test_null_keys_never_match_and_are_not_stored(engine: muntin.Engine) -> None:
    engine.push("A", [(None, 9.0, "n", 1 * SECOND)])
    engine.push("B", [(None, 9.0, "n", 1 * SECOND)])
    assert_goes_on(engine)


def test_empty_pushes_of_every_kind_change_nothing(engine: muntin.Engine) -> None:
    schema = pa.schema(
        [("k", pa.int64()), ("v", pa.float64()), ("s", pa.string()), ("ts", pa.timestamp("us"))]
    )
    empties: list[Any] = [
        [],
        schema.empty_table(),
        pa.RecordBatch.from_pylist([], schema),
        pd.DataFrame({name: [] for name in COLUMNS}),
    ]
    for rows in empties:
        engine.push("A", rows)
    assert_goes_on(engine)


def test_rows_older_than_the_watermark_are_kept_as_late(engine: muntin.Engine) -> None:
    engine.push("A", [(7, 7.0, "a", 9 * SECOND)])
    engine.push("B", [(8, 8.0, "b", 9 * SECOND)])
    engine.push("A", [(1, 0.0, "late", 2 * SECOND), (7, 7.5, "in time", 9 * SECOND)])
    assert engine.late("A").column("s").to_pylist() == ["late"]
    streams = engine.stats()["streams"]
    assert isinstance(streams, dict)
    assert streams["A"]["rows_late"] == 1
    engine.advance(9 * SECOND)
    assert state_rows(engine.dataflow) == {"A": 3, "B": 1}


def test_integers_at_the_edge_of_64_bits_join_and_overflow_to_null() -> None:
    engine = muntin.Engine()
    for name in "AB":
        engine.stream(name, {"k": "bigint", "ts": "timestamp"}, time="ts")
    q = engine.query(
        "SELECT A.k, A.k + 1 AS more, 10 // (A.k + B.k) AS share FROM A, B WHERE A.k = B.k "
        "WINDOW 1 MINUTE"
    )
    for name in "AB":
        engine.push(name, [(EDGE, 0), (-EDGE - 1, 1), (0, 2), (5, 3)])
    engine.advance(4)
    assert q.poll().select(["k", "more", "share"]).to_pylist() == [
        {"k": EDGE, "more": None, "share": None},
        {"k": -EDGE - 1, "more": -EDGE, "share": None},
        {"k": 0, "more": 1, "share": None},
        {"k": 5, "more": 6, "share": 1},
    ]
    assert q.stats()["expression_failures"] == 3, "rows, not expressions"
    assert "Overflow" in str(q.stats()["last_expression_failure"])


def test_names_may_be_unicode_and_times_of_any_kind() -> None:
    engine = muntin.Engine()
    engine.execute('CREATE STREAM "Größe 寸" ("ключ" BIGINT, zeit TIMESTAMP)')
    q = engine.query('SELECT g."ключ" AS "値" FROM "Größe 寸" g WINDOW 1 MINUTE', name="größen")
    engine.push(
        "größe 寸",
        [
            {"КЛЮЧ": 1, "zeit": "1970-01-01"},
            {"ключ": 2, "zeit": datetime(1970, 1, 1, tzinfo=UTC)},
            {"ключ": 3, "zeit": 5},
        ],
    )
    engine.advance("1970-01-01 00:00:01")
    assert q.poll().column("値").to_pylist() == [1, 2, 3]


def test_huge_windows_allocate_nothing_in_advance() -> None:
    engine = muntin.Engine(window_memory="4000000000 GB")
    engine.stream("A", {"k": "bigint", "ts": "timestamp"}, time="ts")
    q = engine.query(
        "SELECT a.k FROM A a [ROWS 1000000000000], A b [PARTITION BY k ROWS 1000000000000] "
        "WHERE a.k = b.k"
    )
    engine.push("A", [(1, 0), (1, 1)])
    engine.advance(1)
    assert len(q.poll()) == 4
