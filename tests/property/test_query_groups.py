"""Queries over different streams, some idle, get exactly what each gets in a separate engine."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
from hypothesis import given, note, settings
from hypothesis import strategies as st

import muntin
from muntin.testing.compare import assert_same_changes, assert_same_rows, rows_of
from muntin.testing.golden import StreamDeclaration
from muntin.testing.partition_driver import PartitionDriver

SECOND = 1_000_000
NAMES = "ABCD"
COLUMNS = {"k": "bigint", "v": "bigint", "ts": "timestamp"}
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))])

INSERTS = [
    "SELECT {0}.v FROM {0} WINDOW {w} SECONDS",
    "SELECT {0}.v, {1}.v AS w FROM {0}, {1} WHERE {0}.k = {1}.k WINDOW {w} SECONDS",
    "SELECT {0}.v, {1}.v AS w FROM {0} [ROWS {w}], {1} [RANGE 4 SECONDS] WHERE {0}.k = {1}.k",
    (
        "SELECT {0}.v, {1}.v AS w, {2}.v AS x FROM {0}, {1}, {2} WHERE {0}.k = {1}.k AND {1}.k = "
        "{2}.k "
        "WINDOW {w} SECONDS"
    ),
    "SELECT a.v, b.v AS w FROM {0} AS a, {0} AS b WHERE a.k = b.k WINDOW {w} SECONDS",
    "SELECT {0}.v, {1}.v AS w FROM {0} [PARTITION BY k ROWS 2], {1} [ROWS {w}] WHERE {0}.k = {1}.k",
]
CHANGES = [
    "SELECT {0}.v, {1}.v AS w FROM {0}, {1} WHERE {0}.k = {1}.k WINDOW {w} SECONDS EMIT CHANGES",
    "SELECT {0}.v FROM {0} WINDOW {w} SECONDS EVERY 2 SECONDS EMIT CHANGES",
    (
        "SELECT {0}.k, COUNT(*) AS n FROM {0}, {1} WHERE {0}.k = {1}.k GROUP BY {0}.k WINDOW {w} "
        "SECONDS"
    ),
    "SELECT k FROM {0} EXCEPT SELECT k FROM {1} WINDOW {w} SECONDS",
    (
        "SELECT DISTINCT k FROM {0} UNION ALL SELECT k FROM {1} EXCEPT SELECT k FROM {2} WINDOW "
        "{w} "
        "SECONDS"
    ),
    "SELECT COUNT(*) AS n FROM {0} WINDOW {w} SECONDS",
    (
        "SELECT COUNT(*) AS n, SUM({1}.v) AS s FROM {0}, {1} WHERE {0}.k = {1}.k WINDOW {w} "
        "SECONDS "
        "EVERY 3 SECONDS EMIT SNAPSHOT"
    ),
]


@dataclass(frozen=True)
class Story:
    """Queries, slack per stream in seconds, and events: rows (key, second) or advances of time."""

    queries: tuple[str, ...]
    slack: tuple[int, ...]
    events: tuple[tuple[str, tuple[tuple[int, int], ...] | int], ...]

    def engine(self, *queries: int) -> muntin.Engine:
        """Return an engine with some of the queries."""
        engine = muntin.Engine()
        for name, slack in zip(NAMES, self.slack, strict=True):
            engine.stream(name, COLUMNS, time="ts", slack=f"{slack} seconds")
        for number in queries:
            engine.query(self.queries[number], name=f"q{number}")
        return engine

    def reads(self, stream: str) -> list[int]:
        """Return the queries that read a stream."""
        return [
            number for number, sql in enumerate(self.queries) if re.search(rf"\b{stream}\b", sql)
        ]


@st.composite
def stories(draw: st.DrawFn, forms: tuple[str, ...] = (*INSERTS, *CHANGES)) -> Story:
    """Draw silent, slow and lively streams whose rows are out of order, so that some are late."""
    queries = []
    for _ in range(draw(st.integers(2, 4))):
        streams = draw(st.permutations(NAMES))
        queries.append(draw(st.sampled_from(forms)).format(*streams, w=draw(st.integers(1, 6))))
    lively = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6))
    clock = 0
    events: list[tuple[str, tuple[tuple[int, int], ...] | int]] = []
    for _ in range(draw(st.integers(3, 14))):
        if draw(st.integers(0, 7)) == 0:
            events.append(("advance", clock + draw(st.integers(-2, 2))))
            continue
        rows = []
        for _ in range(draw(st.integers(1, 4))):
            clock += draw(st.integers(0, 1))
            rows.append(
                (draw(st.integers(0, 1)), clock - draw(st.sampled_from([0, 0, 0, 1, 2, 5])))
            )
        events.append((draw(st.sampled_from(lively)), tuple(rows)))
    return Story(tuple(queries), tuple(draw(st.integers(0, 3)) for _ in NAMES), tuple(events))


def values(rows: tuple[tuple[int, int], ...], number: int) -> list[tuple[int, int, int]]:
    return [(key, 10 * number + place, second * SECOND) for place, (key, second) in enumerate(rows)]


def tell(
    engine: muntin.Engine, what: str, detail: tuple[tuple[int, int], ...] | int, number: int
) -> None:
    if isinstance(detail, int):
        engine.advance(detail * SECOND)
    else:
        engine.push(what, values(detail, number))


def assert_same(sql: str, expected: pa.Table, found: pa.Table) -> None:
    """Check that inserts are equal in order, and changes of each instant in any order."""
    if re.search("EMIT|COUNT|EXCEPT|DISTINCT", sql):
        assert_same_changes(expected, found)
    else:
        assert rows_of(expected) == rows_of(found)


def note_story(story: Story) -> None:
    note(
        "\n".join(
            [
                f"slack {story.slack}",
                *(f"q{n}: {sql}" for n, sql in enumerate(story.queries)),
                *map(str, story.events),
            ]
        )
    )


def assert_late(story: Story, together: muntin.Engine, alone: list[muntin.Engine]) -> None:
    """Check that a late row is kept once, and counted by each query that it is late for."""
    for stream in NAMES:
        readers = story.reads(stream) or [0]
        expected = {row for number in readers for row in rows_of(alone[number].late(stream))}
        found = rows_of(together.late(stream))
        assert sorted(found) == sorted(expected)
    for number, engine in enumerate(alone):
        read = [stream for stream in NAMES if number in story.reads(stream)]
        assert together.handle(f"q{number}").stats()["rows_late"] == sum(
            len(engine.late(stream)) for stream in read
        )


@given(stories())
def test_a_query_advances_only_with_the_streams_it_reads(story: Story) -> None:
    note_story(story)
    together = story.engine(*range(len(story.queries)))
    alone = [story.engine(number) for number in range(len(story.queries))]
    for number, (what, detail) in enumerate([*story.events, ("advance", 60)]):
        for engine in (together, *alone):
            tell(engine, what, detail, number)
        for place, (sql, engine) in enumerate(zip(story.queries, alone, strict=True)):
            name = f"q{place}"
            assert_same(sql, engine.handle(name).poll(), together.handle(name).poll())
            assert_same_rows(engine.handle(name).answer(), together.handle(name).answer())
            expected, found = engine.handle(name).stats(), together.handle(name).stats()
            assert found["watermark"] == expected["watermark"]
            assert bool(found["waiting_for"]) == bool(expected["waiting_for"])
        assert_late(story, together, alone)


@settings(max_examples=settings().max_examples // 2)
@given(stories())
def test_an_engine_in_the_background_gives_each_query_the_same(story: Story) -> None:
    note_story(story)
    together = story.engine(*range(len(story.queries)))
    alone = [story.engine(number) for number in range(len(story.queries))]
    together.start()
    for number, (what, detail) in enumerate([*story.events, ("advance", 60)]):
        for engine in (together, *alone):
            tell(engine, what, detail, number)
    together.stop()
    for place, (sql, engine) in enumerate(zip(story.queries, alone, strict=True)):
        assert_same(sql, engine.handle(f"q{place}").poll(), together.handle(f"q{place}").poll())
    assert_late(story, together, alone)


@given(stories(), st.integers(0, 14), st.integers(0, 14))
def test_adding_or_dropping_a_query_changes_nothing_for_others(
    story: Story, comes: int, goes: int
) -> None:
    """The last query is added and dropped at random places."""
    note_story(story)
    note(f"comes {comes}, goes {goes}")
    others = range(len(story.queries) - 1)
    together = story.engine(*others)
    alone = [story.engine(number) for number in others]
    extra = f"q{len(others)}"
    for number, (what, detail) in enumerate([*story.events, ("advance", 60)]):
        if number == comes:
            together.query(story.queries[-1], name=extra)
        if comes <= goes == number:
            together.drop(extra)
        for engine in (together, *alone):
            tell(engine, what, detail, number)
    for place, (sql, engine) in enumerate(zip(story.queries, alone, strict=False)):
        assert_same(sql, engine.handle(f"q{place}").poll(), together.handle(f"q{place}").poll())
        assert_same_rows(engine.handle(f"q{place}").answer(), together.handle(f"q{place}").answer())


@settings(max_examples=settings().max_examples // 2)
@given(stories(), st.integers(1, 3), st.sets(st.integers(0, 14), max_size=4))
def test_partitions_give_each_query_the_same_even_when_rebuilt(
    story: Story, buckets: int, rebuilds: set[int]
) -> None:
    """Feed row by row, because on Spark the batches before a row decide whether it is late."""
    note_story(story)
    note(f"{buckets} buckets, built again before {sorted(rebuilds)}")
    alone = [story.engine(number) for number in range(len(story.queries))]
    with closing(PartitionDriver({}, buckets, None)) as driver:
        for name, slack in zip(NAMES, story.slack, strict=True):
            driver.declare(StreamDeclaration(name, tuple(COLUMNS.items()), slack=slack * SECOND))
        for number, sql in enumerate(story.queries):
            driver.query(f"q{number}", sql)
        for number, (what, detail) in enumerate([*story.events, ("advance", 60)]):
            if number in rebuilds:
                driver.rebuild()
            if isinstance(detail, int):
                driver.advance(detail * SECOND)
            else:
                driver.feed(what, table_of(values(detail, number)))
            for engine in alone:
                for row in [detail] if isinstance(detail, int) else values(detail, number):
                    engine.advance(row * SECOND) if isinstance(row, int) else engine.push(
                        what, [row]
                    )
            for place, engine in enumerate(alone):
                assert_same_rows(engine.handle(f"q{place}").poll(), driver.take(f"q{place}"))
        for stream in NAMES:
            expected = {
                row for number in story.reads(stream) for row in rows_of(alone[number].late(stream))
            }
            assert sorted(rows_of(driver.late(stream))) == sorted(expected)


def table_of(rows: list[tuple[int, int, int]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(column) for column in columns], names=list(COLUMNS)).cast(SCHEMA)
