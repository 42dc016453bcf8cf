"""Streams and tables that stand beside sub-selects in FROM.

Those that equalities tie together are joined first.

Such a join is a leaf like any other, so the window join makes it. What is left is a select over the
leaves, the tables that no stream beside them is tied to, and the sub-selects. Conditions that read
one leaf only are checked in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from muntin.plan.column_rename import renamed, renamed_predicate
from muntin.plan.expression import ColumnRef, Expression, OutputColumn, Predicate, quote
from muntin.plan.node import Node
from muntin.plan.nodes import Join, Project, Scan
from muntin.sql.binder import OnAndWhere

Group: TypeAlias = tuple[int, ...]
"""Entries of FROM by their places."""
MakeJoin = Callable[[tuple[Scan, ...], OnAndWhere, tuple[OutputColumn, ...]], Join]


@dataclass(frozen=True)
class Entries:
    """The entries of FROM: as expressions see them, and what those are that are sub-selects."""

    sources: tuple[Scan, ...]
    nodes: Sequence[Node | None]


def combine_entries(
    entries: Entries,
    predicates: OnAndWhere,
    select: tuple[OutputColumn, ...],
    make_join: MakeJoin,
) -> Join | Project:
    """Return the select over entries of which at least one is a sub-select."""
    groups = _groups(entries, [*predicates[0], *predicates[1]])
    inner = {
        place: group
        for group in groups
        for place in group
        if len(group) > 1 or _is_stream(entries, place)
    }
    on, where = (_of_group(part, inner, None) for part in predicates)
    used = {ref for predicate in (*on, *where) for ref in predicate.expression.references}
    used |= {reference for column in select for reference in column.expression.references}
    inputs: list[Node] = []
    names: dict[ColumnRef, ColumnRef] = {}
    for group in groups:
        place = group[0]
        node = entries.nodes[place]
        if node is not None:
            columns = {ColumnRef(place, name): name for name in node.schema.names}
        elif place not in inner:
            node = entries.sources[place]
            columns = {ColumnRef(place, name): name for name in node.schema.names}
        else:
            mine = _of_group(predicates[0], inner, group), _of_group(predicates[1], inner, group)
            node, columns = _joined(entries, group, mine, used, make_join)
        names |= {reference: ColumnRef(len(inputs), name) for reference, name in columns.items()}
        inputs.append(node)
    shown = tuple(
        replace(column, expression=renamed(column.expression, names)) for column in select
    )
    on, where = (
        tuple(renamed_predicate(predicate, names) for predicate in part) for part in (on, where)
    )
    if len(inputs) == 1:
        assert not on, "one entry has no ON"
        return Project(inputs[0], where, shown)
    return Join(tuple(inputs), on, where, shown)


def _is_stream(entries: Entries, place: int) -> bool:
    return entries.nodes[place] is None and not entries.sources[place].stored


def _groups(entries: Entries, predicates: Sequence[Predicate]) -> list[tuple[int, ...]]:
    """Return the entries in groups.

    Streams that equalities tie together, with the tables that are tied to them; all others alone.
    """
    plain = {place for place, node in enumerate(entries.nodes) if node is None}
    equalities = [
        predicate
        for predicate in predicates
        if predicate.comparison is not None and predicate.comparison.operator == "="
    ]
    ties = [
        predicate.expression.sources
        for predicate in equalities
        if predicate.expression.sources <= plain
    ]
    groups: list[set[int]] = [{place} for place in range(len(entries.nodes))]
    for tie in ties:
        together = [group for group in groups if group & tie]
        groups = [group for group in groups if not group & tie] + [set().union(*together)]
    found: list[tuple[int, ...]] = []
    for group in groups:
        has_stream = any(_is_stream(entries, place) for place in group)
        found += (
            [tuple(sorted(group))]
            if has_stream or len(group) == 1
            else [(place,) for place in group]
        )
    return sorted(found)


def _home(predicate: Predicate, inner: dict[int, Group]) -> tuple[int, ...] | None:
    """Return the group in which a condition can be checked; None if it must wait."""
    groups = {inner.get(place) for place in predicate.expression.sources}
    return groups.pop() if len(groups) == 1 else None


def _of_group(
    predicates: tuple[Predicate, ...], inner: dict[int, Group], group: Group | None
) -> tuple[Predicate, ...]:
    """Return the conditions that can be checked in a group; with None, those that must wait."""
    return tuple(predicate for predicate in predicates if _home(predicate, inner) == group)


def _joined(
    entries: Entries,
    group: Group,
    predicates: OnAndWhere,
    used: set[ColumnRef],
    make_join: MakeJoin,
) -> tuple[Join, dict[ColumnRef, str]]:
    """Return the window join of a group, and the names of its columns that are used above it.

    If none is used, the join has any one column.
    """
    sources = tuple(entries.sources[place] for place in group)
    wanted = sorted(reference for reference in used if reference.source in group)
    wanted = wanted or [ColumnRef(group[0], sources[0].schema.names[0])]
    inside = {
        ColumnRef(place, name): ColumnRef(number, name)
        for number, (place, source) in enumerate(zip(group, sources, strict=True))
        for name in source.schema.names
    }  # fmt: skip
    columns, select = {}, []
    for reference in wanted:
        own = inside[reference]
        name = (
            reference.column
            if len(group) == 1
            else f"{sources[own.source].alias}.{reference.column}"
        )
        columns[reference] = name
        kind = sources[own.source].schema.field(reference.column).type
        select.append(OutputColumn(name, Expression(quote(own.flat), (own,), kind)))
    on, where = (
        tuple(renamed_predicate(predicate, inside) for predicate in part) for part in predicates
    )
    return make_join(sources, (on, where), tuple(select)), columns
