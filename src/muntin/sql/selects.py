"""From the tokens of selects to the nodes of a pipeline.

Sub-selects in FROM, DISTINCT, and what is grouped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from muntin.errors import SqlError
from muntin.model.catalog import Catalog, Stream, View
from muntin.model.window import TimeWindow, Unbounded
from muntin.plan.expression import (
    ColumnRef,
    OutputColumn,
    quote,
    select_all,
)
from muntin.plan.node import Node
from muntin.plan.nodes import Distinct, Join, Scan
from muntin.sql.aggregates import is_aggregate, refuse_aggregates
from muntin.sql.binder import OnAndWhere, bind_using, conditions_of, name_outputs, outputs_of
from muntin.sql.bound_from import BoundFrom
from muntin.sql.clauses import Clauses
from muntin.sql.conjuncts import unwrap
from muntin.sql.from_joins import Entries, combine_entries
from muntin.sql.group_by import Grouping
from muntin.sql.grouping_sets import is_grouping
from muntin.sql.lexer import Tokens, closing, is_symbol, tokenize, top_level, word
from muntin.sql.named_selects import NamedSelect, begins_names, cut_names, own_clauses
from muntin.sql.order_by import (
    ORDER_COLUMN,
    cut_ordering,
    first_of,
    order_places,
    read_ordering,
)
from muntin.sql.outer_checks import check_outer
from muntin.sql.outer_joins import OuterJoins, kind_of
from muntin.sql.over_selects import bind_over, read_over
from muntin.sql.own_ends import refuse_mixed, with_own_ends
from muntin.sql.refusals import refuse
from muntin.sql.row_order import order_columns, order_for
from muntin.sql.scope import NameScope
from muntin.sql.select_names import SelectNames
from muntin.sql.session_calls import bind_session
from muntin.sql.set_operators import combine_selects, split_selects
from muntin.sql.shape import FromEntry, SelectParts, read_shape, read_tail
from muntin.sql.sources import MOST_SOURCES, bind_entry, check_condition, read_alias
from muntin.sql.syntax import find_columns, parse_select
from muntin.sql.typecheck import Condition, find_types, typed
from muntin.sql.views import refuse_barrier
from muntin.sql.window_calls import bind_call, union_of
from muntin.sql.writer import Draft, Writer

_HAVING = "Conditions on groups stand in HAVING"
_NO_STREAM = "Stored tables do not change; join them with a stream"
MOST_JOINS = 200
"""How many window joins there may be in what outer joins and uses of a select by name copy."""
MOST_LEVELS = 100
"""How many levels of nodes a query may have; planning and running recurse over them."""
_INSIDE = ("WINDOW", "EVERY", "EMIT", "FRESHNESS")


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

    ``inserts``: the query is nothing but joins, some of them outer ones, and emits inserts.
    """

    name: str
    clauses: Clauses
    catalog: Catalog
    joins: int = 0
    names: SelectNames = field(default_factory=SelectNames)
    inserts: bool = False

    def bind(self, tokens: Tokens, *, sorts: bool = False) -> Node:
        """Return the node of selects with set operators between them, WITH before them.

        With ``sorts``, ORDER BY needs no LIMIT.
        """
        outer = self.names
        try:
            while begins_names(tokens):
                entries, tokens = cut_names(tokens)
                for entry in entries:
                    self.names = self.names.having(entry.name.text, self._bind_named(entry))
            return self._bind_operands(tokens, sorts=sorts)
        finally:
            self.names = outer

    def _bind_named(self, entry: NamedSelect) -> Node:
        """Return what an entry of WITH stands for; every use gets a copy of it."""
        select, clauses = own_clauses(entry.body, self.clauses)
        names = self.names.within(entry.name.text, self.catalog)
        return Selects(self.name, clauses, self.catalog, names=names).bind(select)

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
        self.names.reads.setdefault(view.name, view)
        return node

    def _bind_operands(self, tokens: Tokens, *, sorts: bool) -> Node:
        body, tail = cut_ordering(tokens)
        operands, operators = split_selects(body)
        if len(operands) == 1 and not (len(body) and is_symbol(body[0], "(")):
            node = self._bind_operand(tokens, sorts=sorts)
        else:
            node = combine_selects(
                [self._bind_operand(operand, sorts=sorts) for operand in operands],
                operators,
                operands,
            )
            if ordering := read_ordering(read_tail(tail), sorts=sorts):
                node = first_of(node, ordering)
        if _levels(node) > MOST_LEVELS:
            raise too_deep(tokens)
        return node

    def _bind_operand(self, tokens: Tokens, *, sorts: bool) -> Node:
        while len(tokens) and is_symbol(tokens[0], "(") and closing(tokens, 0) == len(tokens) - 1:
            tokens = tokens.part(1, len(tokens) - 1)
            operands, _ = split_selects(tokens)
            if len(operands) > 1 or begins_names(tokens):
                return self.bind(tokens, sorts=sorts)
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
        return self._bind_select(tokens, sorts=sorts)

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

    def _bind_select(self, tokens: Tokens, *, alone: bool = False, sorts: bool = False) -> Node:
        shape = read_shape(tokens)
        ordering = read_ordering(shape, sorts=sorts)
        inside = None if shape.distinct else ordering
        self._refuse_selects(shape)
        tree = parse_select(shape.plain)
        entries = self._bind_entries(shape.entries)
        sources = tuple(source for source, _ in entries)
        if alone and all(source.stored for source in sources):
            first = shape.entries[0].tokens
            raise first.error(first[0], "the query reads no stream", _NO_STREAM)
        refuse_mixed(shape, sources)
        merged, using = bind_using(shape, sources)
        aliases = frozenset(item.alias.casefold() for item in tree.expressions if item.alias)
        hidden = frozenset(
            place
            for place, entry in enumerate(shape.entries)
            if kind_of(entry.join) in {"SEMI", "ANTI"}
        )
        scope = NameScope(sources, len(sources), 0, merged, aliases, hidden)
        writer = Writer(find_columns(tree), self.catalog.functions)
        for place, condition in [
            ("in WHERE", shape.where),
            *(("in ON", entry.on) for entry in shape.entries),
        ]:
            refuse_aggregates(condition, place, _HAVING)
        conditions = conditions_of(shape, using, writer, scope)
        conditions = conditions.having(self._since(shape, sources))
        check_outer(shape, conditions)
        bound = BoundFrom(sources, [node for _, node in entries], shape.entries, conditions)
        if (over := read_over(shape)) is not None:
            writer = replace(writer, uses={**writer.uses, **over.uses})
            outputs = list(outputs_of(over.shape, tree, writer, over.scope(scope)))
            return bind_over(
                over,
                outputs,
                (writer, scope),
                conditions,
                (order_columns(bound, self.catalog), partial(self._rows, bound, tokens=tokens)),
            )
        if (
            shape.group is None
            and shape.having is None
            and not any(
                is_aggregate(item, at) or is_grouping(item, at)
                for item in shape.items
                for at in range(len(item))
            )
        ):
            outputs = list(outputs_of(shape, tree, writer, scope))
            visible = len(outputs)
            places = order_places(inside, [name for name, _ in outputs])
            for item, at in places:
                if at == len(outputs):
                    draft = writer.write(unwrap(item.tokens), scope)
                    outputs.append((f"{ORDER_COLUMN}{at}", draft))
            types = find_types([draft for _, draft in outputs], conditions.all, scope)
            select = name_outputs([(output, typed(draft, types)) for output, draft in outputs])
            ties = order_columns(bound, self.catalog) if inside is not None else []
            rows = self._rows(bound, conditions.predicates(types), (*select, *ties), tokens)
        else:
            grouping = Grouping(shape, tree, writer, scope)
            visible, ties = len(shape.items), []
            places = order_places(inside, grouping.names if inside else [])
            for item, at in places:
                if at >= visible:
                    grouping.also(f"{ORDER_COLUMN}{at}", item.tokens)
            drafts = grouping.columns()
            types = find_types(drafts, conditions.all, scope)
            columns = [
                OutputColumn(f"c{place}", typed(draft, types)) for place, draft in enumerate(drafts)
            ]
            predicates = conditions.predicates(types)
            order = (
                [] if grouping.by_time is None else order_for(grouping.by_time, bound, self.catalog)
            )
            rows = grouping.node(
                (
                    lambda select: self._rows(bound, predicates, select, tokens),
                    partial(self._fresh, tokens=tokens),
                ),
                columns,
                order,
            )
        if inside is not None:
            return inside.over(rows, [at for _, at in places], visible, len(ties))
        rows = Distinct(rows) if shape.distinct else rows
        return rows if ordering is None else first_of(rows, ordering)

    def _since(self, shape: SelectParts, sources: Sequence[Scan]) -> Iterator[Condition]:
        """Yield the conditions of landmark windows: rows from an instant on."""
        for place, (entry, source) in enumerate(zip(shape.entries, sources, strict=True)):
            relation = self.catalog.find(source.relation)
            if isinstance(source.window, TimeWindow) and source.window.since is not None:
                assert isinstance(relation, Stream), "tables have no window"
                time = ColumnRef(place, relation.time)
                text = f"epoch_us({quote(time.flat)}) >= {source.window.since}"
                yield Condition(Draft(text, (time,), entry.tokens))

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
        if entry.call is not None:
            return self._bind_call(entry, entry.call)
        if entry.select is not None:
            if entry.window is not None:
                fact = f"the sub-select {entry.tokens[0].text} cannot have a window"
                hint = "Give windows to the streams inside it"
                raise entry.window.error(entry.window[0], fact, hint)
            alias, node = entry.tokens[0].text, self.bind(entry.select)
        elif (found := self.names.find(entry, self.name, self.catalog)) is not None:
            named = found if isinstance(found, Node) else self._bind_view(found, entry)
            alias, node = read_alias(entry), self._fresh(named, entry.tokens)
        else:
            return bind_entry(entry, self.clauses, self.catalog), None
        return Scan(alias, alias, stored=True, window=Unbounded(), schema=node.schema), node

    def _bind_call(self, entry: FromEntry, call: Tokens) -> tuple[Scan, Node | None]:
        """Return the scan of a window function; of several, one and the union of them all."""
        if entry.window is not None:
            fact = f"{call[0].text} cannot have another window"
            raise entry.window.error(entry.window[0], fact, "Remove the brackets")
        alias = entry.tokens[0].text
        if word(call[0]) == "SESSION":
            node = bind_session(call, alias, self.catalog, self._window_join)
            return Scan(alias, alias, stored=True, window=Unbounded(), schema=node.schema), node
        scans = bind_call(call, alias, self.catalog)
        if len(scans) == 1:
            return scans[0], None
        select = select_all(scans[0].schema)
        windows = union_of([self._window_join((scan,), ((), ()), select) for scan in scans])
        return replace(scans[0], relation=alias, stored=True), windows

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
        bound: BoundFrom,
        predicates: OnAndWhere,
        select: tuple[OutputColumn, ...],
        tokens: Tokens,
    ) -> Node:
        """Return the rows of a select before anything is grouped.

        A join of streams and tables, or one over sub-selects too.
        """
        sources = bound.sources
        if not any(bound.nodes) and all(source.stored for source in sources):
            raise tokens.error(tokens.start, "a select reads no stream", _NO_STREAM)
        entries = Entries(sources, bound.nodes)
        joins = bound.joins(predicates[0])
        if joins.is_outer:
            fresh = partial(self._fresh, tokens=tokens)
            outer = OuterJoins(entries, joins, self._window_join, fresh, self.inserts)
            return outer.bind(predicates[1], select)
        if any(bound.nodes):
            return combine_entries(entries, predicates, select, self._window_join)
        return self._window_join(sources, predicates, select)

    def _fresh(self, root: Node, tokens: Tokens) -> Node:
        """Return a tree whose window joins have names that no other one has.

        Equal copies of a tree are computed once when they run; larger ones than a query may have
        are refused before they are copied once more.
        """
        before = self.joins

        def rule(node: Node) -> Node:
            if not (isinstance(node, Join) and node.is_leaf):
                return node
            self.joins += 1
            return replace(node, name=f"{self.name}/{self.joins}")

        copied = root.transform(rule)
        if self.joins - before > MOST_JOINS:
            fact = f"the query has more than {MOST_JOINS} window joins"
            hint = "Use fewer outer joins and selects by name, or split it into several queries"
            raise tokens.error(tokens.start, fact, hint)
        return copied

    def _window_join(
        self, sources: tuple[Scan, ...], predicates: OnAndWhere, select: tuple[OutputColumn, ...]
    ) -> Join:
        self.joins += 1
        join = Join(sources, *predicates, select, name=f"{self.name}/{self.joins}")
        return with_own_ends(join, self.catalog)
