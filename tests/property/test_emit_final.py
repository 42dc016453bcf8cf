"""EMIT FINAL: results are what DuckDB makes of all rows at once, and those of the oracle."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import muntin
from muntin.sql.script import read_query
from muntin.testing.case import Case, Event
from muntin.testing.compare import assert_same_changes
from muntin.testing.connection import run_sql
from muntin.testing.golden import StreamDeclaration
from tests.property.case_runs import describe
from tests.property.test_pipelines_on_partitions import EVENTS, on_partitions

SECOND = 1_000_000
COLUMNS = (("k", "INTEGER"), ("v", "INTEGER"), ("ts", "TIMESTAMP"))
STREAMS = tuple(StreamDeclaration(name, COLUMNS, "ts", SECOND) for name in "AB")
GROUPED = (
    "SELECT {x}k AS k, COUNT(*) AS n, SUM({x}v) AS s, COUNT(DISTINCT {x}v) AS d FROM {rows} "
    "GROUP BY {x}k, {x}window_end{having}"
)
SINGLE = ("TUMBLE(A, {size} SECONDS)", "HOP(A, 2 SECONDS, {size} SECONDS)")
JOINED = (
    "TUMBLE(A, {size} SECONDS) x JOIN TUMBLE(B, {size} SECONDS) y ON x.k = y.k",
    (
        "HOP(A, 2 SECONDS, {size} SECONDS) x JOIN HOP(B, 2 SECONDS, {size} SECONDS) y "
        "ON x.k = y.k AND x.window_end = y.window_end"
    ),
)
OTHERS = (
    "SELECT k, v FROM TUMBLE(A, 4 SECONDS) EMIT FINAL",
    "SELECT DISTINCT k, window_end FROM HOP(A, 2 SECONDS, 4 SECONDS) EMIT FINAL",
    (
        "SELECT n, COUNT(*) AS c FROM (SELECT k, window_end, COUNT(*) AS n FROM TUMBLE(A, 3 s)"
        " GROUP BY ALL) AS g GROUP BY n, window_end EMIT FINAL"
    ),
    (
        "SELECT k, SUM(v) AS s FROM TUMBLE(A, 4 SECONDS) GROUP BY k, window_start"
        " ORDER BY s DESC, k LIMIT 1 EMIT FINAL"
    ),
    (
        "SELECT k, v, window_end FROM HOP(A, 2 SECONDS, 4 SECONDS)"
        " QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY v) = 1 EMIT FINAL"
    ),
    (
        "SELECT k, window_end FROM TUMBLE(A, 3 SECONDS)"
        " EXCEPT ALL SELECT k, window_end FROM TUMBLE(B, 3 SECONDS) EMIT FINAL"
    ),
    (
        "SELECT k, window_end FROM TUMBLE(A, 3 SECONDS)"
        " UNION SELECT k, window_end FROM TUMBLE(B, 2 SECONDS) EMIT FINAL"
    ),
    (
        "SELECT x.v, y.v AS w FROM TUMBLE(A, 4 SECONDS) x LEFT JOIN TUMBLE(B, 4 SECONDS) y"
        " ON x.k = y.k EMIT FINAL"
    ),
)


@st.composite
def grouped(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a query over groups of windows, and the same over all rows in DuckDB."""
    size = draw(st.sampled_from([2, 4, 6]))
    having = draw(st.sampled_from(["", " HAVING COUNT(*) > 1"]))
    form = draw(st.sampled_from([*SINGLE, *JOINED]))
    rows, x = form.format(size=size), "x." if form in JOINED else ""
    query = GROUPED.format(rows=rows, x=x, having=having)
    slide = 2 if "HOP" in form else size
    windows = {name: _windows(name, slide, size) for name in "AB"}
    source = (
        f"{windows['A']} x JOIN {windows['B']} y ON x.k = y.k AND x.window_end = y.window_end"
        if x
        else windows["A"]
    )
    text = GROUPED.format(rows=source, x=x, having=having)
    at_once = text.replace("SELECT", f"SELECT '+' AS _op, {x}window_end AS _ts,", 1)
    return f"{query} EMIT FINAL", f"{at_once} ORDER BY {x}window_end"


def _windows(stream: str, slide: int, size: int) -> str:
    """Return the rows of a stream with the end of each of their windows, in DuckDB."""
    first = f"epoch_us(ts) // {slide * SECOND} * {slide * SECOND} + {slide * SECOND}"
    ends = f"unnest(range({first}, {first} + {size * SECOND}, {slide * SECOND}))"
    return f"(SELECT *, make_timestamp({ends}) AS window_end FROM {stream})"


@st.composite
def cases(draw: st.DrawFn, query: str) -> Case:
    """Draw rows of two streams, late by up to the slack."""
    rows = draw(
        st.lists(
            st.tuples(
                st.sampled_from("AAB"),
                st.integers(0, 11 * 4),
                st.integers(1, 2) | st.none(),
                st.integers(0, 3),
                st.sampled_from([0, 0, SECOND]),
            ),
            max_size=18,
        )
    )
    events = [
        (quarters * SECOND // 4 + delay, Event(stream, quarters * SECOND // 4, (key, value)))
        for stream, quarters, key, value, delay in rows
    ]
    arrived = tuple(event for _, event in sorted(events, key=lambda one: one[0]))
    cuts = draw(st.lists(st.integers(0, len(arrived)), max_size=3, unique=True))
    return Case(STREAMS, (), query, arrived, tuple(sorted(cuts)))


def results(case: Case, until: int, strategy: str = "auto") -> pa.Table:
    """Return the results in process, polled after every batch."""
    engine = muntin.Engine(pipeline=strategy)
    for statement in case.declarations:
        engine.execute(statement)
    q = engine.query(case.query, name="q")
    found = []
    for stream, rows in case.batches():
        engine.push(stream, rows)
        found.append(q.poll())
    engine.advance(until)
    assert not any(len(engine.late(name)) for name in "AB")
    return pa.concat_tables([*found, q.poll()])


@given(data=st.data(), strategy=st.sampled_from(["probing", "negative", "auto"]))
def test_the_groups_of_windows_are_those_of_all_rows_at_once(
    data: st.DataObject, strategy: str
) -> None:
    query, at_once = data.draw(grouped())
    case = data.draw(cases(query))
    note(f"{describe(case)}\n{at_once}")
    found = results(case, case.end + 30 * SECOND, strategy)
    expected = run_sql(at_once, case.rows())
    assert_same_changes(expected.cast(found.schema), found)


@pytest.mark.parametrize("query", OTHERS)
@settings(max_examples=max(5, settings().max_examples // 8))
@given(
    data=st.data(), beyond=st.integers(0, 8), partitions=st.sampled_from([1, 2, 5]), events=EVENTS
)
def test_results_in_process_and_on_partitions_are_those_of_the_oracle(
    query: str, data: st.DataObject, beyond: int, partitions: int, events: dict[int, str]
) -> None:
    case = data.draw(cases(query))
    note(describe(case))
    until = case.end + beyond * SECOND
    bound = read_query(case.query, "q", case.catalog())
    expected = case.oracle(bound).changes(until)
    assert_same_changes(expected, results(case, until))
    assert_same_changes(expected, on_partitions(case, partitions, until, events))
