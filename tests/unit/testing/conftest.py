"""Bound queries built by hand, so that these tests need neither SQL nor the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from muntin.model.catalog import Catalog, Stream, Table
from muntin.model.window import Unbounded, Window
from muntin.plan.expression import ColumnRef, Expression, OutputColumn, Predicate
from muntin.plan.nodes import Join, Scan
from muntin.plan.query import Emit, Query
from muntin.testing.oracle import Oracle
from muntin.testing.watermark import OrderFrontier

SECOND = 1_000_000
STREAM = pa.schema([("k", pa.int32()), ("v", pa.int32()), ("ts", pa.timestamp("us"))])
TABLE = pa.schema([("k", pa.int32()), ("n", pa.string())])


class Workshop:
    """Streams A, B, C (k, v) and a table T (k, n); results as lines of text, times in seconds."""

    def __init__(self) -> None:
        self.catalog = Catalog()
        for name in "ABC":
            self.catalog.add(Stream(name, STREAM, "ts"))
        self.catalog.add(Table("T", TABLE))
        self.stream_schema = STREAM

    def query(
        self,
        sources: Sequence[tuple[str, Window | None]],
        where: Sequence[str] = (),
        select: Sequence[str] = (),
        emit: Emit = Emit.INSERTS,
        every: int | None = None,
        name: str = "q",
    ) -> Query:
        """Return a query over (relation, window) pairs; expressions use flat names like "0.k"."""
        bound = tuple(
            Scan(
                f"s{place}",
                relation,
                window is None,
                window or Unbounded(),
                STREAM if window else TABLE,
            )
            for place, (relation, window) in enumerate(sources)
        )
        columns = select or [
            f'"{place}.{"v" if window else "n"}"' for place, (_, window) in enumerate(sources)
        ]
        predicates = (Expression(text, (ColumnRef(0, "k"),), pa.bool_()) for text in where)
        outputs = tuple(
            OutputColumn(f"c{place}", Expression(text, (), self._type(text)))
            for place, text in enumerate(columns)
        )
        root = Join(bound, (), tuple(map(Predicate, predicates)), outputs)
        return Query(name, "by hand", root, emit, every * SECOND if every else None)

    @staticmethod
    def _type(text: str) -> pa.DataType:
        return pa.string() if text.endswith('n"') else pa.int32()

    @staticmethod
    def rows(*rows: tuple[float, int | None, int | None]) -> pa.Table:
        """Return rows of a stream: time, k, v."""
        times = [round(time * SECOND) for time, _, _ in rows]
        return pa.table(
            [
                [k for _, k, _ in rows],
                [v for _, _, v in rows],
                pa.array(times, type=pa.int64()).cast(pa.timestamp("us")),
            ],
            schema=STREAM,
        )

    @staticmethod
    def table(*rows: tuple[int | None, str]) -> pa.Table:
        """Return rows of the stored table: k, n."""
        return pa.table([[k for k, _ in rows], [n for _, n in rows]], schema=TABLE)

    def oracle(
        self,
        query: Query,
        *,
        T: pa.Table | None = None,  # noqa: N803 - names of relations
        after: OrderFrontier | None = None,
        **streams: pa.Table,
    ) -> Oracle:
        """Return the oracle over the given streams."""
        return Oracle(query, streams, {"T": T} if T else {}, self.catalog, after=after)

    @staticmethod
    def lines(results: pa.Table) -> list[str]:
        """Return results as text: sign, seconds, values."""
        instants = results.column("_ts").cast(pa.int64()).to_pylist()
        values = results.drop_columns(["_op", "_ts"]).to_pylist()
        signs = results.column("_op").to_pylist()
        return [
            f"{sign} {instant / SECOND:g} {' '.join(str(value) for value in row.values())}"
            for sign, instant, row in zip(signs, instants, values, strict=True)
        ]

    @staticmethod
    def bag(answer: pa.Table) -> list[tuple[Any, ...]]:
        """Return an answer as tuples, sorted if they can be."""
        rows = [tuple(row.values()) for row in answer.to_pylist()]
        return sorted(rows, key=lambda row: [(value is None, value) for value in row])

    @staticmethod
    def stamped(results: pa.Table) -> list[tuple[Any, ...]]:
        """Return results as tuples: sign, integer seconds, values."""
        seconds = [
            instant // SECOND for instant in results.column("_ts").cast(pa.int64()).to_pylist()
        ]
        return [
            (row["_op"], second, *list(row.values())[2:])
            for second, row in zip(seconds, results.to_pylist(), strict=True)
        ]


@pytest.fixture(scope="session")
def workshop() -> Workshop:
    return Workshop()
