"""From the tokens of selects to the nodes of a pipeline.

Sub-selects in FROM, DISTINCT, and what is grouped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from muntin.errors import SqlError
from muntin.model.catalog import Catalog, View
from muntin.model.window import Unbounded, is_changing
from muntin.plan.expression import (
    OutputColumn,
    select_all,
)
from muntin.plan.node import Node
from muntin.plan.nodes import Distinct, Join, Scan
from muntin.sql.aggregates import is_aggregate, refuse_aggregates
from muntin.sql.binder import OnAndWhere, conditions_of, name_outputs, outputs_of
from muntin.sql.bound_from import BoundFrom
from muntin.sql.clauses import Clauses, refuse_inside
from muntin.sql.conjuncts import unwrap
from muntin.sql.correlation import BoundNested, Correlation
from muntin.sql.from_joins import Entries, combine_entries
from muntin.sql.group_by import Grouping
from muntin.sql.group_nesting import GroupNesting
from muntin.sql.grouping_sets import is_grouping
from muntin.sql.levels import checked_levels
from muntin.sql.lexer import Tokens, closing, is_symbol, tokenize, word
from muntin.sql.merged_columns import bind_using
from muntin.sql.named_selects import NamedSelect, begins_names, cut_names, own_clauses
from muntin.sql.nested_joins import NestedJoins, in_order
from muntin.sql.nested_selects import NestedSelect, columns_of, cut_selects
from muntin.sql.order_by import (
    ORDER_COLUMN,
    cut_ordering,
    first_of,
    order_places,
    read_ordering,
)
from muntin.sql.outer_checks import check_outer, check_words
from muntin.sql.outer_joins import OuterJoins
from muntin.sql.over_selects import bind_over, read_over
from muntin.sql.own_ends import landmark_conditions, refuse_mixed, with_own_ends
from muntin.sql.refusals import refuse
from muntin.sql.row_order import order_columns, order_for
from muntin.sql.scope import NameScope
from muntin.sql.select_names import SelectNames
from muntin.sql.session_calls import bind_session
from muntin.sql.set_operators import combine_selects, split_selects
from muntin.sql.shape import FromEntry, read_shape, read_tail
from muntin.sql.sources import MOST_SOURCES, bind_entry, check_condition, read_alias
from muntin.sql.syntax import find_columns, parse_select
from muntin.sql.typecheck import find_types, typed
from muntin.sql.views import refuse_barrier
from muntin.sql.window_calls import bind_call, union_of
from muntin.sql.writer import Writer

_HAVING = "Conditions on groups stand in HAVING"
_NO_STREAM = "Stored tables do not change; join them with a stream"
MOST_JOINS = 200
"""How many window joins there may be in what outer joins and uses of a select by name copy."""


@dataclass
class Selects:
    """Binds the selects of one standing query; ``joins`` counts the window joins found so far.

    ``inserts``: the query is nothing but joins, some of them outer ones, and emits inserts.
    ``around``: what can be seen around the sub-select that is bound. ``nests``: an expression has
    one.
    """

    name: str
    clauses: Clauses
    catalog: Catalog
    joins: int = 0
    names: SelectNames = field(default_factory=SelectNames)
    inserts: bool = False
    around: NameScope | None = None
    nests: bool = False

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
        return self._within(Selects(self.name, clauses, self.catalog, names=names), select)

    def _within(self, selects: Selects, tokens: Tokens) -> Node:
        """Return a select that is bound on its own; if it has sub-selects, this one has them."""
        node = selects.bind(tokens)
        self.nests |= selects.nests
        return node

    def _bind_view(self, view: View, entry: FromEntry) -> Node:
        """Return what a view stands for, with the windows of this query if it has none."""
        refuse_barrier(view, entry, self.clauses)
        body = tokenize(view.text, view.name)
        try:
            select, clauses = own_clauses(body, self.clauses)
            node = self._within(Selects(self.name, clauses, self.catalog), select)
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
        return checked_levels(node, tokens)

    def _bind_operand(
        self, tokens: Tokens, *, sorts: bool, correlation: Correlation | None = None
    ) -> Node:
        while len(tokens) and is_symbol(tokens[0], "(") and closing(tokens, 0) == len(tokens) - 1:
            tokens = tokens.part(1, len(tokens) - 1)
            operands, _ = split_selects(tokens)
            if len(operands) > 1 or begins_names(tokens):
                return self.bind(tokens, sorts=sorts)
        refuse(tokens)
        refuse_inside(tokens)
        return self._bind_select(tokens, sorts=sorts, correlation=correlation)

    def bind_join(self, tokens: Tokens) -> Join:
        """Return the window join of a select that is nothing else, without a name."""
        join = self._bind_select(tokens, alone=True)
        assert isinstance(join, Join), "it is plain"
        return replace(join, name="")

    def bind_nested(self, one: NestedSelect, scope: NameScope) -> BoundNested:
        """Return the sub-select of an expression that sees a scope around it."""
        around, self.around, self.nests = self.around, scope, True
        try:
            if len(split_selects(one.body)[0]) > 1 or word(one.body[0]) != "SELECT":
                return BoundNested(self.bind(one.body))
            correlation = Correlation(one, scope)
            return correlation.bound(
                self._bind_operand(one.body, sorts=False, correlation=correlation)
            )
        finally:
            self.around = around

    def _bind_select(
        self,
        tokens: Tokens,
        *,
        alone: bool = False,
        sorts: bool = False,
        correlation: Correlation | None = None,
    ) -> Node:
        tokens, found = cut_selects(tokens)
        shape = read_shape(tokens)
        ordering = read_ordering(shape, sorts=sorts)
        inside = None if shape.distinct else ordering
        check_words(shape)
        tree = parse_select(shape.plain)
        entries = self._bind_entries(shape.entries)
        sources = tuple(source for source, _ in entries)
        if alone and all(source.stored for source in sources):
            first = shape.entries[0].tokens
            raise first.error(first[0], "the query reads no stream", _NO_STREAM)
        refuse_mixed(shape, sources)
        aliases = frozenset(item.alias.casefold() for item in tree.expressions if item.alias)
        scope, using = bind_using(shape, sources, aliases)
        scope = replace(scope, around=self.around)
        uses = find_columns(tree) | columns_of(found, tokens[0])
        writer = Writer(uses, self.catalog.functions)
        nested = [(one, self.bind_nested(one, scope)) for one in found]
        below = NestedJoins(len(sources))
        for one, inner in in_order(nested, above=False):
            below.add(one, inner, partial(writer.write, scope=scope))
        writer, scope = replace(writer, values=below.values), below.scope(scope)
        for place, condition in [
            ("in WHERE", shape.where),
            *(("in ON", entry.on) for entry in shape.entries),
        ]:
            refuse_aggregates(condition, place, _HAVING)
        seen = scope if correlation is None else correlation.scope(scope)
        conditions = conditions_of(shape, using, writer, seen)
        if correlation is not None:
            conditions = correlation.take(shape, conditions, len(scope.sources))
        conditions = conditions.having(landmark_conditions(shape, sources, self.catalog))
        check_outer(shape, conditions)
        bound = below.bound_from([node for _, node in entries], shape.entries, conditions, scope)
        conditions = bound.conditions
        if (over := read_over(shape)) is not None:
            if correlation is not None:
                correlation.refuse_numbers(tokens)
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
            outputs = outputs if correlation is None else correlation.outputs(outputs)
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
            shape = shape if correlation is None else correlation.grouped(shape)
            above = GroupNesting(
                tuple(in_order(nested, above=True)),
                self._window_join,
                partial(self._fresh, tokens=tokens),
            )
            writer = replace(writer, values={**below.values, **above.stand_ins})
            grouping = Grouping(shape, tree, writer, scope, above)
            if correlation is not None:
                correlation.add_keys(grouping.also)
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
        repeats = correlation is not None and ordering is None  # change no condition or value
        rows = Distinct(rows) if shape.distinct and not repeats else rows
        return rows if ordering is None else first_of(rows, ordering)

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
            scan = bind_entry(entry, self.clauses, self.catalog)
            return scan, scan if is_changing(scan.window) else None
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
        if self.around is None and not bound.reads_stream:
            raise tokens.error(tokens.start, "a select reads no stream", _NO_STREAM)
        entries = Entries(sources, bound.nodes)
        joins = bound.joins(predicates[0])
        if joins.is_outer:
            fresh = partial(self._fresh, tokens=tokens)
            outer = OuterJoins(entries, joins, self._window_join, fresh, self.inserts, self.catalog)
            return outer.bind(predicates[1], select)
        if any(bound.nodes) or all(source.stored for source in sources):
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
