"""As-of joins of any signed rows equal what DuckDB computes at every instant."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.model.window import Unbounded
from muntin.operators.asof_join import AsofJoinOperator
from muntin.operators.signed import Changes
from muntin.plan.asof_join import AsofJoin
from muntin.plan.expression import ColumnRef, Expression, column_expression
from muntin.plan.nodes import Scan
from muntin.plan.semi_join import KeyPair
from muntin.plan.top_n import SortKey
from muntin.testing.connection import run_sql
from muntin.testing.oracle_clauses import clause_of

DUCK = Duck()
SCHEMA = pa.schema([("k", pa.int64()), ("x", pa.float64()), ("t", pa.string())])
LEFT, RIGHT = (Scan(name, name, stored=True, window=Unbounded(), schema=SCHEMA) for name in "lr")
NAN, INFINITY = float("nan"), float("inf")

rows = st.tuples(
    st.sampled_from([0, 0, 1, None]),
    st.sampled_from([None, 0.0, -0.0, 1.5, -2.0, 3.0, NAN, INFINITY]),
    st.sampled_from([None, "", "a", "ab", "b"]),
)


def pair(name: str) -> KeyPair:
    kind = SCHEMA.field(name).type
    return KeyPair(*(column_expression(ColumnRef(side, name), kind) for side in (0, 1)))


@st.composite
def nodes(draw: st.DrawFn) -> AsofJoin:
    operator = draw(st.sampled_from([">=", ">", "<=", "<"]))
    forward = operator[0] == "<"
    condition = Expression("\"0.t\" <> 'a'", (ColumnRef(0, "t"),), pa.bool_())
    return AsofJoin(
        LEFT,
        RIGHT,
        draw(st.sampled_from([(), (pair("k"),), (pair("k"), pair("t"))])),
        pair("x"),
        operator,
        tuple(SortKey(place, descending=forward, nulls_first=True) for place in (2, 0, 1)),
        draw(st.sampled_from([(), (condition,)])),
        ((), ()),
        draw(st.sampled_from([(0, 1, 2), (2,)])),
        draw(st.sampled_from([(0, 1, 2), (2, 0)])),
        outer=draw(st.booleans()),
    )


def table(found: list[tuple[object, ...]], schema: pa.Schema = SCHEMA) -> pa.Table:
    columns = zip(*found, strict=True) if found else [[], [], []]
    arrays = [pa.array(list(one), kind) for one, kind in zip(columns, schema.types, strict=True)]
    return pa.table(arrays, schema=schema)


def as_rows(found: pa.Table) -> list[tuple[str, ...]]:
    columns = [[str(value) for value in column.to_pylist()] for column in found.columns]
    texts = [tuple("0.0" if value == "-0.0" else value for value in column) for column in columns]
    return list(zip(*texts, strict=True))


@given(nodes(), st.lists(st.lists(st.lists(rows, max_size=4), max_size=3), max_size=4), st.data())
def test_changes_add_up_to_what_duckdb_computes(
    node: AsofJoin, batches: list[list[list[tuple[object, ...]]]], data: st.DataObject
) -> None:
    operator = AsofJoinOperator(node, Evaluator(DUCK))
    there: tuple[list[tuple[object, ...]], list[tuple[object, ...]]] = ([], [])
    shown: Counter[tuple[str, ...]] = Counter()
    time = 0
    for batch in batches:
        changed: tuple[list[tuple[tuple[object, ...], int, int]], ...] = ([], [])
        expected = {}
        for run in batch:
            time += 1
            for row in run:
                side = data.draw(st.integers(0, 1))
                changed[side].append((row, 1, time))
                there[side].append(row)
            for held, changes in zip(there, changed, strict=True):
                for _ in range(data.draw(st.integers(0, min(len(held), 2)))):
                    row = held.pop(data.draw(st.integers(0, len(held) - 1)))
                    changes.append((row, -1, time))
            stored = {f"stored {name}": table(held) for name, held in zip("lr", there, strict=True)}
            expected[time] = Counter(as_rows(run_sql(clause_of(node), stored)))
        inputs = [
            Changes(
                table([row for row, _, _ in own]),
                pa.array([at for _, _, at in own], pa.int64()).to_numpy(),
                pa.array([sign for _, sign, _ in own], pa.int64()).to_numpy(),
            )
            for own in changed
        ]
        found = operator.run(inputs)
        assert found.columns.schema.types == node.schema.types
        for instant, want in expected.items():
            mask = found.times == instant
            part = as_rows(found.columns.filter(pa.array(mask)))
            for row, sign in zip(part, found.signs[mask].tolist(), strict=True):
                shown[row] += sign
            assert +shown == want
    assert operator.groups() <= 3 * sum(map(len, there))


def test_state_is_empty_once_all_rows_have_gone() -> None:
    node = AsofJoin(
        LEFT, RIGHT, (pair("k"),), pair("x"), ">=", (SortKey(2, nulls_first=True),), (), ((), ()),
        (0, 1), (2,), outer=True,
    )  # fmt: skip
    operator = AsofJoinOperator(node, Evaluator(DUCK))
    few = table([(1, 2.0, "a"), (1, 2.0, "a"), (None, 1.0, "b")])

    def change(sign: int, at: int) -> Changes:
        numbers = pa.array([1, 1, 1]).to_numpy()
        return Changes(few, numbers * at, numbers * sign)

    came = operator.run([change(1, 1), change(1, 1)])
    assert as_rows(came.columns) == [("1", "2.0", "a"), ("1", "2.0", "a"), ("None", "1.0", "None")]
    gone = operator.run([change(-1, 2), change(-1, 2)])
    assert gone.signs.tolist() == [-1, -1, -1]
    assert operator.groups() == 0
