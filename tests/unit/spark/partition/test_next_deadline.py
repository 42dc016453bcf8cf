"""The instant that a heartbeat waits for is never too late: until then, nothing expires."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from muntin.engine.engine import Engine
from muntin.model.settings import Settings
from muntin.spark.partition.next_deadline import next_due

SECOND = 1_000_000
FROM = "FROM A [RANGE 3 SECONDS], B [RANGE 5 SECONDS] WHERE A.k = B.k"
QUERIES = {
    "inserts": f"SELECT A.k {FROM}",
    "changes": f"SELECT A.k, B.v {FROM} EMIT CHANGES",
    "single": "SELECT k, v FROM A [RANGE 2 SECONDS] EMIT CHANGES",
    "rows": "SELECT A.k FROM A [ROWS 2], B [RANGE 4 SECONDS] WHERE A.k = B.k EMIT CHANGES",
    "partitioned": (
        "SELECT A.v FROM A [PARTITION BY k ROWS 1], B [RANGE 4 SECONDS] WHERE A.k = B.k "
        "EMIT CHANGES"
    ),
    "every": f"SELECT A.k, B.v {FROM} EVERY 7 SECONDS EMIT CHANGES",
    "every_inserts": f"SELECT A.k, B.v {FROM} EVERY 7 SECONDS",
    "grouped": "SELECT k, COUNT(*) AS n FROM A [RANGE 3 SECONDS] GROUP BY k EMIT CHANGES",
    "total": "SELECT SUM(v) AS s FROM A [RANGE 3 SECONDS] EMIT CHANGES",
    "distinct": f"SELECT DISTINCT A.k {FROM} EMIT CHANGES",
    "except": (
        "SELECT k FROM A [RANGE 3 SECONDS] EXCEPT SELECT k FROM B [RANGE 5 SECONDS] EMIT CHANGES"
    ),
    "snapshot": (
        "SELECT k, COUNT(*) AS n FROM A [RANGE 3 SECONDS] GROUP BY k EVERY 2 SECONDS EMIT SNAPSHOT"
    ),
    "nested": (
        "SELECT s.k FROM (SELECT k, COUNT(*) AS n FROM A [RANGE 3 SECONDS] GROUP BY k) s "
        "WHERE s.n > 1 EMIT CHANGES"
    ),
}


def some_rows(random: np.random.Generator, start: int, count: int) -> pa.Table:
    times = np.sort(random.integers(start, start + 10 * SECOND, count))
    columns = [
        random.integers(0, 3, count),
        random.integers(0, 100, count),
        pa.array(times).cast(pa.timestamp("us")),
    ]
    return pa.table([pa.array(column) for column in columns], names=["k", "v", "ts"])


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("seed", range(4))
def test_nothing_changes_before_the_next_due_instant(name: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    engine, twin = Engine(), Engine()
    for each in (engine, twin):
        for stream in "AB":
            each.stream(stream, {"k": "bigint", "v": "bigint", "ts": "timestamp"}, time="ts")
    handle, truth = engine.query(QUERIES[name], name="q"), twin.query(QUERIES[name], name="q")
    query = engine.dataflow.queries["q"].query
    newest = {}
    for step in range(2):
        start = step * 40 * SECOND + int(random.integers(0, SECOND))
        for stream in "AB":
            rows = some_rows(random, start, int(random.integers(1, 8)))
            newest[stream] = rows.column("ts").cast(pa.int64()).to_numpy()[-1]
            for each in (engine, twin):
                each.push(stream, rows)
        found, expected = [handle.poll()], [truth.poll()]
        end, now = start + 30 * SECOND, start
        while now < end:
            now += SECOND // 2
            twin.advance(now)
            expected.append(truth.poll())
            due = next_due(engine.dataflow, [(query, Settings())], newest)
            if due is not None and now >= due:
                engine.advance(now)
            else:
                assert not len(expected[-1]), (
                    f"{expected[-1].to_pylist()} at {now}, which is before {due}"
                )
            found.append(handle.poll())
        assert pa.concat_tables(found).to_pylist() == pa.concat_tables(expected).to_pylist()
    if query.emit != "snapshot":
        assert next_due(engine.dataflow, [(query, Settings())], newest) is None, "it ends"
