"""Sinks: the destinations of results.

Exactly once: Spark may repeat a batch, so a sink replaces what it has for a batch number. A sink
that can only append may hold a repeated batch twice; its docstring says so.
"""

from __future__ import annotations

import hashlib
import io
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession

from muntin.engine.declaration_checks import (
    column_mistakes,
    folder_mistakes,
    sink_format_mistake,
    sink_option_mistakes,
)
from muntin.errors import RunError, SettingError
from muntin.model.allowed_paths import local_path
from muntin.model.printable import printable
from muntin.plan.query import Query
from muntin.spark.json_lines import write_json
from muntin.spark.result_files import read_local, read_spark
from muntin.spark.sink_ownership import Folder, HadoopFolder, LocalFolder, SinkOwner

_FILES = ("parquet", "csv", "json")
_SPARK_FILES = (*_FILES, "orc", "avro", "text", "xml")
"""Spark formats that write files into a folder, without transactions."""


class SinkError(RunError):
    """A sink failed; the batch runs again when the engine is started again."""


class Sink(ABC):
    """Takes the results of one query, batch by batch."""

    @abstractmethod
    def write(self, results: pa.Table, batch: int) -> None:
        """Store the results of a batch in place of what was stored for it before."""

    def read_back(self, spark: SparkSession, schema: pa.Schema) -> DataFrame | None:
        """Return all results so far, with the columns of ``schema``; None if that is impossible."""
        del spark, schema
        return None

    def place(self) -> Folder | None:
        """Return the folder of batches that no other query may use, if there is one."""
        return None

    def claim(self, owner: SinkOwner, *, replace: bool) -> None:
        """Prepare for the results of a query, before the first batch of a run."""
        place = self.place()
        if place is not None:
            place.claim(owner, replace=replace)


SinkChoice: TypeAlias = str | Sink | Callable[[DataFrame, int], object] | Mapping[str, str] | None
"""What users may pass: ``"memory"``, ``"console"``, a format with options, a
callable(df, batch_id), or an object of a class derived from :class:`Sink`."""


@dataclass
class FileSink(Sink):
    """One file per batch in a local folder; a file gets its name when it is complete."""

    folder: Path
    kind: str
    owner: SinkOwner | None = None

    def place(self) -> Folder:
        """Return its folder."""
        return LocalFolder(self.folder.absolute())

    def claim(self, owner: SinkOwner, *, replace: bool) -> None:
        """Claim the folder; from then on every write checks that the owner still has it."""
        super().claim(owner, replace=replace)
        self.owner = owner

    def write(self, results: pa.Table, batch: int) -> None:
        """Write the file of a batch."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.owner is not None:
            self.place().keep(self.owner)
        target = self.folder / f"batch-{batch:09d}.{self.kind}"
        if not len(results):
            target.unlink(missing_ok=True)
            return
        part = self.folder / f".{target.name}.part"
        with part.open("wb") as file:
            self._encode(results, file)
        part.replace(target)

    def read_back(self, spark: SparkSession, schema: pa.Schema) -> DataFrame:
        """Return the rows in its files."""
        return read_local(spark, self.folder, self.kind, schema)

    def check(self, schema: pa.Schema) -> None:
        """Raise if the format cannot hold results with these columns."""
        for mistake in column_mistakes(self.kind, schema):
            raise mistake

    def _encode(self, results: pa.Table, file: IO[bytes]) -> None:
        if self.kind == "parquet":
            pa.parquet.write_table(results, file, use_dictionary=_repeating(results.schema))
        elif self.kind == "csv":
            pa.csv.write_csv(results, file)
        else:
            write_json(results, file)


def _repeating(schema: pa.Schema) -> list[str]:
    """Return the columns to try a dictionary for.

    Numbers and times mostly differ, and finding that out takes a third of the time.
    """
    return [field.name for field in schema if not pa.types.is_primitive(field.type)]


def read_batches(folder: Path, schema: pa.Schema) -> pa.Table:
    """Return all rows that a parquet sink wrote into a folder, in the order of the batches."""
    files = sorted(folder.glob("batch-*.parquet")) if folder.is_dir() else []
    return pa.concat_tables(
        [schema.empty_table(), *(pa.parquet.read_table(file, schema=schema) for file in files)]
    )


@dataclass
class MemorySink(Sink):
    """A temporary view with the name of the query, over files in the checkpoint."""

    spark: SparkSession
    name: str
    folder: Path
    schema: pa.Schema

    def __post_init__(self) -> None:
        self._files = FileSink(self.folder, "parquet")
        self._files.check(self.schema)
        try:
            self._refresh()
        except OSError as error:
            raise SinkError(
                f"the results of query {self.name} cannot be kept in {self.folder}: "
                f"{error.strerror}",
                hint="Give a checkpoint folder that can be written to, with room on its disk",
            ) from error

    def write(self, results: pa.Table, batch: int) -> None:
        """Write the batch and refresh the view."""
        self._files.write(results, batch)
        if len(results):
            self._refresh()

    def _refresh(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        empty = self.folder / "batch--00000001.parquet"
        if not empty.exists():
            pa.parquet.write_table(self.schema.empty_table(), empty)
        quoted = self.name.replace("`", "``")
        self.read_back(self.spark, self.schema).createOrReplaceTempView(f"`{quoted}`")

    def read_back(self, spark: SparkSession, schema: pa.Schema) -> DataFrame:
        """Return the rows in its files."""
        del schema
        return spark.read.parquet(f"file://{self.folder}")

    def table(self) -> pa.Table:
        """Return all results so far, in the order of the batches."""
        return read_batches(self.folder, self.schema)

    def forget(self) -> None:
        """Remove the results and the view."""
        self.spark.catalog.dropTempView(self.name)
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass
class ConsoleSink(Sink):
    """Prints results batch by batch; a repeated batch is printed again."""

    name: str
    as_json: bool = False
    most: int = 20

    def write(self, results: pa.Table, batch: int) -> None:
        """Print the first results of a batch, or all of them as lines of JSON."""
        if not len(results):
            return
        if self.as_json:
            origin = [pa.repeat(self.name, len(results)), pa.repeat(batch, len(results))]
            text = io.BytesIO()
            write_json(
                pa.table(
                    [*origin, *results.columns], names=["query", "batch", *results.column_names]
                ),
                text,
            )
            print(text.getvalue().decode(), end="", flush=True)  # noqa: T201 (that is the sink)
            return
        lines = ["  ".join(map(printable, results.column_names))]
        shown = results.slice(0, self.most).to_pylist()
        lines += ["  ".join(map(printable, row.values())) for row in shown]
        if len(results) > self.most:
            lines.append(f"... {len(results) - self.most:,} more")
        title = f"-- {printable(self.name)}, batch {batch}: {len(results):,} changes"
        print("\n".join([title, *lines]), flush=True)  # noqa: T201 (that is the sink)


@dataclass
class SparkSink(Sink):
    """Any batch format of Spark.

    File formats overwrite one folder per batch. Delta gets the number of the batch and ignores
    repeated ones. All others append, and may hold a repeated batch twice.
    """

    spark: SparkSession
    name: str
    kind: str
    options: Mapping[str, str]
    owner: SinkOwner | None = None

    def place(self) -> Folder | None:
        """Return the folder of its batches; None for formats that append."""
        path = self.options.get("path")
        return (
            HadoopFolder(self.spark, path.rstrip("/"))
            if path is not None and self.kind in _SPARK_FILES
            else None
        )

    def claim(self, owner: SinkOwner, *, replace: bool) -> None:
        """Claim the folder, if it has one."""
        super().claim(owner, replace=replace)
        self.owner = owner

    def write(self, results: pa.Table, batch: int) -> None:
        """Write a batch."""
        if not len(results):
            return
        frame = self.spark.createDataFrame(results)
        path = self.options.get("path")
        writer = frame.write.format(self.kind).mode("append").options(**self._format_options())
        if path is not None and self.kind in _SPARK_FILES:
            writer.mode("overwrite").save(f"{path.rstrip('/')}/batch={batch}")
        elif self.kind == "delta":
            writer.option("txnAppId", self._application()).option("txnVersion", batch).save(path)
        else:
            writer.save(path)

    def read_back(self, spark: SparkSession, schema: pa.Schema) -> DataFrame | None:
        """Return the rows in the folders of its batches; None for formats that append."""
        folder = self.place()
        if folder is None:
            return None
        empty = spark.createDataFrame(schema.empty_table())
        if not folder.batches():
            return empty
        return read_spark(spark, folder.name, self.kind, self._format_options(), empty.schema)

    def _format_options(self) -> dict[str, str]:
        return {name: value for name, value in self.options.items() if name not in {"path", "mode"}}

    def _application(self) -> str:
        """Return Delta's application id: one per query and run, as runs start with batch 0."""
        return (
            f"muntin-{self.name}"
            if self.owner is None
            else f"muntin-{self.owner.run}-{self.owner.incarnation}"
        )


@dataclass
class CallableSink(Sink):
    """Calls a user's function with a DataFrame and the batch id; after a crash with the same id."""

    spark: SparkSession
    function: Callable[[DataFrame, int], object]

    def write(self, results: pa.Table, batch: int) -> None:
        """Call the function, if there are results."""
        if len(results):
            self.function(self.spark.createDataFrame(results), batch)


def identity_of(sink: Sink) -> str:
    """Return a text that identifies the destination of a sink."""
    if isinstance(sink, MemorySink):
        return "memory"
    if isinstance(sink, ConsoleSink):
        return "console"
    if isinstance(sink, FileSink):
        return f"{sink.kind} {sink.folder.absolute()}"
    if isinstance(sink, SparkSink):
        return f"{sink.kind} {sink.options.get('path', '')}".strip()
    return "a function" if isinstance(sink, CallableSink) else f"a {type(sink).__name__}"


@dataclass
class SinkMaker:
    """Makes the sinks of an engine; ``folder`` holds the files of memory sinks.

    ``default`` is the sink of queries that name none. Consoles print ``most`` rows per batch, or
    all of them as JSON.
    """

    spark: SparkSession
    folder: Path
    default: SinkChoice = "memory"
    as_json: bool = False
    most: int = 20

    def forget_others(self, sinks: Iterable[Sink]) -> None:
        """Remove the files of all memory sinks but these: those of queries that no longer exist."""
        kept = {sink.folder for sink in sinks if isinstance(sink, MemorySink)}
        for folder in self.folder.iterdir() if self.folder.is_dir() else ():
            if folder not in kept:
                shutil.rmtree(folder, ignore_errors=True)

    def make(self, query: Query, choice: SinkChoice, meaning: str = "") -> Sink:
        """Return the sink of a query; ``meaning`` identifies its results, by default its text."""
        name = query.name
        if choice is None:
            choice = self.default
        if isinstance(choice, Sink):
            return choice
        if choice is None or choice == "memory":
            # Another text under the same name has other results, perhaps with other columns.
            kept = hashlib.sha256(f"{name}\n{meaning or query.text}".encode()).hexdigest()[:24]
            return MemorySink(self.spark, name, self.folder / kept, query.output_schema)
        if choice == "console":
            return ConsoleSink(name, self.as_json, self.most)
        if callable(choice):
            return CallableSink(self.spark, choice)
        if isinstance(choice, str):
            raise SettingError(
                f"query {name} cannot have the sink {choice!r}",
                hint="Use 'memory', 'console', a function, or a format with its options such as "
                "{'format': 'parquet', 'path': '...'}",
            )
        options = {str(key).lower(): str(value) for key, value in choice.items()}
        kind = options.pop("format", options.pop("sink", "")).lower()
        if not kind:
            raise SettingError(
                f"the sink of query {name} has no format",
                hint="For example {'format': 'parquet', 'path': '...'}",
            )
        path = options.get("path")
        mistake = sink_format_mistake(name, kind)
        if mistake is not None:
            raise mistake
        if kind in _SPARK_FILES and path is None:
            raise SettingError(f"the {kind} sink of query {name} has no path", hint="Add path")
        local = local_path(path) if path is not None else None
        for mistake in sink_option_mistakes(name, kind, options, local=local is not None):
            raise mistake
        for mistake in (
            folder_mistakes(name, local) if kind in _SPARK_FILES and local is not None else ()
        ):
            raise mistake
        if kind in _FILES and local is not None:
            sink = FileSink(Path(local), kind)
            sink.check(query.output_schema)
            return sink
        if kind in _SPARK_FILES and path is not None and local == path:
            # Java may have been started in another folder than the current one of this process.
            options["path"] = str(Path(path).absolute())
        return SparkSink(self.spark, name, kind, options)
