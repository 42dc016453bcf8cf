"""The catalog: the streams, tables and functions that queries can name.

Names ignore case, as in SQL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pyarrow as pa

from muntin.errors import CatalogError
from muntin.model.functions import FunctionSignature

Options = tuple[tuple[str, str], ...]

ARRIVAL = "_arrival"
"""The column with the time of rows that are stamped when they arrive."""


@dataclass(frozen=True)
class Stream:
    """A declared stream; ``order``, its place among all streams, breaks ties of time.

    With ``arrival``, rows come without their last column, :data:`ARRIVAL`, and are stamped.
    """

    name: str
    schema: pa.Schema
    time: str
    slack: int = 0
    options: Options = ()
    order: int = 0
    arrival: bool = False

    @property
    def given(self) -> pa.Schema:
        """Return the columns that rows are pushed with."""
        return self.schema.remove(len(self.schema) - 1) if self.arrival else self.schema

    def stamped(self, rows: pa.Table, time: int) -> pa.Table:
        """Return rows of a stream with ``arrival`` with their time."""
        stamps = pa.repeat(pa.scalar(time, pa.int64()), len(rows)).cast(pa.timestamp("us"))
        return rows.append_column(self.schema.field(self.time), stamps)

    def column(self, name: str) -> str | None:
        """Return the column as it was declared, ignoring the case of ``name``."""
        return find_column(self.schema, name)


@dataclass(frozen=True)
class Table:
    """A declared stored table; one with a ``key`` column can change."""

    name: str
    schema: pa.Schema
    options: Options = ()
    key: str = ""

    def column(self, name: str) -> str | None:
        """Return the column as it was declared, ignoring the case of ``name``."""
        return find_column(self.schema, name)


@dataclass(frozen=True)
class View:
    """A select that queries can read by its name: a view, or a standing query.

    ``text`` names streams and tables only; what it reads by name stands in front of it, as WITH.
    ``relations`` are the streams and tables below it, ``views`` what it reads by name itself.
    ``barrier`` says why it cannot be read and what to do, if that is so; ``every`` is the interval
    at which its answer changes, if it has one.
    """

    name: str
    text: str
    relations: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    kind: str = "view"
    every: int | None = None
    barrier: tuple[str, str] | None = None


def find_column(schema: pa.Schema, name: str) -> str | None:
    """Return the column of the schema that equals ``name`` up to case."""
    wanted = name.casefold()
    return next((known for known in schema.names if known.casefold() == wanted), None)


@dataclass
class Catalog:
    """Streams and tables by name, and the selects that can be read by name."""

    functions: dict[str, FunctionSignature] = field(default_factory=dict)
    """The functions that users declared, by folded name."""
    _relations: dict[str, Stream | Table] = field(default_factory=dict)
    _views: dict[str, View] = field(default_factory=dict)
    _declared: int = 0

    def find(self, name: str) -> Stream | Table | None:
        """Return the relation of that name, or None."""
        return self._relations.get(name.casefold())

    def add(self, relation: Stream | Table) -> Stream | Table:
        """Add a relation; a stream gets its place in the order of declaration."""
        key = relation.name.casefold()
        if key in self._views:
            view = self._views[key]
            raise CatalogError(
                f"there is already a {view.kind} {view.name}",
                hint="Choose another name, or drop it first",
            )
        if key in self._relations:
            kind = "stream" if isinstance(self._relations[key], Stream) else "table"
            raise CatalogError(
                f"there is already a {kind} {self._relations[key].name}",
                hint="Choose another name, or drop it first",
            )
        if isinstance(relation, Stream):
            relation = replace(relation, order=self._declared)
            self._declared += 1
        self._relations[key] = relation
        return relation

    @property
    def declared(self) -> int:
        """Return the number of streams that were declared, also of those that were removed."""
        return self._declared

    @classmethod
    def restored(
        cls, relations: Iterable[Stream | Table], views: Iterable[View], declared: int
    ) -> Catalog:
        """Return a catalog with relations in their places, after ``declared`` streams in all."""
        return cls(
            {},
            {relation.name.casefold(): relation for relation in relations},
            {view.name.casefold(): view for view in views},
            declared,
        )

    def remove(self, name: str) -> None:
        """Remove a relation that :meth:`find` finds."""
        del self._relations[name.casefold()]

    def find_view(self, name: str) -> View | None:
        """Return the view or the query of that name, or None."""
        return self._views.get(name.casefold())

    def add_view(self, view: View) -> None:
        """Add a view or a query under a name that is free."""
        self._views[view.name.casefold()] = view

    def remove_view(self, name: str) -> None:
        """Remove a view or a query, if it is there."""
        self._views.pop(name.casefold(), None)

    def views(self) -> list[View]:
        """Return all views and queries in the order of declaration."""
        return list(self._views.values())

    def streams(self) -> list[Stream]:
        """Return all streams in the order of declaration."""
        return [relation for relation in self._relations.values() if isinstance(relation, Stream)]

    def tables(self) -> list[Table]:
        """Return all tables in the order of declaration."""
        return [relation for relation in self._relations.values() if isinstance(relation, Table)]
