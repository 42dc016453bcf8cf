"""Queries replaced on partitions: they equal ones registered at that moment, and no other changes.

A start that replaces queries drops them and adds them again between two batches, rebuilds the
partitions from what the checkpoint keeps, and may change their number.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from hypothesis import given, note, settings
from hypothesis import strategies as st

import muntin
from muntin.testing.compare import assert_same_rows
from muntin.testing.golden import StreamDeclaration
from muntin.testing.partition_driver import PartitionDriver
from tests.property.test_queries_on_partitions import ABOVE, SECOND, SOURCES, query_of, table_of

COLUMNS = {"k": "bigint", "j": "bigint", "v": "bigint", "ts": "timestamp"}
OTHERS = {
    "joined": "SELECT A.v AS x, B.v AS y FROM A, B WHERE A.k = B.k WINDOW 6 SECONDS EMIT CHANGES",
    "counted": "SELECT COUNT(*) AS x, SUM(A.v) AS y FROM A WINDOW 5 SECONDS EMIT CHANGES",
}


@dataclass(frozen=True)
class Replaced:
    """A start that replaces queries: their texts by number, and the number of partitions."""

    texts: tuple[tuple[int, str], ...]
    partitions: int
    rescaled_first: bool


def stories() -> st.SearchStrategy[tuple[list[str], list[Replaced | tuple[str, tuple[int, int]]]]]:
    texts = st.builds(
        lambda form, source, width, emit: query_of(form, source.format(w=width)) + emit,
        st.sampled_from(["SELECT A.v AS x, B.v AS y {}", "SELECT A.v AS x, B.v AS y {}", *ABOVE]),
        st.sampled_from(SOURCES),
        st.integers(1, 12),
        st.sampled_from(["", " EMIT CHANGES"]),
    )
    rows = st.tuples(st.sampled_from("AB"), st.tuples(st.integers(0, 2), st.integers(0, 2)))
    numbered = st.lists(
        st.tuples(st.integers(0, 1), texts), min_size=1, max_size=2, unique_by=lambda one: one[0]
    )
    starts = st.builds(Replaced, numbered.map(tuple), st.integers(1, 4), st.booleans())
    return st.tuples(
        st.lists(texts, min_size=2, max_size=2),
        st.lists(st.one_of(rows, rows, rows, rows, starts), min_size=5, max_size=10),
    )


@settings(max_examples=max(2, settings().max_examples // 20))
@given(stories(), st.integers(1, 4))
def test_replaced_queries_begin_as_new_ones_and_the_others_continue(
    story: tuple[list[str], list[Replaced | tuple[str, tuple[int, int]]]], partitions: int
) -> None:
    first, events = story
    changed, unchanged = muntin.Engine(), muntin.Engine()
    with closing(PartitionDriver({}, partitions, None)) as driver:
        for name in "AB":
            changed.stream(name, COLUMNS, time="ts")
            unchanged.stream(name, COLUMNS, time="ts")
            driver.declare(StreamDeclaration(name, tuple(COLUMNS.items())))
        others = {name: unchanged.query(sql, name=name) for name, sql in OTHERS.items()}
        replaced = {}
        for name, sql in {**OTHERS, "q0": first[0], "q1": first[1]}.items():
            replaced[name] = changed.query(sql, name=name)
            driver.query(name, sql)
        for second, event in enumerate(events):
            note(f"{second}: {event}")
            if isinstance(event, Replaced):
                if event.rescaled_first:
                    driver.rescale(event.partitions)
                for number, _ in event.texts:
                    changed.drop(f"q{number}")
                    driver.drop(f"q{number}")
                for number, text in event.texts:
                    replaced[f"q{number}"] = changed.query(text, name=f"q{number}")
                    driver.query(f"q{number}", text)
                if not event.rescaled_first:
                    driver.rescale(event.partitions)
                driver.rebuild()
            else:
                stream, row = event
                for engine in (changed, unchanged):
                    engine.push(stream, table_of(row, second))
                driver.feed(stream, table_of(row, second))
        for target in (changed, unchanged, driver):
            target.advance(60 * SECOND)
        for name, handle in replaced.items():
            note(name)
            found = driver.take(name)
            if name in others:
                assert_same_rows(others[name].poll(), found)
            assert_same_rows(handle.poll(), found)
