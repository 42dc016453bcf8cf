"""Sources other than files.

Generated rows appear exactly once, also across restarts; lines of a socket keep their order and are
neither repeated nor lost.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from muntin.errors import InputError, RunError
from muntin.model.catalog import Catalog, Stream, Table
from muntin.plan.query import Emit
from muntin.spark import SparkEngine
from muntin.sql.script import read_query
from muntin.testing.compare import difference
from muntin.testing.oracle import Oracle
from tests.spark.support import SECOND

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-1")]

PATIENCE = 180.0


def wait_until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < until, "nothing comes"
        time.sleep(0.05)


def check(
    queries: dict[str, str], streams: dict[str, pa.Table], times: str, engine: SparkEngine, end: int
) -> None:
    """Fail unless the results are the oracle's for all rows of the streams, up to an instant."""
    catalog = Catalog()
    for name, table in streams.items():
        catalog.add(Stream(name, table.schema, times))
    catalog.add(Table("T", STORED.schema))
    for name, sql in queries.items():
        query = read_query(sql, name, catalog)
        oracle = Oracle(query, streams, {"T": STORED}, catalog)
        expected = oracle.inserts(end) if query.emit is Emit.INSERTS else oracle.changes(end)
        assert len(expected), f"query {name} has results to compare"
        problem = difference(expected, engine.results(name))
        assert not problem, f"{name}: {problem}"


# -- generated rows
# -----------------------------------------------------------------------------------

GENERATED = {
    "pairs": (
        "SELECT A.value AS x, B.value AS y FROM A, B WHERE A.value % 3 = B.value % 3 "
        "WINDOW 2 SECONDS"
    ),
    "last": "SELECT value FROM A [ROWS 4] EMIT CHANGES",
    "dated": "SELECT value, since FROM A, T WHERE A.value = T.k WINDOW 2 SECONDS",
}
STORED = pa.table(
    {
        "k": pa.array(range(12)),
        "since": pa.array([k * 100 * SECOND for k in range(12)], pa.int64()).cast(
            pa.timestamp("us")
        ),
    }
)
START = 5_000 * SECOND


def generated(rows: int, batches: int) -> pa.Table:
    """Return the rows that ``rate-micro-batch`` generates.

    All rows of a batch have one time; batches are one second apart.
    """
    values = range(rows * batches)
    times = pa.array([START + value // rows * SECOND for value in values], pa.int64()).cast(
        pa.timestamp("us")
    )
    return pa.table({"timestamp": times, "value": pa.array(values, pa.int64())})


def generating(spark: SparkSession, folder: Path) -> SparkEngine:
    """Return an engine with one stream in SQL, one as a DataFrame, and a stored table."""
    engine = SparkEngine(spark, checkpoint=folder / "checkpoint", partitions=2)
    options = {
        "rowsPerBatch": "6",
        "startTimestamp": str(START // 1000),
        "advanceMillisPerBatch": "1000",
    }
    settings = ", ".join(f"{name} = '{value}'" for name, value in options.items())
    engine.execute(
        "CREATE STREAM A (timestamp TIMESTAMP, value BIGINT) "
        f"WITH (format = 'rate-micro-batch', {settings})"
    )
    options.update(rowsPerBatch="4", numPartitions="1")
    engine.stream(
        "B", spark.readStream.format("rate-micro-batch").options(**options).load(), time="timestamp"
    )
    engine.table(
        "T", spark.sql("SELECT id AS k, timestamp_seconds(id * 100) AS since FROM range(12)")
    )
    for name, sql in GENERATED.items():
        engine.query(sql, name=name)
    return engine


def test_generated_batches_appear_once_in_order_in_any_time_zone(
    spark: SparkSession, tmp_path: Path
) -> None:
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        generating(spark, tmp_path).process_available()
        again = generating(spark, tmp_path)
        end = START + 10 * SECOND
        again.process_available(
            until=end
        )  # which looks twice, and there is one batch more each time
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    check(GENERATED, {"A": generated(6, 3), "B": generated(4, 3)}, "timestamp", again, end)


def test_rows_at_a_rate_continue_after_a_restart_without_gap_or_overlap(
    spark: SparkSession, tmp_path: Path
) -> None:
    def run(rows: int) -> pa.Table:
        engine = SparkEngine(spark, checkpoint=tmp_path / "checkpoint", partitions=2)
        engine.execute(
            "CREATE STREAM R (timestamp TIMESTAMP, value BIGINT) "
            "WITH (format = 'rate', rowsPerSecond = '50')"
        )
        handle = engine.query(
            "SELECT a.value AS x, b.value AS y, b.timestamp AS t FROM R a, R b "
            "WHERE a.value = b.value + 1 WINDOW 1 SECOND",
            name="next",
        )
        engine.start()
        try:
            wait_until(lambda: len(handle.results()) >= rows)
        finally:
            engine.stop()
        return handle.results().sort_by("x")

    first = run(20)
    found = run(len(first) + 20)
    count = len(found)
    assert found.column("x").to_pylist() == list(range(1, count + 1))
    assert found.column("y").to_pylist() == list(range(count))
    times = found.column("t").cast(pa.int64()).to_pylist()
    assert times == [times[0] + 20_000 * place for place in range(count)], "50 rows per second"


# -- sockets
# ------------------------------------------------------------------------------------------


class Server:
    """A server that sends each line once, to the client that is connected."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(PATIENCE)
        self.port = int(self._listening.getsockname()[1])
        self._open: list[socket.socket] = []

    def say(self, *lines: str) -> None:
        """Send lines; if no client is connected yet, send them to the next one."""
        if not self._open:
            self._open.append(self._listening.accept()[0])
        self._open[-1].sendall("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        for one in (*self._open, self._listening):
            one.close()


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    both = Server(), Server()
    yield both
    for server in both:
        server.close()


def lines_of(engine: SparkEngine) -> list[str]:
    found: list[str] = engine.results("lines").column("value").to_pylist()
    return found


def test_lines_arrive_in_order_and_unsupported_uses_of_a_socket_are_refused(
    spark: SparkSession, tmp_path: Path, servers: tuple[Server, Server]
) -> None:
    server, _ = servers

    def engine_at(port: int, folder: str) -> SparkEngine:
        engine = SparkEngine(spark, checkpoint=tmp_path / folder, partitions=2)
        engine.execute(
            "CREATE STREAM S (value VARCHAR, timestamp TIMESTAMP) "
            f"WITH (format = 'socket', host = '127.0.0.1', port = '{port}', "
            "includeTimestamp = 'true')"
        )
        engine.query("SELECT value FROM S WINDOW 1 MINUTE", name="lines")
        return engine

    said = [f"{number} ü, 'x'" for number in range(60)]
    engine = engine_at(server.port, "checkpoint")
    with pytest.raises(
        InputError,
        match=r"stream S reads a socket, which has no end\. Run it with start\(\)",
    ):
        engine.process_available()
    engine.start()
    server.say(*said[:50])
    wait_until(lambda: len(lines_of(engine)) >= 50)
    server.say(*said[50:])
    wait_until(lambda: len(lines_of(engine)) >= 60)
    assert lines_of(engine) == said
    engine.stop()
    for later in (engine, engine_at(server.port, "checkpoint")):
        with pytest.raises(
            InputError,
            match=(
                r"stream S reads a socket, which cannot be read again .*\. Begin a new "
                r"checkpoint"
            ),
        ):
            later.start()
        assert lines_of(later) == said, "what was found stays"
    server.close()
    with pytest.raises(
        RunError, match=rf"Connection refused\. Sockets that it reads: 127\.0\.0\.1:{server.port}"
    ):
        engine_at(server.port, "other").settle()


def test_two_sockets_with_event_times_join_as_in_the_oracle(
    spark: SparkSession, tmp_path: Path, servers: tuple[Server, Server]
) -> None:
    engine = SparkEngine(spark, checkpoint=tmp_path, partitions=2)
    tables: dict[str, pa.Table] = {}
    for name, server in zip("AB", servers, strict=True):
        lines = (
            spark.readStream.format("socket")
            .options(host="127.0.0.1", port=str(server.port), numPartitions="1")
            .load()
        )
        rows = lines.selectExpr(
            "CAST(split(value, ' ')[0] AS LONG) AS k",
            "timestamp_micros(CAST(split(value, ' ')[1] AS LONG)) AS ts",
        )
        engine.stream(name, rows, time="ts")
        keys, times = (
            [(number * 7 + len(tables)) % 5 for number in range(30)],
            [number * SECOND // 2 for number in range(30)],
        )
        tables[name] = pa.table(
            {
                "k": pa.array(keys, pa.int64()),
                "ts": pa.array(times, pa.int64()).cast(pa.timestamp("us")),
            }
        )
    query = {"pairs": "SELECT A.k, A.ts AS x, B.ts AS y FROM A, B WHERE A.k = B.k WINDOW 3 SECONDS"}
    engine.query(query["pairs"], name="pairs")
    engine.start()
    try:
        for part in (slice(0, 10), slice(10, 30)):
            for name, server in zip("AB", servers, strict=True):
                keys, times = (
                    column.cast(pa.int64()).to_pylist()[part] for column in tables[name].columns
                )
                server.say(*(f"{key} {when}" for key, when in zip(keys, times, strict=True)))
        wait_until(
            lambda: str((engine.progress or {}).get("muntin", {}).get("watermark")).startswith(
                "1970-01-01 00:00:14.5"
            )
        )
        engine.advance(60 * SECOND)
        engine.settle()
    finally:
        engine.stop()
    check(query, tables, "ts", engine, 60 * SECOND)
    with pytest.raises(InputError, match="stream A reads a socket, which cannot be read again"):
        engine.start()


# -- what is wrong with them
# ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "options", "pieces"),
    [
        (
            "value VARCHAR",
            "'socket', host = '127.0.0.1', port = '9'",
            ("The source has value; with includeTimestamp = 'true' also timestamp",),
        ),
        (
            "value VARCHAR",
            "'socket', host = '127.0.0.1', port = 'x'",
            ("cannot be read as 'socket'", '"x"', "Check format, path and options"),
        ),
        (
            "value BIGINT",
            "'rate-micro-batch', rowsPerBatch = '0'",
            ("cannot be read as 'rate-micro-batch'", "'rowsPerBatch' must be positive"),
        ),
        (
            "v BIGINT",
            "'rate'",
            (
                "declares column v, which its source does not have",
                "The source has timestamp, value",
            ),
        ),
        ("value VARCHAR", "'rate'", ("declares column value as string, but its source has int64",)),
        (
            "value BLOB",
            "'kafka', servers = 'localhost:9', topic = 'x', value = 'json'",
            ("Failed to find data source: kafka", "org.apache.spark:spark-sql-kafka-0-10_2.13:4."),
        ),
    ],
)
def test_what_a_source_lacks_is_reported_before_anything_runs(
    spark: SparkSession, tmp_path: Path, columns: str, options: str, pieces: tuple[str, ...]
) -> None:
    engine = SparkEngine(spark, checkpoint=tmp_path, partitions=1)
    engine.execute(f"CREATE STREAM S ({columns}, timestamp TIMESTAMP) WITH (format = {options})")
    engine.query("SELECT timestamp FROM S WINDOW 2 SECONDS", name="q")
    with pytest.raises(InputError) as caught:
        engine.start()
    for piece in ("stream S", *pieces):
        assert piece in str(caught.value)
    assert "SQLSTATE" not in str(caught.value)
