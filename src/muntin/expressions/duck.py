"""DuckDB connections that can compute but cannot reach files or the network.

One thread, UTC, external access off and the configuration locked, so that no expression in a user's
script can turn it on. A connection that is broken after a fatal error is replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import Parameter, Signature
from typing import Any

import duckdb
import pyarrow as pa
from duckdb.func import SPECIAL, PythonUDFType

from muntin.errors import EvaluationError, FunctionError
from muntin.expressions.python_functions import PythonFunction, loaded
from muntin.model.functions import function_keys, without_keys

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
        self._fast: _Connection | None = _Connection(self._settings)
        self._strict: _Connection | None = None

    def parse(self, sql: str) -> str:
        """Return the syntax tree of a SELECT as JSON, without defaults, and run nothing."""
        try:
            ((tree,),) = self._connection().duckdb.execute(_PARSE, [sql]).fetchall()
        except DuckFatalError:
            self._fast = None
            raise
        return str(tree)

    def run(self, sql: str, /, **tables: pa.Table) -> pa.Table:
        """Return the result of one SELECT over the given tables, in row order."""
        try:
            return self._connection().run(sql, tables)
        except DuckFatalError:
            self._fast = None
            raise

    def _connection(self) -> _Connection:
        if self._fast is None:
            self._fast = _Connection(self._settings)
        return self._fast

    def run_strictly(self, sql: str, /, **tables: pa.Table) -> pa.Table:
        """Run like :meth:`run`, but without optimizers that move expressions out of ``TRY``.

        DuckDB computes an expression that occurs twice, or one side of a long IN list, in a step
        below the one with the TRY. The expression rewriter stays on: whether ``x + 1 > 3``
        overflows depends on it, so a row has the same value here and in :meth:`run`.
        """
        if self._strict is None:
            self._strict = _Connection({**self._settings, "disabled_optimizers": _hoisting()})
        try:
            return self._strict.run(sql, tables)
        except DuckFatalError:
            self._strict = None
            raise


class _Connection:
    """A connection, and the Python functions that it knows.

    DuckDB wraps the error of a function in one of its own, and TRY hides both; so the first error
    is kept here and raised after the statement.
    """

    def __init__(self, settings: dict[str, str]) -> None:
        self.duckdb = duckdb.connect(":memory:", config={**_SETTINGS, **settings})
        self.duckdb.execute("SET TimeZone = 'UTC'")
        self.duckdb.execute("SET lock_configuration = true")
        self._created: set[str] = set()
        self._failures: list[FunctionError] = []

    def run(self, sql: str, tables: dict[str, pa.Table]) -> pa.Table:
        """Return the result of one SELECT over the given tables."""
        called = function_keys(sql)
        for key in called - self._created:
            self._create(key)
        if not called:
            return _run(self.duckdb, sql, tables)
        try:
            result = _run(self.duckdb, sql, tables)
        except DuckError:
            self._raise_failure()
            raise
        self._raise_failure()
        return result

    def _raise_failure(self) -> None:
        """Raise the first error of a function; keep none, as its traceback leads back here."""
        if self._failures:
            failure = self._failures[0]
            self._failures.clear()
            raise failure from None

    def _create(self, key: str) -> None:
        signature = _function(key).signature
        self.duckdb.create_function(
            key,
            _kept(key, len(signature.parameters), self._failures),
            [duckdb.sqltype(kind) for _, kind in signature.parameters],
            duckdb.sqltype(signature.result),
            type=PythonUDFType.ARROW,
            null_handling=SPECIAL,
            side_effects=False,
        )
        self._created.add(key)


def _function(key: str) -> PythonFunction:
    function = loaded(key)
    if function is None:
        raise EvaluationError(
            f"the function {without_keys(key)} is not loaded in this process",
            hint="Declare it with engine.function before the engine starts",
        )
    return function


def _kept(key: str, arity: int, failures: list[FunctionError]) -> Callable[..., Any]:
    """Return a function for DuckDB; its errors are added to the failures.

    It refers to the user's function by key: a connection is no object that Python could collect
    in a cycle, and what the function closes over may lead back to it.
    """

    def called(*columns: Any) -> pa.Array:
        try:
            return _function(key).values(columns)
        except FunctionError as error:
            failures.append(error)
            raise

    # DuckDB counts the parameters of what it calls.
    parameters = [Parameter(f"a{place}", Parameter.POSITIONAL_ONLY) for place in range(arity)]
    called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return called


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
