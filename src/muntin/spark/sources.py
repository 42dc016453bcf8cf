"""Read streams with Spark: ``CREATE STREAM ... WITH (format = ..., path = ...)``.

Exactly once needs sources that Spark can read again. A socket cannot be, so it is refused wherever
rows would have to be repeated.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark import __version__ as spark_version
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from muntin.engine.column_conversion import convert
from muntin.engine.declaration_checks import without_source
from muntin.engine.input_rows import UNFIT
from muntin.errors import InputError
from muntin.model.catalog import Stream, find_column
from muntin.model.kafka import KAFKA, KafkaStream
from muntin.spark.failures import plain
from muntin.spark.kafka_source import read_messages

_OURS = {"format", "path", "time", "slack", "rate", "distinct", "reader"}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
"""The beginning of a path on another file system."""
_FILES = "path STRING, modificationTime TIMESTAMP, length LONG, content BINARY"
_SELF_DESCRIBING = {"parquet", "orc", "avro", "delta"}
_FIXED = {"rate", "rate-micro-batch", "socket"}
"""Sources with fixed columns, which take no schema."""
_DEFAULTS = {
    # Otherwise Spark reads bad values as NULL, and csv columns by position, whatever the header is.
    "csv": {"mode": "FAILFAST", "enforceSchema": "false"},
    "json": {"mode": "FAILFAST"},
    # Otherwise Spark deals rows out to several tasks, and rows of equal times lose their order.
    "rate": {"numPartitions": "1"},
    "rate-micro-batch": {"numPartitions": "1"},
    "socket": {"numPartitions": "1"},
}
"""Default options, which users may override."""


@dataclass(frozen=True)
class SparkSource:
    """A stream as Spark reads it: rows, or bytes of parquet files that packing tasks decode.

    With ``messages``, rows have columns that describe the message they came with.

    Arrow decodes a parquet file and keeps it columnar; Spark's reader turns it into rows, and into
    columns again for Python, which takes several times as long.
    """

    frame: DataFrame
    files: bool = False
    messages: bool = False

    def passes(self) -> bool:
        """Return whether rows cannot be read again, like those of a socket."""
        plan = self.frame._jdf.queryExecution().analyzed()  # noqa: SLF001 (no public way)
        leaves = plan.collectLeaves()
        return any(leaves.apply(place).toString() == "socket" for place in range(leaves.size()))


def check_repeatable(sources: Mapping[str, SparkSource], *, begun: bool, live: bool) -> None:
    """Raise if a socket would have to be read to an end, or again.

    ``begun`` is whether the checkpoint has batches.
    """
    for name in [
        name for name, source in sources.items() if (begun or not live) and source.passes()
    ]:
        if not live:
            raise InputError(
                f"stream {name} reads a socket, which has no end",
                hint="Run it with start(), on the command line without --once, and stop it when "
                "you have seen enough",
            )
        raise InputError(
            f"stream {name} reads a socket, which cannot be read again from the checkpoint on",
            hint="Begin a new checkpoint; to resume after a stop, let a program write the lines "
            "into files and read those",
        )


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return a Spark schema in Arrow's types; zoned times are instants in any session's zone."""
    return to_arrow_schema(schema, timezone="UTC")


def read_stream(spark: SparkSession, stream: Stream) -> SparkSource:
    """Return the source of a declared stream."""
    options = {name.lower(): value for name, value in stream.options}
    kind = options.get("format")
    if kind is not None and kind.lower() == "parquet" and options.get("reader", "arrow") == "arrow":
        return _read_files(spark, stream, options.get("path"))
    kafka = KafkaStream.of(stream)
    if kafka is not None:
        return SparkSource(_read_messages(spark, kafka), messages=True)
    return SparkSource(_read_rows(spark, stream, options, kind))


def _read_files(spark: SparkSession, stream: Stream, path: str | None) -> SparkSource:
    folder = _checked_path(stream, "parquet", path)
    if not _fits_a_file(folder, stream):
        with suppress(AnalysisException):  # there may be no file yet
            fitted(spark.read.parquet(folder), stream)
    reader = spark.readStream.format("binaryFile").schema(_FILES)
    for name, value in stream.options:
        if name.lower() not in _OURS:
            reader = reader.option(name, value)
    return SparkSource(reader.load(folder).select("path", "content"), files=True)


def _fits_a_file(folder: str, stream: Stream) -> bool:
    """Return whether a local file of a folder has the declared columns.

    Spark finds that out, too, but with a job, which takes longer than all else in a start. Whatever
    else is there, such as a file that does not fit, is left to Spark.
    """
    try:
        with os.scandir(folder) as entries:
            visible = (one.path for one in entries if one.name[0] not in "._" and one.is_file())
            path = next(visible, None)
        found = None if path is None else pq.read_schema(path)
    except (OSError, pa.ArrowException):
        return False
    return found is not None and all(
        (name := find_column(found, field.name)) is not None
        and _fits(found.field(name).type, field.type)
        for field in stream.given
    )


def decode_file(content: bytes | pa.Buffer, path: str, stream: Stream) -> pa.Table:
    """Return the rows of a parquet file with the declared columns of the stream."""
    where = f"file {path!r} of stream {stream.name}"
    try:
        # INT96 would become nanoseconds, which years like 1600 and 9999 overflow silently.
        file = pq.ParquetFile(pa.BufferReader(content), coerce_int96_timestamp_unit="us")
        names = {field.name: find_column(file.schema_arrow, field.name) for field in stream.given}
        missing = [name for name, found in names.items() if found is None]
        if missing:
            raise InputError(
                f"{where} has no column {', '.join(missing)}, "
                f"it has {', '.join(file.schema_arrow.names)}",
                hint="Replace the file",
            )
        table = file.read(columns=[found for found in names.values() if found is not None])
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{where} cannot be read: {_first_line(error)}", hint="Replace the file"
        ) from error
    return pa.table(
        [_cast(table.column(names[field.name]), field, where) for field in stream.given],
        schema=stream.given,
    )


def _cast(column: pa.ChunkedArray, field: pa.Field, where: str) -> pa.ChunkedArray:
    try:
        return convert(column, field.type)
    except UNFIT as error:
        raise InputError(
            f"column {field.name} of {where} is {column.type} and cannot become {field.type}: "
            f"{_first_line(error)}",
            hint="Replace the file",
        ) from error


def _read_rows(
    spark: SparkSession, stream: Stream, options: dict[str, str], kind: str | None
) -> DataFrame:
    if kind is None:
        raise without_source(stream)
    reader = spark.readStream.format(kind).options(**_DEFAULTS.get(kind.lower(), {}))
    for name, value in stream.options:
        if name.lower() not in _OURS:
            reader = reader.option(name, value)
    if kind.lower() not in _FIXED:
        options["path"] = _checked_path(stream, kind, options.get("path"))
        reader = reader.schema(_file_schema(spark, stream, kind, options["path"]))
    try:
        frame = reader.load(options["path"]) if "path" in options else reader.load()
    except (PySparkException, ValueError, Py4JJavaError) as error:
        raise InputError(
            f"stream {stream.name} cannot be read as {kind!r}: {_first_line(error)}",
            hint="Check format, path and options",
        ) from error
    return fitted(frame, stream)


def _read_messages(spark: SparkSession, kafka: KafkaStream) -> DataFrame:
    stream = kafka.stream
    try:
        return read_messages(spark, kafka, lambda frame: fitted(frame, stream))
    except (PySparkException, ValueError, Py4JJavaError, TypeError) as error:
        raise InputError(
            f"stream {stream.name} cannot be read as {KAFKA!r}: {_first_line(error)}",
            hint=_packages(kafka.value),
        ) from error


def _packages(value: str) -> str:
    """Return the hint for a stream of messages that cannot be made."""
    names = ["spark-sql-kafka-0-10", *(["spark-avro"] if value == "avro" else [])]
    packages = ",".join(f"org.apache.spark:{name}_2.13:{spark_version}" for name in names)
    return (
        f"Check its options; it needs {packages} on Spark's class path, by spark.jars.packages or "
        "PYSPARK_SUBMIT_ARGS"
    )


def _file_schema(spark: SparkSession, stream: Stream, kind: str, path: str) -> StructType:
    """Return the schema of self-describing files; otherwise the declared one."""
    declared = from_arrow_schema(stream.given)
    if kind.lower() not in _SELF_DESCRIBING:
        return declared
    try:
        return spark.read.format(kind).load(path).schema
    except AnalysisException:
        return declared  # no file yet


def _checked_path(stream: Stream, kind: str, path: str | None) -> str:
    if path is None:
        raise InputError(
            f"stream {stream.name} of format {kind!r} has no path",
            hint="Add path = '...' to its WITH",
        )
    if _SCHEME.match(path):
        return path
    if not any(sign in path for sign in "*?[{") and not os.path.exists(path):  # noqa: PTH110
        raise InputError(
            f"stream {stream.name} reads {path!r}, where there is nothing",
            hint="Check the path; make the folder first",
        )
    # Java may have been started in another folder than the current one of this process.
    return str(Path(path).absolute())


def fitted(frame: DataFrame, stream: Stream) -> DataFrame:
    """Return the declared columns of a frame in order; raise if one is missing or misfits."""
    there = arrow_schema(frame.schema)
    columns = []
    for field in stream.given:
        name = find_column(there, field.name)
        if name is None:
            more = (
                "; with includeTimestamp = 'true' also timestamp"
                if there.names == ["value"] and SparkSource(frame).passes()
                else ""
            )
            raise InputError(
                f"stream {stream.name} declares column {field.name}, "
                "which its source does not have",
                hint=f"The source has {', '.join(there.names)}{more}",
            )
        found = there.field(name).type
        if not _fits(found, field.type):
            raise InputError(
                f"stream {stream.name} declares column {field.name} as {field.type}, "
                f"but its source has {found}",
                hint="Declare the type that the source has",
            )
        columns.append(frame[f"`{name}`"].alias(field.name))
    return frame.select(*columns)


def _fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether values of one type can become the other without changing their kind."""
    families = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_timestamp,
        pa.types.is_boolean,
        pa.types.is_decimal,
        pa.types.is_date,
    )
    if any(family(found) and family(wanted) for family in families):
        return True
    texts = (pa.types.is_string, pa.types.is_large_string)
    if any(text(found) for text in texts) and any(text(wanted) for text in texts):
        return True
    return bool(found == wanted or (pa.types.is_integer(found) and pa.types.is_floating(wanted)))


def _first_line(error: Exception) -> str:
    if isinstance(error, Py4JJavaError):  # its text begins with the number of a call
        return str(error.java_exception.getMessage()).splitlines()[0]
    return plain(str(error).strip().splitlines()[0]) if str(error).strip() else type(error).__name__
