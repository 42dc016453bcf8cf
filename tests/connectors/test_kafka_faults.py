"""Topics that grow, brokers that fail and messages that expire: nothing is lost or made up."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from muntin.errors import RunError
from muntin.spark import SparkEngine
from tests.connectors.kafka_broker import Kafka, Message
from tests.unit.test_docs import ROOT, blocks_of

pytestmark = [pytest.mark.connectors]

END = "2026-01-01 12:30:00"
HOWTO = ROOT / "docs" / "howto" / "kafka.md"
OUTAGE = float(os.environ.get("MUNTIN_OUTAGE_SECONDS", "10"))
"""How long the broker stays away; the long form of the test has 60."""


def at(second: float) -> str:
    return f"2026-01-01T12:{int(second) // 60:02d}:{second % 60:09.6f}"


def numbers(first: int, count: int) -> list[dict[str, Any]]:
    return [{"v": number, "ts": at(number)} for number in range(first, first + count)]


def script(kafka: Kafka, topic: str, more: str = "", sink: str = "") -> str:
    return (
        f"CREATE STREAM S (v BIGINT, ts TIMESTAMP) WITH (format = 'kafka', "
        f"servers = '{kafka.servers}', topic = '{topic}', value = 'json', time = 'ts'{more});"
        f"CREATE QUERY q AS SELECT v FROM S WINDOW 1 HOUR {sink};"
    )


def engine_of(spark: SparkSession, checkpoint: Path, text: str, partitions: int = 2) -> SparkEngine:
    engine = SparkEngine(spark, checkpoint=checkpoint, partitions=partitions)
    engine.execute(text)
    return engine


def results(engine: SparkEngine) -> list[int]:
    found: list[int] = engine.results("q").column("v").to_pylist()
    return sorted(found)


def taken(messages: list[Message]) -> list[int]:
    """Return the values of messages that the recipe of the documentation takes."""
    (recipe,) = [block.text for block in blocks_of(HOWTO) if block.runs("python")]
    functions: dict[str, Any] = {}
    exec(recipe.partition("\ndatabase = ")[0], functions)
    database = sqlite3.connect(":memory:")
    functions["prepare"](database)
    database.execute("CREATE TABLE found (v INTEGER)")

    def effect(value: int) -> Callable[[sqlite3.Connection], object]:
        return lambda to: to.execute("INSERT INTO found VALUES (?)", (value,))

    for one in messages:
        functions["take"](database, one.headers["muntin-id"], effect(one.row["v"]))
    return sorted(value for (value,) in database.execute("SELECT v FROM found"))


def test_a_topic_that_gains_partitions_while_the_engine_runs_is_read_completely(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic = kafka.topic("grows")
    kafka.send(topic, numbers(0, 3))
    engine = engine_of(spark, tmp_path, script(kafka, topic))
    try:
        engine.settle()
        kafka.grow(topic, 3)
        kafka.send(topic, numbers(3, 2), partition=2)
        kafka.send(topic, numbers(5, 1), partition=1)
        until = time.monotonic() + 90  # Spark's client looks for new partitions now and then
        while engine.progress is None or engine.progress["muntin"]["streams"]["S"]["rows"] < 6:
            assert time.monotonic() < until, engine.progress
            engine.settle()
            time.sleep(0.2)
        engine.advance(END)
        engine.settle()
        assert results(engine) == [0, 1, 2, 3, 4, 5]
        assert engine.late("S").num_rows == 0
    finally:
        engine.stop()


def test_an_outage_of_the_broker_loses_nothing(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic, out = kafka.topic("outage"), kafka.topic("outage-out")
    sink = f"WITH (sink = 'kafka', servers = '{kafka.servers}', topic = '{out}')"
    engine = engine_of(spark, tmp_path, script(kafka, topic, sink=sink))
    try:
        kafka.send(topic, numbers(0, 3))
        engine.settle()
        kafka.send(topic, numbers(3, 3))  # its batch may be inside the sink now
        kafka.broker.kill()
        time.sleep(OUTAGE)
        kafka.broker.start()
        kafka.send(topic, numbers(6, 3))
        engine.settle(300)
        engine.advance(END)
        engine.settle(300)
    finally:
        engine.stop()
    assert taken(kafka.read(out)) == list(range(9))


def test_expired_messages_are_refused_with_a_remedy_or_left_out(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic = kafka.topic("expires")
    kafka.send(topic, numbers(0, 4))
    first = engine_of(spark, tmp_path, script(kafka, topic))
    first.process_available()
    kafka.send(topic, numbers(4, 4))
    kafka.expire(topic, 6)
    refused = engine_of(spark, tmp_path, script(kafka, topic))
    with pytest.raises(RunError, match=r"gone from Kafka.*Declare the stream with failOnDataLoss"):
        refused.process_available()
    again = engine_of(spark, tmp_path, script(kafka, topic, ", failOnDataLoss = 'false'"))
    again.process_available(until=END)
    assert results(again) == [0, 1, 2, 3, 6, 7]


def test_the_recipe_for_consumers_takes_each_result_of_an_interrupted_batch_once(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic, out = kafka.topic("repeated", 2), kafka.topic("repeated-out", 3)
    sink = f"WITH (sink = 'kafka', servers = '{kafka.servers}', topic = '{out}')"
    fails = True

    def failing(_: DataFrame, __: int) -> None:
        if fails:
            message = "the machine stops here"
            raise OSError(message)

    for partition in (0, 1):
        kafka.send(topic, numbers(10 * partition, 5), partition=partition)
    for attempt in range(3):
        fails = attempt < 2
        engine = engine_of(spark, tmp_path, script(kafka, topic, sink=sink))
        engine.query("SELECT v FROM S WINDOW 1 HOUR", name="z", sink=failing)
        if fails:
            with pytest.raises(RunError, match="the machine stops here"):
                engine.process_available(until=END)
        else:
            engine.process_available(until=END)
    messages = kafka.read(out)
    assert len(messages) > 10, "the batch was written several times"
    by_identity: dict[str, set[bytes | None]] = {}
    for one in messages:
        by_identity.setdefault(one.headers["muntin-id"], set()).add(one.value)
    assert all(len(values) == 1 for values in by_identity.values()), "repeated as they were"
    assert taken(messages) == [*range(5), *range(10, 15)]


def test_the_worked_example_finds_the_orders_without_a_payment(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    (text,) = [block.text for block in blocks_of(HOWTO) if block.file == "unpaid.sql"]
    names = {name: kafka.topic(name, 2) for name in ("orders", "payments", "unpaid")}
    text = text.replace("'broker:9092'", f"'{kafka.servers}'").replace("'dead/", f"'{tmp_path}/")
    for name, topic in names.items():
        text = text.replace(f"topic = '{name}'", f"topic = '{topic}'")
    for number in range(6):
        order = {"id": number, "amount": number + 0.5, "ts": at(10 * number)}
        kafka.send(names["orders"], [order], partition=number % 2)
    paid = {0: 299.0, 1: 320.0, 3: 31.0, 4: 600.0}
    for number, moment in sorted(paid.items(), key=lambda item: item[1]):
        payment = {"order_id": number, "paid": 1.0, "ts": at(moment)}
        kafka.send(names["payments"], [payment, b"no JSON"], partition=number % 2)
    engine = SparkEngine(spark, checkpoint=tmp_path / "state", partitions=2)
    engine.execute(text)
    engine.process_available(until=END)
    found = kafka.read(names["unpaid"])
    late = [number for number in range(6) if paid.get(number, 1e9) >= 10 * number + 300]
    assert sorted(one.row["id"] for one in found) == late == [1, 2, 4, 5]
    (second,) = [one for one in found if one.row["id"] == 2]
    assert second.key == "2"
    assert second.row == {
        "_ts": at(320),
        "id": 2,
        "amount": 2.5,
        "ordered": at(20),
    }
    assert engine.progress is not None
    assert engine.progress["muntin"]["streams"]["Payments"]["malformed"] == 4
    assert spark.read.parquet(f"{tmp_path}/payments").count() == 4
