"""What users declare, and the rules for it: the same in process, on Spark, and where a script is only checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Generic, TypeVar

from muntin.errors import CatalogError, InputError, SettingError, SqlError
from muntin.model.arguments import check_name
from muntin.model.catalog import Catalog, Stream, Table
from muntin.model.settings import Settings
from muntin.model.statistics import declared_statistics, known_statistics
from muntin.plan.join import JoinPlan
from muntin.plan.pipeline import Pipeline, PipelinePlan
from muntin.plan.query import Query
from muntin.plan.statement import CreateQuery, CreateStream, CreateTable, Drop, Set
from muntin.planner.join_planner import Knowledge, plan_join
from muntin.planner.window_memory import check_windows
from muntin.sql.script import read_query, read_script

Handle = TypeVar("Handle")


@dataclass
class Declarations:
    """Streams, tables, queries and settings; names go without regard to case, and no two things have the same."""

    catalog: Catalog = field(default_factory=Catalog)
    settings: Settings = field(default_factory=Settings)
    queries: dict[str, Query] = field(default_factory=dict)

    def set(self, name: str, value: object) -> None:
        """Change a setting of the queries to come."""
        self.settings = self.settings.having(name, value)

    def read(self, sql: str, name: str | None) -> Query:
        """A query, bound; without a name it gets the next free one of q1, q2, ..."""
        if name is None:
            names = (f"q{number}" for number in count(1))
            name = next(free for free in names if free not in self.queries and self.catalog.find(free) is None)
        check_name(name, "the name of a query")
        return read_query(sql, name, self.catalog)

    def knowledge(self) -> Knowledge:
        """What is known of the streams before any row has come."""
        return Knowledge(declared=known_statistics(self.catalog))

    def planned(self, query: Query, settings: Settings | None = None) -> tuple[Settings, JoinPlan]:
        """The settings and the plan of a query that is to be added; raises if its name is taken."""
        assert not isinstance(query, Pipeline), "a pipeline is planned by planned_pipeline"
        own = self._settings_of(query, settings)
        check_windows(query, own, self.knowledge().declared)
        return own, plan_join(query, own, self.knowledge())

    def planned_pipeline(self, query: Pipeline, settings: Settings | None = None) -> tuple[Settings, PipelinePlan]:
        """The settings and the plans of the leaves of a pipeline that is to be added; raises if its name is taken."""
        own = self._settings_of(query, settings)
        for leaf in query.leaves:
            check_windows(replace(leaf, name=query.name), own, self.knowledge().declared)
        return own, PipelinePlan(query, tuple(plan_join(leaf, own, self.knowledge()) for leaf in query.leaves))

    def _settings_of(self, query: Query, settings: Settings | None) -> Settings:
        if query.name.casefold() in self.queries or self.catalog.find(query.name):
            raise CatalogError(f"the name {query.name} is taken", hint="Choose another name, or drop what has it first")
        return (settings or self.settings).of_query(query.options)

    def add_query(self, query: Query) -> None:
        """Take a query."""
        self.queries[query.name.casefold()] = query

    def check_free(self, name: str) -> None:
        """Raise if a query has the name that a stream or table is to have."""
        if name.casefold() in self.queries:
            raise CatalogError(f"there is already a query {name}", hint="Choose another name, or drop it first")

    def add_stream(self, stream: Stream) -> Stream:
        """Take a stream; it then knows its place among all."""
        self.check_free(stream.name)
        declared_statistics(stream.options)  # says what is wrong with them now, not when a query needs them
        added = self.catalog.add(stream)
        assert isinstance(added, Stream), "a stream was added"
        return added

    def add_table(self, table: Table) -> None:
        """Take a table."""
        self.check_free(table.name)
        self.catalog.add(table)

    def drop_query(self, name: str, *, if_exists: bool = False) -> Query | None:
        """Let go of a query; None if there is none and need not be."""
        check_name(name, "the name of a query")
        if name.casefold() not in self.queries:
            if if_exists:
                return None
            raise self.unknown_query(name)
        return self.queries.pop(name.casefold())

    def unknown_query(self, name: str) -> CatalogError:
        """What to say where there is no query of a name."""
        known = ", ".join(query.name for query in self.queries.values())
        return CatalogError(f"there is no query {name!r}", hint=f"There are {known or 'no queries'}")

    def drop_relation(self, kind: str, name: str, *, if_exists: bool = False) -> Stream | Table | None:
        """Let go of a stream or table that no query reads; None if there is none and need not be."""
        relation = self.catalog.find(name)
        if relation is None or isinstance(relation, Stream) != (kind == "stream"):
            if if_exists:
                return None
            raise CatalogError(f"there is no {kind} {name}", hint="Check the name")
        users = [query.name for query in self.queries.values() if any(source.relation == relation.name for source in query.sources)]
        if users:
            raise CatalogError(f"{kind} {relation.name} is read by query {', '.join(users)}", hint="Drop those queries first")
        self.catalog.remove(name)
        return relation


@dataclass(frozen=True)
class Actions(Generic[Handle]):
    """What an engine does with statements."""

    add_stream: Callable[[Stream], object]
    add_table: Callable[[Table], object]
    add_query: Callable[[Query], Handle]
    drop: Callable[[Drop], object]


def run_script(script: str, declared: Declarations, actions: Actions[Handle]) -> list[Handle]:
    """Run the statements of a script in order, and return what came of its queries; errors say where they are."""
    handles = []
    for statement in read_script(script, declared.catalog):
        try:
            match statement:
                case CreateStream(stream):
                    actions.add_stream(stream)
                case CreateTable(table):
                    actions.add_table(table)
                case CreateQuery(query):
                    handles.append(actions.add_query(query))
                case Drop():
                    actions.drop(statement)
                case Set(name, value):
                    declared.set(name, value)
        except (CatalogError, InputError, SettingError) as error:
            raise SqlError(error.fact, place=statement.place, hint=error.hint) from error
    return handles
