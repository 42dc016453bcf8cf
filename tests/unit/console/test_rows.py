from __future__ import annotations

import json
from datetime import date, datetime

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from muntin.console.result_buffer import ResultBuffer
from muntin.console.rows import LONGEST, newest, plain, rows_of, shown


def test_values_are_text_on_one_line_of_bounded_length() -> None:
    assert shown("a\nb\u202e") == "a\\nb\\u202e"
    assert shown("x" * 1_000) == "x" * (LONGEST - 1) + "…"
    assert shown(True) == "true"
    assert shown(datetime(2026, 1, 1, 12)) == "2026-01-01 12:00:00"  # noqa: DTZ001
    assert shown(date(2026, 1, 1)) == "2026-01-01"


def test_the_newest_rows_do_not_keep_the_memory_of_the_others() -> None:
    table = pa.table({"k": list(range(100_000))})
    kept = newest(table, 3)
    assert rows_of(kept) == [("99997",), ("99998",), ("99999",)]
    assert kept.get_total_buffer_size() < 1_000


@given(st.lists(st.integers(0, 30), max_size=20), st.integers(1, 10))
def test_a_buffer_has_the_newest_rows_and_counts_all(sizes: list[int], most: int) -> None:
    buffer = ResultBuffer(most)
    everything: list[int] = []
    for size in sizes:
        rows = list(range(len(everything), len(everything) + size))
        everything += rows
        buffer.offer(pa.table({"k": pa.array(rows, pa.int64())}))
        assert len(buffer) < 2 * most
    taken = buffer.take()
    kept = [] if taken.table is None else taken.table.column("k").to_pylist()
    assert kept == everything[-most:]
    assert (taken.count, taken.left_out) == (len(everything), len(everything) - len(kept))
    assert buffer.take().count == 0


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_anything_becomes_strict_json(value: object) -> None:
    json.dumps(plain(value), allow_nan=False)


def test_what_waits_is_small_however_large_the_results_are() -> None:
    buffer = ResultBuffer(10)
    for number in range(20):
        large = pa.table({"k": pa.array(range(200_000), pa.int64())})
        buffer.offer(large if number % 2 else large.slice(0, 1_000))
    held = sum(table.get_total_buffer_size() for table in buffer._tables)
    assert len(buffer) < 20
    assert held <= 2 << 20
