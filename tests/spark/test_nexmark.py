"""All queries of NEXMark run on Spark, in one engine, and give what they give in process."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import muntin
from benchmarks.nexmark.events import START, Load, chunks
from benchmarks.nexmark.files import write_files
from benchmarks.nexmark.queries import STREAMS, queries, script
from muntin.spark import SparkEngine
from muntin.testing.compare import difference

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-1")]

LOAD = Load(rate=5, start=START - 600_000_000, step=1_000_000)
COUNT, SIZE = 6_000, 3_000


def test_all_queries_give_on_spark_what_they_give_in_process(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_files(tmp_path / "data", LOAD, COUNT, SIZE)
    text = script(tmp_path / "data")
    engine = SparkEngine(spark, checkpoint=tmp_path / "checkpoint", partitions=3)
    engine.execute(text.replace("'date_time')", "'date_time', maxFilesPerTrigger = '1')"))
    engine.process_available()
    here = muntin.Engine()
    here.execute(text)
    for chunk in chunks(LOAD, COUNT, SIZE):
        for name, rows in zip(STREAMS, chunk, strict=True):
            here.push(name, rows)
    for name in queries():
        expected = here.handle(name).poll()
        found = engine.results(name)
        assert len(expected) > 0, name
        assert not difference(expected, found), f"{name}: {difference(expected, found)}"
    engine.stop()
