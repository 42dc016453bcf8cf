"""USING and NATURAL are those of DuckDB over the rows inside the windows, at every instant.

Names, their order and types are compared too. The oracle runs the query as the user wrote it.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import pyarrow as pa
from hypothesis import given, note
from hypothesis import strategies as st

import muntin
from muntin.testing.connection import run_sql

SECOND = 1_000_000
LAST = 16
STREAMS = {
    "A": {"k": "bigint", "v": "integer", "a": "timestamp"},
    "B": {"v": "bigint", "k": "integer", "b": "timestamp"},
    "C": {"w": "integer", "k": "bigint", "c": "timestamp"},
}
TYPES = {"bigint": pa.int64(), "integer": pa.int32(), "timestamp": pa.timestamp("us")}
KINDS = ("", "INNER ", "LEFT ", "RIGHT ", "FULL ", "FULL OUTER ", "SEMI ", "ANTI ")
Row = tuple[str, int, int | None, int | None]
"""The stream, the second, and its two other columns in their order."""


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Draw a query over two or three streams whose columns are merged."""
    names = draw(st.permutations("ABC"))[: draw(st.integers(2, 3))]
    text, columns, aliases = f"{names[0]} x", {"k", *STREAMS[names[0]]}, ["x"]
    columns.discard(names[0].lower())
    for alias, name in zip("yz", names[1:], strict=False):
        kind = draw(st.sampled_from(KINDS))
        common = sorted(columns & set(STREAMS[name]))
        if draw(st.booleans()):
            text += f" NATURAL {kind}JOIN {name} {alias}"
        else:
            some = draw(st.lists(st.sampled_from(common), min_size=1, unique=True))
            text += f" {kind}JOIN {name} {alias} USING ({', '.join(some)})"
            if set(some) != set(common):
                return f"SELECT * FROM {text}"  # another name is ambiguous now
        if kind not in {"SEMI ", "ANTI "}:
            columns |= set(STREAMS[name]) - {name.lower()}
            aliases.append(alias)
    own = st.sampled_from(aliases).map(lambda alias: f"{alias}.k AS {alias}k")
    items = draw(
        st.sampled_from(
            ["*", "k", "k, COUNT(*) AS n", f"{draw(own)}, k", f"k + 1 AS m, {draw(own)}"]
        )
    )
    where = draw(st.sampled_from(["", "", " WHERE k > 1", " WHERE k IS NULL"]))
    group = " GROUP BY k" if "COUNT" in items else ""
    return f"SELECT {items} FROM {text}{where}{group}"


rows = st.lists(
    st.tuples(
        st.sampled_from("ABC"),
        st.integers(0, 10),
        st.sampled_from([1, 1, 2, None]),
        st.sampled_from([1, 2, None]),
    ),
    max_size=10,
)


def answer(query: str, fed: list[Row], at: int, window: int) -> pa.Table:
    """Return the answer of DuckDB over the rows inside the windows."""
    tables = {}
    for name, columns in STREAMS.items():
        inside = [row for row in fed if row[0] == name and at - window < row[1] <= at]
        values = [[row[2] for row in inside], [row[3] for row in inside]]
        times = [row[1] * SECOND for row in inside]
        schema = pa.schema([(column, TYPES[kind]) for column, kind in columns.items()])
        tables[name] = pa.table(
            [pa.array(one, pa.int64()) for one in (*values, times)], names=schema.names
        ).cast(schema)
    return run_sql(query, tables)


def as_rows(table: pa.Table) -> Counter[object]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


@given(query=queries(), fed=rows, window=st.integers(1, 6), cuts=st.sets(st.integers(0, 12)))
def test_answers_equal_those_of_duckdb(
    query: str, fed: list[Row], window: int, cuts: set[int]
) -> None:
    note(query)
    fed = sorted(fed, key=lambda row: row[1])
    engine = muntin.Engine()
    for name, columns in STREAMS.items():
        engine.stream(name, columns, time=name.lower())
    standing = engine.query(f"{query} WINDOW {window} SECONDS EMIT CHANGES", name="q")
    shown: Counter[object] = Counter()
    for before, until in pairwise([-1, *sorted(cuts), LAST]):
        for name in STREAMS:
            part = [row for row in fed if row[0] == name and before < row[1] <= until]
            engine.push(name, [(row[2], row[3], row[1] * SECOND) for row in part])
        engine.advance(until * SECOND)
        changes = standing.poll()
        signs = [1 if one == "+" else -1 for one in changes.column("_op").to_pylist()]
        for row, sign in zip(
            zip(*(column.to_pylist() for column in changes.columns[2:]), strict=True),
            signs,
            strict=True,
        ):
            shown[row] += sign
        expected = answer(query, fed, until, window)
        found = standing.answer()
        names = [re.sub(r"_1$", "", name) for name in found.column_names]
        assert [one.casefold() for one in names] == [
            re.sub(r"_1$|:1$", "", name).casefold() for name in expected.column_names
        ]
        assert found.schema.types == expected.schema.types
        assert as_rows(found) == as_rows(expected) == +shown
