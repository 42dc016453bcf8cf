"""Check the options of Kafka's streams and sinks before anything runs; no broker is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from muntin.errors import InputError, SettingError
from muntin.model.catalog import Options, Stream, find_column
from muntin.model.formats import SPARK_OPTIONS, STREAM_NAMES, did_you_mean, names_in
from muntin.model.kafka import (
    METADATA,
    OPS,
    PREFIX,
    READER_OPTIONS,
    REFUSED,
    REPLACED,
    SINK_OPTIONS,
    STREAM_OPTIONS,
    VALUES,
    KafkaStream,
    listed,
)
from muntin.plan.query import Emit, Query

_SERVER = re.compile(r"(?:[^\s,:/]+|\[[0-9a-fA-F:.]+\]):\d{1,5}")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_OWN_MODES = {"mode", "columnnameofcorruptrecord", "avroschema", "avroschemaurl"}
"""Options of value formats that Muntin sets itself."""
_WHOLE = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "minPartitions", "maxRecordsPerPartition")

Found = tuple[str, str, str]
"""What is wrong, what to do about it, and the option."""


def kafka_stream_mistakes(stream: Stream) -> Iterator[InputError]:
    """Yield the mistakes of a stream that reads Kafka."""
    given = KafkaStream.of(stream)
    assert given is not None, "it reads Kafka"
    what = f"stream {stream.name}"
    for mistakes in (
        _option_mistakes(what, stream.options, given.value),
        _place_mistakes(what, given.options, required=("servers", "topic", "value")),
        _number_mistakes(what, given.options),
        _idle_mistakes(what, given),
        _column_mistakes(given),
        _schema_mistakes(given),
    ):
        for fact, hint, option in mistakes:
            yield InputError(fact, hint=hint, option=option)


def needs_spark(stream: Stream) -> InputError | None:
    """Return the error for a stream that reads Kafka where there is no Spark; else None."""
    if KafkaStream.of(stream) is None:
        return None
    return InputError(
        f"stream {stream.name} reads Kafka, which needs Spark",
        hint="Run the script with muntin run or SparkEngine; to push rows in this process, "
        "declare the stream without a format",
        option="format",
    )


def kafka_sink_mistakes(query: Query, options: Mapping[str, str]) -> Iterator[SettingError]:
    """Yield the mistakes of a sink that writes to Kafka; names of options are in lower case."""
    what = f"the kafka sink of query {query.name}"
    for name in options:
        if name in REPLACED or name in REFUSED:
            fact, hint, option = _refused(what, name)
            yield SettingError(fact, hint=hint, option=option)
    for fact, hint, option in _place_mistakes(what, options, required=("servers", "topic")):
        yield SettingError(fact, hint=hint, option=option)
    if "path" in options:
        yield SettingError(
            f"{what} has a path, which has no effect", hint="Leave path out", option="path"
        )
    if len(listed(options.get("topic", ""))) > 1:
        yield SettingError(f"{what} has several topics", hint="Give it one", option="topic")
    yield from _sink_column_mistakes(what, query, options)


def misplaced_options(query: Query, options: Iterable[str]) -> Iterator[SettingError]:
    """Yield a mistake for each option that only a sink that writes to Kafka has."""
    for name in options:
        if name in SINK_OPTIONS or name.startswith(PREFIX):
            yield SettingError(
                f"query {query.name} has the option {name!r}, which only sink = 'kafka' has",
                hint="Leave it out, or add sink = 'kafka'",
                option=name,
            )


def _option_mistakes(what: str, options: Options, value: str) -> Iterator[Found]:
    own = [
        name
        for name in names_in(SPARK_OPTIONS.get(value, "") if value in VALUES else "").values()
        if name.lower() not in _OWN_MODES
    ]
    known = {
        **STREAM_NAMES,
        **names_in(STREAM_OPTIONS, READER_OPTIONS, " ".join(own)),
    }
    for name, _ in options:
        lower = name.lower()
        if lower in REPLACED or lower in REFUSED:
            yield _refused(what, name)
        elif lower not in known and not lower.startswith(PREFIX):
            hint = (
                did_you_mean(name, known.values())
                or f"It has {', '.join(sorted(names_in(STREAM_OPTIONS).values()))}, the options of "
                "Spark's reader, and those of Kafka's clients with the prefix kafka."
            )
            yield f"{what} of format 'kafka' has no option {name!r}", hint, name


def _refused(what: str, name: str) -> Found:
    instead = REPLACED.get(name.lower())
    fact = f"{what} has the option {name!r}, which cannot be set"
    hint = f"Use {instead} = '...' instead" if instead else "Leave it out"
    return fact, hint, name


def _place_mistakes(
    what: str, options: Mapping[str, str], required: Iterable[str]
) -> Iterator[Found]:
    for name in required:
        if not options.get(name, "").strip():
            option = name if name in options else "format" if "format" in options else "sink"
            yield f"{what} has no {name}", f"Add {name} = '...' to its WITH", option
    for server in listed(options.get("servers", "")):
        if not _SERVER.fullmatch(server):
            yield (
                f"the servers of {what} cannot be {server!r}",
                "Give host:port, several of them separated by commas",
                "servers",
            )
    for topic in listed(options.get("topic", "")):
        if not _TOPIC.fullmatch(topic):
            yield (
                f"the topic of {what} cannot be {topic!r}",
                "Names of topics have letters, digits, '.', '_' and '-'",
                "topic",
            )
    value = options.get("value", "json")
    if value.strip() and value.lower() not in VALUES:
        hint = did_you_mean(value, VALUES) or f"It is one of {', '.join(VALUES)}"
        yield f"the value of {what} cannot be {value!r}", hint, "value"


def _number_mistakes(what: str, options: Mapping[str, str]) -> Iterator[Found]:
    for name in _WHOLE:
        text = options.get(name.lower(), "1")
        if not text.isdecimal() or int(text) < 1:
            yield f"the {name} of {what} cannot be {text!r}", "It is a whole number from 1", name
    flag = options.get("failondataloss", "true")
    if flag.lower() not in {"true", "false"}:
        yield (
            f"the failOnDataLoss of {what} cannot be {flag!r}",
            "It is true or false",
            "failOnDataLoss",
        )
    offsets = options.get("startingoffsets", "earliest")
    if offsets.lower() not in {"earliest", "latest"} and not _is_object(offsets):
        yield (
            f"the startingOffsets of {what} cannot be {offsets!r}",
            'Give earliest, latest or a JSON object such as {"orders": {"0": 23, "1": -2}}',
            "startingOffsets",
        )


def _idle_mistakes(what: str, given: KafkaStream) -> Iterator[Found]:
    try:
        silence = given.idle
    except InputError as error:
        yield f"the idle of {what} is no interval: {error.fact}", error.hint, "idle"
        return
    if silence is not None and silence <= 0:
        yield f"the idle of {what} is not positive", "Give an interval such as '1 minute'", "idle"


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _column_mistakes(given: KafkaStream) -> Iterator[Found]:
    """Yield the mistakes in the columns that are filled from something else than the value."""
    stream = given.stream
    for option in ("key", "headers"):
        for name in listed(given.options.get(option, "")):
            column = find_column(stream.given, name)
            if column is None:
                yield (
                    (
                        f"the {option} of stream {stream.name} names the column {name!r}, "
                        "which it does not have"
                    ),
                    did_you_mean(name, stream.given.names) or "Declare the column",
                    option,
                )
            elif not _from_text(stream.given.field(column).type):
                yield (
                    (
                        f"the column {column} of stream {stream.name} has type "
                        f"{stream.given.field(column).type}, which the {option} of a message "
                        "cannot become"
                    ),
                    "Declare it as VARCHAR, BLOB, a number, a date or a time",
                    option,
                )
    if len(listed(given.options.get("key", ""))) > 1:
        yield f"stream {stream.name} has several key columns", "Name one", "key"
    for name in given.metadata:
        declared, wanted = METADATA[name.lower()]
        if stream.given.field(name).type != wanted:
            yield (
                (
                    f"the column {name} of stream {stream.name} has type "
                    f"{stream.given.field(name).type}"
                ),
                f"Declare it as {declared}: it describes the message",
                "format",
            )


def _from_text(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind))


def _schema_mistakes(given: KafkaStream) -> Iterator[Found]:
    """Yield the mistakes in what values of the format can have."""
    name = given.stream.name
    schema = given.options.get("avroschema")
    if schema is not None and given.value != "avro":
        yield (
            f"stream {name} has an avroSchema, but its values are {given.value}",
            "Leave it out, or use value = 'avro'",
            "avroSchema",
        )
    elif schema is not None and not _is_object(schema):
        yield f"the avroSchema of stream {name} is not a JSON object", "Correct it", "avroSchema"
    for field in given.payload:
        nested = pa.types.is_nested(field.type)
        if given.value == "csv" and nested:
            yield (
                (
                    f"the column {field.name} of stream {name} has type {field.type}, "
                    "which csv does not have"
                ),
                "Use value = 'json'",
                "value",
            )
        if given.value == "avro" and schema is None and (nested or pa.types.is_decimal(field.type)):
            yield (
                (
                    f"the column {field.name} of stream {name} has type {field.type}, "
                    "for which the schema of the messages is needed"
                ),
                "Add avroSchema = '...', the JSON text of the schema",
                "value",
            )


def _sink_column_mistakes(
    what: str, query: Query, options: Mapping[str, str]
) -> Iterator[SettingError]:
    columns = [name for name in query.output_schema.names if name not in {"_op", "_ts"}]
    keys = listed(options.get("key", ""))
    for name in keys:
        if name.casefold() not in map(str.casefold, columns):
            yield SettingError(
                f"the key of {what} names the column {name!r}, which the query does not have",
                hint=did_you_mean(name, columns) or f"It has {', '.join(columns)}",
                option="key",
            )
    op = options.get("op", "header").lower()
    if op not in OPS:
        hint = did_you_mean(op, OPS) or f"It is one of {', '.join(OPS)}"
        yield SettingError(f"the op of {what} cannot be {op!r}", hint=hint, option="op")
    if op == "tombstone" and not keys:
        yield SettingError(
            f"{what} has op = 'tombstone' but no key",
            hint="Add key = '...': a tombstone deletes the value of a key",
            option="op",
        )
    if op == "tombstone" and query.emit is not Emit.CHANGES:
        yield SettingError(
            f"{what} has op = 'tombstone', but the query never removes a result",
            hint="Add EMIT CHANGES to the query, or leave op out",
            option="op",
        )
    for field in query.output_schema:
        if options.get("value", "json").lower() == "csv" and pa.types.is_nested(field.type):
            yield SettingError(
                f"column {field.name} of type {field.type} cannot be written as csv",
                hint="Cast it, or use value = 'json'",
                option="value",
            )
