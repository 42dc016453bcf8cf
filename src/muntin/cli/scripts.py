"""Reading a script without running it: what ``check`` and ``explain`` do, and ``run`` before it starts Spark."""

from __future__ import annotations

from pathlib import Path

from muntin.errors import CatalogError, InputError, SettingError, SqlError
from muntin.model.catalog import Catalog, Stream, Table
from muntin.model.settings import Settings
from muntin.model.statistics import declared_statistics, known_statistics
from muntin.plan.join import JoinPlan
from muntin.plan.query import Query
from muntin.plan.statement import CreateQuery, CreateStream, CreateTable, Drop
from muntin.planner.join_planner import Knowledge, plan_join
from muntin.sql.script import read_script


def read_text(path: Path) -> str:
    """The text of a script."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(f"there is no file {str(path)!r}", hint="Check the path") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {str(path)!r}: {error}", hint="It must be a text file in UTF-8") from error


def read_app(path: Path) -> list[JoinPlan]:
    """The plans of the queries that a script leaves registered, in order."""
    text = read_text(path)
    catalog = Catalog()
    settings = Settings()
    plans: dict[str, JoinPlan] = {}
    for statement in read_script(text, catalog):
        try:
            if isinstance(statement, CreateStream):
                declared_statistics(statement.stream.options)
                _declare(statement.stream, catalog, plans)
            elif isinstance(statement, CreateTable):
                _declare(statement.table, catalog, plans)
            elif isinstance(statement, CreateQuery):
                _plan(statement.query, catalog, settings, plans)
            elif isinstance(statement, Drop):
                _drop(statement, catalog, plans)
            else:
                settings = settings.having(statement.name, statement.value)
        except (CatalogError, InputError, SettingError) as error:
            raise SqlError(error.fact, place=statement.place, hint=error.hint) from error
    return list(plans.values())


def _declare(relation: Stream | Table, catalog: Catalog, plans: dict[str, JoinPlan]) -> None:
    if relation.name.casefold() in plans:
        raise CatalogError(f"there is already a query {relation.name}", hint="Choose another name")
    catalog.add(relation)


def _plan(query: Query, catalog: Catalog, settings: Settings, plans: dict[str, JoinPlan]) -> None:
    if query.name.casefold() in plans or catalog.find(query.name):
        raise CatalogError(f"the name {query.name} is taken", hint="Choose another name")
    plans[query.name.casefold()] = plan_join(query, settings.of_query(query.options), Knowledge(declared=known_statistics(catalog)))


def _drop(statement: Drop, catalog: Catalog, plans: dict[str, JoinPlan]) -> None:
    if statement.kind == "query":
        if plans.pop(statement.name.casefold(), None) is None and not statement.if_exists:
            raise CatalogError(f"there is no query {statement.name}", hint="Check the name")
        return
    relation = catalog.find(statement.name)
    if relation is None or isinstance(relation, Stream) != (statement.kind == "stream"):
        if statement.if_exists:
            return
        raise CatalogError(f"there is no {statement.kind} {statement.name}", hint="Check the name")
    users = [plan.query.name for plan in plans.values() if any(source.relation == relation.name for source in plan.query.sources)]
    if users:
        raise CatalogError(f"{statement.kind} {relation.name} is read by query {', '.join(users)}", hint="Drop those queries first")
    catalog.remove(statement.name)
