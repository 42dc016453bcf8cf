"""The options of Kafka's streams and sinks, and the columns that describe a message.

Options whose names begin with ``kafka.`` go to Kafka's clients; option names ignore case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from muntin.model.catalog import Options, Stream, find_column
from muntin.model.clock import parse_interval

KAFKA = "kafka"

PREFIX = "kafka."
"""The beginning of the names of options that go to Kafka's clients."""

VALUES = ("json", "csv", "avro")
"""The formats of the values of messages."""

READER_OPTIONS = """
    startingOffsets startingTimestamp startingOffsetsByTimestamp startingOffsetsByTimestampStrategy
    failOnDataLoss maxOffsetsPerTrigger minOffsetsPerTrigger maxTriggerDelay maxRecordsPerPartition
    minPartitions groupIdPrefix kafkaConsumer.pollTimeoutMs fetchOffset.numRetries
    fetchOffset.retryIntervalMs
"""
"""The options of Spark's reader that streams may have."""

STREAM_OPTIONS = "servers topic value key headers idle dead_letter avroSchema"
"""The options of streams that Muntin reads."""

SINK_OPTIONS = ("servers", "topic", "key", "op", "value")
"""The options of sinks, apart from those that begin with ``kafka.``."""

OPS = ("header", "column", "tombstone")
"""Where a sink shows whether a row is added or removed."""

REPLACED = {
    "kafka.bootstrap.servers": "servers",
    "subscribe": "topic",
    "subscribepattern": "topic",
    "assign": "topic",
    "kafka.key.deserializer": "key",
    "kafka.value.deserializer": "value",
    "kafka.key.serializer": "key",
    "kafka.value.serializer": "value",
    "kafka.auto.offset.reset": "startingOffsets",
}
"""Options of Spark or Kafka, in lower case, for which another one has to be given."""

REFUSED = ("kafka.enable.auto.commit", "kafka.interceptor.classes")
"""Options of Kafka that Spark refuses, in lower case."""

METADATA: Mapping[str, tuple[str, pa.DataType]] = {
    "_topic": ("VARCHAR", pa.string()),
    "_partition": ("INTEGER", pa.int32()),
    "_offset": ("BIGINT", pa.int64()),
    "_timestamp": ("TIMESTAMP", pa.timestamp("us")),
}
"""The columns of a stream that describe the message a row came with, and their types."""

IDENTITY = "muntin-id"
"""The header of a message that identifies a result: query@start/batch/sequence."""

OPERATION = "muntin-op"
"""The header of a message that has the sign of a result, + or -."""

_TOPIC = "topic:"


def listed(text: str) -> list[str]:
    """Return the names in a text, which commas separate.

    >>> listed(" a, b ,")
    ['a', 'b']
    """
    return [name for name in map(str.strip, text.split(",")) if name]


@dataclass(frozen=True)
class KafkaStream:
    """A stream of messages, as its options declare it.

    ``key`` is the column that the key of a message fills, ``headers`` are those that headers of
    their names fill. ``payload`` are the columns that the value of a message has.
    """

    stream: Stream
    options: Mapping[str, str]

    @classmethod
    def of(cls, stream: Stream) -> KafkaStream | None:
        """Return what the options of a stream declare; None if it does not read Kafka."""
        options = {name.lower(): value for name, value in stream.options}
        return cls(stream, options) if options.get("format", "").lower() == KAFKA else None

    @property
    def value(self) -> str:
        """Return the format of values, in lower case."""
        return self.options.get("value", "").lower()

    @property
    def key(self) -> str | None:
        """Return the column that keys fill."""
        return self._column(self.options.get("key", ""))

    @property
    def headers(self) -> list[str]:
        """Return the columns that headers fill."""
        found = (self._column(name) for name in listed(self.options.get("headers", "")))
        return [name for name in found if name is not None]

    @property
    def metadata(self) -> list[str]:
        """Return the columns that describe messages."""
        return [name for name in self.stream.given.names if name.lower() in METADATA]

    @property
    def payload(self) -> pa.Schema:
        """Return the columns that values have."""
        others = {self.key, *self.headers, *self.metadata}
        return pa.schema([field for field in self.stream.given if field.name not in others])

    @property
    def idle(self) -> int | None:
        """Return after how many microseconds of silence a partition is idle; None if never."""
        text = self.options.get("idle")
        return None if text is None else parse_interval(text)

    @property
    def dead_letter(self) -> DeadLetterTarget | None:
        """Return where messages that cannot be read are kept, if they are."""
        target = self.options.get("dead_letter")
        return None if target is None else DeadLetterTarget.of(target)

    def _column(self, name: str) -> str | None:
        return find_column(self.stream.given, name)


@dataclass(frozen=True)
class DeadLetterTarget:
    """A folder or a topic for messages that cannot be read; the other one is None."""

    folder: str | None = None
    topic: str | None = None

    @classmethod
    def of(cls, text: str) -> DeadLetterTarget:
        """Return the target that an option names.

        >>> DeadLetterTarget.of("topic:broken").topic, DeadLetterTarget.of("dead/orders").folder
        ('broken', 'dead/orders')
        """
        if text.lower().startswith(_TOPIC):
            return cls(topic=text[len(_TOPIC) :].strip())
        return cls(folder=text)


def client_options(options: Options) -> dict[str, str]:
    """Return the options that go to Kafka's clients, with the servers."""
    found = {}
    for name, value in options:
        if name.lower() == "servers":
            found["kafka.bootstrap.servers"] = value
        elif name.lower().startswith(PREFIX):
            found[name] = value
    return found


class SinkOptionNames(tuple[str, ...]):
    """Names of options; it contains all that begin with ``kafka.``, too."""

    __slots__ = ()

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (
            isinstance(name, str) and name.lower().startswith(PREFIX)
        )
