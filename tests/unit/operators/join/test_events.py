"""Codes compare as DuckDB compares their values; rows without a code are skipped."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.operators.join.events import CodeReader
from muntin.plan.expression import ColumnRef, Expression
from muntin.plan.join import Code, CodeKind, SourcePlan
from muntin.planner.codes import code_kind

EDGE = 2**63
COLUMNS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [-128, 0, 1, 127, None]),
    (pa.int32(), [-1, 0, 1, 2**31 - 1, None]),
    (pa.int64(), [-EDGE, -(2**53) - 1, -1, 0, 1, 2**53, 2**53 + 1, EDGE - 1, None]),
    (pa.uint8(), [0, 1, 255, None]),
    (pa.uint32(), [0, 1, 2**32 - 1, None]),
    (pa.uint64(), [0, 1, EDGE - 1, EDGE, 2**64 - 1, None]),
    (pa.float32(), [-0.0, 0.0, 1.0, 0.1, float("nan"), float("inf"), float("-inf"), None]),
    (
        pa.float64(),
        [
            -0.0,
            0.0,
            1.0,
            0.1,
            -1.5,
            2.0**53,
            2.0**63,
            float("nan"),
            float("inf"),
            float("-inf"),
            5e-324,
            None,
        ],
    ),
    (pa.bool_(), [True, False, None]),
    (pa.string(), ["", "a", "A", "ä", "a\x00", "a" * 5000, None]),
    (pa.binary(), [b"", b"a", b"\x00", b"\x00\x00", None]),
    (pa.date32(), [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(2026, 2, 28), None]),
    (pa.time64("us"), [dt.time(0), dt.time(23, 59, 59, 999999), None]),
    (
        pa.timestamp("us"),
        [
            dt.datetime(1, 1, 1),  # noqa: DTZ001
            dt.datetime(1970, 1, 1),  # noqa: DTZ001
            dt.datetime(2026, 1, 1, 0, 0, 0, 1),  # noqa: DTZ001
            None,
        ],
    ),
    (pa.timestamp("s"), [dt.datetime(1970, 1, 1), dt.datetime(2026, 1, 1), None]),  # noqa: DTZ001
    (
        pa.timestamp("us", tz="UTC"),
        [dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.datetime(2026, 1, 1, tzinfo=dt.UTC), None],
    ),
    (pa.decimal128(10, 2), [Decimal("0.00"), Decimal("1.00"), Decimal("-1.25"), None]),
    (pa.decimal128(12, 3), [Decimal("0.000"), Decimal("1.000"), None]),
]
COMPARISONS = [
    (left, operator, right)
    for left, right, operator in product(COLUMNS, COLUMNS, ["=", "<", ">=", "<>"])
    if code_kind(left[0], right[0], operator) is not None
]


@pytest.fixture(scope="module")
def duck() -> Duck:
    return Duck()


def column(kind: pa.DataType, sql: str = '"0.x"') -> Expression:
    return Expression(sql, (ColumnRef(0, "x"),), kind)


def reader(
    duck: Duck, *codes: Code, filters: tuple[Expression, ...] = (), partition: tuple[str, ...] = ()
) -> CodeReader:
    return CodeReader(0, SourcePlan(filters, codes, ()), partition, Evaluator(duck))


def codes_of(duck: Duck, kind: pa.DataType, values: list[Any], code: CodeKind) -> list[int | None]:
    codes, wanted = reader(duck, Code(column(kind), code)).read(
        pa.table({"x": pa.array(values, kind)})
    )
    known = [True] * len(values) if wanted is None else wanted.tolist()
    return [
        number if there else None for number, there in zip(codes[:, 0].tolist(), known, strict=True)
    ]


@pytest.mark.parametrize(
    ("left", "operator", "right"),
    COMPARISONS,
    ids=lambda part: part if isinstance(part, str) else str(part[0]),
)
def test_codes_decide_comparisons_as_duckdb_does(
    duck: Duck, left: tuple[pa.DataType, list[Any]], operator: str,
    right: tuple[pa.DataType, list[Any]]
) -> None:  # fmt: skip
    kind = code_kind(left[0], right[0], operator)
    assert kind is not None
    pairs = list(product(range(len(left[1])), range(len(right[1]))))
    batch = pa.table({
        "a": pa.array([left[1][a] for a, _ in pairs], left[0]),
        "b": pa.array([right[1][b] for _, b in pairs], right[0]),
    })  # fmt: skip
    truth = (
        duck.run(f"SELECT coalesce(a {operator} b, false) AS t FROM batch", batch=batch)
        .column("t")
        .to_pylist()
    )
    mine, other = codes_of(duck, *left, kind), codes_of(duck, *right, kind)
    compare = {"=": "__eq__", "<": "__lt__", ">=": "__ge__", "<>": "__ne__"}[operator]
    for (a, b), expected in zip(pairs, truth, strict=True):
        held = mine[a] is not None and other[b] is not None and getattr(mine[a], compare)(other[b])
        if kind is CodeKind.HASH:
            assert held or not expected, (left[1][a], right[1][b])
        else:
            assert held is expected, (left[1][a], right[1][b])


def test_rows_that_fail_a_filter_or_have_no_value_are_skipped(duck: Duck) -> None:
    rows = pa.table({"x": pa.array([1, 2, None, 4], pa.int64())})
    both = reader(
        duck, Code(column(pa.int64()), CodeKind.WHOLE), filters=(column(pa.bool_(), '"0.x" <> 2'),)
    )
    codes, wanted = both.read(rows)
    assert wanted is not None
    assert wanted.tolist() == [True, False, False, True]
    assert codes[wanted].tolist() == [[1], [4]]


def test_without_filters_and_nulls_all_rows_are_accepted(duck: Duck) -> None:
    codes, wanted = reader(duck, Code(column(pa.int64(), '"0.x" * 2'), CodeKind.WHOLE)).read(
        pa.table({"x": [3, 4]})
    )
    assert (codes.tolist(), wanted) == ([[6], [8]], None)


def test_a_value_that_cannot_be_computed_is_null(duck: Duck) -> None:
    text = Expression('CAST("0.x" AS BIGINT)', (ColumnRef(0, "x"),), pa.int64())
    codes, wanted = reader(duck, Code(text, CodeKind.WHOLE)).read(
        pa.table({"x": ["7", "seven", None]})
    )
    assert wanted is not None
    assert wanted.tolist() == [True, False, False]
    assert codes[0].tolist() == [7]


def test_no_rows_and_no_codes(duck: Duck) -> None:
    codes, wanted = reader(duck, Code(column(pa.int64()), CodeKind.WHOLE)).read(
        pa.table({"x": pa.array([], pa.int64())})
    )
    assert (codes.shape, wanted) == ((0, 1), None)
    codes, wanted = reader(duck).read(pa.table({"x": [1, 2]}))
    assert (codes.shape, wanted) == ((2, 0), None)


@pytest.mark.parametrize(
    ("kind", "values"), COLUMNS, ids=lambda part: str(part) if isinstance(part, pa.DataType) else ""
)
def test_partitions_are_the_groups_of_sql(duck: Duck, kind: pa.DataType, values: list[Any]) -> None:
    """NULL forms one partition, both zeros form one, and NaN forms one."""
    rows = pa.table(
        {
            "x": pa.array(values * 2, kind),
            "y": pa.array([0] * len(values) + [None] * len(values), pa.int32()),
        }
    )
    for names in (("x",), ("x", "y"), ("y", "x")):
        low, high = reader(duck, partition=names).read_partitions(rows)
        group = (
            f"SELECT dense_rank() OVER (ORDER BY {', '.join(names)}) AS g "
            "FROM (SELECT *, row_number() OVER () AS r FROM batch) ORDER BY r"
        )
        groups = duck.run(group, batch=rows).column("g").to_pylist()
        keys = list(zip(low.tolist(), high.tolist(), strict=True))
        assert len(set(zip(keys, groups, strict=True))) == len(set(keys)) == len(set(groups))


def test_texts_that_look_alike_are_different_partitions(duck: Duck) -> None:
    rows = pa.table(
        {"x": ["null", None, "", '"', "a,b", "a"], "y": ["", "null", "null", "", "", ",b"]}
    )
    low, high = reader(duck, partition=("x", "y")).read_partitions(rows)
    assert len(set(zip(low.tolist(), high.tolist(), strict=True))) == 6
    assert low.dtype == high.dtype == np.int64
