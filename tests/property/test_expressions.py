"""Every row has the values it has alone: those of DuckDB, or NULL where DuckDB fails on the row.

The expected values come from :mod:`tests.property.expression_trees`, operator by operator.
"""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
from hypothesis import example, given, note
from hypothesis import strategies as st

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.plan.expression import Expression
from tests.property.expression_trees import FAILED, SCHEMA, TREES, Tree, alone

_DUCK = Duck()
_FAILED = repr(FAILED)
_EDGES = [0, 1, -1, 2, 127, -128, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
_TEXTS = ["", "1", " 2 ", "x", "-3", "1e3", "99999999999", "2020-01-01", "true", "7.5", "0"]


def _integers(bits: int) -> st.SearchStrategy[int]:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return st.sampled_from([edge for edge in _EDGES if least <= edge <= most]) | st.integers(-3, 3)


_ROW = st.fixed_dictionaries(
    {
        "k": st.none() | _integers(64),
        "i": st.none() | _integers(32),
        "g": st.none() | _integers(8),
        "x": st.none()
        | st.sampled_from([0.0, -1.5, 1e300, -1e300, float("inf"), float("nan"), 3.0]),
        "s": st.none() | st.sampled_from(_TEXTS),
    }
)


def _allowed(tree: Tree, rows: pa.Table) -> list[set[str]]:
    """Return the values that an expression may have for each row, by the reference.

    DuckDB moves constants of comparisons to the other side (``i + 1 > 3`` is ``i > 2``), so a row
    on which an operator fails has a value if DuckDB has one for the row alone.
    """
    allowed = []
    for place, outcome in enumerate(tree.values(rows)):
        found = {repr(outcome.value)} | ({_FAILED} if outcome.may_fail else set())
        if outcome.fails and (value := alone(str(tree), rows.slice(place, 1))) is not FAILED:
            found.add(repr(value))
        allowed.append(found)
    return allowed


_NUMBER = Tree("CAST(s AS INTEGER)")
_SKIPPED = Tree(
    "(CASE WHEN {0} THEN {1} END)",
    (
        Tree(
            "(({0}) < ({1}))",
            (
                Tree(
                    "(CASE WHEN {0} THEN {1} END)",
                    (Tree("((1) < (k))"), _NUMBER),
                    "case",
                ),
                _NUMBER,
            ),
        ),
        _NUMBER,
    ),
    "case",
)
"""DuckDB need not compute the right side of the comparison where the left one is NULL."""


@given(
    st.lists(_ROW, min_size=1, max_size=12),
    st.lists(TREES, min_size=1, max_size=3),
    st.sampled_from([0, 1]),
)
@example([{**dict.fromkeys(SCHEMA.names), "s": ""}], [_SKIPPED], 0)
def test_rows_have_the_same_values_as_alone(
    rows: list[dict[str, object]], trees: list[Tree], repeated: int
) -> None:
    if repeated:
        trees = [*trees, Tree("({0}) + 1", (trees[0],)), trees[-1]]
    texts = list(map(str, trees))
    note(" | ".join(texts))
    batch = pa.Table.from_pylist(rows, SCHEMA)
    expected = list(zip(*(_allowed(tree, batch) for tree in trees), strict=True))
    evaluator = Evaluator(_DUCK)
    found = [list(map(repr, column.to_pylist())) for column in evaluator.raw(texts, batch)]
    for row, values in zip(zip(*found, strict=True), expected, strict=True):
        for value, allowed in zip(row, values, strict=True):
            assert value in allowed or (value == "None" and _FAILED in allowed)
    surely = sum(any(values == {_FAILED} for values in row) for row in expected)
    perhaps = sum(any(_FAILED in values for values in row) for row in expected)
    assert surely <= evaluator.failures <= perhaps


@given(st.lists(_ROW, min_size=1, max_size=12), st.lists(TREES, min_size=1, max_size=3))
def test_rows_that_pass_alone_pass_together(
    rows: list[dict[str, object]], trees: list[Tree]
) -> None:
    conditions = [Tree("({0}) > 1", (tree,)) for tree in trees]
    predicates = [Expression(str(condition), (), pa.bool_()) for condition in conditions]
    joined = reduce(lambda left, right: Tree("({0} AND {1})", (left, right), "and"), conditions)
    note(str(joined))
    batch = pa.Table.from_pylist(rows, SCHEMA)
    passed = Evaluator(_DUCK).holds(predicates, batch).tolist()
    for passes, allowed in zip(passed, _allowed(joined, batch), strict=True):
        assert "True" in allowed if passes else allowed != {"True"}
