"""Stored tables on Spark stay as they are: partitions get them at the start."""

from __future__ import annotations

from typing import NoReturn

from muntin.errors import InputError


class FixedTables:
    """Refuses what changes tables in process."""

    def upsert(self, table: str, rows: object) -> NoReturn:  # noqa: ARG002
        """Raise: the rows of tables change in process only."""
        raise tables_stay(table)

    def delete(self, table: str, keys: object) -> NoReturn:  # noqa: ARG002
        """Raise: the rows of tables change in process only."""
        raise tables_stay(table)


def tables_stay(name: str) -> InputError:
    """Return the error for a table that is to change."""
    return InputError(
        f"the rows of table {name} cannot change on Spark, where partitions get them at the start",
        hint="Send them as a stream under [PARTITION BY key ROWS 1], or run in process",
    )
