"""The sinks that Muntin has, and the choice among them.

Exactly once: Spark may repeat a batch, so a sink replaces what it has for a batch number. A sink
that can only append may hold a repeated batch twice; its docstring says so.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession

from muntin.engine.declaration_checks import sink_format_mistake, sink_option_mistakes
from muntin.engine.kafka_checks import kafka_sink_mistakes
from muntin.engine.result_file_checks import column_mistakes, folder_mistakes
from muntin.errors import SettingError
from muntin.model.allowed_paths import local_path
from muntin.model.formats import OWN_FILES, SPARK_OPTIONS
from muntin.model.kafka import KAFKA
from muntin.plan.query import Query
from muntin.runtime.frames import CheckpointError, make_folder, sync
from muntin.spark.batch_results import BatchResults
from muntin.spark.console_sink import ConsoleSink
from muntin.spark.exchange.merge_results import in_order
from muntin.spark.kafka_sink import KafkaSink
from muntin.spark.result_files import read_local, read_spark, spark_schema
from muntin.spark.result_target import ResultTarget
from muntin.spark.sink import Sink as Sink  # noqa: PLC0414 (users import it from here)
from muntin.spark.sink import SinkError as SinkError  # noqa: PLC0414
from muntin.spark.sink_ownership import (
    Folder,
    HadoopFolder,
    LocalFolder,
    SinkOwner,
    StorageFolder,
    batch_number,
)
from muntin.spark.storage import Storage
from muntin.spark.storage.tables import TablesByBatch, as_parquet

_SWEEP = 64
"""Batches between two searches for files of attempts that did not count: a folder may be large."""

_COLUMNS = "batch--00000001.parquet"
"""A file without rows, from which Spark learns the columns of a memory sink."""


SinkChoice: TypeAlias = str | Sink | Callable[[DataFrame, int], object] | Mapping[str, str] | None
"""What users may pass: ``"memory"``, ``"console"``, a format with options, a
callable(df, batch_id), or an object of a class derived from :class:`Sink`."""


@dataclass
class FileSink(Sink):
    """Files in a folder that every machine reaches, written by executors, one each per batch."""

    folder: Path
    kind: str
    owner: SinkOwner | None = None
    _earlier: list[str] = field(default_factory=list, compare=False)
    """Files of earlier runs: the next batch may be among them, perhaps in other files.

    Listed at the start and not later: if another driver replaces this one, files that appear since
    then are its own.
    """
    _published: bool = field(default=False, compare=False)
    """Whether files have got their names since the folder was synchronized."""

    def target(self) -> ResultTarget:
        """Return its folder and format."""
        return ResultTarget(self.folder.absolute(), self.kind)

    def place(self) -> Folder:
        """Return its folder."""
        return LocalFolder(self.folder.absolute())

    def claim(self, owner: SinkOwner, *, replace: bool) -> None:
        """Claim the folder; from then on every write checks that the owner still has it."""
        super().claim(owner, replace=replace)
        self.owner = owner
        self._earlier = self.place().batches()

    def write(self, results: BatchResults, batch: int) -> None:
        """Give the files of a batch their names; write one if the driver has the results."""
        make_folder(self.folder)
        if self.owner is not None:
            self.place().keep(self.owner)
        for name in self._earlier:
            if batch_number(name) >= batch:
                (self.folder / name).unlink(missing_ok=True)
        self._earlier = []
        target, files = self.target(), results.files
        if not files:
            (self.folder / f"batch-{batch:09d}.{self.kind}").unlink(missing_ok=True)
            files = (target.write(results.table(), batch),) if len(results) else ()
            for name in files:
                target.sync(name)
        for name in files:
            target.publish(name)
        self._published = self._published or bool(files)
        if batch % _SWEEP == 0:
            target.sweep(batch)

    def sync(self) -> None:
        """Synchronize the folder; whoever wrote the files has synchronized them."""
        if self._published:
            sync(self.folder)
            self._published = False

    def read_back(self, spark: SparkSession, schema: pa.Schema) -> DataFrame:
        """Return the rows in its files."""
        return read_local(spark, self.folder, self.kind, schema)

    def check(self, schema: pa.Schema) -> None:
        """Raise if the format cannot hold results with these columns."""
        for mistake in column_mistakes(self.kind, schema):
            raise mistake


def read_batches(folder: Path, schema: pa.Schema) -> pa.Table:
    """Return all rows that a parquet sink wrote into a folder, by batch, then in order of time."""
    files = sorted(folder.glob("batch-*.parquet")) if folder.is_dir() else []
    tables = [schema.empty_table()]
    for _, batch in groupby(files, lambda file: batch_number(file.name)):
        tables.append(in_order([pa.parquet.read_table(file, schema=schema) for file in batch]))
    return pa.concat_tables(tables)


@dataclass
class MemorySink(Sink):
    """A temporary view with the name of the query, over files in the checkpoint."""

    spark: SparkSession
    name: str
    storage: Storage
    schema: pa.Schema

    def __post_init__(self) -> None:
        for mistake in column_mistakes("parquet", self.schema):
            raise mistake
        self._files = TablesByBatch(self.storage)
        self._has_columns = False
        self._forgotten = False
        self._lock = threading.Lock()
        """Held while a batch is written or all are removed."""
        try:
            self._refresh()
        except CheckpointError as error:
            raise SinkError(
                f"the results of query {self.name} cannot be kept: {error.fact}",
                hint="Give a checkpoint folder that can be written to, with room on its disk",
            ) from error

    def claim(self, owner: SinkOwner, *, replace: bool) -> None:
        """Delete the results of the query from before it started again, if there are any."""
        folder = StorageFolder(self.storage)
        if folder.read() is None and not replace:
            folder.keep(owner)
            return
        stale = bool(folder.obstacle(owner))
        folder.claim(owner, replace=True)
        if stale:
            self._refresh()

    def write(self, results: BatchResults, batch: int) -> None:
        """Write the batch and refresh the view, unless the query was dropped meanwhile."""
        with self._lock:
            if not self._forgotten:
                self._files.write(results.table(), batch)
                if len(results):
                    self._refresh()

    def _refresh(self) -> None:
        if not self._has_columns and self.storage.start_of(_COLUMNS, 1) is None:
            self.storage.put(_COLUMNS, as_parquet(self.schema.empty_table()))
        self._has_columns = True
        quoted = self.name.replace("`", "``")
        self.read_back(self.spark, self.schema).createOrReplaceTempView(f"`{quoted}`")

    def read_back(self, spark: SparkSession, schema: pa.Schema) -> DataFrame:
        """Return the rows in its files.

        Spark would start a job to learn the columns, which waits while a batch has all cores.
        """
        return spark.read.schema(spark_schema(schema)).parquet(self.storage.url)

    def table(self) -> pa.Table:
        """Return all results so far, in the order of the batches."""
        return self._files.read(self.schema)

    def forget(self) -> None:
        """Remove the results and the view; a batch that runs now must not bring them back."""
        with self._lock:
            self._forgotten = True
            self.spark.catalog.dropTempView(self.name)
            self.storage.delete_tree("")


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
    _earlier: list[str] = field(default_factory=list, compare=False)
    """Folders of earlier runs, as in :class:`FileSink`."""

    def place(self) -> Folder | None:
        """Return the folder of its batches; None for formats that append."""
        path = self.options.get("path")
        return (
            HadoopFolder(self.spark, path.rstrip("/"))
            if path is not None and self.kind in SPARK_OPTIONS
            else None
        )

    def claim(self, owner: SinkOwner, *, replace: bool) -> None:
        """Claim the folder, if it has one."""
        super().claim(owner, replace=replace)
        self.owner = owner
        place = self.place()
        self._earlier = [] if place is None else place.batches()

    def write(self, results: BatchResults, batch: int) -> None:
        """Write a batch; remove what an interrupted attempt of an earlier run wrote for it."""
        again = [name for name in self._earlier if batch_number(name) >= batch]
        self._earlier = []
        if not len(results) and not again:
            return
        place = self.place()
        if place is not None and self.owner is not None:
            place.keep(self.owner)
            for name in again:
                place.remove(name)
        if not len(results):
            return
        frame = results.frame(self.spark)
        path = self.options.get("path")
        writer = frame.write.format(self.kind).mode("append").options(**self._format_options())
        if path is not None and self.kind in SPARK_OPTIONS:
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

    def write(self, results: BatchResults, batch: int) -> None:
        """Call the function, if there are results."""
        if len(results):
            self.function(results.frame(self.spark), batch)


def identity_of(sink: Sink) -> str:
    """Return a text that identifies the destination of a sink."""
    if isinstance(sink, MemorySink):
        return "memory"
    if isinstance(sink, ConsoleSink):
        return "console"
    if isinstance(sink, FileSink):
        return f"{sink.kind} {sink.folder.absolute()}"
    if isinstance(sink, KafkaSink):
        return sink.place_name
    if isinstance(sink, SparkSink):
        return f"{sink.kind} {sink.options.get('path', '')}".strip()
    return "a function" if isinstance(sink, CallableSink) else f"a {type(sink).__name__}"


@dataclass
class SinkMaker:
    """Makes the sinks of an engine; ``storage`` holds the files of memory sinks.

    ``default`` is the sink of queries that name none. Consoles print ``most`` rows per batch, or
    all of them as JSON.
    """

    spark: SparkSession
    storage: Storage
    default: SinkChoice = "memory"
    as_json: bool = False
    most: int = 20

    def forget_others(self, sinks: Iterable[Sink]) -> None:
        """Remove the files of all memory sinks but these: those of queries that no longer exist."""
        kept = {sink.storage.url for sink in sinks if isinstance(sink, MemorySink)}
        folders = {name.partition("/")[0] for name in self.storage.tree()}
        for folder in sorted(folders):
            if self.storage.below(folder).url not in kept:
                self.storage.delete_tree(folder)

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
            return MemorySink(self.spark, name, self.storage.below(kept), query.output_schema)
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
        if kind in SPARK_OPTIONS and path is None:
            raise SettingError(f"the {kind} sink of query {name} has no path", hint="Add path")
        local = local_path(path) if path is not None else None
        for mistake in sink_option_mistakes(name, kind, options, local=local is not None):
            raise mistake
        for mistake in (
            folder_mistakes(name, local) if kind in SPARK_OPTIONS and local is not None else ()
        ):
            raise mistake
        if kind == KAFKA:
            for mistake in kafka_sink_mistakes(query, options):
                raise mistake
            to_kafka = KafkaSink(self.spark, query, options)
            to_kafka.check()
            return to_kafka
        if kind in OWN_FILES and local is not None:
            sink = FileSink(Path(local), kind)
            sink.check(query.output_schema)
            return sink
        if kind in SPARK_OPTIONS and path is not None and local == path:
            # Java may have been started in another folder than the current one of this process.
            options["path"] = str(Path(path).absolute())
        return SparkSink(self.spark, name, kind, options)
