"""A row without a value for an expression gets NULL and is counted; all other values stay exact."""

from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.errors import EvaluationError
from muntin.expressions import salvage as salvaging
from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.plan.expression import Expression

ROWS = pa.table(
    {
        "k": [1, 2, 3, 2**63 - 1],
        "g": [1, 0, 2, 1],
        "s": ["1", "x", "3", None],
        "p": ["a%", "a$", "abc", "$"],
    }
)


@pytest.fixture
def evaluator() -> Evaluator:
    return Evaluator(Duck())


@pytest.mark.parametrize(
    ("texts", "values", "failures"),
    [
        (["CAST(s AS INT)", "CAST(s AS INT) + 1"], [[1, None, 3, None], [2, None, 4, None]], 1),
        (["CAST(s AS INT) > 1 AND CAST(s AS INT) < 100"], [[False, None, True, None]], 1),
        (["k % g", "k % g + 1"], [[0, None, 1, 0], [1, None, 2, 1]], 1),
        (["k = s AND k + 0 = s"], [[True, None, True, None]], 1),
        (["s::INT IN (1, 2, 3)"], [[True, None, True, None]], 1),
        (["k + k", "k * 2", "g"], [[2, 4, 6, None], [2, 4, 6, None], [1, 0, 2, 1]], 1),
        (["CASE WHEN g <> 0 THEN k % g ELSE s::INT END"], [[0, None, 1, 0]], 1),
        (["coalesce(s::INT, 0)", "k // g"], [[1, None, 3, 0], [1, None, 1, 2**63 - 1]], 1),
        (["'abc' LIKE p ESCAPE '$'", "k"], [[True, None, True, None], [1, 2, 3, 2**63 - 1]], 2),
        (["list_transform([s, s], lambda x: x::INT)"], [[[1, 1], None, [3, 3], [None, None]]], 1),
    ],
)
def test_failing_rows_are_null_and_counted(
    evaluator: Evaluator, texts: list[str], values: list[list[object]], failures: int
) -> None:
    found = evaluator.raw(texts, ROWS)
    assert [column.to_pylist() for column in found] == values
    assert evaluator.failures == failures
    assert evaluator.last_failure


def test_rows_are_counted_not_batches(evaluator: Evaluator) -> None:
    batch = pa.table({"s": ["x", "1", "y", "z", None]})
    evaluator.raw(["s::INT", "s::INT + 1"], batch)
    evaluator.raw(["s::INT"], batch.slice(3))
    assert evaluator.failures == 4


def test_conditions_that_fail_do_not_hold(evaluator: Evaluator) -> None:
    conditions = [
        Expression(text, (), pa.bool_()) for text in ("CAST(s AS INT) > 0", "CAST(s AS INT) < 3")
    ]
    assert evaluator.holds(conditions, ROWS).tolist() == [True, False, False, False]
    assert evaluator.failures == 1


def test_a_value_that_does_not_fit_its_type_is_null(evaluator: Evaluator) -> None:
    (found,) = evaluator.columns([Expression("k", (), pa.int8())], ROWS)
    assert found.to_pylist() == [1, 2, 3, None]
    assert evaluator.failures == 1


def test_a_row_that_takes_too_much_memory_is_null() -> None:
    """Errors that TRY lets through are found row by row."""
    evaluator = Evaluator(Duck(memory_limit="64MB"))
    batch = pa.table({"n": [1, 2, 100_000_000, 3, 0, 100_000_000, 1]})
    (found,) = evaluator.raw(["repeat('x', n)"], batch)
    assert found.to_pylist() == ["x", "xx", None, "xxx", "", None, "x"]
    assert evaluator.failures == 2
    assert "Out of Memory" in evaluator.last_failure
    assert evaluator.raw(["n + 1"], batch.slice(0, 2))[0].to_pylist() == [2, 3]


@pytest.mark.parametrize("text", ["nosuch + 1", "no_such_function(k)", "k +", "sum(k) OVER ("])
def test_what_cannot_be_evaluated_at_all_is_a_clear_error(evaluator: Evaluator, text: str) -> None:
    with pytest.raises(EvaluationError, match="cannot be evaluated"):
        evaluator.raw(["k", text], ROWS)
    assert evaluator.raw(["k + g"], ROWS.slice(0, 1))[0].to_pylist() == [2]


def test_searching_for_failing_rows_ends(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where TRY does not help and most rows fail, the search gives up instead of taking forever."""
    monkeypatch.setattr(salvaging, "MOST", 10)
    patterns = pa.table({"p": ["$"] * 50})
    with pytest.raises(EvaluationError, match="fails on more than 10 rows"):
        evaluator.raw(["'abc' LIKE p ESCAPE '$'"], patterns)
    assert evaluator.raw(["'abc' LIKE p ESCAPE '$'"], patterns.slice(0, 10))[0].null_count == 10
