"""The calls of an engine that declare stored tables and change their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa

from muntin.engine.fair_lock import FairLock
from muntin.engine.input_rows import Rows, read_rows, read_table
from muntin.engine.query_registry import QueryRegistry
from muntin.engine.registrar import Registrar
from muntin.engine.suspended_query import Suspender
from muntin.errors import InputError
from muntin.model.arguments import check_name
from muntin.model.catalog import Table
from muntin.sql.streams import make_table

Keys: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[Any]


class TableCalls:
    """Tables of an engine in process."""

    _lock: FairLock
    _registrar: Registrar
    _registry: QueryRegistry
    _suspender: Suspender

    def table(
        self,
        name: str,
        rows: Rows,
        columns: Mapping[str, str] | None = None,
        *,
        key: str | None = None,
    ) -> None:
        """Declare a stored table with its rows; ``columns`` gives SQL types that rows lack.

        With a ``key``, a column without NULLs whose values differ, rows can change while queries
        run: see :meth:`upsert` and :meth:`delete`.
        """
        rows = read_table(rows, columns, name)
        with self._lock:
            table = make_table(name, rows.schema)
            if key is not None:
                table = replace(table, key=_key_of(table, key))
            self._registrar.add_table(table, read_rows(rows, table.schema, f"table {name}"))

    def upsert(self, table: str, rows: Rows) -> None:
        """Put rows into a table with a key, in the place of those with the same keys.

        All rows or none; a key may come once. The answers of queries follow at the last instant
        that is closed for them, or where EVERY shows it next.

        Examples
        --------
        >>> import muntin
        >>> engine = muntin.Engine()
        >>> engine.stream("A", {"k": "bigint", "ts": "timestamp"}, time="ts")
        >>> engine.table("Names", [{"k": 1, "name": "one"}], key="k")
        >>> q = engine.query("SELECT name FROM A, Names n WHERE A.k = n.k WINDOW 1 MINUTE")
        >>> engine.push("A", [(1, "2026-01-01")])
        >>> engine.advance("2026-01-01")
        >>> engine.upsert("Names", [(1, "uno")])
        >>> [(row["_op"], row["name"]) for row in q.poll().to_pylist()]
        [('+', 'one'), ('-', 'one'), ('+', 'uno')]
        """
        with self._lock:
            known = self._registrar.changing_table(table)
            given = read_rows(rows, known.schema, f"table {known.name}")
            self._registrar.upsert(known, given)
            self._suspender.run()
        self._registry.deliveries.deliver()

    def delete(self, table: str, keys: Keys) -> None:
        """Remove the rows with some keys from a table with a key; other keys are ignored.

        Answers follow as with :meth:`upsert`.
        """
        with self._lock:
            known = self._registrar.changing_table(table)
            self._registrar.delete(known, _read_keys(known, keys))
            self._suspender.run()
        self._registry.deliveries.deliver()


def _key_of(table: Table, key: str) -> str:
    check_name(key, f"the key of table {table.name}")
    column = table.column(key)
    if column is None:
        fact = f"table {table.name} has no column {key!r} to be its key"
        raise InputError(fact, hint=f"It has {', '.join(table.schema.names)}")
    return column


def _read_keys(table: Table, keys: Keys) -> pa.ChunkedArray:
    field = table.schema.field(table.key)
    where = f"the keys of table {table.name}"
    if isinstance(keys, (pa.Array, pa.ChunkedArray)):
        rows: Rows = pa.table([keys], names=[field.name])
    elif isinstance(keys, (str, bytes)) or not isinstance(keys, Sequence):
        raise InputError(
            f"cannot take {where} from {type(keys).__name__}",
            hint="Pass a list of keys, or an Arrow array",
        )
    else:
        rows = [(key,) for key in keys]
    return read_rows(rows, pa.schema([field]), where).column(0)
