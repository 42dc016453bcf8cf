"""Streams from Kafka and results to Kafka, with a real broker: values, keys, headers, restarts."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, functions
from pyspark.sql.avro.functions import to_avro

import muntin
from muntin.errors import RunError
from muntin.spark import SparkEngine
from muntin.testing.compare import difference
from tests.connectors.kafka_broker import Kafka, Message

pytestmark = [pytest.mark.connectors]

PAIRS = "SELECT A.k, A.v, B.w FROM A, B WHERE A.k = B.k WINDOW 4 SECONDS"
COUNTS = "SELECT k, COUNT(*) AS n FROM A GROUP BY k WINDOW 3 SECONDS"
END = "2026-01-01 00:01:00"
COLUMNS = {
    "A": {"k": "int", "v": "bigint", "ts": "timestamp"},
    "B": {"k": "int", "w": "double", "ts": "timestamp"},
}


def at(second: float) -> str:
    return f"2026-01-01 00:00:{second:09.6f}"


def rows(stream: str, seconds: range) -> list[dict[str, Any]]:
    value = "v" if stream == "A" else "w"
    return [{"k": n % 3, value: n, "ts": at(n / 2)} for n in seconds]


def declared(kafka: Kafka, stream: str, topic: str, more: str = "") -> str:
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS[stream].items())
    return (
        f"CREATE STREAM {stream} ({columns}) WITH (format = 'kafka', servers = '{kafka.servers}', "
        f"topic = '{topic}', value = 'json', time = 'ts'{more});"
    )


def written(kafka: Kafka, topic: str, more: str = "") -> str:
    return f"WITH (sink = 'kafka', servers = '{kafka.servers}', topic = '{topic}'{more})"


def expected(sql: str, pushed: Mapping[str, Sequence[dict[str, Any]]]) -> pa.Table:
    """Return the results of the in-process engine."""
    engine = muntin.Engine()
    for stream, columns in COLUMNS.items():
        engine.stream(stream, columns, time="ts")
    query = engine.query(sql)
    for stream, values in pushed.items():
        engine.push(stream, values)
    engine.advance(END)
    return query.poll()


def check_messages(messages: Sequence[Message], wanted: pa.Table) -> None:
    """Fail unless the messages have the results, each once."""
    found = [{"_op": one.headers["muntin-op"], **one.row} for one in messages]
    table = pa.Table.from_pylist(
        [{**row, "_ts": None} for row in found],
        schema=pa.schema([field for field in wanted.schema if field.name != "_ts"]).append(
            pa.field("_ts", pa.string())
        ),
    ).drop_columns(["_ts"])
    times = pa.array([row["_ts"] for row in found], pa.string()).cast(pa.timestamp("us"))
    table = table.append_column("_ts", times).select(wanted.column_names)
    problem = difference(wanted, table.cast(wanted.schema))
    assert not problem, problem
    identities = Counter(one.headers["muntin-id"] for one in messages)
    assert set(identities.values()) <= {1}, "every identity appears once"


def test_a_join_of_two_topics_continues_after_a_restart_with_every_result_once(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topics = {stream: kafka.topic(stream.lower(), 2) for stream in "AB"}
    out, counts = kafka.topic("pairs", 2), kafka.topic("counts", 2)
    keyed = ", key = 'k'"
    script = (
        "".join(declared(kafka, stream, topic) for stream, topic in topics.items())
        + f"CREATE QUERY pairs AS {PAIRS} {written(kafka, out, keyed)};"
        + f"CREATE QUERY counts AS {COUNTS} {written(kafka, counts, keyed)};"
    )
    pushed: dict[str, list[dict[str, Any]]] = {"A": [], "B": []}
    for part in (range(8), range(8, 16)):
        for stream, topic in topics.items():
            for number in part:
                (row,) = rows(stream, range(number, number + 1))
                pushed[stream].append(row)
                kafka.send(topic, [row], partition=number % 2)
        engine = SparkEngine(spark, checkpoint=tmp_path, partitions=2)
        engine.execute(script)
        engine.process_available(until=None if part.start == 0 else END)
        engine.stop()
    check_messages(kafka.read(out), expected(PAIRS, pushed))
    found = kafka.read(counts)
    check_messages(found, expected(COUNTS, pushed))
    assert {one.key for one in found} == {"0", "1", "2"}
    assert all(json.loads(one.key or "") == one.row["k"] for one in found)
    by_key: dict[str | None, set[int]] = {}
    for one in found:
        by_key.setdefault(one.key, set()).add(one.partition)
    assert all(len(partitions) == 1 for partitions in by_key.values())


def test_keys_headers_and_the_place_of_a_message_are_columns(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic = kafka.topic("described", 2)
    kafka.send(topic, [{"v": 1, "ts": at(1)}], partition=1, key="7", headers={"trace": "x"})
    kafka.send(topic, [{"v": 2, "ts": at(2), "more": [1]}], partition=1)
    engine = SparkEngine(spark, checkpoint=tmp_path, partitions=1)
    engine.execute(
        "CREATE STREAM S (k BIGINT, v INT, trace VARCHAR, ts TIMESTAMP, _topic VARCHAR, "
        f"_partition INT, _offset BIGINT) WITH (format = 'kafka', servers = '{kafka.servers}', "
        f"topic = '{topic}', value = 'json', key = 'k', headers = 'trace', time = 'ts');"
        "CREATE QUERY q AS SELECT k, v, trace, _topic, _partition, _offset FROM S WINDOW 1 HOUR;"
    )
    engine.process_available(until=END)
    found = engine.results("q").drop_columns(["_op", "_ts"]).to_pylist()
    place = {"_topic": topic, "_partition": 1}
    assert found == [
        {"k": 7, "v": 1, "trace": "x", **place, "_offset": 0},
        {"k": None, "v": 2, "trace": None, **place, "_offset": 1},
    ]


BROKEN = [
    (b"{", "the value is not JSON"),
    (b'{"v": "x", "ts": "2026-01-01"}', "the value does not fit column v"),
    (b"[1]", "the value is not a JSON object with the declared columns"),
    (None, "the message has no value"),
    (b'\xff{"v": 1}', "the value is not UTF-8"),
]


@pytest.mark.parametrize("kept", ["folder", "topic"])
def test_malformed_messages_are_counted_and_kept_as_they_came(
    spark: SparkSession, kafka: Kafka, tmp_path: Path, kept: str
) -> None:
    topic, dead = kafka.topic("broken"), kafka.topic("dead")
    kafka.send(topic, [{"v": 1, "ts": at(1)}, *(value for value, _ in BROKEN)])
    kafka.send(topic, [{"v": 2, "ts": at(2)}], key="seven")
    kafka.send(topic, [{"v": 3, "ts": at(3)}], key="7")
    target = str(tmp_path / "dead") if kept == "folder" else f"topic:{dead}"
    engine = SparkEngine(spark, checkpoint=tmp_path / "state", partitions=2)
    engine.execute(
        "CREATE STREAM S (k INT, v INT, ts TIMESTAMP) "
        f"WITH (format = 'kafka', servers = '{kafka.servers}', topic = '{topic}', value = 'json', "
        f"key = 'k', time = 'ts', dead_letter = '{target}');"
        "CREATE QUERY q AS SELECT v FROM S WINDOW 1 HOUR;"
    )
    engine.process_available(until=END)
    assert engine.results("q").column("v").to_pylist() == [1, 3]
    assert engine.progress is not None
    counts = engine.progress["muntin"]["streams"]["S"]
    assert (counts["rows"], counts["malformed"]) == (2, 6)
    wanted = [
        *((offset, value, reason) for offset, (value, reason) in enumerate(BROKEN, 1)),
        (6, json.dumps({"v": 2, "ts": at(2)}).encode(), "the key cannot become INT"),
    ]
    if kept == "topic":
        letters = [
            (one.headers["muntin-id"], one.value, one.headers["muntin-reason"])
            for one in kafka.read(dead)
        ]
        assert letters == [(f"{topic}/0/{offset}", *rest) for offset, *rest in wanted]
        return
    rows = spark.read.parquet(str(tmp_path / "dead")).orderBy("offset").collect()
    assert [
        (row["offset"], None if row["value"] is None else bytes(row["value"]), row["reason"])
        for row in rows
    ] == wanted
    assert {(row["topic"], row["partition"]) for row in rows} == {(topic, 0)}
    assert bytes(rows[-1]["key"]) == b"seven"
    assert (rows[-1]["timestamp"] is not None) == (rows[0]["key"] is None)


def test_a_topic_that_does_not_exist_ends_the_run_with_its_name(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    engine = SparkEngine(spark, checkpoint=tmp_path, partitions=1)
    engine.execute(declared(kafka, "A", "no-such-topic"))
    engine.query("SELECT k FROM A WINDOW 1 SECOND", name="q")
    with pytest.raises(RunError, match=r"topic-partition|no-such-topic"):
        engine.process_available()


RESULT = {
    "json": ("", ""),
    "csv": ("at TIMESTAMP, ", ""),
    "avro": (
        "",
        json.dumps(
            {
                "type": "record",
                "name": "result",
                "fields": [
                    {"name": name, "type": [kind, "null"]}
                    for name, kind in (
                        ("_ts", {"type": "long", "logicalType": "local-timestamp-micros"}),
                        ("k", "int"),
                        ("v", "long"),
                        ("x", "double"),
                        ("name", "string"),
                        ("ts", {"type": "long", "logicalType": "local-timestamp-micros"}),
                    )
                ],
            }
        ),
    ),
}
"""By format: the columns that results have before those of the query, and their Avro schema."""


@pytest.mark.parametrize("value", ["json", "csv", "avro"])
def test_values_of_each_format_are_written_and_read_back(
    spark: SparkSession, kafka: Kafka, tmp_path: Path, value: str
) -> None:
    given, between = kafka.topic("given"), kafka.topic(value)
    values: list[dict[str, Any]] = [
        {"k": 1, "v": 2**60, "x": 0.1, "name": 'a,b;"c" \u00e9', "ts": at(1.000001)},
        {"k": -1, "v": None, "x": -1e300, "name": None, "ts": at(2)},
    ]
    kafka.send(given, values)
    columns = "k INT, v BIGINT, x DOUBLE, name VARCHAR, ts TIMESTAMP"
    engine = SparkEngine(spark, checkpoint=tmp_path / "one", partitions=1)
    engine.execute(
        f"CREATE STREAM S ({columns}) WITH (format = 'kafka', servers = '{kafka.servers}', "
        f"topic = '{given}', value = 'json', time = 'ts');"
        "CREATE QUERY q AS SELECT k, v, x, name, ts FROM S WINDOW 1 HOUR "
        + written(kafka, between, f", value = '{value}'")
    )
    engine.process_available(until=END)
    kafka.send(between, [b"\x02"])
    before, schema = RESULT[value]
    more = f", avroSchema = '{schema}'" if schema else ""
    second = SparkEngine(spark, checkpoint=tmp_path / "two", partitions=1)
    second.execute(
        f"CREATE STREAM S ({before}{columns}) WITH (format = 'kafka', servers = '{kafka.servers}', "
        f"topic = '{between}', value = '{value}', time = 'ts'{more});"
        "CREATE QUERY q AS SELECT k, v, x, name, CAST(ts AS VARCHAR) AS ts FROM S WINDOW 1 HOUR"
    )
    second.process_available(until=END)
    found = second.results("q").drop_columns(["_op", "_ts"]).to_pylist()
    texts = ["2026-01-01 00:00:01.000001", "2026-01-01 00:00:02"]
    assert found == [{**row, "ts": text} for row, text in zip(values, texts, strict=True)]
    assert second.progress is not None
    assert second.progress["muntin"]["streams"]["S"]["malformed"] == 1


def test_avro_needs_no_schema_for_messages_that_spark_writes(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic = kafka.topic("avro")
    rows_of = spark.createDataFrame(
        [(1, 2.5, at(1)), (2, None, at(2))], "k INT, w DOUBLE, t STRING"
    )
    record = functions.struct("k", "w", functions.col("t").cast("timestamp_ntz").alias("ts"))
    rows_of.select(to_avro(record).alias("value")).coalesce(1).write.format("kafka").option(
        "kafka.bootstrap.servers", kafka.servers
    ).option("topic", topic).save()
    engine = SparkEngine(spark, checkpoint=tmp_path, partitions=1)
    engine.execute(declared(kafka, "B", topic).replace("'json'", "'avro'"))
    query = engine.query("SELECT k, w FROM B WINDOW 1 HOUR", name="q")
    engine.process_available(until=END)
    assert query.results().select(["k", "w"]).to_pylist() == [
        {"k": 1, "w": 2.5},
        {"k": 2, "w": None},
    ]


def test_tombstones_leave_the_answer_in_a_compacted_topic(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic, out = kafka.topic("a"), kafka.topic("compacted")
    kafka.send(topic, rows("A", range(20)))
    engine = SparkEngine(spark, checkpoint=tmp_path, partitions=2)
    engine.execute(
        declared(kafka, "A", topic)
        + f"CREATE QUERY q AS {COUNTS} EMIT CHANGES "
        + written(kafka, out, ", key = 'k', op = 'tombstone'")
    )
    engine.process_available(until=at(10))
    last = {one.key: one for one in kafka.read(out)}
    reference = muntin.Engine()
    reference.stream("A", COLUMNS["A"], time="ts")
    query = reference.query(COUNTS)
    reference.push("A", rows("A", range(20)))
    reference.advance(at(10))
    assert {one.row["k"]: one.row["n"] for one in last.values() if one.value is not None} == {
        row["k"]: row["n"] for row in query.answer().to_pylist()
    }


def test_an_idle_partition_holds_the_others_back_no_longer_than_declared(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic = kafka.topic("idle", 2)
    engine = SparkEngine(spark, checkpoint=tmp_path, partitions=2)
    engine.execute(declared(kafka, "A", topic, ", idle = '3 seconds'"))
    query = engine.query("SELECT v FROM A WINDOW 1 HOUR", name="q")
    try:
        kafka.send(topic, [{"k": 0, "v": 1, "ts": at(1)}], partition=1)
        kafka.send(topic, [{"k": 0, "v": n, "ts": at(n)} for n in (1, 2, 3)])
        engine.settle()
        assert query.results().column("v").to_pylist() == [1, 1]
        until = time.monotonic() + 60
        while len(query.results()) < 4:
            assert time.monotonic() < until, engine.progress
            time.sleep(0.2)
        kafka.send(topic, [{"k": 0, "v": 9, "ts": at(2)}], partition=1)
        engine.settle()
        assert engine.late("A").column("v").to_pylist() == [9]
    finally:
        engine.stop()
