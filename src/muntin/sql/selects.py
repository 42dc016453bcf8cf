"""From the tokens of selects to the nodes of a pipeline.

Sub-selects in FROM, DISTINCT, and what is grouped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from muntin.errors import SqlError
from muntin.model.catalog import Catalog, Stream, View
from muntin.model.window import TimeWindow, Unbounded
from muntin.plan.expression import POSITION, ColumnRef, Expression, OutputColumn, quote
from muntin.plan.node import Node
from muntin.plan.nodes import Distinct, Join, Scan
from muntin.sql.aggregates import Call, is_aggregate, refuse_aggregates
from muntin.sql.binder import OnAndWhere, bind_using, conditions_of, name_outputs, outputs_of
from muntin.sql.clauses import Clauses
from muntin.sql.from_joins import Entries, combine_entries
from muntin.sql.group_by import Grouping
from muntin.sql.lexer import Tokens, closing, is_symbol, tokenize, top_level, word
from muntin.sql.named_selects import NamedSelect, begins_names, cut_names, own_clauses
from muntin.sql.refusals import refuse
from muntin.sql.scope import NameScope
from muntin.sql.set_operators import combine_selects, split_selects
from muntin.sql.shape import FromEntry, SelectParts, read_shape
from muntin.sql.sources import MOST_SOURCES, bind_entry, check_condition, read_names
from muntin.sql.syntax import find_columns, parse_select
from muntin.sql.typecheck import Condition, find_types, typed
from muntin.sql.views import refuse_barrier
from muntin.sql.writer import Draft, Writer

_HAVING = "Conditions on groups stand in HAVING"
_NO_STREAM = "Stored tables do not change; join them with a stream"
MOST_JOINS = 200
"""How many window joins a query may have after its named selects are put in."""
SELF: Node = Scan("", "", stored=True, window=Unbounded(), schema=pa.schema([]))
"""Stands for a select of WITH while it is bound, if nothing else has its name."""
MOST_LEVELS = 100
"""How many levels of nodes a query may have; planning and running recurse over them."""
_INSIDE = ("WINDOW", "EVERY", "EMIT", "FRESHNESS")


def is_plain(tokens: Tokens) -> bool:
    """Return whether a select is nothing but select, project and join."""
    for index, token in enumerate(tokens):
        if index and word(token) == "SELECT":
            return False
        if is_aggregate(tokens, index):
            return False
    names = {word(tokens[index]) for index in top_level(tokens)}
    return not (
        names & {"GROUP BY", "HAVING"} or (len(tokens) > 1 and word(tokens[1]) == "DISTINCT")
    )


def too_deep(tokens: Tokens) -> SqlError:
    """Return the error for a query with too many levels."""
    fact = f"the query has more than {MOST_LEVELS} levels of sub-selects and set operators"
    hint = "Split it; a chain of EXCEPT can be written as one EXCEPT of a UNION ALL"
    return tokens.error(tokens.start, fact, hint)


def _levels(root: Node) -> int:
    """Return the number of levels of nodes."""
    level, count = [root], 0
    while level:
        level, count = [child for node in level for child in node.inputs], count + 1
    return count


@dataclass
class Selects:
    """Binds the selects of one standing query; ``joins`` counts the window joins found so far.

    ``names`` has the selects of WITH that can be seen, ``reads`` the views that were read.
    """

    name: str
    clauses: Clauses
    catalog: Catalog
    joins: int = 0
    names: Mapping[str, Node] = field(default_factory=dict)
    reads: dict[str, View] = field(default_factory=dict)

    def bind(self, tokens: Tokens) -> Node:
        """Return the node of selects with set operators between them, WITH before them."""
        outer = self.names
        try:
            while begins_names(tokens):
                entries, tokens = cut_names(tokens)
                for entry in entries:
                    node = self._bind_named(entry)
                    self.names = {**self.names, entry.name.text.casefold(): node}
            return self._bind_operands(tokens)
        finally:
            self.names = outer

    def _bind_named(self, entry: NamedSelect) -> Node:
        """Return what an entry of WITH stands for; every use gets a copy of it."""
        select, clauses = own_clauses(entry.body, self.clauses)
        inside = Selects(self.name, clauses, self.catalog, names=self.names, reads=self.reads)
        name = entry.name.text.casefold()
        if name not in self.names and self._is_unknown(name):
            inside.names = {**self.names, name: SELF}
        return inside.bind(select)

    def _is_unknown(self, name: str) -> bool:
        return self.catalog.find(name) is None and self.catalog.find_view(name) is None

    def _bind_view(self, view: View, entry: FromEntry) -> Node:
        """Return what a view stands for, with the windows of this query if it has none."""
        refuse_barrier(view, entry, self.clauses)
        body = tokenize(view.text, view.name)
        try:
            select, clauses = own_clauses(body, self.clauses)
            node = Selects(self.name, clauses, self.catalog).bind(select)
        except SqlError as error:
            fact = f"{view.kind} {view.name} cannot be read here: {error.fact}"
            raise entry.tokens.error(entry.tokens[0], fact, error.hint) from error
        self.reads.setdefault(view.name, view)
        return node

    def _copied(self, node: Node, entry: FromEntry) -> Node:
        """Return a named select for one use; equal copies are computed once when they run."""

        def renamed(each: Node) -> Node:
            if not (isinstance(each, Join) and each.is_leaf):
                return each
            self.joins += 1
            if self.joins > MOST_JOINS:
                fact = f"the query has more than {MOST_JOINS} window joins"
                raise entry.tokens.error(entry.tokens[0], fact, "Use its named selects less often")
            return replace(each, name=f"{self.name}/{self.joins}")

        return node.transform(renamed)

    def _bind_operands(self, tokens: Tokens) -> Node:
        operands, operators = split_selects(tokens)
        node = combine_selects(
            [self._bind_operand(operand) for operand in operands], operators, operands
        )
        if _levels(node) > MOST_LEVELS:
            raise too_deep(tokens)
        return node

    def _bind_operand(self, tokens: Tokens) -> Node:
        while len(tokens) and is_symbol(tokens[0], "(") and closing(tokens, 0) == len(tokens) - 1:
            tokens = tokens.part(1, len(tokens) - 1)
            operands, _ = split_selects(tokens)
            if len(operands) > 1 or begins_names(tokens):
                return self.bind(tokens)
        refuse(tokens)
        for index in top_level(tokens)[1:]:
            if (
                word(tokens[index]) in _INSIDE
                and word(tokens[index - 1]) not in {"AS", "SELECT"}
                and self._ends_select(tokens, index)
            ):
                name = word(tokens[index])
                raise tokens.error(
                    tokens[index],
                    f"{name} cannot stand inside a query",
                    f"Write {name} at the end, for the whole query",
                )
        return self._bind_select(tokens)

    @staticmethod
    def _ends_select(tokens: Tokens, index: int) -> bool:
        """Return whether a word stands behind FROM, where it is no name of a column."""
        return any(
            word(tokens[at]) == "FROM" for at in top_level(tokens) if at < index
        ) and not is_symbol(tokens[index - 1], ".")

    def bind_join(self, tokens: Tokens) -> Join:
        """Return the window join of a select that is nothing else, without a name."""
        join = self._bind_select(tokens, alone=True)
        assert isinstance(join, Join), "it is plain"
        return replace(join, name="")

    def _bind_select(self, tokens: Tokens, *, alone: bool = False) -> Node:
        shape = read_shape(tokens)
        self._refuse_selects(shape)
        tree = parse_select(shape.plain)
        entries = self._bind_entries(shape.entries)
        sources = tuple(source for source, _ in entries)
        if alone and all(source.stored for source in sources):
            first = shape.entries[0].tokens
            raise first.error(first[0], "the query reads no stream", _NO_STREAM)
        merged, using = bind_using(shape, sources)
        aliases = frozenset(item.alias.casefold() for item in tree.expressions if item.alias)
        scope = NameScope(sources, len(sources), merged=merged, outputs=aliases)
        writer = Writer(find_columns(tree))
        for place, condition in [
            ("in WHERE", shape.where),
            *(("in ON", entry.on) for entry in shape.entries),
        ]:
            refuse_aggregates(condition, place, _HAVING)
        conditions = conditions_of(shape, using, writer, scope)
        conditions = conditions.having(self._since(shape, sources))
        inputs = [node for _, node in entries]
        if (
            shape.group is None
            and shape.having is None
            and not any(is_aggregate(item, at) for item in shape.items for at in range(len(item)))
        ):
            outputs = list(outputs_of(shape, tree, writer, scope))
            types = find_types([draft for _, draft in outputs], conditions.all, scope)
            select = name_outputs([(output, typed(draft, types)) for output, draft in outputs])
            rows = self._rows(inputs, sources, conditions.predicates(types), select, tokens)
        else:
            grouping = Grouping(shape, tree, writer, scope)
            drafts = grouping.columns()
            types = find_types(drafts, conditions.all, scope)
            columns = [
                OutputColumn(f"c{place}", typed(draft, types)) for place, draft in enumerate(drafts)
            ]
            predicates = conditions.predicates(types)
            order = (
                [] if grouping.by_time is None else self._order(grouping.by_time, inputs, sources)
            )
            rows = grouping.node(
                lambda select: self._rows(inputs, sources, predicates, select, tokens),
                columns,
                order,
            )
        return Distinct(rows) if shape.distinct else rows

    def _since(self, shape: SelectParts, sources: Sequence[Scan]) -> Iterator[Condition]:
        """Yield the conditions of landmark windows: rows from an instant on."""
        for place, (entry, source) in enumerate(zip(shape.entries, sources, strict=True)):
            relation = self.catalog.find(source.relation)
            if isinstance(source.window, TimeWindow) and source.window.since is not None:
                assert isinstance(relation, Stream), "tables have no window"
                time = ColumnRef(place, relation.time)
                text = f"epoch_us({quote(time.flat)}) >= {source.window.since}"
                yield Condition(Draft(text, (time,), entry.tokens))

    def _order(
        self, call: Call, inputs: Sequence[Node | None], sources: tuple[Scan, ...]
    ) -> list[OutputColumn]:
        """Return the columns that order rows for FIRST and LAST.

        The time of the newest member, then the places of all in their streams.
        """
        if any(inputs):
            hint = "Take it inside the sub-select, over streams and tables"
            raise call.tokens.error(
                call.tokens.start, f"{call.tokens[0].text} over a sub-select is not supported", hint
            )
        places = [ColumnRef(place, POSITION) for place in range(len(sources))]
        order = [
            Expression(quote(reference.flat), (reference,), pa.int64()) for reference in places
        ]
        relations = [self.catalog.find(source.relation) for source in sources]
        times = tuple(
            ColumnRef(place, relation.time)
            for place, relation in enumerate(relations)
            if isinstance(relation, Stream)
        )
        if len(times) == 1:
            kind = sources[times[0].source].schema.field(times[0].column).type
            order.insert(0, Expression(quote(times[0].flat), times, kind))
        else:
            instants = ", ".join(f"epoch_us({quote(reference.flat)})" for reference in times)
            order.insert(0, Expression(f"greatest({instants})", times, pa.int64()))
        return [OutputColumn(f"o{number}", expression) for number, expression in enumerate(order)]

    def _bind_entries(self, entries: Sequence[FromEntry]) -> list[tuple[Scan, Node | None]]:
        found: list[tuple[Scan, Node | None]] = []
        seen: set[str] = set()
        for entry in entries:
            source, node = self._bind_entry(entry)
            if source.alias.casefold() in seen:
                raise entry.tokens.error(
                    entry.tokens[0],
                    f"FROM has two entries named {source.alias}",
                    "Give one of them another alias",
                )
            if len(found) == MOST_SOURCES:
                raise entry.tokens.error(
                    entry.tokens[0],
                    f"FROM has more than {MOST_SOURCES} entries",
                    "Split the query into smaller ones",
                )
            check_condition(entry)
            seen.add(source.alias.casefold())
            found.append((source, node))
        return found

    def _bind_entry(self, entry: FromEntry) -> tuple[Scan, Node | None]:
        """Return an entry of FROM as expressions see it, and what it is if it is a sub-select."""
        if entry.select is None:
            named = self._find_named(entry)
            if named is None:
                return bind_entry(entry, self.clauses, self.catalog), None
            shown, node = named
            return Scan(shown, shown, stored=True, window=Unbounded(), schema=node.schema), node
        if entry.window is not None:
            fact = f"the sub-select {entry.tokens[0].text} cannot have a window"
            raise entry.window.error(entry.window[0], fact, "Give windows to the streams inside it")
        node = self.bind(entry.select)
        alias = entry.tokens[0].text
        return Scan(alias, alias, stored=True, window=Unbounded(), schema=node.schema), node

    def _find_named(self, entry: FromEntry) -> tuple[str, Node] | None:
        """Return the alias and the node of an entry that reads a select by name, else None."""
        name = entry.tokens[0].text if len(entry.tokens) else ""
        node, view = self.names.get(name.casefold()), self.catalog.find_view(name)
        itself = node is SELF or (
            view is None and self._is_unknown(name) and name.casefold() == self.name.casefold()
        )
        if itself:
            hint = "Select from streams, tables and what is defined before it"
            raise entry.tokens.error(entry.tokens[0], f"{name} reads itself", hint)
        if node is None and view is None:
            return None
        first, alias = read_names(entry.tokens)
        if entry.window is not None:
            fact = f"{first.text} cannot have a window here: its rows are an answer, not a stream"
            hint = "Remove the brackets; give windows to the streams inside it"
            raise entry.window.error(entry.window[0], fact, hint)
        if node is None:
            assert view is not None, "one of them is there"
            node = self._bind_view(view, entry)
        shown = first.text if alias is None else alias.text
        return shown, self._copied(node, entry)

    @staticmethod
    def _refuse_selects(shape: SelectParts) -> None:
        """Raise if a sub-select stands anywhere but in FROM."""
        conditions = [part for entry in shape.entries for part in (entry.on,) if part is not None]
        for part in (*shape.items, *conditions, shape.where, shape.group, shape.having):
            for token in part or ():
                if word(token) == "SELECT":
                    hint = "Write it as an entry of FROM, (SELECT ...) AS name, and join with that"
                    raise shape.plain.error(token, "sub-selects can only stand in FROM", hint)

    # -- rows below everything else ---------------------------------------------------------------

    def _rows(
        self,
        inputs: Sequence[Node | None],
        sources: tuple[Scan, ...],
        predicates: OnAndWhere,
        select: tuple[OutputColumn, ...],
        tokens: Tokens,
    ) -> Node:
        """Return the rows of a select before anything is grouped.

        A join of streams and tables, or one over sub-selects too.
        """
        if not any(inputs):
            if all(source.stored for source in sources):
                raise tokens.error(
                    tokens.start,
                    "a select reads no stream",
                    _NO_STREAM,
                )
            return self._window_join(sources, predicates, select)
        return combine_entries(Entries(sources, inputs), predicates, select, self._window_join)

    def _window_join(
        self, sources: tuple[Scan, ...], predicates: OnAndWhere, select: tuple[OutputColumn, ...]
    ) -> Join:
        self.joins += 1
        return Join(sources, *predicates, select, name=f"{self.name}/{self.joins}")
