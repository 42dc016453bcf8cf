"""Outer, semi and anti joins equal DuckDB's over the rows inside the windows, at every instant.

The oracle runs the query as the user wrote it: nothing of the plan tree is used.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pyarrow as pa
from hypothesis import given, note
from hypothesis import strategies as st

import muntin
from muntin.testing.connection import run_sql

SECOND = 1_000_000
STREAMS = ("A", "B", "C")
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))])
TABLE = pa.table({"k": [1, 2, 2, None], "v": [1, 2, 3, 4]})
SELECT = "(SELECT k, MAX(v) AS v FROM C GROUP BY k)"
NAMED = {"S": SELECT, "V": "V", "W": "TUMBLE(A, 3 SECONDS)"}
"""What entries of FROM are to Muntin: a sub-select, a view of it, and tumbling windows."""
KINDS = ("LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "LEFT OUTER", "INNER")
Row = tuple[str, int, int | None, int]
"""The stream, the second, the key and the value."""


@st.composite
def conditions(draw: st.DrawFn, left: list[str], right: str) -> str:
    other = st.sampled_from(left)
    parts = [
        f"{draw(other)}.k = {right}.k",
        f"{draw(other)}.v < {right}.v",
        f"{draw(other)}.v > 1",
        f"{right}.v <> 2",
        f"{draw(other)}.v + 1 = {right}.v",
    ]
    chosen = draw(st.lists(st.sampled_from(parts), min_size=1, max_size=3, unique=True))
    return " AND ".join([*chosen, *([parts[0]] if draw(st.booleans()) else [])])


@st.composite
def froms(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Draw a FROM of two or three entries, and the aliases that can be seen above it.

    Entries are streams, the table, and keys of ``NAMED``.
    """
    entries = draw(st.lists(st.sampled_from([*STREAMS, "T", *NAMED]), min_size=2, max_size=3))
    entries[0] = entries[0] if set(entries) - {"T"} else "A"
    text = ""
    seen: list[str] = []
    for place, entry in enumerate(entries):
        alias = "xyz"[place]
        named = f"{entry} {alias}"
        kind = draw(st.sampled_from(KINDS)) if place else ""
        if not place:
            text = named
        elif kind == "INNER" and draw(st.booleans()):
            text += f", {named}"
        else:
            text += f" {kind} JOIN {named} ON {draw(conditions(_near(text, seen), alias))}"
        seen += [] if kind in {"SEMI", "ANTI"} else [alias]
    return text, seen


def _near(text: str, seen: list[str]) -> list[str]:
    """Return the aliases that ON sees: those since the last comma."""
    last = text.rsplit(", ", 1)[-1]
    return [alias for alias in seen if f" {alias}" in f" {last} " and f" {alias} " in f" {last} "]


bounds = st.sampled_from(["", " QUALIFY n <= 2", " QUALIFY n = 1"])


@st.composite
def numbers(draw: st.DrawFn, seen: list[str]) -> str:
    """Draw numbers of rows that are the same however ties are broken."""
    names = [f"{alias}.{column}" for alias in seen for column in ("k", "v")]
    by = draw(st.permutations(names))
    function = draw(st.sampled_from(["RANK", "DENSE_RANK", "ROW_NUMBER"]))
    order = ", ".join(by if function == "ROW_NUMBER" else by[:2])
    return f"{function}() OVER (PARTITION BY {draw(st.sampled_from(names))} ORDER BY {order}) AS n"


@st.composite
def queries(draw: st.DrawFn) -> str:
    source, seen = draw(froms())
    where = draw(
        st.sampled_from(
            ["", *(f" WHERE {one}.{test}" for one in seen for test in ("v > 1", "v IS NULL"))]
        )
    )
    if draw(st.integers(0, 3)) == 0:
        return f"SELECT COUNT(*) AS n, SUM({seen[-1]}.v) AS s FROM {source}{where}"
    items = [f"{alias}.{column} AS {alias}{column}" for alias in seen for column in ("k", "v")]
    if draw(st.integers(0, 3)) == 0:
        return (
            f"SELECT {', '.join(items)}, {draw(numbers(seen))} FROM {source}{where}{draw(bounds)}"
        )
    count = draw(st.integers(1, len(items)))
    return f"SELECT {', '.join(draw(st.permutations(items))[:count])} FROM {source}{where}"


rows = st.lists(
    st.tuples(
        st.sampled_from(STREAMS),
        st.integers(0, 12),
        st.sampled_from([1, 1, 2, 3, None]),
        st.integers(1, 3),
    ),
    max_size=12,
)


def answer(query: str, fed: list[Row], at: int, window: int) -> Counter[tuple[object, ...]]:
    """Return the answer of DuckDB over the rows inside the windows."""
    tables = {"T": TABLE}
    for name in STREAMS:
        inside = [row for row in fed if row[0] == name and at - window < row[1] <= at]
        columns = [[row[2] for row in inside], [row[3] for row in inside]]
        tables[name] = pa.table(columns, schema=pa.schema([("k", pa.int64()), ("v", pa.int64())]))
    tumbling = [row for row in fed if row[0] == "A" and at - at % 3 <= row[1] <= at]
    tables["W"] = pa.table({"k": [row[2] for row in tumbling], "v": [row[3] for row in tumbling]})
    return as_rows(
        run_sql(query.replace(" S ", f" {SELECT} ").replace(" V ", f" {SELECT} "), tables)
    )


def written(query: str) -> str:
    """Return a query as Muntin reads it."""
    for entry, text in NAMED.items():
        query = query.replace(f" {entry} ", f" {text} ")
    return query


def as_rows(table: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


@given(
    query=queries(),
    fed=rows,
    window=st.integers(1, 6),
    strategy=st.sampled_from(["negative", "hybrid", "probing", "input"]),
    cuts=st.sets(st.integers(0, 20)),
)
def test_answers_and_changes_equal_those_of_duckdb(
    query: str, fed: list[Row], window: int, strategy: str, cuts: set[int]
) -> None:
    note(query)
    fed = sorted(fed, key=lambda row: row[1])
    engine = muntin.Engine(pipeline=strategy)
    for name in STREAMS:
        engine.stream(name, {"k": "bigint", "v": "bigint", "ts": "timestamp"}, time="ts")
    engine.table("T", TABLE)
    engine.execute(f"CREATE VIEW V AS {SELECT}")
    standing = engine.query(f"{written(query)} WINDOW {window} SECONDS EMIT CHANGES", name="q")
    shown: Counter[tuple[object, ...]] = Counter()
    found: dict[int, Counter[tuple[object, ...]]] = {}
    for before, until in pairwise([-1, *sorted(cuts), 20]):
        for name in STREAMS:
            part = [row for row in fed if row[0] == name and before < row[1] <= until]
            engine.push(name, [(row[2], row[3], row[1] * SECOND) for row in part])
        engine.advance(until * SECOND)
        changes = standing.poll()
        for change in changes.to_pylist():
            operation, instant = change.pop("_op"), change.pop("_ts")
            second = round(instant.timestamp()) if instant.tzinfo else _seconds(instant)
            found.setdefault(second, Counter())[tuple(change.values())] += (
                1 if operation == "+" else -1
            )
        if strategy != "input":
            assert as_rows(standing.answer()) == answer(query, fed, until, window)
    last = max(found, default=-1) if strategy == "input" else 20
    streams = {"S": "C", "V": "C", "W": "A"}
    names = {streams.get(word, word) for word in query.split()}
    read = [row[1] for row in fed if row[0] in names]
    first = min([*read, *cuts, 20])
    for second in range(first, last + 1):
        shown.update(found.get(second, Counter()))
        assert min(shown.values(), default=0) >= 0
        assert +shown == answer(query, fed, second, window), second


def _seconds(instant: object) -> int:
    return int(pa.scalar(instant, pa.timestamp("us")).value // SECOND)
