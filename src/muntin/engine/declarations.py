"""The declarations of users and their rules, which are the same in process and on Spark.

``muntin check`` applies the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import count
from typing import Generic, TypeVar

from muntin.engine.declaration_checks import (
    SINK_OPTIONS,
    SinkOptions,
    sink_mistakes,
    stream_mistakes,
    without_source,
)
from muntin.errors import CatalogError, InputError, MuntinError, SettingError, SqlError
from muntin.expressions.python_functions import PythonFunction, load, unload
from muntin.model.allowed_paths import AllowedPaths
from muntin.model.arguments import check_name
from muntin.model.catalog import Catalog, Stream, Table, View
from muntin.model.settings import Settings
from muntin.model.statistics import declared_statistics, known_statistics
from muntin.plan.query import Query
from muntin.plan.statement import (
    CreateQuery,
    CreateStream,
    CreateTable,
    CreateView,
    DropStatement,
    Set,
    Statement,
)
from muntin.planner.draft import Knowledge
from muntin.runtime.planned_query import AnyPlan, plan_checked
from muntin.sql.python_functions import functions_called
from muntin.sql.script import read_query, read_script
from muntin.sql.views import readable

Handle = TypeVar("Handle")


@dataclass
class Declarations:
    """Streams, tables, queries and settings, under unique names without regard to case.

    ``allowed`` are the folders that scripts are confined to. If ``connected``, streams are read
    from their sources and results written to their sinks, as on Spark; otherwise rows are pushed
    and results polled.
    """

    catalog: Catalog = field(default_factory=Catalog)
    settings: Settings = field(default_factory=Settings)
    queries: dict[str, Query] = field(default_factory=dict)
    allowed: AllowedPaths | None = None
    connected: bool = False

    def set(self, name: str, value: object) -> None:
        """Change a setting of queries that are added later."""
        self.settings = self.settings.having(name, value)

    def read(self, sql: str, name: str | None, weight: float | None = None) -> Query:
        """Return a bound query; without a name it gets the next free one of q1, q2, ..."""
        if name is None:
            names = (f"q{number}" for number in count(1))
            name = next(free for free in names if not self._is_taken(free))
        check_name(name, "the name of a query")
        query = read_query(sql, name, self.catalog)
        if weight is None:
            return query
        if any(option.lower() == "weight" for option, _ in query.options):
            raise SettingError(
                f"query {name} has two weights", hint="Give it in WITH (...) or as weight=..."
            )
        return replace(query, options=(*query.options, ("weight", str(weight))))

    def knowledge(self) -> Knowledge:
        """Return what is known of the streams before any row has come."""
        return Knowledge(declared=known_statistics(self.catalog))

    def planned(self, query: Query) -> tuple[Settings, AnyPlan]:
        """Return the settings and the plan of a query to be added; raise if its name is taken."""
        own = self._settings_of(query)
        return own, plan_checked(query, own, self.knowledge())

    def check_replaceable(self, query: Query) -> bool:
        """Return whether a query has the name of another; raise unless it can take its place."""
        known = self.queries.get(query.name.casefold())
        if known is None:
            return False
        if known.name in query.views:
            fact = f"query {query.name} reads the query that it replaces"
            raise CatalogError(fact, hint="Choose another name")
        self._check_unread("query", known.name)
        self.check_query(query)
        plan_checked(query, self._own_settings(query), self.knowledge())
        return True

    def _own_settings(self, query: Query) -> Settings:
        return self.settings.of_query(query.options, SINK_OPTIONS)

    def _settings_of(self, query: Query) -> Settings:
        if self._is_taken(query.name):
            raise CatalogError(
                f"the name {query.name} is taken",
                hint="Choose another name, or drop what has it first",
            )
        return self._own_settings(query)

    def add_query(self, query: Query) -> None:
        """Add a query, which later ones can read by its name."""
        self.queries[query.name.casefold()] = query
        self.catalog.add_view(readable(query))

    def _is_taken(self, name: str) -> bool:
        known = self.catalog.find(name) or self.catalog.find_view(name)
        return known is not None or name.casefold() in self.queries

    def add_view(self, view: View) -> None:
        """Add a view."""
        if self._is_taken(view.name):
            raise CatalogError(
                f"the name {view.name} is taken",
                hint="Choose another name, or drop what has it first",
            )
        self.catalog.add_view(view)

    def add_function(self, function: PythonFunction) -> None:
        """Add a function, or replace one that no query calls."""
        self.drop_function(function.signature.name, if_exists=True)
        load([function])
        self.catalog.functions[function.signature.name.casefold()] = function.signature

    def drop_function(self, name: str, *, if_exists: bool = False) -> None:
        """Remove a function that no query or view calls."""
        known = self.catalog.functions.get(name.casefold())
        if known is None:
            if if_exists:
                return
            raise CatalogError(f"there is no function {name}", hint="Check the name")
        callers = [
            f"{view.kind} {view.name}"
            for view in self.catalog.views()
            if functions_called(view.text, {name.casefold(): known})
        ]
        if callers:
            fact = f"the function {known.name} is called by {', '.join(callers)}"
            raise CatalogError(fact, hint="Drop what calls it first")
        del self.catalog.functions[name.casefold()]
        unload(known.key)

    def drop_view(self, name: str, *, if_exists: bool = False) -> None:
        """Remove a view that nothing reads."""
        view = self.catalog.find_view(name)
        if view is not None and view.kind == "view":
            self._check_unread(view.kind, view.name)
            self.catalog.remove_view(name)
        elif not if_exists:
            raise CatalogError(f"there is no view {name}", hint="Check the name")

    def _check_unread(self, kind: str, name: str) -> None:
        """Raise if views or queries read a view or a query."""
        readers = [
            f"{view.kind} {view.name}" for view in self.catalog.views() if name in view.views
        ]
        if readers:
            hint = "Drop what reads it first"
            raise CatalogError(f"{kind} {name} is read by {', '.join(readers)}", hint=hint)

    def query_mistakes(self, query: Query) -> Iterator[MuntinError]:
        """Yield the mistakes in the options of a query: its settings and its sink."""
        for option in query.options:
            try:
                self.settings.of_query((option,), SINK_OPTIONS)
            except SettingError as error:
                yield error
        yield from sink_mistakes(query, self.allowed, connected=self.connected)
        folder = SinkOptions.of(query.options).folder
        for other in self.queries.values() if self.connected and folder is not None else ():
            if SinkOptions.of(other.options).folder == folder:
                yield SettingError(
                    f"query {other.name} already writes to {folder}",
                    hint="Give every query a separate folder",
                    option="path",
                )

    def check_query(self, query: Query) -> None:
        """Raise the first mistake of a query's options, if it has any."""
        for mistake in self.query_mistakes(query):
            raise mistake

    def stream_mistakes(self, stream: Stream) -> Iterator[MuntinError]:
        """Yield the mistakes in the options of a stream."""
        try:
            declared_statistics(stream.options)  # now, not when a query needs them
        except InputError as error:
            yield error
        yield from stream_mistakes(stream, self.allowed, connected=self.connected)

    def check_stream(self, stream: Stream) -> None:
        """Raise the first mistake of a stream that a script declares, if it has any."""
        for mistake in self.stream_mistakes(stream):
            raise mistake
        if self.connected and not any(name.lower() == "format" for name, _ in stream.options):
            raise without_source(stream)

    def add_stream(self, stream: Stream) -> Stream:
        """Add a stream, numbered in the order of declaration."""
        added = self.catalog.add(stream)
        assert isinstance(added, Stream), "a stream was added"
        return added

    def add_table(self, table: Table) -> None:
        """Add a table."""
        self.catalog.add(table)

    def drop_query(self, name: str, *, if_exists: bool = False) -> Query | None:
        """Remove a query and return it; None if it is missing and may be."""
        check_name(name, "the name of a query")
        if name.casefold() not in self.queries:
            if if_exists:
                return None
            raise self.unknown_query(name)
        self._check_unread("query", self.queries[name.casefold()].name)
        self.catalog.remove_view(name)
        return self.queries.pop(name.casefold())

    def unknown_query(self, name: str) -> CatalogError:
        """Return the error for a name without a query."""
        known = ", ".join(query.name for query in self.queries.values())
        return CatalogError(
            f"there is no query {name!r}", hint=f"There are {known or 'no queries'}"
        )

    def drop_relation(
        self, kind: str, name: str, *, if_exists: bool = False
    ) -> Stream | Table | None:
        """Remove a stream or table that no query reads; None if that is missing and may be."""
        relation = self.catalog.find(name)
        if relation is None or isinstance(relation, Stream) != (kind == "stream"):
            if if_exists:
                return None
            raise CatalogError(f"there is no {kind} {name}", hint="Check the name")
        views = self.catalog.views()
        for what in ("query", "view"):
            below = [each for each in views if relation.name in each.relations]
            users = [each.name for each in below if each.kind == what]
            if users:
                raise CatalogError(
                    f"{kind} {relation.name} is read by {what} {', '.join(users)}",
                    hint=f"Drop those {'queries' if what == 'query' else 'views'} first",
                )
        self.catalog.remove(name)
        return relation


def unknown_stream(name: str, streams: Iterable[str]) -> CatalogError:
    """Return the error for a name without a stream."""
    known = list(streams)
    near = get_close_matches(name, known, 1)
    there = f"There are {', '.join(known) or 'no streams yet'}"
    hint = f"Did you mean {near[0]!r}?" if near else there
    return CatalogError(f"there is no stream {name!r}", hint=hint)


@dataclass(frozen=True)
class Actions(Generic[Handle]):
    """The actions of an engine on statements."""

    add_stream: Callable[[Stream], object]
    add_table: Callable[[Table], object]
    add_query: Callable[[Query], Handle]
    replace_query: Callable[[Query], Handle]
    drop: Callable[[DropStatement], object]


def run_script(script: str, declared: Declarations, actions: Actions[Handle]) -> list[Handle]:
    """Run the statements of a script in order, and return the results of its queries.

    The first error ends it and has its place in the script; the statements before it stay in force.
    """
    handles = []
    for statement in read_script(script, declared.catalog):
        try:
            match statement:
                case CreateStream(stream):
                    declared.check_stream(stream)
                    actions.add_stream(stream)
                case CreateTable(table):
                    actions.add_table(table)
                case CreateView(view):
                    declared.add_view(view)
                case CreateQuery(query, replaces=replaces):
                    add = actions.replace_query if replaces else actions.add_query
                    handles.append(add(query))
                case DropStatement():
                    actions.drop(statement)
                case Set(name, value):
                    declared.set(name, value)
        except (CatalogError, InputError, SettingError) as error:
            raise located(error, statement) from error
    return handles


def located(error: MuntinError, statement: Statement) -> SqlError:
    """Return an error with its place in the script: the faulty option, or the statement."""
    if isinstance(error, SqlError):
        return error
    places = {} if isinstance(statement, CreateView | DropStatement | Set) else statement.options
    return SqlError(
        error.fact, place=places.get(error.option.lower(), statement.place), hint=error.hint
    )
