"""Read streams of messages from Kafka, with Spark's reader.

Spark parses the values. A message that cannot be parsed becomes a row of NULLs with the reason; the
task that packs the rows sets it aside, see :mod:`muntin.spark.malformed`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everyone imports it)
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from muntin.model.formats import SPARK_OPTIONS, names_in
from muntin.model.kafka import (
    READER_OPTIONS,
    KafkaStream,
    client_options,
    listed,
)
from muntin.spark.malformed import DEAD_LETTER

_CORRUPT = "_muntin_corrupt"
_PARSED = "_muntin_parsed"
_RAW = "_muntin_raw_"
"""The beginning of the names of the columns that Spark's reader has."""

_AVRO: Mapping[pa.DataType, object] = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
    pa.timestamp("us", tz="UTC"): {"type": "long", "logicalType": "timestamp-micros"},
}
"""The types that Spark writes as Avro."""


def read_messages(
    spark: SparkSession, kafka: KafkaStream, fitted: Callable[[DataFrame], DataFrame]
) -> DataFrame:
    """Return the rows of a stream of messages, with the columns that describe messages.

    ``fitted`` returns the declared columns of a frame in order, or raises.
    """
    messages = _raw(spark, kafka)
    reasons = [F.when(_raw_column("value").isNull(), "the message has no value")]
    columns: dict[str, Column] = {}
    if len(kafka.payload):
        parsed, reason = _PARSERS[kafka.value](kafka)
        messages = messages.withColumn(_PARSED, parsed)
        reasons += [F.when(~_is_text(), "the value is not UTF-8")] if kafka.value != "avro" else []
        reasons.append(reason)
        there = messages.schema[_PARSED].dataType
        assert isinstance(there, StructType), "values are records"
        columns |= {name: F.col(_PARSED)[name].alias(name) for name in there.names}
    for name in kafka.metadata:
        columns[name] = _raw_column(name.lower()[1:]).alias(name)
    texts = {name: _header(name) for name in kafka.headers}
    if kafka.key is not None:
        texts[kafka.key] = _raw_column("key")
    for name, content in texts.items():
        columns[name], reason = _from_text(kafka, name, content)
        reasons.append(reason)
    columns.pop(_CORRUPT, None)
    plain = fitted(messages.select(*columns.values()))  # raises if a column is missing
    reason = F.coalesce(*reasons)
    rows = messages.select(*columns.values(), *_described(kafka, reason))
    kinds = {field.name: field.dataType for field in plain.schema}
    found = {name.casefold(): name for name in columns}
    declared = [
        F.col(f"`{found[name.casefold()]}`").cast(kinds[name]).alias(name)
        for name in kafka.stream.given.names
    ]
    return rows.select(*declared, *(F.col(f"_muntin_{name}") for name in DEAD_LETTER.names))


def _raw(spark: SparkSession, kafka: KafkaStream) -> DataFrame:
    """Return the messages with their columns renamed."""
    allowed = names_in(READER_OPTIONS)
    reader = (
        spark.readStream.format("kafka")
        .options(**client_options(kafka.stream.options))
        .option("subscribe", ",".join(listed(kafka.options["topic"])))
        .option("startingOffsets", "earliest")
        .option("includeHeaders", str(bool(kafka.headers)).lower())
    )
    for name, value in kafka.stream.options:
        if name.lower() in allowed:
            reader = reader.option(allowed[name.lower()], value)
    messages = reader.load()
    renamed = [F.col(name).alias(f"{_RAW}{name}") for name in messages.columns]
    return messages.select(*renamed)


def _raw_column(name: str) -> Column:
    return F.col(f"{_RAW}{name}")


def _text(content: Column) -> Column:
    return content.cast("string")


def _is_text() -> Column:
    return F.is_valid_utf8(_text(_raw_column("value")))


def _described(kafka: KafkaStream, reason: Column) -> list[Column]:
    """Return the columns that describe messages; contents only of messages that are kept."""
    kept = reason.isNotNull() if kafka.dead_letter is not None else F.lit(False)
    found = {name: _raw_column(name) for name in ("topic", "partition", "offset")}
    found |= {name: F.when(kept, _raw_column(name)) for name in ("timestamp", "key", "value")}
    found["reason"] = reason
    return [found[name].alias(f"_muntin_{name}") for name in DEAD_LETTER.names]


# -- values ----------------------------------------------------------------------------------------


def _value_options(kafka: KafkaStream) -> dict[str, str]:
    """Return the options of a stream that are those of the format of its values."""
    known = names_in(SPARK_OPTIONS[kafka.value])
    own = {known[name]: value for name, value in kafka.options.items() if name in known}
    return {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, **own}


def _with_corrupt(kafka: KafkaStream) -> StructType:
    declared = from_arrow_schema(kafka.payload)
    return StructType([*declared.fields, StructField(_CORRUPT, StringType())])


def _is_corrupt() -> Column:
    return F.col(_PARSED).isNull() | F.col(_PARSED)[_CORRUPT].isNotNull()


def _parsed_json(kafka: KafkaStream) -> tuple[Column, Column]:
    """Return the value as a record, and why it is not one."""
    text = _text(_raw_column("value"))
    misfits = [
        F.when(
            F.get_json_object(text, f"$['{name}']").isNotNull() & F.col(_PARSED)[name].isNull(),
            name,
        )
        for name in kafka.payload.names
        if "'" not in name
    ]
    names = F.concat_ws(", ", *misfits) if misfits else F.lit("")
    reason = (
        F.when(F.try_parse_json(text).isNull(), "the value is not JSON")
        .when(names != "", F.concat(F.lit("the value does not fit column "), names))
        .otherwise("the value is not a JSON object with the declared columns")
    )
    parsed = F.from_json(text, _with_corrupt(kafka), _value_options(kafka))
    return parsed, F.when(_is_corrupt(), reason)


def _parsed_csv(kafka: KafkaStream) -> tuple[Column, Column]:
    text = _text(_raw_column("value"))
    schema = ", ".join(
        f"`{field.name}` {field.dataType.simpleString()}" for field in _with_corrupt(kafka).fields
    )
    parsed = F.from_csv(text, F.lit(schema), _value_options(kafka))
    return parsed, F.when(_is_corrupt(), "the value is not a CSV record of the declared columns")


def _parsed_avro(kafka: KafkaStream) -> tuple[Column, Column]:
    schema = kafka.options.get("avroschema") or avro_schema(kafka.payload)
    parsed = from_avro(_raw_column("value"), schema, {"mode": "PERMISSIVE"})
    # Spark returns a record of NULLs for a value that it cannot decode.
    empty = F.col(_PARSED).isNull() | F.forall(
        F.array(*(F.col(_PARSED)[name].isNull() for name in _avro_names(schema))), lambda one: one
    )
    return parsed, F.when(empty, "the value is not Avro of the schema")


def _avro_names(schema: str) -> list[str]:
    return [field["name"] for field in json.loads(schema).get("fields", ())]


def avro_schema(columns: pa.Schema) -> str:
    """Return the Avro schema that Spark writes for columns that may be NULL."""
    fields = [{"name": field.name, "type": [_AVRO[field.type], "null"]} for field in columns]
    return json.dumps({"type": "record", "name": "topLevelRecord", "fields": fields})


_PARSERS = {"json": _parsed_json, "csv": _parsed_csv, "avro": _parsed_avro}


# -- keys and headers ------------------------------------------------------------------------------


def _header(name: str) -> Column:
    """Return the value of the last header of a name."""
    own = F.filter(_raw_column("headers"), lambda header: header["key"] == name)
    return F.try_element_at(own, F.lit(-1))["value"]


def _from_text(kafka: KafkaStream, name: str, content: Column) -> tuple[Column, Column]:
    """Return the text of a key or a header as a column, and why it cannot become one."""
    kind = from_arrow_schema(pa.schema([kafka.stream.given.field(name)])).fields[0].dataType
    if pa.types.is_binary(kafka.stream.given.field(name).type):
        return content.alias(name), F.when(F.lit(False), "")
    column = _text(content).try_cast(kind)
    what = "key" if name == kafka.key else f"header {name}"
    return column.alias(name), F.when(
        content.isNotNull() & column.isNull(),
        f"the {what} cannot become {kind.simpleString().upper()}",
    )
