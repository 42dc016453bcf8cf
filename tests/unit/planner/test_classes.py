from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from muntin.plan.expression import ColumnRef, Expression
from muntin.plan.join import Code, CodeKind
from muntin.planner.classes import CodeRef, CodeTable, equality_classes

NODES = st.tuples(st.integers(0, 4), st.integers(0, 2))


def code(text: str, kind: CodeKind = CodeKind.WHOLE) -> Code:
    return Code(Expression(text, (ColumnRef(0, "k"),), pa.int64()), kind)


def test_a_code_gets_its_number_once_and_kinds_are_apart() -> None:
    table = CodeTable([[], []])
    assert table.node(0, code("k")) == (0, 0)
    assert table.node(0, code("k + 1")) == (0, 1)
    assert table.node(1, code("k")) == (1, 0)
    assert table.node(0, code("k")) == (0, 0)
    assert table.node(0, code("k", CodeKind.REAL)) == (0, 2)


def test_chains_of_equalities_are_one_class() -> None:
    classes = equality_classes([((0, 0), (1, 0)), ((2, 0), (3, 0)), ((1, 0), (2, 0))])
    assert classes[0, 0] == classes[3, 0] == {(0, 0), (1, 0), (2, 0), (3, 0)}
    assert (4, 0) not in classes


@given(st.lists(st.tuples(NODES, NODES), max_size=10))
def test_classes_are_the_connected_parts(pairs: list[tuple[CodeRef, CodeRef]]) -> None:
    classes = equality_classes(pairs)
    for start in {node for pair in pairs for node in pair}:
        reached = {start}
        while True:
            more = {
                other
                for left, right in pairs
                for other in (left, right)
                if left in reached or right in reached
            }
            if more <= reached:
                break
            reached |= more
        assert classes[start] == reached
