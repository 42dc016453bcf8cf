"""Read the files that sinks wrote back into DataFrames.

Files of formats without types (csv, json, xml) are read with the columns of the query, so values
come back with their types. A DataFrame covers the files that exist when it is made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.types as pat
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from muntin.errors import InputError

_PATTERN = re.compile(r"([{}\[\]*?\\])")
_SELF_DESCRIBING = ("parquet", "orc", "avro")
_ARROW_CSV = {
    "header": "true",
    "escape": '"',
    "multiLine": "true",
    "nullValue": "\x00",  # otherwise empty texts, which Arrow quotes, are read as NULL too
    "nanValue": "nan",
    "positiveInf": "inf",
    "negativeInf": "-inf",
}
"""How Arrow writes csv, in Spark's options."""
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.null(): pa.int32(),
    pa.duration("us"): pa.int64(),
}
"""Spark reads values of types that it does not have from parquet in these."""
_UNREADABLE = {pa.time64("us"), pa.timestamp("ns")}
"""Spark refuses parquet files with columns of these types."""


def read_local(spark: SparkSession, folder: Path, kind: str, schema: pa.Schema) -> DataFrame:
    """Return the results in a local folder with one file per batch, written by Arrow."""
    files = f"batch-*.{kind}"
    if not any(folder.glob(files)):
        return spark.createDataFrame([], spark_schema(schema))
    options = {"pathGlobFilter": files, **(_ARROW_CSV if kind == "csv" else {})}
    columns = None if kind in _SELF_DESCRIBING else spark_schema(schema)
    return _load(spark, kind, options, f"file://{folder.absolute()}", columns)


def read_spark(
    spark: SparkSession, path: str, kind: str, options: Mapping[str, str], columns: StructType
) -> DataFrame:
    """Return the results in a folder with one folder per batch, written by Spark.

    The names of the folders are not read: a column of the query may be called ``batch``, too.
    """
    return _load(
        spark,
        kind,
        {**options, "recursiveFileLookup": "true"},
        path,
        None if kind in _SELF_DESCRIBING else columns,
    )


def _load(
    spark: SparkSession,
    kind: str,
    options: Mapping[str, str],
    path: str,
    columns: StructType | None,
) -> DataFrame:
    reader = spark.read.format(kind).options(**options)
    if columns is not None:
        reader = reader.schema(columns)
    return reader.load(_PATTERN.sub(r"\\\1", path))


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the columns of results in the types in which Spark reads them from parquet files."""
    readable = [field.with_type(_readable(field.type)) for field in schema]
    for field in readable:
        if not _has_spark_type(field):
            raise InputError(
                f"Spark has no type for column {field.name} of type {field.type}",
                hint="Cast the column in the query",
            )
    return from_arrow_schema(pa.schema(readable))


def _has_spark_type(field: pa.Field) -> bool:
    try:
        from_arrow_schema(pa.schema([field]))
    except PySparkTypeError:
        return False
    return field.type not in _UNREADABLE


def _readable(kind: pa.DataType) -> pa.DataType:
    if pat.is_list(kind):
        return pa.list_(_readable(kind.value_type))
    if pat.is_map(kind):
        return pa.map_(_readable(kind.key_type), _readable(kind.item_type))
    if pat.is_struct(kind):
        return pa.struct([field.with_type(_readable(field.type)) for field in kind])
    return _WIDER.get(kind, kind)
