"""The DuckDB connection of the tests in a process, without access to files or the network.

Apart from the engine's own, so that no setting or mistake there changes what the oracle says.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from threading import Lock

import duckdb
import pyarrow as pa

_LOCK = Lock()


def run_sql(sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return the result of one SELECT over the given tables.

    >>> run_sql("SELECT sum(x)::INT AS total FROM t", {"t": pa.table({"x": [1, 2]})}).to_pylist()
    [{'total': 3}]
    """
    with _LOCK:
        connection = _connection()
        for name, table in tables.items():
            connection.register(name, table)
        try:
            return connection.sql(sql).to_arrow_table()
        finally:
            for name in tables:
                connection.unregister(name)


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config={"threads": 1, "enable_external_access": False})
    connection.execute("SET TimeZone = 'UTC'")
    return connection
