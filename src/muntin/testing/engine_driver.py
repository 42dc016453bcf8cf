"""The engine in process as a driver of golden scripts."""

from __future__ import annotations

from collections.abc import Mapping
from tempfile import TemporaryDirectory

import pyarrow as pa

import muntin
from muntin.errors import CatalogError
from muntin.runtime.holdings import state_rows
from muntin.testing.batch_cuts import by_time
from muntin.testing.golden import StreamDeclaration


class EngineDriver:
    """A :class:`muntin.testing.driver.Driver` around a new :class:`muntin.Engine`."""

    in_order = True

    def __init__(self, settings: Mapping[str, object]) -> None:
        self._now = 0
        # The times of scripts are seconds since 1970, and so is the clock.
        self._engine = muntin.Engine(clock=lambda: self._now, **settings)
        self._arrivals: dict[str, str] = {}

    def declare(self, stream: StreamDeclaration) -> None:
        """Declare a stream."""
        self._engine.execute(stream.sql)
        if stream.stream.arrival:
            self._arrivals[stream.name.casefold()] = stream.stream.time

    def table(self, name: str, rows: pa.Table) -> None:
        """Declare a stored table with its rows."""
        self._engine.table(name, rows)

    def query(self, name: str, sql: str) -> None:
        """Register a standing query."""
        self._engine.query(sql, name=name)

    def execute(self, sql: str) -> None:
        """Run any statements of the dialect."""
        self._engine.execute(sql)

    def change(self, setting: str, value: str) -> None:
        """Change a setting."""
        self._engine.execute(f"SET {setting} = {value}")

    def feed(self, stream: str, rows: pa.Table) -> None:
        """Push rows; those that are stamped, when the clock shows their time."""
        column = self._arrivals.get(stream.casefold())
        if column is None:
            self._engine.push(stream, rows)
            return
        for piece in by_time(rows, column):
            self._now = piece.column(column).cast(pa.int64())[0].as_py()
            self._engine.push(stream, piece.drop_columns([column]))

    def advance(self, at: int) -> None:
        """Promise that nothing up to the instant will come any more."""
        self._engine.advance(at)

    def take(self, query: str) -> pa.Table:
        """Return the results since the last call."""
        return self._find(query).poll()

    def answer(self, query: str) -> pa.Table:
        """Return the answer now."""
        return self._find(query).answer()

    def late(self, stream: str) -> pa.Table:
        """Return all rows that came too late so far."""
        return self._engine.late(stream)

    def state(self) -> Mapping[str, int]:
        """For each stream, how many of its rows are held in windows."""
        return state_rows(self._engine.dataflow)

    def explain(self, query: str) -> str:
        """Return the plan of the query as text."""
        return self._engine.explain(query)

    def drop(self, query: str) -> None:
        """Drop a standing query."""
        self._engine.drop(query)

    def restart(self) -> bool:
        """Continue with an engine that is restored from a checkpoint of this one."""
        with TemporaryDirectory() as folder:
            self._engine.checkpoint(folder)
            self._engine = muntin.Engine.restore(folder, clock=lambda: self._now)
        return True

    def close(self) -> None:
        """Nothing to give back: the engine lives in this process."""

    def _find(self, query: str) -> muntin.StandingQuery:
        handle = next(
            (
                handle
                for handle in self._engine.queries()
                if handle.name.casefold() == query.casefold()
            ),
            None,
        )
        if handle is None:
            raise CatalogError(f"there is no query {query}")
        return handle
