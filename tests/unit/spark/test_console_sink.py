"""What consoles print, and which sink a query gets; no session is needed for these."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from muntin.plan.query import Query
from muntin.spark.sinks import ConsoleSink, Sink, SinkMaker

RESULTS = pa.table({"_op": ["+", "+", "-"], "k": [1, 2, 1], "name": ["a", None, "a"]})


class Own(Sink):
    def write(self, results: pa.Table, batch: int) -> None:
        raise NotImplementedError


def test_people_get_the_first_rows_of_a_batch(capsys: pytest.CaptureFixture[str]) -> None:
    sink = ConsoleSink("q", most=2)
    sink.write(RESULTS.slice(0, 0), 6)
    sink.write(RESULTS, 7)
    assert capsys.readouterr().out == "-- q, batch 7: 3 changes\n_op  k  name\n+  1  a\n+  2  None\n... 1 more\n"


def test_machines_get_all_rows_as_lines_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    ConsoleSink("q", as_json=True, most=1).write(RESULTS, 7)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows == [{"query": "q", "batch": 7, **row} for row in RESULTS.to_pylist()]


def test_the_sink_of_a_query_that_names_none_is_the_makers() -> None:
    maker = SinkMaker(cast("Any", None), Path("unused"))
    own = Own()
    query = Query("q", "", (), (), ())
    assert maker.make(query, own) is own
    maker.default, maker.as_json, maker.most = "console", True, 5
    assert maker.make(query, None) == ConsoleSink("q", as_json=True, most=5)
    maker.default = own
    assert maker.make(query, None) is own
