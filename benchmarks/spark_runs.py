"""Shared by the benchmarks on Spark: session, streams as files, Spark's join, size of a folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from muntin.spark.session import local_session
from muntin.testing.generators import uniform_stream

PARTITIONS = 2
"""Partitions of Muntin, and partitions of Spark's own join."""
START = 3_600_000_000
"""Microseconds; Spark's join drops rows of time zero as late, since that is its first watermark."""
_DDL = "k BIGINT, v DOUBLE, ts TIMESTAMP_NTZ"
_STORE = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
"""Spark's default store, in the Java heap.

RocksDB took 1.3 to 7 times as long for these joins, with state formats 2, 3 and 4.
"""
_SHARE_OF_MEMORY = 2
_LEAST_HEAP = 2


@dataclass(frozen=True)
class Streams:
    """Two streams as files: rows per second of each, keys, seconds per file, files."""

    rate: int
    keys: int
    file_seconds: int
    files: int

    @property
    def file_rows(self) -> int:
        """Rows of a file."""
        return self.rate * self.file_seconds


def bench_session() -> SparkSession:
    """Return the session of all benchmarks.

    Java may use half of the memory, because Spark's joins keep their state there.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _SHARE_OF_MEMORY // 2**30
    return local_session(PARTITIONS, {"spark.driver.memory": f"{max(memory, _LEAST_HEAP)}g"})


def write_files(folder: Path, streams: Streams) -> None:
    """Write the streams A and B as files, in the order of their times."""
    rows = streams.files * streams.file_rows
    for seed, name in enumerate("AB", 1):
        stream = uniform_stream(rows, streams.rate, streams.keys, seed, start=START)
        if name == "B":
            # The very last row waits for the other stream to advance; without a partner it makes no
            # difference.
            last = pa.concat_arrays(
                [stream.column("k").combine_chunks().slice(0, rows - 1), pa.array([-1], pa.int64())]
            )
            stream = stream.set_column(0, "k", last)
        (folder / name).mkdir(parents=True)
        for number in range(streams.files):
            path = folder / name / f"{number:05d}.parquet"
            pq.write_table(stream.slice(number * streams.file_rows, streams.file_rows), path)
            os.utime(path, (number + 1_000, number + 1_000))


def declare_stream(name: str, data: Path, per_trigger: int) -> str:
    """Return the statement by which Muntin reads the files, with a limit per trigger."""
    return (
        f"CREATE STREAM {name} (k BIGINT, v DOUBLE, ts TIMESTAMP) WITH (format = 'parquet', path = "
        f"'{data / name}', "
        f"time = 'ts', maxFilesPerTrigger = '{per_trigger}')"
    )


def join_sql(window: float) -> str:
    """Return the join over a window in seconds, in Muntin's dialect."""
    return f"SELECT A.k, A.v AS av, B.v AS bv FROM A, B WHERE A.k = B.k WINDOW {_interval(window)}"


def joined_by_spark(spark: SparkSession, data: Path, window: float, per_trigger: int) -> DataFrame:
    """Return the streaming DataFrame of Spark's own join over a window in seconds."""
    use_own_store(spark)
    frames = {}
    for name in "AB":
        reader = spark.readStream.schema(_DDL).option("maxFilesPerTrigger", per_trigger)
        frame = (
            reader.parquet(str(data / name))
            .selectExpr("k", "v", "CAST(ts AS TIMESTAMP) AS ts")
            .withWatermark("ts", "0 seconds")
        )
        frames[name] = frame.alias(name)
    within = (
        f"A.ts > B.ts - INTERVAL {_interval(window)} AND A.ts < B.ts + INTERVAL {_interval(window)}"
    )
    joined = frames["A"].join(frames["B"], on=expr(f"A.k = B.k AND {within}"))
    return joined.selectExpr("A.k AS k", "A.v AS av", "B.v AS bv")


def use_own_store(spark: SparkSession) -> None:
    """Use Spark's state store for the next run, with as many partitions as Muntin has."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", _STORE)
    spark.conf.set("spark.sql.shuffle.partitions", str(PARTITIONS))


def _interval(seconds: float) -> str:
    return f"{round(seconds * 1_000)} MILLISECONDS"


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
