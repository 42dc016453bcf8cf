"""Sub-selects in expressions equal DuckDB's over the rows inside the windows, at every instant.

The oracle runs the query as the user wrote it: nothing of the plan tree is used. In process and on
partitions, under any cut into batches, with restarts between them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from itertools import pairwise

import pyarrow as pa
from hypothesis import given, note, settings
from hypothesis import strategies as st

from muntin.testing.connection import run_sql
from muntin.testing.driver import Driver
from muntin.testing.engine_driver import EngineDriver
from muntin.testing.golden import StreamDeclaration
from muntin.testing.partition_driver import PartitionDriver

SECOND = 1_000_000
STREAMS = ("A", "B", "C")
FIELDS = (("k", "bigint"), ("v", "bigint"))
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])
TABLE = pa.table({"k": [1, 2, 2, None], "v": [1, 2, 3, 4]}, schema=SCHEMA)
GROUPS = "(SELECT k, MAX(v) AS v FROM C GROUP BY k)"
ENTRIES = (*STREAMS, "T", "S", "V", "R", "N")
"""What a sub-select reads: streams, a table, a sub-select, a view, and two windows of their own."""
WRITTEN = {"S": GROUPS, "R": "B", "N": "C"}
BRACKETS = {"R": " [RANGE 2 SECONDS]", "N": " [ROWS 2]"}
AGGREGATES = ("COUNT(*)", "COUNT(y.v)", "MAX(y.v)", "SUM(y.v) + 1", "COALESCE(MIN(y.v), 9)")
OPERATORS = ("=", "<", ">=", "<>")
Row = tuple[str, int, int | None, int]
"""The stream, the second, the key and the value."""


@st.composite
def wheres(draw: st.DrawFn, outer: str, *, equal: bool = False) -> str:
    """Draw the WHERE of a sub-select; with ``equal``, it reads the outer entry by = only."""
    parts = ["y.v > 1", "y.k IS NOT NULL", f"y.k = {outer}.k", f"y.v + 1 = {outer}.v"]
    parts += [f"y.k = {outer}.k", f"{outer}.v > 1", "y.v IN (SELECT v FROM A)"]
    parts += [] if equal else [f"y.v > {outer}.v", f"y.k <= {outer}.k OR y.v = 2"]
    chosen = draw(st.lists(st.sampled_from(parts), max_size=2, unique=True))
    return f" WHERE {' AND '.join(f'({one})' for one in chosen)}" if chosen else ""


@st.composite
def values(draw: st.DrawFn, outer: str) -> str:
    """Draw a sub-select that is a value."""
    entry, aggregate = draw(st.sampled_from(ENTRIES)), draw(st.sampled_from(AGGREGATES))
    having = draw(st.sampled_from(["", "", " HAVING COUNT(*) < 2"]))
    return f"(SELECT {aggregate} FROM {entry} y{draw(wheres(outer, equal=True))}{having})"


@st.composite
def conditions(draw: st.DrawFn, outer: str) -> str:
    entry, word = draw(st.sampled_from(ENTRIES)), draw(st.sampled_from(["", "NOT "]))
    kind = draw(st.integers(0, 5))
    where = draw(wheres(outer))
    if kind == 0:
        return f"{word}EXISTS (SELECT * FROM {entry} y{where})"
    if kind == 1:
        alone = draw(st.sampled_from(["", " WHERE y.v > 1"]))  # DuckDB has no correlated ones
        return f"({outer}.k, {outer}.v) IN (SELECT k, v FROM {entry} y{alone})"
    if kind == 2:
        grouped = draw(wheres(outer, equal=True))
        having = draw(st.sampled_from(["", " HAVING COUNT(*) > 1"]))
        aggregate = f"SELECT MAX(y.v) FROM {entry} y{grouped} GROUP BY y.k{having}"
        return f"{outer}.v {word}IN ({aggregate})"
    if kind == 3:
        operator = draw(st.sampled_from(OPERATORS))
        return f"{outer}.v {operator} {draw(values(outer))}"
    column = draw(st.sampled_from(["k", "v"]))
    side = draw(st.sampled_from([f"{outer}.k", f"{outer}.v", f"{outer}.v + 1"]))
    return f"{side} {word}IN (SELECT y.{column} FROM {entry} y{where})"


FROMS = ["A x", "A x", "B x", "A x, B z", "A x JOIN B z ON x.k = z.k", "T x, A z"]
FROMS += ["A x LEFT JOIN C z ON x.k = z.k", "S x", "B x, S z"]


@st.composite
def queries(draw: st.DrawFn) -> str:
    source = draw(st.sampled_from(FROMS))
    outer = draw(st.sampled_from(["x", "z"])) if " z" in source else "x"
    found = draw(st.lists(conditions(outer), max_size=2))
    parts = [*found, *draw(st.sampled_from([[], ["x.v > 1"]]))]
    where = f" WHERE {' AND '.join(parts)}" if parts else ""
    value = draw(values(outer))
    if draw(st.integers(0, 2)) == 0:
        test = draw(
            st.sampled_from(
                ["n > 1", f"COUNT(*) >= {draw(values('x'))}", "x.k IN (SELECT k FROM C)"]
            )
        )
        test = test.replace("n > 1", "COUNT(*) > 1")
        keyed = value.replace(f"{outer}.", "x.")
        group = f"SELECT x.k, COUNT(*) AS n, {keyed} AS s FROM {source}{where} GROUP BY x.k, x.v"
        return f"{group} HAVING {test}"
    if draw(st.booleans()):
        return f"SELECT x.k AS a, x.v AS b, {value} AS c FROM {source}{where}"
    return f"SELECT x.k AS a, {outer}.v AS b FROM {source}{where}"


rows = st.lists(
    st.tuples(
        st.sampled_from(STREAMS),
        st.integers(0, 10),
        st.sampled_from([1, 1, 2, 3, None]),
        st.integers(1, 3),
    ),
    max_size=10,
)


def written(query: str) -> str:
    """Return a query as Muntin reads it."""

    def entry(match: re.Match[str]) -> str:
        name, alias = match.groups()
        return f" {WRITTEN.get(name, name)} {alias}{BRACKETS.get(name, '')}"

    return re.sub(r" ([A-Z]) ([xyz])\b", entry, query)


def answer(query: str, fed: list[Row], at: int, window: int) -> Counter[tuple[object, ...]]:
    """Return the answer of DuckDB over the rows inside the windows."""
    tables = {"T": TABLE}
    come = [row for row in fed if row[1] <= at]
    for name in STREAMS:
        tables[name] = table_of(row for row in come if row[0] == name and row[1] > at - window)
    tables["R"] = table_of(row for row in come if row[0] == "B" and row[1] > at - 2)
    tables["N"] = table_of([row for row in come if row[0] == "C"][-2:])
    return as_rows(run_sql(re.sub(r" [SV] ([xyz])\b", rf" {GROUPS} \1", query), tables))


def table_of(some: Iterable[Row]) -> pa.Table:
    found = list(some)
    return pa.table([[row[2] for row in found], [row[3] for row in found]], schema=SCHEMA)


def as_rows(table: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def check(
    driver: Driver, query: str, fed: list[Row], window: int, story: tuple[set[int], set[int]]
) -> None:
    """Feed rows in batches, with restarts, and compare the answer of every second."""
    cuts, restarts = story
    note(query)
    for name in STREAMS:
        driver.declare(StreamDeclaration(name, (*FIELDS, ("ts", "timestamp"))))
    driver.table("T", TABLE)
    driver.execute(f"CREATE VIEW V AS {GROUPS[1:-1]}")
    driver.query("q", f"{written(query)} WINDOW {window} SECONDS EMIT CHANGES")
    parts = []
    for before, until in pairwise([-1, *sorted(cuts), 18]):
        for name in STREAMS:
            part = [row for row in fed if row[0] == name and before < row[1] <= until]
            times = pa.array([row[1] * SECOND for row in part], pa.timestamp("us"))
            driver.feed(name, table_of(part).append_column("ts", times))
        driver.advance(until * SECOND)
        parts.append(driver.take("q"))
        if before in restarts:
            restart(driver)
    found: dict[int, Counter[tuple[object, ...]]] = {}
    for table in parts:
        seconds = [time // SECOND for time in table.column("_ts").cast(pa.int64()).to_pylist()]
        signs = table.column("_op").to_pylist()
        for second, sign, row in zip(
            seconds, signs, table.drop_columns(["_op", "_ts"]).to_pylist(), strict=True
        ):
            change = found.setdefault(second, Counter())
            change[tuple(row.values())] += 1 if sign == "+" else -1
    shown: Counter[tuple[object, ...]] = Counter()
    first = min([row[1] for row in fed if row[0] in read_by(query)] + [*cuts, 18])
    for second in range(first, 19):
        shown.update(found.get(second, Counter()))
        assert min(shown.values(), default=0) >= 0
        assert +shown == answer(query, fed, second, window), second


def read_by(query: str) -> set[str]:
    """Return the streams that a query reads."""
    names = set(re.findall(r"\b([A-Z])\b", query))
    return {{"S": "C", "V": "C", "R": "B", "N": "C"}.get(name, name) for name in names}


def restart(driver: Driver) -> None:
    if isinstance(driver, PartitionDriver):
        driver.rebuild()
    else:
        driver.restart()


STORIES = st.tuples(st.sets(st.integers(0, 17), max_size=6), st.sets(st.integers(-1, 17)))


@given(queries(), rows, st.integers(1, 6), STORIES)
def test_answers_and_changes_equal_those_of_duckdb(
    query: str, fed: list[Row], window: int, story: tuple[set[int], set[int]]
) -> None:
    fed = sorted(fed, key=lambda row: row[1])
    with closing(EngineDriver({})) as driver:
        check(driver, query, fed, window, story)


@settings(max_examples=settings().max_examples // 2)
@given(
    queries(),
    rows,
    st.integers(1, 6),
    STORIES,
    st.tuples(st.sampled_from([1, 2, 5]), st.integers(0, 9)),
)
def test_partitions_give_the_same(
    query: str,
    fed: list[Row],
    window: int,
    story: tuple[set[int], set[int]],
    setup: tuple[int, int],
) -> None:
    fed = sorted(fed, key=lambda row: row[1])
    partitions, seed = setup
    with closing(PartitionDriver({}, partitions, seed)) as driver:
        check(driver, query, fed, window, story)
