"""The web console of an engine on Spark."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from muntin.errors import CatalogError, InputError, SqlError
from muntin.spark import SparkEngine
from tests.console_client import Client
from tests.spark.support import JOIN, Folders, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-1")]


def test_a_browser_sees_batches_and_results_and_adds_and_drops_queries(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path / "in")
    engine = SparkEngine(spark, checkpoint=tmp_path / "state", partitions=2)
    engine.execute(folders.declarations())
    engine.query(JOIN, name="pairs", sink="memory")
    with engine.console("127.0.0.1:0") as console:
        client = Client(console).login()
        source = console.app.hub.source
        before = source.snapshot()
        assert (before["running"], before["batches"]) == (False, [])
        with pytest.raises(SqlError, match="line 1, column 8"):
            source.check("SELECT x FROM A WINDOW 1 SECOND", None)
        with pytest.raises(CatalogError, match="the name pairs is taken"):
            source.check("SELECT k FROM A WINDOW 1 SECOND", "pairs")
        with pytest.raises(InputError, match="spread over partitions"):
            source.answer("pairs")
        engine.start()
        events = client.events("/api/events?query=pairs")
        next(events)
        until = time.monotonic() + 60
        while not engine._parts.subscriptions.any():
            assert time.monotonic() < until
            time.sleep(0.01)
        for stream in "AB":
            folders.write(stream, rows([0, 1, 2]))
        engine.settle()
        engine.advance("2027-01-01")
        engine.settle()
        expected = engine.results("pairs").num_rows
        assert expected
        seen: list[Any] = []
        while len(seen) < expected:
            seen += next(data for kind, data in events if kind == "results")["rows"]
        assert len(seen) == expected
        events.close()
        after = source.snapshot()
        assert after["running"]
        assert after["queries"][0]["rows_out"] == expected
        numbers = [batch["number"] for batch in after["batches"]]
        assert numbers == sorted(set(numbers))
        assert all("addBatch" in batch["parts"] for batch in after["batches"])
        assert client.post("/api/add", {"sql": JOIN, "name": "more"}).data == {"done": "more"}
        assert [plan["query"] for plan in source.plans()] == ["pairs", "more"]
        assert client.post("/api/drop", {"name": "more"}).status == 200
        assert [each["name"] for each in source.snapshot()["queries"]] == ["pairs"]
    engine.stop()
