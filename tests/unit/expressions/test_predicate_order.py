"""Expensive predicates are tested last, on the rows that the others keep."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muntin
from muntin.expressions import predicate_order
from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.expressions.predicate_order import PredicateOrder
from muntin.model.arrays import Mask
from muntin.plan.expression import Expression


def predicate(text: str) -> Expression:
    return Expression(text, (), pa.bool_())


class Priced(Evaluator):
    """An evaluator whose predicates take a given time per row; notes what it evaluates."""

    def __init__(self, costs: dict[str, int], fixed: int = 100) -> None:
        super().__init__(Duck())
        self.costs, self.fixed, self.now = costs, fixed, 0
        self.calls: list[tuple[list[str], int]] = []

    def holds(self, predicates: Sequence[Expression], batch: pa.Table) -> Mask:
        texts = [each.sql for each in predicates]
        self.now += self.fixed + len(batch) * sum(self.costs[text] for text in texts)
        self.calls.append((texts, len(batch)))
        return super().holds(predicates, batch)


X = pa.table({"x": np.arange(1_000)})
CHEAP, EXPENSIVE, USELESS = "x % 10 = 0", "x % 7 < 5", "x + 1 > 0"


def ordered(costs: dict[str, int], fixed: int = 100) -> tuple[Priced, PredicateOrder]:
    evaluator = Priced(costs, fixed)
    return evaluator, PredicateOrder(
        [predicate(text) for text in costs], evaluator, lambda: evaluator.now
    )


def test_an_expensive_predicate_sees_only_what_the_others_keep() -> None:
    evaluator, order = ordered({EXPENSIVE: 1_000, CHEAP: 1})
    expected = Evaluator(Duck()).holds([predicate(EXPENSIVE), predicate(CHEAP)], X)
    assert order.holds(X).tolist() == expected.tolist()
    assert evaluator.calls[-2:] == [([CHEAP], 1_000), ([EXPENSIVE], 100)]
    assert [each.predicate.sql for each in order.measured] == [CHEAP, EXPENSIVE]
    assert [each.per_row for each in order.measured] == pytest.approx([1, 1_000], rel=0.01)
    assert [each.kept for each in order.measured] == pytest.approx([0.1, 0.715])


def test_a_cheap_predicate_that_removes_nothing_comes_after_one_that_removes_rows() -> None:
    _, order = ordered({USELESS: 10, CHEAP: 20})
    order.holds(X)
    assert [each.predicate.sql for each in order.measured] == [CHEAP, USELESS]


@pytest.mark.parametrize(("fixed", "calls"), [(100, 2), (10_000_000, 1)])
def test_a_stage_is_begun_only_if_it_saves_more_than_it_costs(fixed: int, calls: int) -> None:
    evaluator, order = ordered({EXPENSIVE: 1_000, CHEAP: 1}, fixed)
    order.holds(X)
    evaluator.calls.clear()
    order.holds(X.slice(0, 900))
    assert len(evaluator.calls) == calls


def test_costs_are_measured_again_when_twice_as_many_rows_have_come() -> None:
    evaluator, order = ordered({EXPENSIVE: 1_000, CHEAP: 1})
    order.holds(X)
    evaluator.costs = {EXPENSIVE: 1, CHEAP: 1_000}
    order.holds(X.slice(0, 900))
    assert [each.predicate.sql for each in order.measured] == [CHEAP, EXPENSIVE]
    order.holds(X)
    assert order.measured[0].predicate.sql == EXPENSIVE


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2_000)), min_size=1, max_size=4),
    st.integers(0, 5_000),
    st.lists(st.one_of(st.none(), st.integers(-20, 20)), max_size=60),
)
def test_the_rows_kept_do_not_depend_on_costs(
    drawn: list[tuple[int, int]], fixed: int, values: list[int | None]
) -> None:
    costs = {f"x % {modulus + 2} = 0": cost for modulus, cost in drawn}
    batch = pa.table({"x": pa.array(values, pa.int64())})
    evaluator, order = ordered(costs, fixed)
    expected = Evaluator(Duck()).holds([predicate(text) for text in costs], batch)
    with patch.object(predicate_order, "LEAST", 1):
        for _ in range(3):
            assert order.holds(batch).tolist() == expected.tolist()
    assert evaluator.failures == 0


def test_explain_shows_the_order_and_the_costs_that_were_measured() -> None:
    engine = muntin.Engine()
    for name in "AB":
        engine.stream(name, {"k": "bigint", "v": "bigint", "s": "varchar", "ts": "timestamp"})
    expensive = "md5(md5(md5(repeat(A.s || B.s, 20)))) > '4'"
    q = engine.query(
        f"SELECT A.v FROM A, B WHERE A.k = B.k AND {expensive} AND A.v + B.v < 10 WINDOW 9 SECONDS",
        name="q",
    )
    rows = [(number % 5, number % 100, "text", number) for number in range(600)]
    engine.push("A", rows)
    engine.push("B", rows)
    engine.advance(1_000_000)
    lines = [line for line in q.explain().splitlines() if "then keep" in line]
    assert ["A.v + B.v < 10" in line for line in lines] == [True, False]
    assert all("ns per row measured, keeps " in line for line in lines)
