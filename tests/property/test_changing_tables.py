"""Tables that change: answers and added-up changes equal the oracle over the current content."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import muntin
from muntin.model.catalog import Catalog
from muntin.plan.query import Emit
from muntin.sql.script import read_query
from muntin.sql.streams import make_stream, make_table
from muntin.sql.types import build_schema
from muntin.testing.compare import assert_same_rows, rows_of
from muntin.testing.pipeline_oracle import make_oracle

SECOND = 1_000_000
STREAM = {"k": "int", "v": "int", "ts": "timestamp"}
TABLE = {"id": "int", "g": "int", "name": "varchar"}
QUERIES = (
    "SELECT A.v, t.name FROM A, T t WHERE A.k = t.id WINDOW 3 SECONDS",
    "SELECT A.v, t.name FROM A, T t WHERE A.k = t.id WINDOW 3 SECONDS EMIT INSERTS",
    "SELECT A.v, t.name FROM A LEFT JOIN T t ON A.k = t.id WINDOW 3 s EMIT CHANGES",
    "SELECT A.v FROM A SEMI JOIN T t ON A.k = t.g WINDOW 3 s EMIT CHANGES",
    "SELECT A.v FROM A ANTI JOIN T t ON A.k = t.id AND t.g > 1 WINDOW 3 s EMIT CHANGES",
    "SELECT t.id, t.name, A.v FROM T t LEFT JOIN A ON A.k = t.id WINDOW 3 s EMIT CHANGES",
    "SELECT t.g, COUNT(*) AS n, MAX(A.v) AS m FROM A, T t WHERE A.k = t.id GROUP BY t.g WINDOW 3 s",
    "SELECT COUNT(*) AS n FROM A, T t WHERE A.k < t.g WINDOW 3 SECONDS",
    "SELECT x.v, t.name FROM A x, A y, T t WHERE x.k = y.k AND y.v = t.id WINDOW 2 SECONDS",
    "SELECT t.name, u.g, A.v FROM A, T t, T u WHERE A.k = t.id AND t.g = u.id WINDOW 3 SECONDS",
    "SELECT A.v, f.n FROM A, F f, T t WHERE A.k = f.n AND f.n = t.id WINDOW 3 SECONDS",
    "SELECT A.v, t.name FROM TUMBLE(A, 2 SECONDS) A, T t WHERE A.k = t.id",
    "SELECT k FROM A EXCEPT SELECT t.id FROM A, T t WHERE A.v = t.g WINDOW 3 SECONDS",
    "SELECT A.v, t.name FROM A, T t WHERE A.k = t.id WINDOW 3 SECONDS EVERY 2 SECONDS",
    "SELECT COUNT(*) AS n FROM A LEFT JOIN T t ON A.k = t.id WINDOW 3 SECONDS EVERY 2 SECONDS",
)
KEY = st.integers(0, 3)
ROW = st.tuples(st.integers(0, 3), st.none() | st.integers(0, 3), st.sampled_from("ab"))
ROWS = st.lists(ROW, max_size=3, unique_by=lambda row: row[0])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.lists(st.tuples(KEY, KEY), min_size=1, max_size=3)),
        st.tuples(st.just("upsert"), ROWS),
        st.tuples(st.just("delete"), st.lists(KEY, max_size=2)),
        st.tuples(st.just("pass"), st.integers(1, 3)),
        st.tuples(st.just("restore"), st.none()),
    ),
    max_size=12,
)


def catalog() -> Catalog:
    known = Catalog()
    known.add(make_stream("A", build_schema(STREAM)))
    known.add(replace(make_table("T", build_schema(TABLE)), key="id"))
    known.add(make_table("F", build_schema({"n": "int"})))
    return known


@pytest.mark.parametrize("sql", QUERIES)
@settings(max_examples=max(8, settings().max_examples // 8), deadline=None)
@given(begin=ROWS, steps=STEPS, strategy=st.sampled_from(["auto", "probing", "negative"]))
def test_answers_follow_the_content(
    sql: str,
    begin: list[tuple[int, int | None, str]],
    steps: list[tuple[str, Any]],
    strategy: str,
) -> None:
    note(f"{sql}\n{begin}\n{steps}\n{strategy}")
    schema = build_schema(TABLE)
    fixed = pa.table({"n": pa.array([0, 1, 1], pa.int32())})
    content = {row[0]: row for row in begin}
    engine = muntin.Engine(clock=None, pipeline=strategy)
    engine.stream("A", STREAM, time="ts")
    engine.table("T", begin, TABLE, key="id") if begin else engine.table(
        "T", schema.empty_table(), key="id"
    )
    engine.table("F", fixed)
    q = engine.query(sql, name="q")
    query = read_query(sql, "q", catalog())
    every = query.every or 1
    now, pushed, held = 0, list[tuple[int, int, int]](), Counter[tuple[object, ...]]()
    engine.advance(0)
    versions = [(0, dict(content))]
    for step, given_rows in steps:
        if step == "push":
            now += SECOND
            rows = [(*row, now) for row in given_rows]
            engine.push("A", rows)
            pushed += rows
            engine.advance(now)
        elif step == "upsert":
            engine.upsert("T", given_rows)
            content |= {row[0]: row for row in given_rows}
        elif step == "delete":
            engine.delete("T", given_rows)
            content = {key: row for key, row in content.items() if key not in given_rows}
        elif step == "pass":
            now += given_rows * SECOND
            engine.advance(now)
        else:
            with TemporaryDirectory() as folder:
                engine.checkpoint(Path(folder))
                engine = muntin.Engine.restore(Path(folder), clock=None)
            q = engine.handle("q")
        if query.every:
            every = query.every
        versions.append((-(-now // every) * every, dict(content)))
        shown = now // every * every
        there = [version for at, version in versions if at <= shown][-1]
        stored = pa.table(
            [
                pa.array(column, kind)
                for column, kind in zip(
                    zip(*there.values(), strict=True) if there else [[]] * 3,
                    schema.types,
                    strict=True,
                )
            ],
            schema=schema,
        )
        streams = {"A": _table(pushed)}
        oracle = make_oracle(query, streams, {"T": stored, "F": fixed}, catalog(), advanced=0)
        assert_same_rows(oracle.answer(shown), q.answer())
        for change in q.poll().to_pylist():
            sign = 1 if change.pop("_op") == "+" else -1
            change.pop("_ts")
            held[tuple(change.values())] += sign
        if query.emit is Emit.CHANGES:
            assert +held == Counter(rows_of(oracle.answer(shown)))
            assert min(held.values(), default=0) >= 0


def _table(rows: list[tuple[int, int, int]]) -> pa.Table:
    schema = build_schema(STREAM)
    columns = zip(*rows, strict=True) if rows else [[]] * 3
    arrays = [
        pa.array(column, pa.int64()).cast(kind)
        for column, kind in zip(columns, schema.types, strict=True)
    ]
    return pa.table(arrays, schema=schema)
