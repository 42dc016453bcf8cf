"""What a sub-select in an expression reads of the query around it.

The conditions of its WHERE and ON that name columns of that query are taken out of it and become
conditions of a join with it. For this, the sub-select shows what they need: the side of an equality
that is its own, or else the columns that they read. Below a grouping these are keys too: a group
then has the rows that match one value, as if the sub-select ran for it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import Token, TokenType

from muntin.plan.column_rename import renamed
from muntin.plan.expression import ColumnRef, Expression, quote
from muntin.plan.node import Node
from muntin.sql.binder import Conditions
from muntin.sql.lexer import Tokens
from muntin.sql.nested_selects import NestedSelect, Role, is_grouped
from muntin.sql.outer_joins import kind_of
from muntin.sql.scope import NameScope
from muntin.sql.shape import SelectParts
from muntin.sql.typecheck import Condition
from muntin.sql.writer import Draft, plain_text

OWN = -1
"""The place of the sub-select in conditions, until it has one in FROM."""
_EQUAL = "Compare a column of the sub-select with one of the query around it by ="


def rewritten(draft: Draft, names: dict[ColumnRef, ColumnRef]) -> Draft:
    """Return a draft over other columns."""
    found = renamed(Expression(draft.sql, draft.references, pa.null()), names)
    return Draft(found.sql, tuple(dict.fromkeys(found.references)), draft.tokens)


def rewritten_condition(condition: Condition, names: dict[ColumnRef, ColumnRef]) -> Condition:
    """Return a condition over other columns."""
    return replace(
        condition,
        whole=rewritten(condition.whole, names),
        sides=tuple(rewritten(side, names) for side in condition.sides),
    )


def equality(left: Draft, right: Draft, tokens: Tokens) -> Condition:
    """Return the condition that two expressions are equal."""
    references = tuple(dict.fromkeys(left.references + right.references))
    text = f"{_enclosed(left)} = {_enclosed(right)}"
    return Condition(Draft(text, references, tokens), "=", (left, right))


def _enclosed(draft: Draft) -> str:
    """Return the text of a side of a comparison."""
    column = len(draft.references) == 1 and draft.sql == quote(draft.references[0].flat)
    return draft.sql if column else f"({draft.sql})"


@dataclass
class Correlation:
    """The conditions of one sub-select that read the query around it.

    ``conditions`` have columns of the sub-select at the place ``OWN``, and those of the query
    around it at their places there. ``columns`` are the expressions that it shows for them. What
    ``aggregates`` has a value over no rows.
    """

    nested: NestedSelect
    around: NameScope
    conditions: list[Condition] = field(default_factory=list)
    columns: list[tuple[str, Draft]] = field(default_factory=list)
    aggregates: bool = False

    def scope(self, scope: NameScope) -> NameScope:
        """Return the scope of WHERE, which sees the query around the sub-select too."""
        return replace(scope, sources=(*scope.sources, *self.around.sources), correlated=True)

    def take(self, shape: SelectParts, conditions: Conditions, count: int) -> Conditions:
        """Return the conditions over the first ``count`` sources; others become those of a join."""
        kept: tuple[list[Condition], list[Condition]] = [], []
        for place, some in enumerate(conditions):
            for one in some:
                if all(reference.source < count for reference in one.whole.references):
                    kept[place].append(one)
                    continue
                if one.entry is not None and kind_of(shape.entries[one.entry].join):
                    fact = f"{plain_text(one.whole.tokens)} reads the query around this select"
                    hint = "The ON of an outer join reads its own entries; use WHERE"
                    raise one.whole.tokens.error(one.whole.tokens.start, fact, hint)
                self._take(one, count, plain=self._is_plain(shape))
        if self.conditions:
            self._check_groups(shape)
        return Conditions(*kept)

    def _is_plain(self, shape: SelectParts) -> bool:
        """Return whether any condition on rows can be one of the join."""
        return self.nested.joins_rows and not is_grouped(shape)

    def _take(self, condition: Condition, count: int, *, plain: bool) -> None:
        """Take one condition, with what the sub-select must show for it."""
        around = {
            one: ColumnRef(one.source - count, one.column)
            for one in condition.whole.references
            if one.source >= count
        }
        own = [one for one in condition.whole.references if one.source < count]
        tokens = condition.whole.tokens
        if condition.operator == "=" and own:
            for inner, outer in (condition.sides, condition.sides[::-1]):
                if set(inner.references) == set(own) and set(outer.references) == set(around):
                    shown = ColumnRef(OWN, self._show(inner))
                    column = Draft(quote(shown.flat), (shown,), tokens)
                    self.conditions.append(equality(column, rewritten(outer, around), tokens))
                    return
        if own and not plain:
            fact = f"{plain_text(tokens)} is no equality with the query around the sub-select"
            raise tokens.error(tokens.start, fact, _EQUAL)
        names = dict(around)
        for one in own:
            names[one] = ColumnRef(OWN, self._show(Draft(quote(one.flat), (one,), tokens)))
        self.conditions.append(replace(rewritten_condition(condition, names), entry=None))

    def _show(self, draft: Draft) -> str:
        """Return the name of a column of the sub-select with the values of an expression."""
        for name, known in self.columns:
            if known.sql == draft.sql:
                return name
        self.columns.append((f"#k{len(self.columns)}", draft))
        return self.columns[-1][0]

    def _check_groups(self, shape: SelectParts) -> None:
        """Refuse what means something else for all rows than for those that match."""
        if shape.order is not None or shape.limit is not None or shape.qualify is not None:
            part = shape.order or shape.limit or shape.qualify
            assert part is not None, "one of them is there"
            fact = "a sub-select with LIMIT or QUALIFY cannot read the query around it"
            raise part.error(part.start, fact, "Use an aggregate such as MAX or ARG_MAX")
        if is_grouped(shape) and shape.group is None and self.nested.role is not Role.VALUE:
            tokens = self.conditions[0].whole.tokens
            fact = "an aggregate without GROUP BY has one row, whatever matches"
            hint = "Compare it: (SELECT COUNT(*) ...) > 0, or x = (SELECT MAX(y) ...)"
            raise tokens.error(tokens.start, fact, hint)

    def refuse_numbers(self, tokens: Tokens) -> None:
        """Refuse window functions in a sub-select that reads the query around it."""
        if self.conditions:
            fact = "a sub-select with window functions cannot read the query around it"
            raise tokens.error(tokens.start, fact, "Use them in a sub-select in its FROM")

    # -- what the sub-select shows ----------------------------------------------------------------

    def outputs(self, outputs: Sequence[tuple[str, Draft]]) -> list[tuple[str, Draft]]:
        """Return the select list of rows: EXISTS reads none of it."""
        own = [] if self.nested.role is Role.EXISTS else list(outputs)
        return [*own, *self.columns] or [("#1", Draft("1", (), outputs[0][1].tokens))]

    def grouped(self, shape: SelectParts) -> SelectParts:
        """Return the select with its columns for the join as keys of GROUP BY."""
        sides = [draft.tokens for _, draft in self.columns]
        group = shape.group
        self.aggregates = group is None
        if not sides:
            return shape
        if group is not None and len(group) == 1 and group[0].text.upper() == "ALL":
            fact = "GROUP BY ALL cannot be used where a sub-select reads the query around it"
            raise group.error(group.start, fact, "List the keys")
        parts = [*([] if group is None else [group]), *sides]
        return replace(shape, group=_listed(parts))

    def add_keys(self, add: Callable[[str, Tokens], None]) -> None:
        """Add its columns for the join behind the select list of groups."""
        for name, draft in self.columns:
            add(name, draft.tokens)

    def bound(self, node: Node) -> BoundNested:
        """Return the sub-select as the node that it became."""
        return BoundNested(node, tuple(self.conditions), len(self.columns), self.aggregates)


def _listed(parts: Sequence[Tokens]) -> Tokens:
    """Return parts with commas between them."""
    items: list[Token] = []
    for part in parts:
        if items:
            last = items[-1]
            where = last.line, last.col, last.start, last.end
            items.append(Token(TokenType.COMMA, ",", *where))
        items += part.items
    return replace(parts[0], items=tuple(items))


@dataclass(frozen=True)
class BoundNested:
    """A sub-select as a node: its values, then the ``shown`` columns that ``conditions`` read."""

    node: Node
    conditions: tuple[Condition, ...] = ()
    shown: int = 0
    aggregates: bool = False
