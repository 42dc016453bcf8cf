"""Sub-selects in expressions as joins with the query around them.

| sub-select | joins with the rows or groups of the query |
| --- | --- |
| ``EXISTS``, ``IN`` | a semi join |
| ``NOT EXISTS`` | an anti join |
| ``x NOT IN`` | anti joins: equal values; NULLs among the values; any values, if x is NULL |
| a value that is always there | a cross join |
| any other value | a left join; where no row matches, the value that SQL has over no rows |
| the truth of ``EXISTS`` or ``IN`` as a value | left joins, which show what of the above matches |

The conditions of these joins are those that the sub-select reads the query by
(:mod:`muntin.sql.correlation`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from muntin.model.window import Unbounded
from muntin.plan.column_rename import pieces_of
from muntin.plan.expression import (
    ColumnRef,
    Expression,
    OutputColumn,
    Predicate,
    column_expression,
    quote,
    select_all,
)
from muntin.plan.node import Node
from muntin.plan.nodes import Distinct, GroupBy, Join, Project, Scan
from muntin.plan.top_n import TopN
from muntin.sql.binder import Conditions
from muntin.sql.bound_from import BoundFrom
from muntin.sql.correlation import OWN, BoundNested, equality, rewritten_condition
from muntin.sql.grouping_sets import null_of
from muntin.sql.lexer import Tokens
from muntin.sql.nested_selects import NestedSelect, Role
from muntin.sql.probe import DuckRefusalError, ask
from muntin.sql.scope import NameScope
from muntin.sql.shape import FromEntry
from muntin.sql.typecheck import Condition
from muntin.sql.writer import Draft

_ZERO = {"count", "approx_count_distinct"}
"""Aggregates that are 0 over no rows; all others are NULL."""
_ONE_ROW = "Select an aggregate such as MAX(x) without GROUP BY, or add ORDER BY ... LIMIT 1"
_MARK = "#found"
_TRUE = Expression("TRUE", (), pa.bool_())


@dataclass(frozen=True)
class NestedJoin:
    """One join: its words, the sub-select as a source and as a node, and its conditions."""

    words: str
    scan: Scan
    node: Node
    conditions: tuple[Condition, ...]
    tokens: Tokens


@dataclass
class NestedJoins:
    """The joins of the sub-selects of one query, and what stands for them in expressions.

    ``first`` is the place of the first one behind the sources of the query.
    """

    first: int
    joins: list[NestedJoin] = field(default_factory=list)
    values: dict[int, Draft] = field(default_factory=dict)

    @property
    def scans(self) -> tuple[Scan, ...]:
        """The sub-selects as sources."""
        return tuple(join.scan for join in self.joins)

    @property
    def nodes(self) -> list[Node | None]:
        """The sub-selects as nodes."""
        return [join.node for join in self.joins]

    @property
    def conditions(self) -> list[Condition]:
        """The conditions of the joins, each with its place."""
        return [
            replace(one, entry=self.first + place)
            for place, join in enumerate(self.joins)
            for one in join.conditions
        ]

    def scope(self, scope: NameScope) -> NameScope:
        """Return a scope with the sub-selects among the sources; no name means their columns."""
        places = range(len(scope.sources), len(scope.sources) + len(self.joins))
        hidden = scope.hidden | frozenset(places)
        return replace(scope, sources=(*scope.sources, *self.scans), hidden=hidden)

    def beside(self, conditions: Conditions) -> Conditions:
        """Return conditions with those of the joins, and without what stands for joins."""
        where = [
            one
            for one in conditions.where
            if one.whole.sql != "TRUE" or one.whole.tokens.start not in self.values
        ]
        return Conditions([*conditions.on, *self.conditions], where)

    def bound_from(
        self,
        nodes: Sequence[Node | None],
        entries: Sequence[FromEntry],
        conditions: Conditions,
        scope: NameScope,
    ) -> BoundFrom:
        """Return the entries of FROM with the sub-selects behind them."""
        return BoundFrom(
            scope.sources,
            [*nodes, *(join.node for join in self.joins)],
            [*entries, *(FromEntry(join.tokens, join.words) for join in self.joins)],
            self.beside(conditions),
            self.first if self.joins else None,
        )

    # -- making them ------------------------------------------------------------------------------

    def add(
        self,
        one: NestedSelect,
        bound: BoundNested,
        write: Callable[[Tokens], Draft] | None = None,
    ) -> None:
        """Add the joins of a sub-select; ``write`` writes what stands before IN."""
        if one.role is Role.VALUE:
            self._add_value(one, bound)
            return
        assert write is not None, "conditions have operands"
        if one.truth:
            self._add_truth(one, bound, write)
            return
        self.values[one.token.start] = Draft("TRUE", (), one.body)
        word = "ANTI JOIN" if one.negated else "SEMI JOIN"
        if one.role is Role.EXISTS:
            self._join(word, bound.node, bound.conditions, one.body)
            return
        operands = [write(tokens) for tokens in one.operands]
        count = len(bound.node.schema) - bound.shown
        _check_operands(one, len(operands), count)
        names = bound.node.schema.names[:count]
        pairs = [
            equality(operand, _own(name, one.body), one.body)
            for operand, name in zip(operands, names, strict=True)
        ]
        self._join(word, bound.node, (*pairs, *bound.conditions), one.body)
        if one.negated:
            nulls = _rows_with_null(bound.node)
            self._join(word, nulls, bound.conditions, one.body)
            (operand,) = operands
            unknown = Condition(
                Draft(f"({operand.sql}) IS NULL", operand.references, operand.tokens)
            )
            self._join(word, bound.node, (unknown, *bound.conditions), one.body)

    def _add_truth(
        self, one: NestedSelect, bound: BoundNested, write: Callable[[Tokens], Draft]
    ) -> None:
        """Add joins with distinct rows, and what they say of EXISTS or IN."""
        operands = [write(tokens) for tokens in one.operands]
        count = len(bound.node.schema) - bound.shown
        every = self._mark(bound.node, count, bound.conditions, one.body)
        if one.role is Role.EXISTS:
            self.values[one.token.start] = Draft(f"({every.sql})", every.references, one.body)
            return
        _check_operands(one, len(operands), count)
        if count > 1:
            fact = "IN is not supported for rows of several values, unless AND connects it"
            hint = "Write EXISTS (SELECT ... WHERE s.a = a AND s.b = b)"
            raise one.body.error(one.first, fact, hint)
        (operand,) = operands
        pair = equality(operand, _own(bound.node.schema.names[0], one.body), one.body)
        equal = self._mark(bound.node, 0, (pair, *bound.conditions), one.body)
        nulls = self._mark(_rows_with_null(bound.node), 1, bound.conditions, one.body)
        unknown = f"{nulls.sql} OR (({operand.sql}) IS NULL AND {every.sql})"
        text = f"CASE WHEN {equal.sql} THEN TRUE WHEN {unknown} THEN NULL ELSE FALSE END"
        parts = (equal, nulls, operand, every)
        references = tuple(dict.fromkeys(ref for part in parts for ref in part.references))
        word = "NOT " if one.negated else ""
        self.values[one.token.start] = Draft(f"({word}{text})", references, one.body)

    def _mark(
        self, node: Node, first: int, conditions: Sequence[Condition], tokens: Tokens
    ) -> Draft:
        """Add a join with the distinct rows of columns, and return whether a row has a match."""
        place = self.first + len(self.joins)
        columns = select_all(node.schema)[first:]
        marked = (*columns, OutputColumn(_MARK, _TRUE))
        self._join("LEFT JOIN", Distinct(Project(node, (), marked)), conditions, tokens)
        mark = ColumnRef(place, _MARK)
        return Draft(f"{quote(mark.flat)} IS NOT NULL", (mark,), tokens)

    def _add_value(self, one: NestedSelect, bound: BoundNested) -> None:
        node, count = bound.node, len(bound.node.schema) - bound.shown
        if count != 1:
            fact = f"a sub-select that is a value has one column, and this one has {count}"
            raise one.body.error(one.body.start, fact, "Select one expression")
        if not _is_at_most_one(node, bound.shown):
            fact = "a sub-select that is a value must have at most one row, and this may have more"
            raise one.body.error(one.body.start, fact, _ONE_ROW)
        place = self.first + len(self.joins)
        empty = None
        if bound.conditions and bound.aggregates:
            node, empty = _with_empty(node, one)
        value, mark = (quote(ColumnRef(place, name).flat) for name in (node.schema.names[0], _MARK))
        references = (ColumnRef(place, node.schema.names[0]),)
        if empty is None:
            self.values[one.token.start] = Draft(value, references, one.body)
        else:
            text = f"(CASE WHEN {mark} THEN {value} ELSE {empty} END)"
            marked = (*references, ColumnRef(place, _MARK))
            self.values[one.token.start] = Draft(text, marked, one.body)
        always = not bound.conditions and _is_one(node)
        self._join("CROSS JOIN" if always else "LEFT JOIN", node, bound.conditions, one.body)

    def _join(
        self, words: str, node: Node, conditions: Sequence[Condition], tokens: Tokens
    ) -> None:
        place = self.first + len(self.joins)
        names = {ColumnRef(OWN, name): ColumnRef(place, name) for name in node.schema.names}
        alias = f"#{place}"
        scan = Scan(alias, alias, stored=True, window=Unbounded(), schema=node.schema)
        own = tuple(rewritten_condition(one, names) for one in conditions)
        self.joins.append(NestedJoin(words, scan, node, own, tokens))


def in_order(
    nested: Sequence[tuple[NestedSelect, BoundNested]], *, above: bool
) -> Iterator[tuple[NestedSelect, BoundNested]]:
    """Yield the sub-selects over rows, or those ``above`` groups: values before conditions."""
    own = [pair for pair in nested if pair[0].above == above]
    yield from (pair for pair in own if pair[0].role is Role.VALUE)
    yield from (pair for pair in own if pair[0].role is not Role.VALUE)


def _check_operands(one: NestedSelect, given: int, count: int) -> None:
    """Refuse numbers of columns that differ, and NOT IN for rows."""
    if given != count:
        fact = f"its sub-select has {count} columns, and the number of values before IN is {given}"
        raise one.body.error(one.body.start, fact, "Write as many on both sides: (a, b) IN")
    if one.negated and count > 1:
        fact = "NOT IN is not supported for rows of several values"
        raise one.body.error(
            one.first, fact, "Write NOT EXISTS (SELECT ... WHERE s.a = a AND s.b = b)"
        )


def _own(name: str, tokens: Tokens) -> Draft:
    reference = ColumnRef(OWN, name)
    return Draft(quote(reference.flat), (reference,), tokens)


def _rows_with_null(node: Node) -> Node:
    """Return the rows of a sub-select whose value is NULL."""
    first = node.schema.field(0)
    value = column_expression(ColumnRef(0, first.name), first.type)
    condition = Expression(f"{value.sql} IS NULL", value.references, pa.bool_())
    return Project(node, (Predicate(condition),), select_all(node.schema))


def _is_one(node: Node) -> bool:
    """Return whether a node always has one row."""
    if isinstance(node, Project):
        return not node.where and _is_one(node.input)
    return isinstance(node, GroupBy) and not node.keys and node.having is None


def _is_at_most_one(node: Node, fixed: int) -> bool:
    """Return whether a node has at most one row per value of the columns that are ``fixed``."""
    match node:
        case GroupBy():
            return node.keys <= fixed
        case TopN():
            return not node.keys and node.stop is not None and node.stop - node.offset <= 1
        case Project() | Distinct():
            return _is_at_most_one(node.input, 0)
        case Join():
            return not node.is_leaf and all(_is_at_most_one(one, 0) for one in node.sources)
    return False


def _with_empty(node: Node, one: NestedSelect) -> tuple[Node, str | None]:
    """Return groups that show that they are there, and the value over no rows; None for NULL.

    HAVING moves into the value: it is NULL where that does not hold, with rows or without.
    """
    if not isinstance(node, GroupBy):
        fact = "a sub-select that reads the query around it cannot have others above its groups"
        raise one.body.error(one.body.start, fact, "Join them in FROM, as (SELECT ...) AS name")
    value, *rest = node.select
    if node.having is not None:
        references = tuple(dict.fromkeys(node.having.references + value.expression.references))
        text = f"CASE WHEN {node.having.sql} THEN {value.expression.sql} END"
        value = replace(value, expression=Expression(text, references, value.expression.type))
    empty = _over_nothing(value.expression, node)
    if _is_null(empty):
        return replace(node, having=None, select=(value, *rest)), None
    found = OutputColumn(_MARK, _TRUE)
    return replace(node, having=None, select=(value, *rest, found)), empty


def _over_nothing(expression: Expression, node: GroupBy) -> str:
    """Return what an expression over groups is over no rows, as a constant expression."""
    constants: Mapping[str, str] = {
        quote(ColumnRef(0, f"a{number}").flat): (
            "CAST(0 AS BIGINT)" if one.function in _ZERO else null_of(one.type)
        )
        for number, one in enumerate(node.aggregates)
    }
    return "".join(constants.get(piece, piece) for piece in pieces_of(expression.sql))


def _is_null(constant: str) -> bool:
    try:
        return ask(f"SELECT {constant}").column(0)[0].as_py() is None
    except DuckRefusalError:
        return False
