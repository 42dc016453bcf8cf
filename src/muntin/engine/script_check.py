"""Check a script without running it: report all mistakes, and the plans of its queries."""

from __future__ import annotations

from dataclasses import dataclass, field

from muntin.engine.declaration_checks import table_mistakes, without_source
from muntin.engine.declarations import Declarations, located
from muntin.engine.table_files import check_table_files
from muntin.errors import MuntinError, SqlError
from muntin.model.allowed_paths import AllowedPaths
from muntin.model.formats import is_foreign
from muntin.plan.join import JoinPlan
from muntin.plan.query_plan import QueryPlan
from muntin.plan.statement import (
    CreateQuery,
    CreateStream,
    CreateTable,
    CreateView,
    DropStatement,
    Set,
    Statement,
)
from muntin.sql.script import Mistakes, read_all


@dataclass(frozen=True)
class Scope:
    """The scope of a check.

    With ``files`` the files and folders that the script names must exist. With ``on_spark`` the
    script is to run on Spark, so every stream needs a source.
    """

    allowed: AllowedPaths | None = None
    files: bool = True
    on_spark: bool = False


@dataclass
class ScriptCheck:
    """Reads a script to its end, however many mistakes it has.

    A declaration whose options are wrong still counts, so that the following statements can be
    checked against it.
    """

    scope: Scope
    plans: dict[str, JoinPlan | QueryPlan] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._declared = Declarations(allowed=self.scope.allowed, connected=self.scope.files)
        self._mistakes = Mistakes()
        self._streams: list[CreateStream] = []

    def read(self, text: str) -> list[SqlError]:
        """Return the mistakes of a script by line and column."""
        for statement in read_all(text, self._declared.catalog, self._mistakes):
            try:
                self._take(statement)
            except MuntinError as error:
                self._note(error, statement)
        self._check_sources()
        return self._mistakes.in_order()

    def _note(self, error: MuntinError, statement: Statement) -> None:
        self._mistakes.errors.append(located(error, statement))

    def _take(self, statement: Statement) -> None:
        match statement:
            case CreateStream():
                self._take_stream(statement)
            case CreateTable():
                self._take_table(statement)
            case CreateView(view):
                self._mistakes.broken.discard(view.name.casefold())
                self._declared.add_view(view)
            case CreateQuery():
                self._take_query(statement)
            case DropStatement():
                self._drop(statement)
            case Set(name, value):
                self._declared.set(name, value)

    def _take_stream(self, statement: CreateStream) -> None:
        stream = statement.stream
        self._mistakes.broken.discard(stream.name.casefold())
        for mistake in self._declared.stream_mistakes(stream):
            self._note(mistake, statement)
        self._declared.add_stream(stream)
        self._streams.append(statement)
        kind = _format_of(statement)
        if kind is not None and is_foreign(kind):
            self.notes.append(
                f"stream {stream.name}: only Spark can check the options of format {kind!r}"
            )

    def _take_table(self, statement: CreateTable) -> None:
        self._mistakes.broken.discard(statement.table.name.casefold())
        mistakes = list(table_mistakes(statement.table, self.scope.allowed))
        for mistake in mistakes:
            self._note(mistake, statement)
        self._declared.add_table(statement.table)
        if self.scope.files and not mistakes:
            check_table_files(statement.table, self.scope.allowed)

    def _take_query(self, statement: CreateQuery) -> None:
        query = statement.query
        if statement.replaces and self._declared.check_replaceable(query):
            self._declared.drop_query(query.name)
        self._mistakes.broken.discard(query.name.casefold())
        mistakes = list(self._declared.query_mistakes(query))
        for mistake in mistakes:
            self._note(mistake, statement)
        try:
            _, self.plans[query.name] = self._declared.planned(query)
        except MuntinError:
            self._mistakes.broken.add(query.name.casefold())
            raise
        self._declared.add_query(query)

    def _drop(self, statement: DropStatement) -> None:
        if statement.name.casefold() in self._mistakes.broken:
            self._mistakes.broken.discard(statement.name.casefold())
        elif statement.kind == "view":
            self._declared.drop_view(statement.name, if_exists=statement.if_exists)
        elif statement.kind == "function":
            self._declared.drop_function(statement.name, if_exists=statement.if_exists)
        elif statement.kind != "query":
            dropped = self._declared.drop_relation(
                statement.kind, statement.name, if_exists=statement.if_exists
            )
            if dropped is not None:
                self._streams = [one for one in self._streams if one.stream.name != dropped.name]
        else:
            query = self._declared.drop_query(statement.name, if_exists=statement.if_exists)
            if query is not None:
                del self.plans[query.name]

    def _check_sources(self) -> None:
        """Note the streams without a source, unless the script is one whose rows are pushed."""
        bare = [statement for statement in self._streams if _format_of(statement) is None]
        pushed = len(bare) == len(self._streams) and not self.scope.on_spark
        for statement in bare if self.scope.files and not pushed else ():
            self._note(without_source(statement.stream), statement)


def _format_of(statement: CreateStream) -> str | None:
    return next(
        (value for name, value in statement.stream.options if name.lower() == "format"), None
    )
