"""As-of joins equal DuckDB's over the rows inside the windows, at every instant.

DuckDB does not say which of several right rows of one time it takes, so it reads the last of each.
With EMIT INSERTS the reference is plain Python.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise

import pyarrow as pa
from hypothesis import given, note
from hypothesis import strategies as st

import muntin
from muntin.testing.connection import run_sql

SECOND = 1_000_000
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (times of results have no zone)
LAST = 24
COLUMNS = {"k": "bigint", "v": "bigint", "ts": "timestamp"}
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))])
TABLE = pa.table(
    {"k": [1, 1, 2, None], "v": [1, 2, 3, 4], "ts": [0, 5 * SECOND, 8 * SECOND, 1]}
).cast(SCHEMA)
Row = tuple[str, int, int | None, int]
"""The stream, the second, the key and the value."""

RIGHT = {
    "B y": "B",
    "T y": "T",
    "(SELECT k, MAX(v) AS v, MAX(ts) AS ts FROM B GROUP BY k) y": (
        "(SELECT k, MAX(v) AS v, MAX(ts) AS ts FROM B GROUP BY k)"
    ),
    "(SELECT b.k, c.v, b.ts FROM B b, C c WHERE b.k = c.k) y": (
        "(SELECT b.k, c.v, b.ts FROM B b, C c WHERE b.k = c.k)"
    ),
}
"""What the right side is to Muntin, and to DuckDB."""
ENTRY = re.compile(r"\b([ABC])\b( [abcxyz]\b)?")
LEFTS = (
    "A x",
    "A x JOIN C z ON x.k = z.k",
    "(SELECT DISTINCT k, v, ts FROM A) x",
    "A x CROSS JOIN C z",
)
ORDERS = ("x.ts >= y.ts", "x.ts > y.ts", "y.ts <= x.ts", "x.ts <= y.ts", "x.ts < y.ts")


@st.composite
def queries(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a query as Muntin and as DuckDB reads it."""
    kind = draw(st.sampled_from(["ASOF JOIN", "ASOF LEFT JOIN"]))
    source = draw(st.sampled_from(LEFTS))
    right = draw(st.sampled_from(list(RIGHT)))
    order = draw(st.sampled_from(ORDERS))
    keys = draw(st.sampled_from([["x.k = y.k"], ["x.k = y.k"], ["x.v = y.v"], []]))
    own = draw(st.sampled_from([[], ["x.v > 1"]])) if "JOIN" in kind else []
    other = draw(st.sampled_from([[], ["y.v <> 2"]]))
    on = " AND ".join(draw(st.permutations([*keys, order, *own, *other])))
    first = "ASC" if order in {"x.ts <= y.ts", "x.ts < y.ts"} else "DESC"
    filtered = f"(SELECT * FROM {RIGHT[right]} y{f' WHERE {other[0]}' if other else ''})"
    by = ", ".join(["ts", *(name[2:] for name in (key.split(" = ")[0] for key in keys))])
    ties = "number" if right == "B y" else "k, v"
    ordered = ", ".join(f"{one} {first} NULLS LAST" for one in ties.split(", "))
    number = f"row_number() OVER (PARTITION BY {by} ORDER BY {ordered})"
    last = f"(SELECT * FROM {filtered} QUALIFY {number} = 1) y"
    where = draw(st.sampled_from(["", " WHERE x.v < 3", " WHERE y.v > 1", " WHERE y.v IS NULL"]))
    items = "x.k AS xk, x.v AS xv, y.v AS yv, epoch_us(y.ts) AS yt"
    if draw(st.integers(0, 3)) == 0:
        items = "COUNT(*) AS n, SUM(y.v) AS s, COUNT(y.ts) AS c"
    select = f"SELECT {items} FROM"
    mine = f"{select} {source} {kind} {right} ON {on}{where}"
    theirs = f"{select} {source} {kind} {last} ON {on}{where}"
    return mine, theirs


rows = st.lists(
    st.tuples(
        st.sampled_from("AABBC"),
        st.integers(0, 12),
        st.sampled_from([1, 1, 2, None]),
        st.integers(1, 3),
    ),
    max_size=14,
)


def answer(query: str, fed: list[Row], at: int, windows: dict[str, int]) -> Counter[object]:
    """Return the answer of DuckDB over the rows inside the windows; ``number`` is their order."""
    tables = {"T": TABLE.append_column("number", pa.array(range(len(TABLE))))}
    for name in "ABC":
        inside = [row for row in fed if row[0] == name and at - windows[name] < row[1] <= at]
        columns = [[row[2] for row in inside], [row[3] for row in inside]]
        times = pa.array([row[1] * SECOND for row in inside], pa.timestamp("us"))
        numbers = pa.array(range(len(inside)), pa.int64())
        tables[name] = pa.table(
            [*(pa.array(one, pa.int64()) for one in columns), times, numbers],
            names=["k", "v", "ts", "number"],
        )
    return as_rows(run_sql(query, tables))


def as_rows(table: pa.Table) -> Counter[object]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def started(strategy: str) -> muntin.Engine:
    engine = muntin.Engine(pipeline=strategy)
    for name in "ABC":
        engine.stream(name, COLUMNS, time="ts", slack="3 seconds" if name == "B" else "0 seconds")
    engine.table("T", TABLE)
    return engine


def pieces(fed: list[Row], cuts: set[int], order: list[int]) -> Iterator[tuple[int, list[Row]]]:
    """Yield the rows between cuts; within a piece they come in any order of streams."""
    for before, until in pairwise([-1, *sorted(cuts), LAST]):
        part = [row for row in fed if before < row[1] <= until]
        yield until, sorted(part, key=lambda row: order["ABC".index(row[0])])


@given(
    query=queries(),
    fed=rows,
    sizes=st.tuples(*[st.integers(1, 6)] * 3),
    strategy=st.sampled_from(["negative", "hybrid", "probing"]),
    cuts=st.sets(st.integers(0, 20), max_size=5),
    order=st.permutations([0, 1, 2]),
)
def test_answers_and_changes_equal_those_of_duckdb(
    query: tuple[str, str],
    fed: list[Row],
    sizes: tuple[int, int, int],
    strategy: str,
    cuts: set[int],
    order: list[int],
) -> None:
    mine, theirs = query
    windows = dict(zip("ABC", sizes, strict=True))
    mine = ENTRY.sub(lambda one: f"{one[0]} [RANGE {windows[one[1]]} SECONDS]", mine)
    note(f"{mine}\n{theirs}")
    fed = sorted(fed, key=lambda row: row[1])
    engine = started(strategy)
    standing = engine.query(f"{mine} WINDOW {sizes[1]} SECONDS EMIT CHANGES", name="q")
    shown: Counter[object] = Counter()
    found: dict[int, Counter[object]] = {}
    for until, part in pieces(fed, cuts, order):
        for name in sorted("ABC", key=lambda one: order["ABC".index(one)]):
            rows = [(row[2], row[3], row[1] * SECOND) for row in part if row[0] == name]
            engine.push(name, rows)
        engine.advance(until * SECOND)
        for change in standing.poll().to_pylist():
            sign = 1 if change.pop("_op") == "+" else -1
            second = (change.pop("_ts") - EPOCH) // timedelta(seconds=1)
            found.setdefault(second, Counter())[tuple(change.values())] += sign
        assert as_rows(standing.answer()) == answer(theirs, fed, until, windows)
    read = [row[1] for row in fed if re.search(rf"\b{row[0]}\b", mine)]
    for second in range(min([*read, *cuts, LAST]), LAST + 1):
        shown.update(found.get(second, Counter()))
        assert min(shown.values(), default=0) >= 0
        assert +shown == answer(theirs, fed, second, windows), second


@given(
    outer=st.booleans(),
    keyed=st.booleans(),
    fed=rows,
    sizes=st.tuples(*[st.integers(1, 6)] * 2),
    cuts=st.sets(st.integers(0, 20), max_size=5),
)
def test_inserts_are_matches_as_they_arise(
    outer: bool,  # noqa: FBT001 (drawn)
    keyed: bool,  # noqa: FBT001
    fed: list[Row],
    sizes: tuple[int, int],
    cuts: set[int],
) -> None:
    fed = sorted(fed, key=lambda row: row[1])
    engine = started("negative")
    kind, keys = "ASOF LEFT JOIN" if outer else "ASOF JOIN", "x.k = y.k AND " if keyed else ""
    sql = (
        f"SELECT x.v AS a, y.v AS b FROM A x [RANGE {sizes[0]} SECONDS] "
        f"{kind} B y [RANGE {sizes[1]} SECONDS] ON {keys}x.ts >= y.ts"
    )
    note(sql)
    query = engine.query(sql, name="q")
    found: Counter[object] = Counter()
    for until, part in pieces(fed, cuts, [0, 1, 2]):
        for name in "AB":
            rows = [(row[2], row[3], row[1] * SECOND) for row in part if row[0] == name]
            engine.push(name, rows)
        engine.advance(until * SECOND)
        for row in query.poll().to_pylist():
            assert row["_op"] == "+"
            found[(row["_ts"] - EPOCH) // timedelta(seconds=1), row["a"], row["b"]] += 1
    expected: Counter[object] = Counter()
    for _, time, key, value in (row for row in fed if row[0] == "A"):
        before = [
            (row[1], place)
            for place, row in enumerate(fed)
            if row[0] == "B"
            and time - sizes[1] < row[1] <= time
            and (not keyed or (key is not None and row[2] == key))
        ]
        if before:
            expected[time, value, fed[max(before)[1]][3]] += 1
        elif outer:
            expected[time, value, None] += 1
    assert found == expected
