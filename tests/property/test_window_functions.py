"""Window functions: results are those of DuckDB at every instant, however rows are divided."""

from __future__ import annotations

from hypothesis import given, note, settings
from hypothesis import strategies as st

import muntin
from muntin.sql.script import read_query
from muntin.testing.case import Case, Event
from muntin.testing.compare import assert_same_changes
from muntin.testing.golden import StreamDeclaration
from tests.property.case_runs import describe, poll_every_batch
from tests.property.test_pipelines_on_partitions import EVENTS, on_partitions

SECOND = 1_000_000
COLUMNS = (
    ("k", "INTEGER"),
    ("v", "INTEGER"),
    ("x", "DOUBLE"),
    ("s", "VARCHAR"),
    ("ts", "TIMESTAMP"),
)
STREAMS = (StreamDeclaration("A", COLUMNS, "ts", SECOND),)
PER_KEY = ("ts", "ts DESC", "v", "v DESC NULLS FIRST", "x NULLS FIRST", "s, ts DESC", "")
OVER_ALL = ("v, ts, k, x, s", "ts DESC, s NULLS FIRST, x, k, v", "s DESC, k, x DESC, v, ts")
"""Without keys, rows of one time from several partitions are in no order but that of the query."""
AGGREGATES = (
    *("COUNT(*)", "COUNT(s)", "SUM(v)", "AVG(v)", "SUM(x)", "AVG(x)"),
    *("MIN(v)", "MAX(x)", "MIN(s)", "MAX(s)", "BOOL_OR(v > 1)"),
)
ROWS = ("FIRST_VALUE(s)", "LAST_VALUE(x)", "NTH_VALUE(v, 2)")
NEIGHBORS = ("LAG(v)", "LEAD(s)", "LAG(x, 2)", "LEAD(v, 2, -1)", "LAG(s, 1, s)", "LAG(v, 0)")
NUMBERS = ("ROW_NUMBER()", "RANK()")
BOUNDS = (
    "UNBOUNDED PRECEDING",
    "2 PRECEDING",
    "1 PRECEDING",
    "CURRENT ROW",
    "1 FOLLOWING",
    "3 FOLLOWING",
    "UNBOUNDED FOLLOWING",
)


@st.composite
def frames(draw: st.DrawFn, order: str) -> str:
    """Draw a frame that an order allows, or none."""
    key = order.split(" ", maxsplit=1)[0] if "," not in order else ""
    distances = {"v": "{}", "x": "{}.5", "ts": "INTERVAL {} SECONDS"}
    mode = draw(st.sampled_from(["", "ROWS", "ROWS", "RANGE"]))
    if not mode:
        return ""
    allowed = [
        bound for bound in BOUNDS if mode == "ROWS" or bound[0] not in "123" or key in distances
    ]
    low = draw(st.integers(0, len(allowed) - 2))
    high = draw(st.integers(max(low, 1), len(allowed) - 1))
    bounds = [allowed[low], allowed[high]]
    if mode == "RANGE":
        bounds = [
            f"{distances[key].format(bound[0])}{bound[1:]}" if bound[0] in "123" else bound
            for bound in bounds
        ]
    return f" {mode} BETWEEN {bounds[0]} AND {bounds[1]}"


@st.composite
def calls(draw: st.DrawFn) -> str:
    """Draw a call with OVER."""
    by = draw(st.sampled_from(["", "PARTITION BY k ", "PARTITION BY k ", "PARTITION BY k, v "]))
    kind = draw(st.sampled_from([AGGREGATES, AGGREGATES, ROWS, NEIGHBORS, NUMBERS]))
    order = draw(st.sampled_from(PER_KEY if by else OVER_ALL))
    if not by and kind == AGGREGATES:
        order = draw(st.sampled_from([*OVER_ALL, "ts", "v DESC", ""]))
    if kind == NUMBERS:
        order = order or "ts"
    frame = draw(frames(order)) if kind in {AGGREGATES, ROWS} else ""
    if not by and "ROWS" in frame and "," not in order:
        order = OVER_ALL[0]
    ordering = f"ORDER BY {order}" if order else ""
    return f"{draw(st.sampled_from(kind))} OVER ({by}{ordering}{frame})"


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Draw a select with one to three calls, or an aggregate over one."""
    items = [f"{draw(calls())} AS c{at}" for at in range(draw(st.integers(1, 3)))]
    qualify = draw(st.sampled_from(["", "", " QUALIFY c0 IS NOT NULL", " QUALIFY c0 IN (0, 1, 2)"]))
    if "(s" in items[0] or "BOOL" in items[0]:
        qualify = qualify.replace("c0 IN (0, 1, 2)", "c0 IS NULL")
    below = "SELECT k, v, x, s, ts FROM A"
    source = draw(
        st.sampled_from(["A", "A", f"({below} WHERE v > 0) AS A", f"({below} UNION {below}) AS A"])
    )
    select = f"SELECT k, v, {', '.join(items)} FROM {source}{qualify}"
    if draw(st.integers(0, 3)) == 0:
        select = f"SELECT k, COUNT(c0) AS n, COUNT(*) AS m FROM ({select}) AS w GROUP BY k"
    return f"{select} WINDOW {draw(st.sampled_from(['3 SECONDS', '6 SECONDS', '4 ROWS']))}"


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw rows, with equal times and values, late by up to the slack."""
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, 16),
                st.tuples(
                    st.integers(1, 2),
                    st.integers(0, 2) | st.none(),
                    st.sampled_from([None, 0.0, 0.5, 2.0]),
                    st.sampled_from([None, "a", "b"]),
                ),
                st.sampled_from([0, 0, SECOND]),
            ),
            max_size=16,
        )
    )
    events = [
        (half * SECOND // 2 + delay, Event("A", half * SECOND // 2, values))
        for half, values, delay in rows
    ]
    arrived = tuple(event for _, event in sorted(events, key=lambda one: one[0]))
    cuts = draw(st.lists(st.integers(0, len(arrived)), max_size=3, unique=True))
    return Case(STREAMS, (), draw(queries()), arrived, tuple(sorted(cuts)))


@given(case=cases(), strategy=st.sampled_from(["probing", "negative", "auto"]))
def test_results_are_those_of_duckdb_at_every_instant(case: Case, strategy: str) -> None:
    note(describe(case))
    bound = read_query(case.query, "q", case.catalog())
    found, q = poll_every_batch(case, muntin.Engine(pipeline=strategy))
    oracle = case.oracle(bound)
    assert_same_changes(oracle.changes(case.end), found)
    assert q.answer().num_rows == oracle.answer(case.end).num_rows


@settings(max_examples=max(10, settings().max_examples // 4))
@given(
    case=cases(),
    beyond=st.integers(0, 8),
    partitions=st.sampled_from([1, 2, 5]),
    events=EVENTS,
)
def test_results_on_partitions_are_those_of_the_oracle(
    case: Case, beyond: int, partitions: int, events: dict[int, str]
) -> None:
    note(describe(case))
    until = case.end + beyond * SECOND
    bound = read_query(case.query, "q", case.catalog())
    expected = case.oracle(bound).changes(until)
    assert_same_changes(expected, on_partitions(case, partitions, until, events))
