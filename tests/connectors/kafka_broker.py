"""A Kafka broker on this machine, in KRaft mode, and clients for the tests.

The clients are Kafka's own, in the Java of the Spark session.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
_STRING = "org.apache.kafka.common.serialization.StringSerializer"
_BYTES = "org.apache.kafka.common.serialization.ByteArraySerializer"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Broker:
    """A broker with its data in a folder; it can be killed and started again."""

    folder: Path
    jars: Path
    port: int = field(default_factory=free_port)
    _controller: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def format(self) -> None:
        """Create the folder and the configuration."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller}",
            "listeners": f"PLAINTEXT://{self.servers},CONTROLLER://127.0.0.1:{self._controller}",
            "advertised.listeners": f"PLAINTEXT://{self.servers}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.folder / "logs"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
        }
        lines = "".join(f"{name}={value}\n" for name, value in settings.items())
        (self.folder / "server.properties").write_text(lines, encoding="utf-8")
        self._java("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c").wait(120)

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._process = self._java("kafka.Kafka")
        until = time.monotonic() + 120
        while not self._answers():
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < until, self.log()
            time.sleep(0.1)

    def kill(self) -> None:
        """Kill it, as a crash of its machine does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            self._process = None

    def log(self) -> str:
        return (self.folder / "out").read_text(encoding="utf-8")[-3000:]

    def _java(self, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{self.jars}/*", main]
        with (self.folder / "out").open("ab") as out:
            return subprocess.Popen(
                [*command, *arguments, str(self.folder / "server.properties")],
                stdout=out,
                stderr=out,
            )

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1):
                return True
        except OSError:
            return False


@dataclass(frozen=True)
class Message:
    """A message as a consumer gets it."""

    partition: int
    offset: int
    key: str | None
    value: bytes | None
    headers: Mapping[str, str]

    @property
    def row(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.value or b"null")
        return found


class Kafka:
    """Topics of a broker, written and read with the clients of the Spark session."""

    def __init__(self, spark: SparkSession, broker: Broker) -> None:
        self.spark, self.broker = spark, broker
        jvm: Any = spark.sparkContext._jvm
        self._java, self._kafka = jvm.java, jvm.org.apache.kafka
        options = self._properties()
        self._admin = self._kafka.clients.admin.Admin.create(options)
        options.put("key.serializer", _STRING)
        options.put("value.serializer", _BYTES)
        options.put("linger.ms", "5")
        self._producer = self._kafka.clients.producer.KafkaProducer(options)

    @property
    def servers(self) -> str:
        return self.broker.servers

    def close(self) -> None:
        self._producer.close()
        self._admin.close()

    def _properties(self) -> Any:
        properties = self._java.util.Properties()
        properties.put("bootstrap.servers", self.broker.servers)
        return properties

    def topic(self, name: str, partitions: int = 1) -> str:
        """Create a topic; its name begins with ``name``."""
        full = f"{name}-{uuid.uuid4().hex[:8]}"
        topics = self._java.util.ArrayList()
        topics.add(self._kafka.clients.admin.NewTopic(full, partitions, 1))
        self._admin.createTopics(topics).all().get()
        return full

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions."""
        wanted = self._java.util.HashMap()
        wanted.put(topic, self._kafka.clients.admin.NewPartitions.increaseTo(partitions))
        self._admin.createPartitions(wanted).all().get()

    def expire(self, topic: str, before: int, partition: int = 0) -> None:
        """Delete the messages of a partition before an offset, as retention does."""
        wanted = self._java.util.HashMap()
        wanted.put(
            self._kafka.common.TopicPartition(topic, partition),
            self._kafka.clients.admin.RecordsToDelete.beforeOffset(before),
        )
        self._admin.deleteRecords(wanted).all().get()

    def send(
        self,
        topic: str,
        values: Sequence[object],
        *,
        partition: int = 0,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send messages: bytes as they are, None as a tombstone, anything else as JSON."""
        for value in values:
            raw = value if isinstance(value, bytes | None) else json.dumps(value).encode()
            record = self._kafka.clients.producer.ProducerRecord(topic, partition, key, raw)
            for name, text in (headers or {}).items():
                record.headers().add(name, text.encode())
            self._producer.send(record)
        self._producer.flush()

    def read(self, topic: str) -> list[Message]:
        """Return all messages of a topic, by partition and offset."""
        rows = (
            self.spark.read.format("kafka")
            .option("kafka.bootstrap.servers", self.servers)
            .option("subscribe", topic)
            .option("includeHeaders", "true")
            .load()
            .orderBy("partition", "offset")
            .collect()
        )
        return [
            Message(
                row["partition"],
                row["offset"],
                None if row["key"] is None else bytes(row["key"]).decode(),
                None if row["value"] is None else bytes(row["value"]),
                {one["key"]: bytes(one["value"]).decode() for one in row["headers"] or ()},
            )
            for row in rows
        ]
