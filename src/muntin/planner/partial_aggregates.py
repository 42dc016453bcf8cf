"""A grouping in two: partitions group their rows, the global stage merges their groups.

Sound for aggregates that can be told from those of parts without rounding: counts, sums and means
of whole numbers, sums of short decimals, least and greatest values; and distinct counts of what the
rows are spread by. For others (floating sums, which are exact only as long as they are not rounded;
medians) the rows themselves have to come together, and the grouping is left as it is.
"""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa

from muntin.aggregates import aggregate_functions
from muntin.plan.expression import ColumnRef, Expression, OutputColumn, Predicate, quote, select_all
from muntin.plan.node import Node
from muntin.plan.nodes import Aggregate, GroupBy, Project

_SUM = pa.decimal128(38, 0)


_Rule: TypeAlias = tuple[list[Aggregate], str]
"""The partial aggregates of an aggregate, and SQL over their combinations {0}, {1}, ..."""


def partial_groups(node: GroupBy, owner: int | None = None) -> GroupBy | None:
    """Return the part of a grouping that partitions compute, if that suffices.

    ``owner`` is the column of its input that decides the owner of a row.
    """
    rules = _rules(node, owner)
    if rules is None:
        return None
    aggregates = tuple(aggregate for parts, _ in rules for aggregate in parts)
    bare = GroupBy(node.input, node.keys, aggregates, None, ())
    return GroupBy(node.input, node.keys, aggregates, None, select_all(bare.groups))


def combined_groups(node: GroupBy, partial: Node, owner: int | None = None) -> Project:
    """Return the rows of a grouping from the partial groups of all partitions."""
    rules = _rules(node, owner)
    assert rules is not None, "there are partial groups"
    together: list[Aggregate] = []
    select = list(select_all(partial.schema)[: node.keys])
    for number, (aggregate, (parts, form)) in enumerate(zip(node.aggregates, rules, strict=True)):
        names = []
        for part in parts:
            names.append(ColumnRef(0, f"a{len(together)}"))
            place = node.keys + len(together)
            together.append(_combining(part, place))
        sql = form.format(*(quote(name.flat) for name in names))
        select.append(OutputColumn(f"a{number}", Expression(sql, tuple(names), aggregate.type)))
    whole = GroupBy(partial, node.keys, tuple(together), None, tuple(select))
    return Project(whole, (Predicate(node.having),) if node.having else (), node.select)


def counted_apart(node: GroupBy) -> list[int]:
    """Return the columns of the input whose different values are counted.

    None or one of them can be what rows are spread by.
    """
    return sorted(
        {
            aggregate.argument
            for aggregate in node.aggregates
            if aggregate.distinct and aggregate.argument is not None
        }
    )


def _rules(node: GroupBy, owner: int | None) -> list[_Rule] | None:
    """Return the rule of each aggregate; None if one has none."""
    found = []
    for aggregate in node.aggregates:
        function, place = aggregate_functions()[aggregate.function], aggregate.argument
        apart = owner is not None and place == owner  # no value is in two partitions
        partial = function.partial(None if place is None else node.input.schema.field(place).type)
        if partial is None or (aggregate.distinct and not (apart and function.adds_up_distinct)):
            return None
        parts = [
            aggregate if kind is None else Aggregate(name, place, kind)
            for name, kind in partial.parts
        ]
        found.append((parts, partial.form))
    return found


def _combining(part: Aggregate, place: int) -> Aggregate:
    merging = aggregate_functions()[part.function].merged_by
    kind = part.type if merging == part.function else _SUM
    return Aggregate(merging, place, kind, text=f"{merging} of {part.text or part.function}")
