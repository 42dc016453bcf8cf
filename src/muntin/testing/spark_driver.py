"""The engine on Spark as a driver of golden scripts.

Fed rows become files; requests wait until the files are processed.

Every file is a micro-batch of its stream. Time moves on as in process, by a moment after all that
was fed before. A restart stops the engine, wherever it is with its files, and another one resumes
from the checkpoint.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import SparkSession

from muntin.plan.query import Emit
from muntin.spark.api import SparkEngine
from muntin.testing.batch_cuts import by_time, cut
from muntin.testing.compare import accumulate
from muntin.testing.golden import StreamDeclaration


class SparkDriver:
    """A :class:`muntin.testing.driver.Driver` around a new :class:`muntin.spark.SparkEngine`.

    Parameters
    ----------
    settings : Mapping[str, object]
        Settings of the engine.
    spark : SparkSession
        The session to run in.
    partitions : int
        How many.
    seed : int, optional
        Where what is fed is cut into files; None: every row is one, as scripts about late rows
        need.
    """

    in_order = False

    def __init__(
        self, settings: Mapping[str, object], spark: SparkSession, partitions: int, seed: int | None
    ) -> None:
        self._random = None if seed is None else Random(seed)  # noqa: S311 (guards nothing)
        self._folder = tempfile.TemporaryDirectory(prefix="muntin-spark-driver-")
        checkpoint = Path(self._folder.name) / "checkpoint"
        self._new: Callable[[], SparkEngine] = lambda: SparkEngine(
            spark, checkpoint=checkpoint, partitions=partitions
        )
        self._now = 0
        self._arrivals: dict[str, str] = {}
        self._engine = self._make()
        self._told: list[tuple[str, Callable[[SparkEngine], object]]] = []
        """Calls to repeat on a new engine, with the names of queries."""
        self._folders: dict[str, Path] = {}
        self._taken: dict[str, int] = {}
        self._files = 0
        self._settled = False
        for name, value in settings.items():
            self.change(name, f"'{value}'")

    def _make(self) -> SparkEngine:
        engine = self._new()
        engine._parts.controls.clock = lambda: self._now  # noqa: SLF001 (the time of a script)
        return engine

    def declare(self, stream: StreamDeclaration) -> None:
        """Declare a stream over a folder."""
        self._engine.stop()  # streams cannot be declared while it runs
        folder = Path(self._folder.name) / f"stream{len(self._folders)}"
        source = f", format = 'parquet', path = '{folder}', maxFilesPerTrigger = '1')"
        folder.mkdir()
        self._tell(lambda engine: engine.execute(stream.sql.removesuffix(")") + source))
        self._folders[stream.name.casefold()] = folder
        if stream.stream.arrival:
            self._arrivals[stream.name.casefold()] = stream.stream.time

    def table(self, name: str, rows: pa.Table) -> None:
        """Declare a stored table with its rows."""
        self._tell(lambda engine: engine.table(name, rows))

    def query(self, name: str, sql: str) -> None:
        """Register a standing query."""
        self._settle()
        self._tell(lambda engine: engine.query(sql, name=name), query=name)
        self._taken[name.casefold()] = 0

    def execute(self, sql: str) -> None:
        """Run any statements of the dialect."""
        self._tell(lambda engine: engine.execute(sql))

    def change(self, setting: str, value: str) -> None:
        """Change a setting."""
        self.execute(f"SET {setting} = {value}")

    def _tell(self, told: Callable[[SparkEngine], object], query: str = "") -> None:
        """Run a statement, and repeat it on later engines unless it is refused."""
        told(self._engine)
        self._told.append((query.casefold(), told))
        self._settled = False

    def feed(self, stream: str, rows: pa.Table) -> None:
        """Write rows as files one by one: Spark takes them in the order of modification times.

        Rows that are stamped are processed when the clock shows their time.
        """
        column = self._arrivals.get(stream.casefold())
        if column is not None:
            for piece in by_time(rows, column):
                self._settle()
                self._now = piece.column(column).cast(pa.int64())[0].as_py()
                self._write(stream, [piece.drop_columns([column])])
                self._settle()
            return
        self._write(stream, cut(rows, self._random))
        if self._random is None:
            self._settle()

    def _write(self, stream: str, pieces: Iterable[pa.Table]) -> None:
        for piece in pieces:
            self._files += 1
            part = self._folders[stream.casefold()] / f".{self._files}.part"
            pa.parquet.write_table(piece, part)
            os.utime(part, (self._files, self._files))
            part.replace(part.with_name(f"{self._files:06d}.parquet"))
        self._settled = False

    def advance(self, at: int) -> None:
        """Advance time after everything fed so far: in one batch rows come first."""
        self._settle()
        self._engine.advance(at)
        self._settled = False
        self._settle()

    def take(self, query: str) -> pa.Table:
        """Return the results since the last call."""
        self._settle()
        results = self._engine.results(query)
        new = results.slice(self._taken[query.casefold()])
        self._taken[query.casefold()] = len(results)
        return new

    def answer(self, query: str) -> pa.Table | None:
        """Return the sum of all changes; nothing for inserts only, or before the start."""
        self._settle()
        registry = self._engine._parts.registry  # noqa: SLF001 (how the query emits)
        known = registry.find(query).query
        found = self._engine.results(query)
        begun = len(found) or not known.has_beginning
        return accumulate(found) if known.emit is Emit.CHANGES and begun else None

    def late(self, stream: str) -> pa.Table:
        """Return all rows that came too late so far."""
        self._settle()
        return self._engine.late(stream)

    def state(self) -> None:
        """Return None: partitions hold rows of each other, too."""

    def explain(self, query: str) -> str:
        """Return the plan of the query as text."""
        return self._engine.explain(query)

    def drop(self, query: str) -> None:
        """Drop a standing query."""
        self._settle()
        self._engine.drop(query)
        self._told = [(name, told) for name, told in self._told if name != query.casefold()]

    def restart(self) -> bool:
        """Resume from the checkpoint with another engine and rebuilt partitions.

        A batch that was not complete is repeated.
        """
        self._engine.stop()
        self._engine = self._make()
        for _, told in self._told:
            told(self._engine)
        self._settled = False
        return True

    def close(self) -> None:
        """Stop the engine and remove its files."""
        self._engine.stop()
        self._folder.cleanup()

    def _settle(self) -> None:
        """Wait until all that was fed is processed; before there is a query, files wait."""
        if self._taken and not self._settled:
            self._engine.settle()
            self._settled = True
