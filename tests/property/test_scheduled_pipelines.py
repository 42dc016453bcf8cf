"""Schedulers order the work below GROUP BY, DISTINCT, set operators and EMIT CHANGES.

Whatever they release first, every query emits what it emits alone, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from hypothesis import given, note
from hypothesis import strategies as st

from muntin.model.catalog import Stream
from muntin.operators.join.schedule import TurnPace
from muntin.operators.join.shared import SharedTactic
from muntin.runtime.dataflow import Dataflow, Frontier
from muntin.runtime.query_group import Output
from muntin.testing.compare import assert_same_sequence
from muntin.testing.dataflows import batches_of, dataflow_of

SECOND = 1_000_000
SCHEMA = pa.schema(
    [("k", pa.int64()), ("j", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))]
)
STREAMS = [Stream(name, SCHEMA, "ts") for name in "ABC"]
TABLE = pa.table({"k": [0, 1, 1, 2], "name": ["zero", "one", "uno", "two"]})

JOINS = [
    "FROM A, B WHERE A.k = B.k{more} WINDOW {w} SECONDS",
    "FROM A [RANGE {w} SECONDS], B [RANGE {u} SECONDS] WHERE B.k = A.k{more}",
    "FROM A, B, C WHERE A.k = B.k AND C.k = B.k{more} WINDOW {w} SECONDS",
    "FROM A, A AS B WHERE A.k = B.j{more} WINDOW {w} SECONDS",
    "FROM A, B, T WHERE A.k = B.k AND T.k = A.k{more} WINDOW {w} SECONDS",
]
SELECTS = [
    "SELECT A.v AS x, B.v AS y {}",
    "SELECT DISTINCT A.j AS x {}",
    "SELECT A.j AS x, COUNT(*) AS n, MAX(B.v) AS m {} GROUP BY A.j",
    "SELECT COUNT(DISTINCT B.v) AS n, SUM(A.v) AS s {}",
    "SELECT A.j AS x {} EXCEPT SELECT B.k AS x {}",
    "SELECT A.j AS x {} UNION ALL SELECT v AS x FROM C",
    "SELECT S.x, COUNT(*) AS n FROM (SELECT DISTINCT A.j AS x, B.v AS y {}) AS S GROUP BY S.x",
]
MORE = ["", "", " AND A.j > 0", " AND A.v + B.v > 10"]
Rows = list[tuple[str, int, int, int]]
"""Stream, two keys, seconds since the row before."""
Story = list[tuple[Rows, bool, int]]
"""Rows that come together, whether time is then advanced to the last of them, and turns."""

rows = st.lists(
    st.tuples(st.sampled_from("ABC"), st.integers(0, 1), st.integers(0, 2), st.integers(0, 1)),
    min_size=1,
    max_size=10,
)
stories = st.lists(st.tuples(rows, st.booleans(), st.integers(0, 6)), min_size=1, max_size=6)


@st.composite
def query_texts(draw: st.DrawFn) -> list[str]:
    """Draw queries over one join, under different windows."""
    join = draw(st.sampled_from(JOINS))
    queries = []
    for _ in range(draw(st.integers(2, 5))):
        w, u = draw(st.integers(1, 6)), draw(st.integers(1, 6))
        body, window, size = join.format(more=draw(st.sampled_from(MORE)), w=w, u=u).partition(
            " WINDOW "
        )
        select = draw(st.sampled_from(SELECTS))
        if not window and " FROM C" in select:
            window, size = " WINDOW ", "3 SECONDS"
        every = draw(st.sampled_from(["", "", "", " EVERY 2 SECONDS"]))
        grouped = "GROUP BY A.j" in select
        text = select.format(body) if grouped else select.replace("{}", body)
        queries.append(f"{text}{window}{size}{every} EMIT CHANGES")
    return queries


def made(queries: list[str], sharing: str, scheduler: str, *, partition: bool = False) -> Dataflow:
    names = {f"q{number}": text for number, text in enumerate(queries)}
    tables = {"T": TABLE}
    return dataflow_of(
        STREAMS, names, tables=tables, partition=partition, sharing=sharing, scheduler=scheduler
    )


class Told(dict[str, list[pa.Table]]):
    """Results by query."""

    def take(self, outputs: Iterable[Output]) -> None:
        for name, table in outputs:
            self.setdefault(name, []).append(table)


def compare(alone: Told, shared: Told) -> None:
    for name in sorted({*alone, *shared}):
        note(name)
        schema = next(iter([*alone.get(name, []), *shared.get(name, [])])).schema
        wanted, got = (
            pa.concat_tables([schema.empty_table(), *told.get(name, [])])
            for told in (alone, shared)
        )
        assert_same_sequence(wanted, got)


def tables_of(came: Rows, begin: int, number: int) -> tuple[dict[str, pa.Table], int]:
    """Return rows as tables, and the second of the last one."""
    clock = begin
    columns: dict[str, list[tuple[int, int, int, int]]] = {}
    for place, (stream, k, j, step) in enumerate(came):
        clock += step
        columns.setdefault(stream, []).append((k, j, 10 * number + place, clock * SECOND))
    found = {}
    for stream, values in columns.items():
        arrays = [
            pa.array(column, pa.int64()).cast(field.type)
            for column, field in zip(zip(*values, strict=True), SCHEMA, strict=True)
        ]
        found[stream] = pa.table(arrays, schema=SCHEMA)
    return found, clock


@given(query_texts(), stories, st.sampled_from(["lwo", "swf", "mqt"]), st.integers(1, 5))
def test_queries_in_turns_emit_what_they_emit_alone(
    queries: list[str], story: Story, scheduler: str, results: int
) -> None:
    """Work in the smallest turns, between which rows come."""
    note("\n".join(queries))
    alone, shared = made(queries, "off", "lwo"), made(queries, "on", scheduler)
    shared.set_live(live=True)
    expected, got = Told(), Told()
    pace = TurnPace(1, 1, results)

    def work(turns: int) -> None:
        while turns and (busy := shared.busy()):
            group, join = busy[turns % len(busy)]
            got.take(group.turn(join, pace))
            turns -= 1

    clock = 0
    for number, (came, advances, turns) in enumerate(story):
        tables, clock = tables_of(came, clock, number)
        note(f"{came} until {clock}, {advances}, {turns}")
        for stream, table in tables.items():
            expected.take(alone.step(batches_of(alone, {stream: table})))
            got.take(shared.offer(batches_of(shared, {stream: table})))
            work(turns)
        if advances:
            promise = Frontier(advanced=clock * SECOND)
            expected.take(alone.step(frontier=promise))
            got.take(shared.offer(frontier=promise))
            work(turns)
            clock += 1  # changes of a closed instant depend on how its later rows are cut
    for beyond in (2, 20):
        promise = Frontier(advanced=(clock + beyond) * SECOND)
        expected.take(alone.step(frontier=promise))
        got.take(shared.offer(frontier=promise))
        work(turns=-1)
    assert not any(group.failed for group in shared.groups)
    compare(expected, got)


@given(query_texts(), stories, st.sampled_from(["lwo", "swf", "mqt"]), st.integers(1, 50))
def test_paced_queries_of_a_partition_emit_what_they_emit_alone(
    queries: list[str], story: Story, scheduler: str, results: int
) -> None:
    """Release results as partitions do for subscribers, in pieces of any size."""
    note("\n".join(queries))
    alone = made(queries, "off", "lwo", partition=True)
    shared = made(queries, "on", scheduler, partition=True)
    expected, got = Told(), Told()
    clock = 0
    for number, (came, advances, _) in enumerate(story):
        tables, clock = tables_of(came, clock, number)
        note(f"{came} until {clock}, {advances}")
        frontiers = [Frontier(final=(clock * SECOND, 0))]
        frontiers += [Frontier(advanced=clock * SECOND)] if advances else []
        for frontier in frontiers:
            taken = tables if frontier.final is not None else {}
            expected.take(alone.step(batches_of(alone, taken), frontier))
            pace = TurnPace(1, 1, results)
            got.take(shared.step(batches_of(shared, taken), frontier, pace))
        clock += advances
    promise = Frontier(advanced=(clock + 20) * SECOND)
    expected.take(alone.step(frontier=promise))
    got.take(shared.step(frontier=promise, pace=TurnPace(1, 1, results)))
    compare(expected, got)


QUERIES = [
    f"SELECT A.j, COUNT(*) AS n FROM A, B WHERE A.k = B.k GROUP BY A.j WINDOW {w} SECONDS"
    for w in (1, 60)
]


def test_a_small_window_with_group_by_is_served_before_a_large_one() -> None:
    """Under MQT the groups of the small window are out while the large one is worked on."""
    first: dict[str, list[str]] = {}
    for scheduler in ("lwo", "mqt"):
        shared = made(QUERIES, "on", scheduler)
        shared.set_live(live=True)
        (join,) = shared.joins()
        assert isinstance(join.operator.tactic, SharedTactic)
        table = pa.table(
            [
                pa.array(column, pa.int64()).cast(field.type)
                for column, field in zip(
                    ([0] * 400, [0] * 400, range(400), [SECOND * n // 8 for n in range(400)]),
                    SCHEMA,
                    strict=True,
                )
            ],
            schema=SCHEMA,
        )
        for stream in "AB":
            list(shared.offer(batches_of(shared, {stream: table})))
        told: list[str] = []
        while busy := shared.busy():
            for group, each in busy:
                told += [
                    name
                    for name, found in group.turn(each, TurnPace(1, 1, 64))
                    for _ in range(len(found))
                ]
        first[scheduler] = told
    middle = {name: told.index("q1") for name, told in first.items()}
    assert sorted(first["lwo"]) == sorted(first["mqt"])
    last_small = {name: len(told) - told[::-1].index("q0") for name, told in first.items()}
    assert last_small["mqt"] < last_small["lwo"], (middle, last_small)
