"""Sub-selects above a grouping: joins with the groups, whose keys are the columns they can read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from muntin.model.window import Unbounded
from muntin.plan.expression import ColumnRef, OutputColumn, Predicate, select_all
from muntin.plan.node import Node
from muntin.plan.nodes import GroupBy, Scan
from muntin.sql.correlation import BoundNested, rewritten_condition
from muntin.sql.from_joins import Entries, MakeJoin
from muntin.sql.lexer import Tokens
from muntin.sql.nested_joins import NestedJoins
from muntin.sql.nested_selects import NestedSelect
from muntin.sql.outer_joins import FromJoins, OuterJoins
from muntin.sql.scope import NameScope
from muntin.sql.typecheck import Condition
from muntin.sql.writer import Draft


@dataclass(frozen=True)
class GroupNesting:
    """The sub-selects of HAVING and of a select list over groups, with what makes joins."""

    nested: Sequence[tuple[NestedSelect, BoundNested]]
    make_join: MakeJoin
    fresh: Callable[[Node], Node]

    @property
    def stand_ins(self) -> dict[int, Draft]:
        """What stands for the sub-selects before they are joined; it equals no key of groups."""
        return {
            one.token.start: Draft(f'"#{number}"', (), one.body)
            for number, (one, _) in enumerate(self.nested)
        }

    @property
    def operands(self) -> list[Tokens]:
        """What stands before IN."""
        return [tokens for one, _ in self.nested for tokens in one.operands]

    def joins(
        self, write: Callable[[Tokens], Draft], keys: Mapping[ColumnRef, ColumnRef]
    ) -> NestedJoins:
        """Return the joins with groups, whose ``keys`` are columns of the rows below."""
        joins = NestedJoins(1)
        for one, bound in self.nested:
            conditions = tuple(_over_keys(each, keys) for each in bound.conditions)
            joins.add(one, replace(bound, conditions=conditions), write)
        return joins

    def over(
        self,
        group: GroupBy,
        joins: NestedJoins,
        predicates: tuple[Sequence[Predicate], tuple[Predicate, ...]],
        select: tuple[OutputColumn, ...],
    ) -> Node:
        """Return the select over groups joined with sub-selects, under ON and HAVING."""
        base = replace(group, having=None, select=select_all(group.groups))
        on, having = predicates[0], tuple(each for each in predicates[1] if not is_true(each))
        places = [condition.entry for condition in joins.conditions]
        own = [
            tuple(one for one, at in zip(on, places, strict=True) if at == place)
            for place in range(1 + len(joins.joins))
        ]
        words = ["", *(join.words for join in joins.joins)]
        entries = Entries((scan_of(group), *joins.scans), [base, *joins.nodes])
        outer = OuterJoins(entries, FromJoins(words, own), self.make_join, self.fresh)
        return outer.bind(having, select)


def is_true(predicate: Predicate) -> bool:
    """Return whether nothing is left of a condition but what stands for joins."""
    return predicate.expression.sql == "TRUE"


def scan_of(group: GroupBy) -> Scan:
    """Return groups as expressions above them see them."""
    return Scan("", "", stored=True, window=Unbounded(), schema=group.groups)


def scope_above(group: GroupBy, joins: NestedJoins) -> NameScope:
    """Return the scope of expressions over groups and the sub-selects joined with them."""
    return NameScope((scan_of(group), *joins.scans), 1)


def _over_keys(condition: Condition, keys: Mapping[ColumnRef, ColumnRef]) -> Condition:
    """Return the condition of a sub-select over the keys of groups."""
    for reference in condition.whole.references:
        if reference.source >= 0 and reference not in keys:
            tokens = condition.whole.tokens
            fact = (
                f"the sub-select reads the column {reference.column}, which is no key of the groups"
            )
            raise tokens.error(tokens.start, fact, "Name it in GROUP BY")
    return rewritten_condition(condition, dict(keys))
