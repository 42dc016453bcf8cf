"""Targets of a golden script: the engine in process, partitions, Spark, or the oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import pyarrow as pa

from muntin.testing.golden import StreamDeclaration


class Driver(Protocol):
    """One running system.

    Every method raises a ``MuntinError`` for a user's mistake, and then has changed nothing.
    """

    in_order: bool
    """Whether inserts of one instant come in the order of the definition, or in any."""

    def declare(self, stream: StreamDeclaration) -> None:
        """Declare a stream."""

    def table(self, name: str, rows: pa.Table) -> None:
        """Declare a stored table with its rows."""

    def query(self, name: str, sql: str) -> None:
        """Register a standing query."""

    def execute(self, sql: str) -> None:
        """Run any statements of the dialect."""

    def change(self, setting: str, value: str) -> None:
        """Change a setting; ``value`` as it stands in SQL."""

    def feed(self, stream: str, rows: pa.Table) -> None:
        """Push rows in order of arrival."""

    def advance(self, at: int) -> None:
        """Promise that no rows up to an instant (in microseconds) will come.

        Returns when everything up to it is processed.
        """

    def take(self, query: str) -> pa.Table:
        """Return the results since the last call: ``_op``, ``_ts``, select list."""

    def answer(self, query: str) -> pa.Table | None:
        """Return the answer now; None when it is unknown."""

    def late(self, stream: str) -> pa.Table:
        """Return all rows that came too late so far."""

    def state(self) -> Mapping[str, int] | None:
        """Return for each stream how many of its rows windows hold, or None if unknown."""

    def explain(self, query: str) -> str | None:
        """Return the plan of the query as text; None if there is no plan."""

    def drop(self, query: str) -> None:
        """Drop a standing query."""

    def restart(self) -> bool:
        """End, and resume from durable state.

        Returns False where there is none; a new driver then gets all input again.
        """

    def close(self) -> None:
        """Stop and give back what it holds."""


DriverFactory: TypeAlias = Callable[[Mapping[str, object]], Driver]
"""Makes a driver with the given settings of the engine."""
