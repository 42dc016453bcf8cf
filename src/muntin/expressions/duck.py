"""DuckDB connections that can compute but cannot reach files or the network.

One thread, UTC, external access off and the configuration locked, so that no expression in a user's
script can turn it on. A connection that is broken after a fatal error is replaced.
"""

from __future__ import annotations

from functools import cache

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
"""Raised by :meth:`Duck.run` when DuckDB refuses the SQL or fails on the rows."""
DuckFatalError = (duckdb.FatalException, duckdb.InternalException, duckdb.OutOfMemoryException)
"""Errors after which the connection is broken; :class:`Duck` replaces it."""
EvaluationFailure = (duckdb.Error, pa.ArrowException, MemoryError, NotImplementedError)
"""Everything that running SQL over rows can raise because of the SQL or the rows."""


class Duck:
    """Runs SQL over named Arrow tables.

    Parameters
    ----------
    **settings
        Additional settings of the connections, for example ``memory_limit="1GB"``.
    """

    def __init__(self, **settings: str) -> None:
        self._settings = settings
        self._fast: duckdb.DuckDBPyConnection | None = self._connect(self._settings)
        self._strict: duckdb.DuckDBPyConnection | None = None

    def parse(self, sql: str) -> str:
        """Return the syntax tree of a SELECT as JSON, without defaults, and run nothing."""
        try:
            ((tree,),) = self._connection().execute(_PARSE, [sql]).fetchall()
        except DuckFatalError:
            self._fast = None
            raise
        return str(tree)

    def run(self, sql: str, /, **tables: pa.Table) -> pa.Table:
        """Return the result of one SELECT over the given tables, in row order."""
        try:
            return _run(self._connection(), sql, tables)
        except DuckFatalError:
            self._fast = None
            raise

    def _connection(self) -> duckdb.DuckDBPyConnection:
        if self._fast is None:
            self._fast = self._connect(self._settings)
        return self._fast

    def run_strictly(self, sql: str, /, **tables: pa.Table) -> pa.Table:
        """Run like :meth:`run`, but without optimizers that move expressions out of ``TRY``.

        DuckDB computes an expression that occurs twice, or one side of a long IN list, in a step
        below the one with the TRY. The expression rewriter stays on: whether ``x + 1 > 3``
        overflows depends on it, so a row has the same value here and in :meth:`run`.
        """
        if self._strict is None:
            self._strict = self._connect({**self._settings, "disabled_optimizers": _hoisting()})
        try:
            return _run(self._strict, sql, tables)
        except DuckFatalError:
            self._strict = None
            raise

    @staticmethod
    def _connect(settings: dict[str, str]) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect(":memory:", config={**_SETTINGS, **settings})
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET lock_configuration = true")
        return connection


def _run(connection: duckdb.DuckDBPyConnection, sql: str, tables: dict[str, pa.Table]) -> pa.Table:
    for name, table in tables.items():
        connection.register(name, table)
    try:
        result = connection.sql(sql).to_arrow_table()
    except DuckFatalError:
        raise  # the connection is not used again
    except BaseException as error:
        for name in tables:
            connection.unregister(name)
        if _is_interrupt(error):
            raise KeyboardInterrupt from error
        raise
    for name in tables:
        connection.unregister(name)
    return result


def _is_interrupt(error: BaseException) -> bool:
    """Return whether Ctrl-C ended a query: DuckDB handles the signal and raises another error."""
    return isinstance(error, duckdb.InterruptException) or (
        isinstance(error, RuntimeError) and "interrupt" in str(error).lower()
    )


@cache
def _hoisting() -> str:
    """Return all of DuckDB's optimizers but the expression rewriter, comma-separated."""
    with duckdb.connect(":memory:") as connection:
        names = [
            str(name)
            for (name,) in connection.execute("SELECT * FROM duckdb_optimizers()").fetchall()
        ]
    return ",".join(name for name in names if name != "expression_rewriter")
