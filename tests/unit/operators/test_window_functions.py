"""The values of window functions are those that DuckDB computes at every instant."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.model.window import Unbounded
from muntin.operators.signed import Changes
from muntin.operators.window_functions import WindowFunctionsOperator
from muntin.plan.nodes import Scan
from muntin.plan.top_n import SortKey
from muntin.plan.window_functions import (
    Bound,
    BoundKind,
    Frame,
    FrameMode,
    RowFunction,
    WindowCall,
    WindowFunctions,
)
from muntin.sql.frames import offset_frame
from muntin.testing.connection import run_sql
from muntin.testing.oracle_clauses import clause_of

DUCK = Duck()
SCHEMA = pa.schema(
    [
        ("g", pa.int64()),
        ("i", pa.int64()),
        ("x", pa.float64()),
        ("t", pa.string()),
        ("d", pa.decimal128(30, 2)),
    ]
)
SCAN = Scan("s", "s", stored=True, window=Unbounded(), schema=SCHEMA)
FIRST, LAST, CURRENT = (
    Bound(kind) for kind in (BoundKind.FIRST, BoundKind.LAST, BoundKind.CURRENT)
)
Row = tuple[object, ...]

rows = st.tuples(
    st.integers(0, 1),
    st.none() | st.integers(-2, 3) | st.sampled_from([2**62, -(2**62)]),
    st.sampled_from([None, 0.5, 1.5, -2.0, 3e20, 1e-9]),
    st.sampled_from([None, "", "a", "ab", "b"]),
    st.none() | st.decimals(-3, 3, places=2),
)
AGGREGATES = (
    *(("count", at, pa.int64()) for at in (None, 3)),
    ("sum", 1, pa.decimal128(38, 0)),
    ("avg", 1, pa.float64()),
    ("sum", 2, pa.float64()),
    ("sum", 4, pa.decimal128(38, 2)),
    ("avg", 4, pa.float64()),
    *((name, at, SCHEMA.field(at).type) for name in ("min", "max") for at in (1, 2, 3, 4)),
    ("var_pop", 0, pa.float64()),
    ("stddev_samp", 0, pa.float64()),
)


@st.composite
def frames(draw: st.DrawFn, order: tuple[SortKey, ...], peers: int) -> Frame:
    key = order[0].column if peers == 1 else -1
    mode = draw(st.sampled_from(list(FrameMode)))
    ends = st.sampled_from([FIRST, CURRENT, LAST])
    if mode is FrameMode.ROWS or key in {1, 2}:
        ends |= (
            st.integers(-2, 2)
            .filter(bool)
            .map(lambda off: Bound(BoundKind.OFFSET, off, str(abs(off))))
        )
    return draw(
        st.builds(Frame, st.just(mode), ends, ends).filter(
            lambda one: (
                place(one.start) <= place(one.end) and one.start != LAST and one.end != FIRST
            )
        )
    )


def place(bound: Bound) -> int:
    if bound.kind is BoundKind.OFFSET:
        return -1 if bound.distance < 0 else 1
    return [BoundKind.FIRST, BoundKind.CURRENT, BoundKind.LAST].index(bound.kind) - 1


@st.composite
def calls(draw: st.DrawFn, name: str, order: tuple[SortKey, ...], peers: int) -> WindowCall:
    if draw(st.booleans()):
        function, argument, kind = draw(st.sampled_from(AGGREGATES))
        return WindowCall(name, function, argument, kind, draw(frames(order, peers)))
    row = draw(st.sampled_from(list(RowFunction)))
    at, number = draw(st.integers(0, 4)), draw(st.integers(1, 3))
    default = None
    frame = draw(frames(order, peers))
    if row in {RowFunction.LAG, RowFunction.LEAD}:
        number = draw(st.integers(0, 3))
        frame = offset_frame(-number if row is RowFunction.LAG else number)
        default = at if draw(st.booleans()) else None
    return WindowCall(name, row, at, SCHEMA.field(at).type, frame, number, default)


@st.composite
def nodes(draw: st.DrawFn) -> WindowFunctions:
    keys = st.permutations(range(5)).flatmap(
        lambda places: st.tuples(
            *(st.builds(SortKey, st.just(at), st.booleans(), st.booleans()) for at in places)
        )
    )
    order, peers = draw(keys), draw(st.integers(0, 2))
    names = [f"c{at}" for at in range(draw(st.integers(1, 3)))]
    made = tuple(draw(calls(name, order, peers)) for name in names)
    return WindowFunctions(SCAN, draw(st.sampled_from([(), (0,)])), order, peers, made)


def table(found: list[Row]) -> pa.Table:
    columns = zip(*found, strict=True) if found else [[]] * len(SCHEMA)
    arrays = [pa.array(list(one), kind) for one, kind in zip(columns, SCHEMA.types, strict=True)]
    return pa.table(arrays, schema=SCHEMA)


@given(nodes(), st.lists(st.lists(st.lists(rows, max_size=4), max_size=3), max_size=4), st.data())
def test_changes_add_up_to_what_duckdb_computes(
    node: WindowFunctions, batches: list[list[list[Row]]], data: st.DataObject
) -> None:
    operator = WindowFunctionsOperator(node, Evaluator(DUCK))
    there: list[Row] = []
    shown: Counter[tuple[str, ...]] = Counter()
    time = 0
    for batch in batches:
        changed: list[tuple[Row, int, int]] = []
        expected = {}
        for run in batch:
            time += 1
            changed += [(row, 1, time) for row in run]
            there += run
            for _ in range(data.draw(st.integers(0, len(there)))):
                row = there.pop(data.draw(st.integers(0, len(there) - 1)))
                changed.append((row, -1, time))
            expected[time] = list(there)
        signs, times = (np.array([one[at] for one in changed], np.int64) for at in (1, 2))
        found = operator.run([Changes(table([row for row, _, _ in changed]), times, signs)])
        assert found.columns.schema.types == node.schema.types
        for instant, rows_then in expected.items():
            now = found.times == instant
            rows_now = texts(found.columns.filter(pa.array(now)))
            for shown_row, sign in zip(rows_now, found.signs[now], strict=True):
                shown[shown_row] += int(sign)
            wanted = run_sql(clause_of(node), {"stored s": table(rows_then)})
            assert +shown == Counter(texts(wanted))
            assert min(shown.values(), default=0) >= 0
    assert operator.groups() == len(there)


def texts(found: pa.Table) -> list[tuple[str, ...]]:
    return [
        tuple(f"{one:.9g}" if isinstance(one, float) else str(one) for one in row.values())
        for row in found.to_pylist()
    ]
