"""A DuckDB connection that can compute but cannot reach files or the network.

One thread, UTC, external access off and the configuration locked, so that no expression of a
user's script can turn it on again.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}

_PARSE = "SELECT json_serialize_sql(?, skip_null := true, skip_empty := true, skip_default := true)"

DuckError = duckdb.Error
"""What :meth:`Duck.run` raises when DuckDB refuses the SQL or fails on the rows."""
DuckFatalError = (duckdb.FatalException, duckdb.InternalException)
"""Those of them after which the connection cannot be used again."""


class Duck:
    """Runs SQL over Arrow tables under given names."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(":memory:", config=_SETTINGS)
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute("SET lock_configuration = true")

    def parse(self, sql: str) -> str:
        """Return the syntax tree of a SELECT as JSON, without defaults; nothing runs."""
        ((tree,),) = self._connection.execute(_PARSE, [sql]).fetchall()
        return str(tree)

    def run(self, sql: str, /, **tables: pa.Table) -> pa.Table:
        """The result of one SELECT over the given tables, row order kept."""
        for name, table in tables.items():
            self._connection.register(name, table)
        try:
            return self._connection.sql(sql).to_arrow_table()
        finally:
            for name in tables:
                self._connection.unregister(name)
