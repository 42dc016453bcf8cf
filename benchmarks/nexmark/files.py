"""The events of NEXMark as files, which the script of its queries reads."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from benchmarks.nexmark.events import Load, chunks

SIDE_KEYS = 10_000


def side_input() -> pa.Table:
    """Return the stored table of q13."""
    keys = range(SIDE_KEYS)
    return pa.table({"key": keys, "value": [f"side value {key}" for key in keys]})


def write_side_input(folder: Path) -> None:
    """Write the stored table of q13."""
    folder.mkdir(parents=True, exist_ok=True)
    pyarrow.csv.write_csv(side_input(), folder / "side_input.csv")


def write_files(folder: Path, load: Load, count: int, size: int = 100_000) -> None:
    """Write the first ``count`` events, with one file per stream for each ``size`` of them."""
    write_side_input(folder)
    for place, chunk in enumerate(chunks(load, count, size)):
        for name, rows in chunk._asdict().items():
            (folder / name).mkdir(exist_ok=True)
            path = folder / name / f"{place:05d}.parquet"
            pq.write_table(rows, path)
            os.utime(path, (place + 1_000, place + 1_000))  # Spark reads them in this order
