"""Write results to a topic of Kafka: at least once, in an order that consumers can repeat.

A batch that is written again after a failure appends its messages again. Each message has a header
that identifies it: the query, its start, the batch, and the place of the result in the batch. The
places follow from the results alone, not from the order in which partitions report them: changes
that cancel out are left out, and the others are sorted by time, removals first, then by key and
value. So a repeated batch has the same messages with the same identities, and a consumer can drop
those that it has had (docs/howto/kafka.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everyone imports it)
from pyspark.sql.avro.functions import to_avro
from pyspark.sql.types import StructType, TimestampNTZType, TimestampType

from muntin.errors import SettingError
from muntin.model.catalog import Options, find_column
from muntin.model.kafka import IDENTITY, KAFKA, OPERATION, client_options, listed
from muntin.plan.query import Emit, Query
from muntin.spark.batch_results import BatchResults
from muntin.spark.sink import Sink
from muntin.spark.sink_ownership import SinkOwner

_TEXT_OPTIONS = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "timeZone": "UTC",
}
"""Times with microseconds; Spark's default cuts them to milliseconds."""
_SHORT = 12


@dataclass
class KafkaSink(Sink):
    """Appends the results of a query to a topic."""

    spark: SparkSession
    query: Query
    options: Mapping[str, str]
    _start: str = field(default="", compare=False)
    """The run and the incarnation of the query: batches count from 0 in each."""

    @property
    def topic(self) -> str:
        """Return the topic."""
        return self.options["topic"].strip()

    @property
    def place_name(self) -> str:
        """Return the servers and the topic."""
        return f"{KAFKA} {','.join(listed(self.options['servers']))} {self.topic}"

    def claim(self, owner: SinkOwner, *, replace: bool) -> None:
        """Note the start of the query; what the topic has stays there."""
        super().claim(owner, replace=replace)
        self._start = f"{owner.run[:_SHORT]}-{owner.incarnation}"

    def write(self, results: BatchResults, batch: int) -> None:
        """Append the results of a batch; return when the brokers have acknowledged all of them."""
        if not len(results):
            return
        messages = self._messages(results.frame(self.spark), batch)
        _append(messages, tuple(self.options.items()), self.topic)

    def check(self) -> None:
        """Raise if Spark cannot write the columns of the query as the format of the values."""
        empty = self.spark.createDataFrame(self.query.output_schema.empty_table())
        try:
            _ = self._messages(empty, 0).schema
        except Exception as error:
            raise SettingError(
                f"the results of query {self.query.name} cannot be written as "
                f"{self._value}: {str(error).splitlines()[0]}",
                hint="Cast the column, or use value = 'json'; avro needs the package spark-avro",
                option="value",
            ) from error

    @property
    def _value(self) -> str:
        return self.options.get("value", "json").lower()

    @property
    def _op(self) -> str:
        return self.options.get("op", "header").lower()

    def _messages(self, results: DataFrame, batch: int) -> DataFrame:
        """Return the messages of a batch in their order, in one partition."""
        results = results.select(*map(_zoneless, self.query.output_schema))
        encoded = results.select(
            F.col("_ts"),
            F.col("_op"),
            self._key(results.schema).alias("key"),
            self._encoded(results.schema).alias("value"),
        ).coalesce(1)
        ordered = _net(encoded) if self.query.emit is Emit.CHANGES else encoded
        ordered = ordered.coalesce(1).sortWithinPartitions(
            "_ts", F.col("_op").desc(), "key", "value"
        )
        identity = F.concat(
            F.lit(f"{quote(self.query.name, safe='')}@{self._start}/{batch}/"),
            F.monotonically_increasing_id().cast("string"),  # from 0 in the only partition
        )
        headers = F.array(_header(IDENTITY, identity), _header(OPERATION, F.col("_op")))
        removed = F.lit(self._op == "tombstone") & (F.col("_op") == "-")
        value = F.when(~removed, F.col("value"))
        return ordered.select("key", value.alias("value"), headers.alias("headers"))

    def _key(self, schema: StructType) -> Column:
        """Return the key: the text of one column, or a JSON object of several."""
        names = [
            find_column(self.query.output_schema, name) or name
            for name in listed(self.options.get("key", ""))
        ]
        if not names:
            return F.lit(None).cast("binary")
        if len(names) == 1:
            text = _as_text(F.col(_quoted(names[0])), schema, names[0])
        else:
            text = F.to_json(F.struct(*map(_quoted, names)), _TEXT_OPTIONS)
        return text.cast("binary")

    def _encoded(self, schema: StructType) -> Column:
        """Return the value: all columns, the sign only with ``op = 'column'``."""
        names = [name for name in schema.names if name != "_op" or self._op == "column"]
        record = F.struct(*map(_quoted, names))
        if self._value == "avro":
            return to_avro(record)
        if self._value == "csv":
            return F.to_csv(record, _TEXT_OPTIONS).cast("binary")
        return F.to_json(record, _TEXT_OPTIONS).cast("binary")


def append_dead_letters(
    spark: SparkSession, options: Options, topic: str, letters: pa.Table
) -> None:
    """Append messages that cannot be read to a topic, as they came, with the reason."""
    frame = spark.createDataFrame(letters).coalesce(1)
    place = [F.col(name).cast("string") for name in ("topic", "partition", "offset")]
    headers = F.array(
        _header(IDENTITY, F.concat_ws("/", *place)), _header("muntin-reason", F.col("reason"))
    )
    _append(frame.select("key", "value", headers.alias("headers")), options, topic)


def _append(messages: DataFrame, options: Options, topic: str) -> None:
    writer = messages.write.format(KAFKA).mode("append").options(**client_options(options))
    writer.option("topic", topic).option("includeHeaders", "true").save()


def _net(changes: DataFrame) -> DataFrame:
    """Return changes without those of an instant that cancel out."""
    sign = F.when(F.col("_op") == "+", 1).otherwise(-1)
    net = changes.groupBy("_ts", "key", "value").agg(F.sum(sign).alias("net"))
    times = F.array_repeat(F.when(F.col("net") > 0, "+").otherwise("-"), F.abs("net").cast("int"))
    return net.select("_ts", F.explode(times).alias("_op"), "key", "value")


def _zoneless(field: pa.Field) -> Column:
    """Return a column as it was declared: Spark takes times without a zone for instants."""
    column = F.col(_quoted(field.name))
    zoned = not pa.types.is_timestamp(field.type) or field.type.tz is not None
    return column if zoned else column.cast("timestamp_ntz").alias(field.name)


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value"))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _as_text(column: Column, schema: StructType, name: str) -> Column:
    kind = schema[name].dataType
    if isinstance(kind, TimestampNTZType | TimestampType):
        return F.date_format(column, _TEXT_OPTIONS["timestampNTZFormat"])
    return F.to_json(F.struct(column), _TEXT_OPTIONS) if _is_nested(kind) else column.cast("string")


def _is_nested(kind: object) -> bool:
    return hasattr(kind, "elementType") or hasattr(kind, "keyType") or hasattr(kind, "fields")
