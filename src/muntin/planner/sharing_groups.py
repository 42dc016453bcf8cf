"""Sharing groups: queries over one join, and the rest of each [Hammad03, sections 1 and 2.2].

Queries with one signature (:mod:`muntin.planner.signature`) share a join. It is an ordinary query,
:attr:`SharingGroup.join`, with the sources of the query that founded the group, for each source the
largest window of all members, and the conditions that every member has. Conditions over one source
that all members have are filters below the join. Of those that differ, each member keeps its own
above the join, and their disjunction is pushed below: a row that no member wants is never stored.
Row windows count rows before any condition, so filters below the join move nothing out of a window.

A combination of rows that the shared join finds is a result of a member iff every row of it is
inside the member's window when the newest arrives (:attr:`Member.windows`) and the member's
residuals hold. Sound because windows of one kind contain each other, and because a conjunction may
be tested in any order. The select list, EMIT and EVERY are applied to what is left.

Members that wrote their sources in another order get the same results; when
:attr:`Member.keeps_order` is false, the results of one newest row come in another order than the
member's own, and have to be sorted by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, combinations
from typing import TypeAlias, TypeVar

import pyarrow as pa

from muntin.model.settings import DECLARATIONS
from muntin.model.window import PartitionedWindow, RowsWindow, TimeWindow, Window
from muntin.plan.expression import POSITION, ColumnRef, Expression, OutputColumn, Predicate, quote
from muntin.plan.nodes import Join, Scan
from muntin.plan.query import Emit, Query
from muntin.planner.signature import (
    Places,
    Signature,
    find_places,
    is_selection,
    moved,
    readable,
    signature_of,
    text_of,
)

MOST_ALTERNATIVES = 64
"""A disjunction of more alternatives is not pushed below the join: testing them costs more than
storing the row."""

_SHOWN = 3
"""Names that a reason lists before it only counts."""

_LOOKED_AT = 8
"""Other groups over the same streams among which a reason looks for the nearest."""

Options: TypeAlias = tuple[tuple[str, str], ...]
Value = TypeVar("Value")


@dataclass(frozen=True)
class Member:
    """A query of a sharing group.

    Everything but ``query`` is in terms of the group's sources: ``places`` has the group's source
    for each of the query's, ``windows`` the query's window for each of the group's sources;
    ``selections`` (each with a text that is the same however it is spaced), ``residuals`` and
    ``select`` read the group's columns. ``residuals`` are the selections that are left to test
    above the join. ``freshness`` has, where it counts, how old the rows of each source may be in a
    result.
    """

    query: Query
    places: Places
    windows: tuple[Window, ...]
    selections: tuple[tuple[str, Expression], ...]
    residuals: tuple[Expression, ...]
    select: tuple[OutputColumn, ...]
    keeps_order: bool
    freshness: tuple[int, ...] = ()

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The lengths of its windows, in microseconds or rows."""
        return tuple(window_size(window) for window in self.windows)


@dataclass(frozen=True)
class SharingGroup:
    """Queries that share a join; a query that shares with nobody is a group of one.

    The sources are those of the query that founded the group, under the largest windows of the
    members, and stay in this order also when that query is dropped. ``filters`` has for each source
    the conditions that its rows must meet below the join.
    """

    name: str
    sources: tuple[Scan, ...]
    conditions: tuple[Predicate, ...]
    options: Options
    filters: tuple[tuple[Expression, ...], ...]
    members: tuple[Member, ...]

    @property
    def freshness(self) -> tuple[int, ...]:
        """How old the rows of each source may be in a result, where that counts.

        The same for all members.
        """
        return self.members[0].freshness

    @cached_property
    def join(self) -> Query:
        """The shared join as a query: it selects the columns that any member needs."""
        filters = [Predicate(expression) for mine in self.filters for expression in mine]
        return Query(
            name=self.name,
            text=f"the join of {_named([member.query for member in self.members])}",
            root=Join(self.sources, (), (*self.conditions, *filters), self._needed()),
            emit=_common([member.query.emit for member in self.members], Emit.INSERTS),
            every=_common([member.query.every for member in self.members], None),
            freshness=tuple(
                (place, _resized(self.sources[place].window, size))
                for place, size in enumerate(self.freshness)
                if size
            ),
            options=self.options,
        )

    def _needed(self) -> tuple[OutputColumn, ...]:
        expressions = [
            part
            for member in self.members
            for part in (*member.residuals, *(column.expression for column in member.select))
        ]
        references = {
            reference for expression in expressions for reference in expression.references
        }
        needed = sorted(references) or [ColumnRef(0, self.sources[0].schema.names[0])]
        return tuple(OutputColumn(known.flat, self._column(known)) for known in needed)

    def _column(self, reference: ColumnRef) -> Expression:
        kind = (
            pa.int64()
            if reference.column == POSITION
            else self.sources[reference.source].schema.field(reference.column).type
        )
        return Expression(quote(reference.flat), (reference,), kind)

    @cached_property
    def signature(self) -> Signature:
        """The signature that all members have."""
        return signature_of(Join(self.sources, (), self.conditions, ()))

    @cached_property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """The different windows of the members, as lengths per source, in scheduling order.

        By the sum of the lengths: windows that contain others come after them, and a window that is
        added or dropped leaves the order of the others as it is.
        """
        return tuple(
            sorted({member.sizes for member in self.members}, key=lambda sizes: (sum(sizes), sizes))
        )

    @cached_property
    def edges(self) -> tuple[tuple[int, ...], ...]:
        """How far a row must have looked into each source to finish each level and those before it."""
        return tuple(accumulate(self.levels, lambda edge, level: tuple(map(max, edge, level))))

    def member(self, name: str) -> Member:
        """Return the member of this name."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Member]:
        return {member.query.name: member for member in self.members}


def share(queries: Iterable[Query]) -> tuple[SharingGroup, ...]:
    """Return the sharing groups of queries, in the order of the queries that found them.

    Members keep their order too.
    """
    founded: list[SharingGroup] = []
    members: list[list[Member]] = []
    similar: dict[tuple[str, Options], list[int]] = {}
    for query in queries:
        signature = signature_of(query.join)
        numbers = similar.setdefault((signature.key, join_options(query)), [])
        found = _seat(query, signature, [founded[number] for number in numbers])
        if found is None:
            numbers.append(len(founded))
            founded.append(_found(query))
            members.append(list(founded[-1].members))
        else:
            members[numbers[found[0]]].append(found[1])
    return tuple(
        _with_members(group, mine) if len(mine) > 1 else group
        for group, mine in zip(founded, members, strict=True)
    )


def add_query(
    groups: Sequence[SharingGroup], query: Query, freshness: tuple[int, ...] = ()
) -> tuple[SharingGroup, ...]:
    """Return the groups with one more query.

    In the first group that it can share with, or in a new one at the end.

    ``freshness`` has how old the rows of the query's sources may be in a result, where that counts:
    those who share have the same.
    """
    found = _seat(query, signature_of(query.join), groups, freshness)
    if found is None:
        return (*groups, _found(query, freshness))
    number, member = found
    return (
        *groups[:number],
        _with_members(groups[number], (*groups[number].members, member)),
        *groups[number + 1 :],
    )


def drop_query(groups: Sequence[SharingGroup], name: str) -> tuple[SharingGroup, ...]:
    """Return the groups without the query of this name; a group that nobody is left in goes too."""
    left = []
    for group in groups:
        members = [member for member in group.members if member.query.name != name]
        if len(members) == len(group.members):
            left.append(group)
        elif members:
            left.append(_with_members(group, members))
    return tuple(left)


# -- a group -------------------------------------------------------------------------------------


def _seat(
    query: Query,
    signature: Signature,
    groups: Sequence[SharingGroup],
    freshness: tuple[int, ...] = (),
) -> tuple[int, Member] | None:
    """Return the first group that a query can share with, and the member it becomes there."""
    if len(query.sources) < 2:
        return None
    for number, group in enumerate(groups):
        if group.signature.key == signature.key and group.options == join_options(query):
            places = find_places(signature, group.signature)
            member = _member(query, places, freshness) if places is not None else None
            if member is not None and member.freshness == group.freshness:
                return number, member
    return None


def _found(query: Query, freshness: tuple[int, ...] = ()) -> SharingGroup:
    """Return the group of a query that shares with nobody yet."""
    member = _member(query, tuple(range(len(query.sources))), freshness)
    conditions = tuple(predicate for predicate in query.predicates if not is_selection(predicate))
    return _with_members(
        SharingGroup(query.name, query.sources, conditions, join_options(query), (), ()), [member]
    )


def _member(query: Query, places: Places, freshness: tuple[int, ...]) -> Member:
    fresh = dict(zip(places, freshness, strict=False))
    windows = dict(zip(places, (source.window for source in query.sources), strict=True))
    names = [str(place) for place in range(len(places))]
    selections = [
        moved(predicate.expression, places)
        for predicate in query.predicates
        if is_selection(predicate)
    ]
    return Member(
        query=query,
        places=places,
        windows=tuple(windows[place] for place in range(len(places))),
        selections=tuple(
            {text_of(expression).show(names): expression for expression in selections}.items()
        ),
        residuals=(),
        select=tuple(
            replace(column, expression=moved(column.expression, places)) for column in query.select
        ),
        keeps_order=_keeps_order(query.sources, places),
        freshness=tuple(fresh[place] for place in sorted(fresh)),
    )


def _with_members(group: SharingGroup, members: Sequence[Member]) -> SharingGroup:
    """Return the group with these members instead of its own."""
    largest = [
        max((member.windows[place] for member in members), key=window_size)
        for place in range(len(group.sources))
    ]
    common = set.intersection(*({key for key, _ in member.selections} for member in members))
    return replace(
        group,
        sources=tuple(
            replace(source, window=window)
            for source, window in zip(group.sources, largest, strict=True)
        ),
        filters=tuple(_filters(members, common, place) for place in range(len(group.sources))),
        members=tuple(_with_residuals(member, common) for member in members),
    )


def _with_residuals(member: Member, common: set[str]) -> Member:
    residuals = tuple(expression for key, expression in member.selections if key not in common)
    return member if residuals == member.residuals else replace(member, residuals=residuals)


def _filters(members: Sequence[Member], common: set[str], place: int) -> tuple[Expression, ...]:
    """Return the filters of a source: those of all members, and the disjunction of the others.

    A condition that reads no source at all is a filter of the first one when all have it.
    """
    shared = [
        each
        for key, each in members[0].selections
        if key in common and min(each.sources, default=0) == place
    ]
    alternatives = [
        {
            key: each
            for key, each in mine.selections
            if key not in common and each.sources == {place}
        }
        for mine in members
    ]
    return (*shared, *_disjunction(alternatives))


def _disjunction(alternatives: Sequence[Mapping[str, Expression]]) -> tuple[Expression, ...]:
    """``a AND b OR c ...`` over the different alternatives.

    Nothing when a member asks nothing, or when they are too many.
    """
    different = {frozenset(mine): tuple(mine.values()) for mine in alternatives}
    if frozenset() in different or len(different) > MOST_ALTERNATIVES:
        return ()
    if len(different) == 1:
        return next(iter(different.values()))
    text = " OR ".join(
        f"({' AND '.join(f'({each.sql})' for each in mine)})" for mine in different.values()
    )
    references = dict.fromkeys(
        reference for mine in different.values() for each in mine for reference in each.references
    )
    return (Expression(text, tuple(references), pa.bool_()),)


def _keeps_order(sources: Sequence[Scan], places: Places) -> bool:
    """Return whether results in the order of the group's FROM are also in that of the query's.

    Results of one newest row come by the source it stands in, the last one where it stands in
    several, then by the other sources in order of FROM, newest rows first. So two sources may
    change places only if one of them always has the newest row.
    """
    swapped = [
        (left, right)
        for left, right in combinations(range(len(places)), 2)
        if places[left] > places[right]
    ]
    return all(_may_swap(sources, pair) for pair in swapped)


def _may_swap(sources: Sequence[Scan], pair: tuple[int, int]) -> bool:
    """Return whether one of these two always has the newest row.

    They are no self-join, and all other sources are tables.
    """
    others = [source for place, source in enumerate(sources) if place not in pair]
    return sources[pair[0]].relation != sources[pair[1]].relation and all(
        source.stored for source in others
    )


def _common(values: Sequence[Value], otherwise: Value) -> Value:
    """Return the one value that all have."""
    return values[0] if all(value == values[0] for value in values) else otherwise


# -- windows and options -------------------------------------------------------------------------


def window_size(window: Window) -> int:
    """Return the length of a window in microseconds or rows.

    Of windows of one kind the longer contains the shorter.

    >>> window_size(TimeWindow(5)), window_size(RowsWindow(3))
    (5, 3)
    """
    match window:
        case TimeWindow(micros):
            return micros
        case RowsWindow(rows) | PartitionedWindow(_, rows):
            return rows
        case _:
            return 0


def _resized(window: Window, size: int) -> Window:
    """Return a window of the same kind, of another size."""
    return TimeWindow(size) if isinstance(window, TimeWindow) else RowsWindow(size)


def join_options(query: Query) -> Options:
    """Return the options of a query that say how its join is run.

    Where its results go is its own business.
    """
    return tuple(
        sorted(
            (name.lower(), value) for name, value in query.options if name.lower() in DECLARATIONS
        )
    )


# -- reasons -------------------------------------------------------------------------------------


def reasons(groups: Sequence[SharingGroup]) -> dict[str, str]:
    """Return for each query, in words, why it shares its join with others or with nobody."""
    near: dict[tuple[str, ...], list[SharingGroup]] = {}
    for group in groups:
        near.setdefault(_relations(group), []).append(group)
    told = {}
    for group in groups:
        others = [other for other in near[_relations(group)] if other is not group][:_LOOKED_AT]
        for member in group.members:
            told[member.query.name] = (
                _why_shared(group, member) if len(group.members) > 1 else _why_alone(group, others)
            )
    return told


def _why_shared(group: SharingGroup, member: Member) -> str:
    others = [other.query for other in group.members[: _SHOWN + 1] if other is not member][:_SHOWN]
    more = len(group.members) - 1 - len(others)
    names = _listed([*(query.name for query in others), *([f"{more} more"] if more else [])])
    return f"joins {_listed([source.relation for source in member.query.sources])} on the same conditions as {names}"


def _why_alone(group: SharingGroup, others: Sequence[SharingGroup]) -> str:
    """Return what is in the way of sharing with the query that comes nearest."""
    if len(group.sources) == 1:
        return "reads one source, so there is no join to share"
    if not others:
        return f"no other query joins {_listed([source.relation for source in group.sources])}"
    return min((_obstacle(group, other) for other in others), key=lambda obstacle: obstacle[0])[1]


def _obstacle(group: SharingGroup, other: SharingGroup) -> tuple[int, str]:
    """Return how far from sharing two joins of the same streams are, and why they do not share."""
    mine, theirs, name = group.join, other.join, other.members[0].query.name
    if sorted(group.signature.sources) != sorted(other.signature.sources):
        return (
            2,
            f"{name} joins the same streams under windows of other kinds: {_windows(theirs)} instead of {_windows(mine)}",
        )
    if find_places(group.signature, other.signature) is None:
        return (
            1,
            f"{name} joins the same streams on other conditions: {_conditions(other)} instead of {_conditions(group)}",
        )
    if group.options == other.options:
        return (
            0,
            f"{name} joins the same, but its results may be of another age: {_freshness(other)} instead of {_freshness(group)}",
        )
    return (
        0,
        f"{name} joins the same, but is to be run with other options: {_options(other)} instead of {_options(group)}",
    )


def _relations(group: SharingGroup) -> tuple[str, ...]:
    return tuple(sorted(source.relation for source in group.sources))


def _named(queries: Sequence[Query]) -> str:
    more = [f"{len(queries) - _SHOWN} more"] if len(queries) > _SHOWN else []
    return _listed([*(query.name for query in queries[:_SHOWN]), *more])


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _options(group: SharingGroup) -> str:
    return ", ".join(f"{name} = {value}" for name, value in group.options) or "none"


def _conditions(group: SharingGroup) -> str:
    aliases = [source.alias for source in group.sources]
    return (
        " AND ".join(readable(predicate.expression, aliases) for predicate in group.conditions)
        or "none"
    )


def _freshness(group: SharingGroup) -> str:
    sizes = zip(group.sources, group.freshness, strict=True)
    return ", ".join(
        f"{source.alias} {_resized(source.window, size)}" for source, size in sizes if size
    )


def _windows(query: Query) -> str:
    return ", ".join(f"{source.alias} {source.window}" for source in query.sources)
