"""A faulty input file stops the run and is named in the error.

After the file is repaired, the run resumes and reads every row exactly once.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from muntin.errors import InputError, RunError
from muntin.spark import SparkEngine
from tests.spark.support import SCHEMA, SECOND, Folders, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-1")]

VALUES = "SELECT k, v FROM A WINDOW 2 SECONDS"


def engine_over(
    spark: SparkSession, folders: Folders, kind: str = "parquet", **options: str
) -> SparkEngine:
    engine = SparkEngine(spark, checkpoint=folders.base / "checkpoint", partitions=1)
    more = "".join(f", {name} = '{value}'" for name, value in options.items())
    engine.execute(
        folders.declarations().replace("'parquet'", f"'{kind}'").replace(", time", f"{more}, time")
    )
    engine.query(VALUES, name="q")
    return engine


def failing(engine: SparkEngine, *pieces: str) -> None:
    with pytest.raises(RunError) as caught:
        engine.process_available()
    for piece in (*pieces, "Nothing is lost"):
        assert piece in str(caught.value)


def test_a_parquet_file_with_any_fault_is_refused_and_can_be_repaired(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    folders.write("A", rows([1], start=1))
    wrong = folders.write("A", rows([2], start=2))
    whole = wrong.read_bytes()
    pq.write_table(rows([2], start=2).drop_columns(["v"]), wrong)
    os.utime(wrong, (9, 9))
    engine = engine_over(spark, folders)
    failing(engine, f"{wrong}' of stream A has no column v, it has k, ts. Replace the file")
    wrong.write_bytes(whole[: len(whole) // 2])
    failing(
        engine_over(spark, folders), f"{wrong}' of stream A cannot be read: ", "Replace the file"
    )
    wrong.unlink()
    with pytest.raises(
        InputError, match=r"batch 1 was begun with .*000002.parquet, which is gone\. Put it back"
    ):
        engine.process_available()
    wrong.write_bytes(whole)
    engine.process_available()
    assert engine.results("q").column("v").to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("kind", "texts", "piece"),
    [
        (
            "csv",
            (
                "k,v,ts\n1,1,1970-01-01 00:00:01\n",
                "k,ts\n2,1970-01-01 00:00:02\n",
                "k,v,ts\n2,2,1970-01-01 00:00:02\n",
            ),
            "header",
        ),
        (
            "json",
            (
                '{"k":1,"v":1,"ts":"1970-01-01 00:00:01"}\n',
                '{"k":2,"v":2,"ts":"soon"}\n',
                '{"k":2,"v":2,"ts":"1970-01-01 00:00:02"}\n',
            ),
            "soon",
        ),
    ],
)
def test_text_that_does_not_fit_is_reported_with_its_file(
    spark: SparkSession, tmp_path: Path, kind: str, texts: tuple[str, str, str], piece: str
) -> None:
    good, wrong, repaired = texts
    folders = Folders(tmp_path, ("A",))

    def write(number: int, content: str) -> Path:
        file = folders.path("A") / f"{number}.{kind}"
        file.write_text(content, encoding="utf-8")
        os.utime(file, (number, number))
        return file

    write(1, good)
    file = write(2, wrong)
    engine = engine_over(spark, folders, kind, **({"header": "true"} if kind == "csv" else {}))
    failing(engine, str(file), piece)
    write(2, repaired)
    engine.process_available()
    assert engine.results("q").column("v").to_pylist() == [1, 2]


def test_times_out_of_range_and_missing_are_late_and_disturb_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path, ("A",))
    times = [
        1 * SECOND,
        2**63 - 1,
        -(2**63),
        2**62,
        -(2**62),
        None,
        -11_676_096_000 * SECOND,
        2 * SECOND,
    ]
    column = pa.array(times, pa.int64()).cast(pa.timestamp("us"))
    everything = pa.table([pa.array(range(8)), pa.array(range(8)), column], schema=SCHEMA)
    folders.write("A", everything.slice(0, 1))
    folders.write("A", everything.slice(1))
    engine = engine_over(spark, folders)
    engine.process_available()
    assert engine.results("q").column("v").to_pylist() == [0, 7]
    late = engine.late("A")
    assert sorted(late.column("v").to_pylist()) == [1, 2, 3, 4, 5, 6]
    assert sorted(late.column("ts").cast(pa.int64()).drop_null().to_pylist()) == sorted(
        time for time in times[1:7] if time is not None
    )
    assert engine.progress is not None
    assert engine.progress["muntin"]["streams"] == {"A": {"rows": 3, "late": 6, "ahead": 0}}, (
        "rows that belong to no time are only late"
    )
