"""What a Python function gets, and what it may return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from muntin.errors import EvaluationError, FunctionError
from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.expressions.python_functions import PythonFunction, fingerprint_of, load, unload
from muntin.model.functions import FunctionSignature

ROWS = pa.table({"0.x": [1.0, None, 3.0], "0.y": [10.0, 20.0, None]})


def call(code: Callable[..., Any], text: str = '{}("0.x", "0.y")') -> list[Any]:
    signature = FunctionSignature("f", (("x", "DOUBLE"), ("y", "DOUBLE")), "DOUBLE", "").keyed()
    load([PythonFunction(signature, code, (pa.float64(), pa.float64()), pa.float64())])
    evaluator = Evaluator(Duck())
    (values,) = evaluator.raw([text.format(f'"{signature.key}"')], ROWS)
    unload(signature.key)
    assert evaluator.failures == 0
    return list(values.to_pylist())


def test_rows_with_null_are_left_out() -> None:
    seen = []

    def add(x: pa.Array, y: pa.Array) -> pa.Array:
        seen.append((x.to_pylist(), y.to_pylist()))
        return pc.add(x, y)

    assert call(add) == [11.0, None, None]
    assert seen == [([1.0], [10.0])]


def test_a_function_is_not_called_without_rows() -> None:
    def never(*_: pa.Array) -> pa.Array:
        raise AssertionError

    assert call(never, '{}("0.x", NULL)') == [None, None, None]


def test_the_result_may_be_null_or_in_chunks() -> None:
    def even(x: pa.Array, _: pa.Array) -> pa.ChunkedArray:
        return pa.chunked_array(
            [pa.array([None if value == 3.0 else value for value in x.to_pylist()], pa.float64())]
        )

    assert call(even, '{}("0.x", 1)') == [1.0, None, None]


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (lambda *_: [1.0], "returned builtins.list instead of a pyarrow.Array"),
        (lambda *_: pa.array([1.0, 2.0]), "returned 2 values for 1 rows"),
        (lambda *_: pa.array([1]), "returned int64, but is declared to return double"),
        (lambda *_: 1 / 0, "failed in test_python_functions.py, line"),
    ],
)
def test_other_results_and_errors_are_reported(result: Callable[..., Any], reason: str) -> None:
    with pytest.raises(FunctionError, match=rf"^the function f {reason}"):
        call(result)


def test_the_line_is_that_of_the_function_and_not_of_what_it_calls() -> None:
    def wrong(x: pa.Array, _: pa.Array) -> pa.Array:
        return pc.add(x, "text")

    line = wrong.__code__.co_firstlineno + 1
    with pytest.raises(FunctionError, match=f"test_python_functions.py, line {line}: Arrow"):
        call(wrong)


def test_an_error_is_raised_also_inside_try_and_beside_rows_that_fail() -> None:
    def broken(*_: pa.Array) -> pa.Array:
        raise ValueError("no")

    for text in (
        'TRY({}("0.x", "0.y"))',
        "CAST(CAST(\"0.x\" AS VARCHAR) || 'z' AS INT) + {}(1, 2)",
    ):
        with pytest.raises(FunctionError, match="ValueError: no"):
            call(broken, text)


def test_a_function_that_is_not_loaded_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="the function gone is not loaded in this process"):
        Duck().run('SELECT "gone#0123456789abcdef"(1)')


def test_fingerprints_follow_the_code() -> None:
    def made(factor: float) -> Callable[..., Any]:
        return lambda x: pc.multiply(x, factor)

    assert fingerprint_of(made(2.0)) == fingerprint_of(made(2.0))
    assert fingerprint_of(made(2.0)) != fingerprint_of(made(3.0))
    assert fingerprint_of(lambda x: pc.abs(x) + 1) != fingerprint_of(lambda x: pc.sqrt(x) + 1)
    assert fingerprint_of(lambda x: x in {"a", "b"}) == fingerprint_of(lambda x: x in {"b", "a"})
    assert fingerprint_of(int) != fingerprint_of(str)
