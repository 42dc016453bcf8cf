"""Taking rows from columns of every type, for any cut into chunks."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.state.columns import _take_by_arrow, take

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "tinyint": (pa.int8(), [-128, 0, 127]),
    "smallint": (pa.int16(), [-5, 6, 7]),
    "int": (pa.int32(), [-(2**31), 0, 2**31 - 1]),
    "bigint": (pa.int64(), [-(2**63), -1, 2**63 - 1]),
    "uint": (pa.uint32(), [0, 1, 2**32 - 1]),
    "ubigint": (pa.uint64(), [0, 1, 2**64 - 1]),
    "float": (pa.float32(), [0.5, -0.0, float("inf")]),
    "double": (pa.float64(), [0.1, -1e300, float("-inf")]),
    "boolean": (pa.bool_(), [True, False, True]),
    "varchar": (pa.string(), ["", "é", "long " * 50]),
    "text": (pa.large_string(), ["a", "", "b"]),
    "blob": (pa.binary(), [b"", b"\x00", b"xyz"]),
    "date": (pa.date32(), [date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)]),
    "time": (pa.time64("us"), [time(0), time(23, 59, 59, 999999), time(12)]),
    "timestamp": (
        pa.timestamp("us"),
        [datetime(1, 1, 1), datetime(1970, 1, 1), datetime(9999, 12, 31)],  # noqa: DTZ001
    ),
    "timestamp_s": (
        pa.timestamp("s"),
        [datetime(1970, 1, 1), datetime(2000, 1, 1), datetime(2026, 1, 1)],  # noqa: DTZ001
    ),
    "interval": (pa.duration("us"), [timedelta(0), timedelta(days=-1), timedelta(microseconds=1)]),
    "decimal": (pa.decimal128(38, 2), [Decimal("1.25"), Decimal("-0.01"), Decimal(10) ** 30]),
    "list": (pa.list_(pa.int64()), [[], [1, 2], [None]]),
    "struct": (
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        [{"a": 1, "b": "x"}, {"a": None, "b": ""}, {"a": 3, "b": None}],
    ),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_is_taken_from_any_cut(name: str) -> None:
    kind, values = COLUMNS[name]

    @given(
        st.lists(st.integers(-1, 2), min_size=1, max_size=12),
        st.lists(st.integers(0, 12), max_size=7),
        st.data(),
    )
    def check(picks: list[int], cuts: list[int], data: st.DataObject) -> None:
        nulls = data.draw(st.booleans())
        plain = [None if pick < 0 and nulls else values[pick] for pick in picks]
        padded = pa.array([values[0], *plain, values[1]], kind)  # so that every piece has an offset
        edges = sorted({0, len(plain), *(min(cut, len(plain)) for cut in cuts)})
        pieces = [padded.slice(1 + start, stop - start) for start, stop in pairwise(edges)] + [
            padded.slice(1, 0)
        ] * 4
        ranks = np.array(data.draw(st.lists(st.integers(0, len(plain) - 1), max_size=20)), np.int64)
        taken = take(pa.chunked_array(pieces, kind), ranks)
        assert taken.type == kind
        assert taken.to_pylist() == [plain[rank] for rank in ranks]

    check()


def test_taken_values_outlive_the_column() -> None:
    column = pa.chunked_array([pa.array(range(start, start + 10)) for start in range(0, 100, 10)])
    taken = take(column, np.arange(99, -1, -1))
    del column
    assert taken.to_pylist() == list(range(99, -1, -1))
    taken.validate(full=True)


class _Limited:
    """A column whose ``take`` fails beyond three values, as Arrow's does beyond two GB of text."""

    type = pa.string()

    def take(self, ranks: pa.Array) -> pa.ChunkedArray:
        if len(ranks) > 3:
            raise pa.ArrowInvalid("Take operation overflowed binary array capacity")
        return pa.chunked_array([pa.array([f"text {rank}" for rank in ranks.to_pylist()])])


def test_texts_that_are_too_much_for_one_chunk_come_in_several() -> None:
    taken = _take_by_arrow(_Limited(), np.arange(10))
    assert taken.to_pylist() == [f"text {rank}" for rank in range(10)]
    assert taken.num_chunks == 4
