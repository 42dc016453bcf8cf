"""Parquet files as Arrow reads them.

Times of every kind are exact, and errors name file, column and value.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from muntin.errors import InputError
from muntin.model.catalog import Stream
from muntin.spark.sources import _fits_a_file, decode_file

STREAM = Stream("A", pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))]), "ts")
YEAR_1600, YEAR_9999 = -11_676_096_000_000_000, 253_370_764_800_000_000


def parquet(ts: pa.Array, k: pa.Array | None = None, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(
        pa.table({"ts": ts, "K": pa.array(range(len(ts))) if k is None else k, "more": ts}),
        file,
        **options,
    )
    return file.getvalue()


@pytest.mark.parametrize(
    ("kind", "factor", "options"),
    [
        (pa.timestamp("us"), 1, {}),
        (pa.timestamp("us", "UTC"), 1, {}),
        (pa.timestamp("us"), 1, {"use_deprecated_int96_timestamps": True}),
        (pa.timestamp("ms"), 1000, {}),
    ],
)
def test_times_of_every_kind_are_exact(
    kind: pa.DataType, factor: int, options: dict[str, Any]
) -> None:
    times = [YEAR_1600, YEAR_9999, 1_000_000, None]
    written = pa.array(
        [None if time is None else time // factor for time in times], pa.int64()
    ).cast(kind)
    table = decode_file(parquet(written, **options), "f", STREAM)
    assert table.schema == STREAM.schema
    assert table.column("ts").cast(pa.int64()).to_pylist() == times
    assert table.column("k").to_pylist() == [0, 1, 2, 3]


def test_files_that_do_not_fit_are_named_with_column_and_value() -> None:
    nanos = parquet(pa.array([1_500], pa.timestamp("ns")))
    with pytest.raises(
        InputError,
        match=r"column ts of file 'f' of stream A is timestamp\[ns\] and cannot become .*1500",
    ):
        decode_file(nanos, "f", STREAM)
    far = parquet(pa.array([2**62], pa.int64()).cast(pa.timestamp("ms")))
    with pytest.raises(
        InputError, match=r"column ts of .*out of bounds timestamp: 4611686018427387904"
    ):
        decode_file(far, "f", STREAM)
    text = parquet(pa.array([1], pa.timestamp("us")), pa.array(["x"]))
    with pytest.raises(
        InputError,
        match=r"column k of .* is string and cannot become int64: .*'x'.*Replace the file",
    ):
        decode_file(text, "f", STREAM)
    file = io.BytesIO()
    pq.write_table(pa.table({"ts": pa.array([1], pa.timestamp("us"))}), file)
    with pytest.raises(
        InputError, match=r"file 'f' of stream A has no column k, it has ts\. Replace the file"
    ):
        decode_file(file.getvalue(), "f", STREAM)


def test_files_that_are_damaged_are_named() -> None:
    whole = parquet(pa.array([1], pa.timestamp("us")))
    for damaged in (
        b"",
        b"PAR1 garbage",
        whole[: len(whole) // 2],
        whole[:4] + b"\xff" * 40 + whole[44:],
    ):
        with pytest.raises(
            InputError, match=r"file 'f' of stream A cannot be read: .*\. Replace the file"
        ):
            decode_file(damaged, "f", STREAM)


def test_a_local_file_that_fits_needs_no_job_of_sparks_and_all_else_does(tmp_path: Path) -> None:
    times = pa.array([1], pa.timestamp("us"))
    assert not _fits_a_file(str(tmp_path / "nowhere"), STREAM)
    assert not _fits_a_file(str(tmp_path), STREAM), "there is no file yet"
    (tmp_path / "_hidden").write_bytes(parquet(times))
    (tmp_path / "k=1").mkdir()
    assert not _fits_a_file(str(tmp_path), STREAM)
    file = tmp_path / "0.parquet"
    for content, fits in (
        (parquet(times), True),
        (parquet(times, k=pa.array([1], pa.int32())), True),
        (parquet(times, use_deprecated_int96_timestamps=True), True),
        (parquet(times, k=pa.array(["x"])), False),
        (parquet(pa.array(["now"])), False),
        (b"PAR1, but no more", False),
    ):
        file.write_bytes(content)
        assert _fits_a_file(str(tmp_path), STREAM) is fits
