"""Queries added and dropped on partitions give the results of one engine.

The new query may have any partitioning and windows.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
from hypothesis import given, note, settings
from hypothesis import strategies as st

import muntin
from muntin.testing.compare import assert_same_rows
from muntin.testing.golden import StreamDeclaration
from muntin.testing.partition_driver import PartitionDriver

SCHEMA = pa.schema(
    [("k", pa.int64()), ("j", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))]
)
SECOND = 1_000_000

SOURCES = [
    "A, B WHERE A.k = B.k WINDOW {w} SECONDS",
    "A, B WHERE A.j = B.j WINDOW {w} SECONDS",
    "A, B WHERE A.k = B.j WINDOW {w} SECONDS",
    "A, B WHERE A.k = B.k AND A.j = B.j WINDOW {w} SECONDS",
    "A, B WHERE A.v < B.v WINDOW {w} SECONDS",
    "A [RANGE {w} SECONDS], B [ROWS 3] WHERE A.j = B.j",
    "A [ROWS 4], B [ROWS 2] WHERE A.k = B.k",
    "A, A AS B WHERE A.k = B.k WINDOW {w} SECONDS",
    "B AS A, B WHERE A.k = B.j WINDOW {w} SECONDS",
]


ABOVE = [
    "SELECT A.k AS x, COUNT(*) AS y {} GROUP BY A.k",
    "SELECT COUNT(*) AS x, SUM(B.v) AS y {}",
    "SELECT DISTINCT A.j AS x, B.k AS y {}",
    (
        "SELECT y AS x, COUNT(*) AS y FROM (SELECT A.k AS x, MIN(B.v) AS y {} GROUP BY A.k) c "
        "GROUP BY "
        "y"
    ),
    "SELECT A.k AS x, A.j AS y {} EXCEPT SELECT B.k AS x, B.j AS y FROM B [RANGE 3 SECONDS]",
]


def query_of(form: str, source: str) -> str:
    """Return a select over a source, with the clause of its window at the end."""
    start, window, width = source.partition(" WINDOW")
    return form.format(f"FROM {start}") + window + width


@dataclass(frozen=True)
class Story:
    """A sequence of events: a row at a second, an added query, a dropped one (by number)."""

    events: tuple[tuple[str, tuple[int, int] | str | int], ...]


@st.composite
def stories(draw: st.DrawFn) -> Story:
    queries = st.builds(
        lambda form, source, width, emit: query_of(form, source.format(w=width)) + emit,
        st.sampled_from(["SELECT A.v AS x, B.v AS y {}", "SELECT A.v AS x, B.v AS y {}", *ABOVE]),
        st.sampled_from(SOURCES),
        st.integers(1, 12),
        st.sampled_from(["", "", " EMIT CHANGES"]),
    )
    rows = st.tuples(st.sampled_from("AB"), st.tuples(st.integers(0, 2), st.integers(0, 2)))
    events = st.one_of(
        rows,
        rows,
        rows,
        st.tuples(st.just("add"), queries),
        st.tuples(st.just("drop"), st.integers(0, 9)),
    )
    return Story(tuple(draw(st.lists(events, min_size=5, max_size=30))))


def table_of(row: tuple[int, int], second: int) -> pa.Table:
    return pa.table(
        [[row[0]], [row[1]], [second], pa.array([second * SECOND]).cast(pa.timestamp("us"))],
        schema=SCHEMA,
    )


@settings(max_examples=settings().max_examples // 4)
@given(stories(), st.integers(1, 4))
def test_a_query_added_on_partitions_gets_its_results_in_process(
    story: Story, partitions: int
) -> None:
    with closing(PartitionDriver({}, partitions, None)) as driver:
        assert_alike(story, muntin.Engine(), driver)


def assert_alike(story: Story, engine: muntin.Engine, driver: PartitionDriver) -> None:
    columns = {"k": "bigint", "j": "bigint", "v": "bigint", "ts": "timestamp"}
    for name in "AB":
        engine.stream(name, columns, time="ts")
        driver.declare(StreamDeclaration(name, tuple(columns.items())))
    base = "SELECT A.v AS x, B.v AS y FROM A, B WHERE A.k = B.k WINDOW 6 SECONDS"
    names: list[str] = []
    handles = {"base": engine.query(base, name="base")}
    driver.query("base", base)
    for second, (what, detail) in enumerate(story.events):
        if what == "add":
            name = f"q{second}"
            note(f"{name} at {second}: {detail}")
            handles[name] = engine.query(str(detail), name=name)
            driver.query(name, str(detail))
            names.append(name)
        elif what == "drop":
            if names:
                assert isinstance(detail, int)
                name = names.pop(detail % len(names))
                note(f"drop {name} at {second}")
                del handles[name]
                engine.drop(name)
                driver.drop(name)
        else:
            assert isinstance(detail, tuple)
            note(f"{what} {detail} at {second}")
            engine.push(what, table_of(detail, second))
            driver.feed(what, table_of(detail, second))
    engine.advance(60 * SECOND)
    driver.advance(60 * SECOND)
    for name, handle in handles.items():
        note(name)
        assert_same_rows(handle.poll(), driver.take(name))
