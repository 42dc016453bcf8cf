"""The first rows and the numbers of rows are those of sorting everything at every instant."""

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
from muntin.operators.top_n import TopNOperator
from muntin.plan.nodes import Scan
from muntin.plan.top_n import RowNumbering, SortKey, TopN
from muntin.testing.connection import run_sql
from muntin.testing.oracle_clauses import clause_of

DUCK = Duck()
SCHEMA = pa.schema([("g", pa.int64()), ("x", pa.float64()), ("t", pa.string())])
SCAN = Scan("s", "s", stored=True, window=Unbounded(), schema=SCHEMA)

rows = st.tuples(
    st.integers(0, 1),
    st.sampled_from([None, 0.0, 1.5, -2.0, float("nan"), float("inf")]),
    st.sampled_from([None, "", "a", "ab", "b"]),
)
orders = st.permutations([0, 1, 2]).flatmap(
    lambda places: st.tuples(
        *(st.builds(SortKey, st.just(place), st.booleans(), st.booleans()) for place in places)
    )
)


@st.composite
def nodes(draw: st.DrawFn) -> TopN:
    numbering = draw(st.sampled_from(list(RowNumbering)))
    number = draw(st.sampled_from(["", "n"]))
    cuts = not number and numbering is RowNumbering.ROW_NUMBER
    return TopN(
        SCAN,
        draw(st.sampled_from([(), (0,)])),
        draw(orders),
        draw(st.integers(1, 3)),
        draw(st.none() | st.integers(0, 3)),
        draw(st.integers(0, 2)) if cuts else 0,
        draw(st.sampled_from([(0, 1, 2), (2,)])),
        numbering,
        number,
    )


def table(found: list[tuple[object, ...]]) -> pa.Table:
    columns = zip(*found, strict=True) if found else [[], [], []]
    arrays = [pa.array(list(one), kind) for one, kind in zip(columns, SCHEMA.types, strict=True)]
    return pa.table(arrays, schema=SCHEMA)


@given(nodes(), st.lists(st.lists(st.lists(rows, max_size=4), max_size=3), max_size=4), st.data())
def test_changes_add_up_to_what_duckdb_computes(
    node: TopN, batches: list[list[list[tuple[object, ...]]]], data: st.DataObject
) -> None:
    operator = TopNOperator(node, Evaluator(DUCK))
    there: list[tuple[object, ...]] = []
    shown: Counter[tuple[str, ...]] = Counter()
    time = 0
    for batch in batches:
        changed: list[tuple[tuple[object, ...], int, int]] = []
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
        for instant, rows_then in expected.items():
            now = found.times == instant
            rows_now = texts(found.columns.filter(pa.array(now)))
            for shown_row, sign in zip(rows_now, found.signs[now], strict=True):
                shown[shown_row] += int(sign)
            wanted = run_sql(clause_of(node), {"stored s": table(rows_then)})
            assert +shown == Counter(texts(wanted))
            assert min(shown.values(), default=0) >= 0
    assert operator.groups() == len(set(texts(table(there))))


def texts(found: pa.Table) -> list[tuple[str, ...]]:
    return [tuple(map(str, row.values())) for row in found.to_pylist()]
