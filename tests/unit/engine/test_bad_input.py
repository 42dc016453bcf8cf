"""Input at the limits: a clear error or a defined result, without effect on anything else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import muntin

SECOND = 1_000_000
EDGE = 2**63 - 1
COLUMNS = {"k": "bigint", "x": "double", "s": "varchar", "ts": "timestamp"}


class World:
    """Streams A and B and a query that must lose nothing, whatever else happens."""

    def __init__(self) -> None:
        self.engine = muntin.Engine()
        for name in "AB":
            self.engine.stream(name, COLUMNS, time="ts")
        self.engine.table("T", [{"k": 1, "s": "one"}])
        self.witness = self.engine.query(
            "SELECT A.s AS a, B.s AS b FROM A [RANGE 1 HOUR], B [ROWS 1000] WHERE A.ts = B.ts",
            name="witness",
        )
        self._time = 0
        self._expected: list[tuple[str, str]] = []
        self.step()

    def step(self) -> None:
        """Push a row on both sides, after all earlier rows."""
        self._time += SECOND
        for name in "AB":
            self.engine.push(name, [(self._time, 0.5, f"{name}{self._time}", self._time)])
        self.engine.advance(self._time)
        self._expected.append((f"A{self._time}", f"B{self._time}"))

    def push(self, stream: str, *rows: tuple[Any, Any, Any]) -> None:
        """Push rows of (k, x, s), each an instant later than all earlier rows."""
        for row in rows:
            self._time += SECOND
            self.engine.push(stream, [(*row, self._time)])
        self.engine.advance(self._time)

    def check(self) -> None:
        self.step()
        polled = self.witness.poll()
        assert (
            list(zip(polled.column("a").to_pylist(), polled.column("b").to_pylist(), strict=True))
            == self._expected
        )


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.check()


def values(q: muntin.StandingQuery, column: str = "r") -> list[Any]:
    found: list[Any] = q.poll().column(column).to_pylist()
    return found


# -- expressions that fail on a row ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("k + 1", [2, None, 4]),
        ("k * k", [1, None, 9]),
        ("-k - 2", [-3, None, -5]),
        ("k // (k - 3)", [0, 1, None]),
        ("k % 0", [None, None, None]),
        ("CAST(s AS INTEGER)", [7, None, 9]),
        ("CAST(k AS TINYINT)", [1, None, 3]),
        ("chr(CAST(k AS INTEGER))", ["\x01", None, "\x03"]),
        ("repeat(s, k * 100000000000)", [None, None, None]),
    ],
)
def test_a_row_on_which_an_expression_fails_has_null_there(
    world: World, expression: str, expected: list[Any]
) -> None:
    q = world.engine.query(f"SELECT {expression} AS r FROM A WINDOW 1 HOUR")
    world.push("A", (1, 0.0, "7"), (EDGE, 0.0, "seven"), (3, 0.0, "9"))
    assert values(q) == expected
    assert sorted(q.answer().column("r").to_pylist(), key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("A.k * A.k > 0 AND A.s <> 'A1000000'", [1, 3]),
        ("CAST(A.s AS INTEGER) > 0", [1, 3]),
        ("A.k + 1 = B.k + 1", [1, 3]),
        ("A.k = CAST(B.s AS BIGINT)", [1, 3]),
        ("A.k = B.k AND CAST(A.s AS INTEGER) + CAST(B.s AS INTEGER) > 0", [1, 3]),
        ("A.k = B.k AND NOT CAST(A.s AS INTEGER) > 100", [1, 3]),
    ],
)
@pytest.mark.parametrize("emit", ["INSERTS", "CHANGES"])
def test_a_condition_that_fails_on_a_row_is_not_true_there(
    world: World, where: str, expected: list[int], emit: str
) -> None:
    q = world.engine.query(f"SELECT A.k AS r FROM A, B WHERE {where} WINDOW 1 HOUR EMIT {emit}")
    for key, text in ((1, "1"), (EDGE, "edge"), (3, "3")):
        world.push("A", (key, 0.0, text))
        world.push("B", (key, 0.0, text))
    assert sorted(set(values(q))) == expected


def test_failures_are_counted_and_the_last_reason_is_kept(world: World) -> None:
    q = world.engine.query("SELECT k + 1 AS r FROM A WINDOW 1 HOUR")
    world.push("A", (1, 0.0, ""))
    assert (q.stats()["expression_failures"], q.stats()["last_expression_failure"]) == (0, "")
    for _ in range(2):
        world.push("A", (EDGE, 0.0, ""))
    assert q.stats()["expression_failures"] == 2
    assert "Overflow" in str(q.stats()["last_expression_failure"])


def test_changes_retract_the_values_of_a_failing_expression(world: World) -> None:
    q = world.engine.query("SELECT k + 1 AS r FROM A [ROWS 1] EMIT CHANGES")
    world.push("A", (EDGE, 0.0, ""), (5, 0.0, ""), (EDGE, 0.0, ""))
    changes = q.poll()
    operations, values = changes.column("_op").to_pylist(), changes.column("r").to_pylist()
    assert list(zip(operations, values, strict=True)) == [
        ("+", None), ("-", None), ("+", 6), ("-", 6), ("+", None),
    ]  # fmt: skip


# -- values at the edge ----------------------------------------------------------------------------


def test_keys_at_the_edge_of_64_bits_join_themselves_only(world: World) -> None:
    q = world.engine.query("SELECT A.k AS r FROM A, B WHERE A.k = B.k WINDOW 1 HOUR")
    less = world.engine.query("SELECT A.k AS r FROM A, B WHERE A.k < B.k WINDOW 1 HOUR")
    keys = [EDGE, -EDGE - 1, EDGE - 1, 0, -1]
    world.push("A", *((key, 0.0, "") for key in keys))
    world.push("B", *((key, 0.0, "") for key in keys))
    old = {SECOND}
    assert [key for key in values(q) if key not in old] == keys
    assert (
        sorted(key for key in values(less) if key not in old and abs(key) != SECOND).count(
            -EDGE - 1
        )
        >= len(keys) - 1
    )


def test_nan_equals_nan_infinity_is_a_value_and_zero_has_no_sign(world: World) -> None:
    q = world.engine.query(
        "SELECT A.s AS r, B.s AS t FROM A, B "
        "WHERE A.x = B.x AND A.k IS NULL AND B.k IS NULL WINDOW 1 HOUR"
    )
    numbers = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf"), "zero": 0.0}
    world.push("A", *((None, number, name) for name, number in numbers.items()))
    world.push(
        "B", *((None, number, name) for name, number in numbers.items()), (None, -0.0, "minus zero")
    )
    found = q.poll()
    assert list(zip(found.column("r").to_pylist(), found.column("t").to_pylist(), strict=True)) == [
        ("nan", "nan"), ("inf", "inf"), ("-inf", "-inf"), ("zero", "zero"), ("zero", "minus zero"),
    ]  # fmt: skip


def test_huge_texts_join_by_all_of_their_letters(world: World) -> None:
    q = world.engine.query("SELECT A.k AS r FROM A, B WHERE A.s = B.s WINDOW 1 HOUR")
    huge = "ä" * 5_000_000
    world.push("A", (1, 0.0, huge), (2, 0.0, huge + "x"))
    world.push("B", (3, 0.0, huge + "x"))
    assert values(q) == [2]


@pytest.mark.parametrize("time", [2**62 - 1, -(2**62) + 1, 10**18, -(10**18)])
def test_times_far_outside_the_calendar_are_times(time: int) -> None:
    engine = muntin.Engine()
    engine.stream("A", {"k": "int", "ts": "timestamp"})
    q = engine.query(
        "SELECT a.k FROM A a [RANGE 52000 WEEKS], A b [RANGE 1 MICROSECOND] WHERE a.k = b.k "
        "EMIT CHANGES"
    )
    engine.push("A", [(1, time), (1, time)])
    engine.advance(time)
    assert len(q.poll()) == 4
    assert q.poll().num_rows == 0
    assert str(time) in str(engine.stats()["watermark"])


def test_zoned_columns_keep_instants() -> None:
    engine = muntin.Engine()
    engine.stream("Z", {"k": "int", "at": "timestamptz"})
    q = engine.query("SELECT k, at FROM Z WINDOW 1 SECOND")
    engine.push("Z", [(1, "1970-01-01T01:00:05+01:00")])
    engine.push(
        "Z",
        pa.table(
            {"k": [2], "at": pa.array([6 * SECOND]).cast(pa.timestamp("us", tz="Asia/Tokyo"))}
        ),
    )
    polled = q.poll()
    assert polled.column("at").cast(pa.int64()).to_pylist() == [5 * SECOND, 6 * SECOND]
    assert polled.column("_ts").cast(pa.int64()).to_pylist() == [5 * SECOND, 6 * SECOND]


# -- what a refused push leaves --------------------------------------------------------------------


def test_a_refused_push_does_not_affect_waiting_rows_and_the_clock() -> None:
    engine = muntin.Engine()
    for name in "AB":
        engine.stream(name, COLUMNS, time="ts", slack="5 seconds")
    q = engine.query("SELECT A.s AS r FROM A, B WHERE A.k = B.k WINDOW 1 HOUR")
    engine.push("A", [(1, 0.0, "waits", SECOND)])
    before = engine.stats()["streams"]
    for rows in (
        [(1, 0.0, "x", 90 * SECOND), (1, 0.0, "y", None)],
        [(1, 0.0, "x", 90 * SECOND), ("k", 0.0, "y", 0)],
    ):
        with pytest.raises(muntin.InputError, match="row 1 for stream A"):
            engine.push("A", rows)
    assert engine.stats()["streams"] == before
    engine.push("B", [(1, 0.0, "", 2 * SECOND)])
    engine.advance(2 * SECOND)
    assert values(q) == ["waits"]


def test_a_refused_query_leaves_no_trace(world: World) -> None:
    for sql in (
        "SELECT A.k FROM A, B WHERE A.k < B.k WINDOW 1 SECOND WITH (join = 'hash')",
        "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND WITH (order = 'A, C')",
        (
            "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND "
            "WITH (algorithm = 'lazy', expiry = 'all')"
        ),
    ):
        with pytest.raises(muntin.SettingError, match=r"query bad|not in FROM|cannot expire"):
            world.engine.query(sql, name="bad")
    assert [query.name for query in world.engine.queries()] == ["witness"]
    world.engine.query("SELECT k FROM A WINDOW 1 SECOND", name="bad")
    world.engine.drop("bad")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM '{path}' WINDOW 1 SECOND",
        "SELECT A.k FROM A, '{path}' f WINDOW 1 SECOND",
        "SELECT A.k FROM A JOIN read_csv('{path}') f ON true WINDOW 1 SECOND",
        "SELECT A.k FROM A WHERE A.s = (SELECT content FROM read_text('{path}')) WINDOW 1 SECOND",
        "SELECT A.k FROM A WHERE EXISTS (FROM '{path}') WINDOW 1 SECOND",
        "SELECT (TABLE '{path}') FROM A WINDOW 1 SECOND",
        "SELECT \"read_text\"('{path}') FROM A WINDOW 1 SECOND",
        "SELECT main.read_blob('{path}') FROM A WINDOW 1 SECOND",
        "SELECT ('{path}').read_text() FROM A WINDOW 1 SECOND",
        "SELECT list_transform(['{path}'], lambda x: read_text(x)) FROM A WINDOW 1 SECOND",
        "SELECT glob('{path}') FROM A WINDOW 1 SECOND",
        "SELECT getenv('HOME') FROM A WINDOW 1 SECOND",
        "SELECT query('SELECT 1') FROM A WINDOW 1 SECOND",
        "SELECT k FROM A WINDOW 1 SECOND; COPY A TO '{path}'",
        "ATTACH '{path}'",
        "SELECT k FROM A WINDOW 1 SECOND UNION SELECT content FROM read_text('{path}')",
    ],
)
def test_no_query_reaches_a_file_or_the_system(world: World, tmp_path: Path, sql: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("content\nsecret\n", encoding="utf-8")
    with pytest.raises(muntin.SqlError, match=r"query bad, line 1, column \d+: .+\. .+"):
        world.engine.query(sql.format(path=secret), name="bad")
    assert secret.read_text(encoding="utf-8") == "content\nsecret\n"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "CREATE STREAM Witness (k INT, ts TIMESTAMP)",
            "line 1, column 1: there is already a query witness",
        ),
        ("CREATE TABLE a (k INT)", "line 1, column 1: there is already a stream A"),
        ("CREATE STREAM t (k INT, ts TIMESTAMP)", "line 1, column 1: there is already a table T"),
        ("CREATE QUERY B AS SELECT k FROM A WINDOW 1 SECOND", "the name B is taken"),
        ("CREATE STREAM C (k INT, k INT, ts TIMESTAMP)", "the same name"),
        ("CREATE STREAM C (_op INT, ts TIMESTAMP)", "_op"),
        ("CREATE STREAM C (k INT, ts TIMESTAMP) WITH (slack = '-1 second')", "slack"),
        (
            "CREATE STREAM C (k INT, ts TIMESTAMP) WITH (rate = '0', distinct = '5')",
            "rate cannot be '0'",
        ),
        ("DROP STREAM T", "there is no stream T"),
        ("DROP QUERY A", "there is no query 'A'|there is no query A"),
        ("SET nosuch = 1", "there is no setting 'nosuch'"),
        ("SET buckets = '-1'", "setting buckets cannot be '-1'"),
        ("SET expiry_interval = 'soon'", "setting expiry_interval cannot be 'soon'"),
    ],
)
def test_statements_that_conflict_with_existing_names_are_refused(
    world: World, statement: str, message: str
) -> None:
    before = world.engine.stats()["streams"]
    with pytest.raises(muntin.SqlError, match=message):
        world.engine.execute(statement)
    assert world.engine.stats()["streams"] == before
