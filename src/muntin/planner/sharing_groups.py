"""Sharing groups: queries over one join, and the rest of each [Hammad03, sections 1 and 2.2].

Queries with one signature (:mod:`muntin.planner.signature`) share a join. It is an ordinary query,
:attr:`SharingGroup.join`, with the sources of the query that founded the group, for each source the
largest window of all members, and the conditions that every member has. Conditions over one source
that all members have are filters below the join. Of those that differ, each member keeps its own
above the join, and their disjunction is pushed below: a row that no member needs is never stored.
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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import TypeAlias, TypeVar

import pyarrow as pa

from muntin.model.settings import DECLARATIONS
from muntin.model.window import Window, resized, window_size
from muntin.plan.expression import (
    POSITION,
    ColumnRef,
    Expression,
    OutputColumn,
    Predicate,
    column_expression,
)
from muntin.plan.nodes import Join, Scan
from muntin.plan.query import Emit, Query
from muntin.planner.shared_filters import Selections, source_filters
from muntin.planner.signature import (
    Places,
    Signature,
    find_places,
    is_selection,
    moved,
    signature_of,
    text_of,
)

SHOWN = 3
"""Names that a reason lists before it only counts."""

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
    result. ``weight`` is how much the query counts for the scheduler.
    """

    query: Query
    places: Places
    windows: tuple[Window, ...]
    selections: Selections
    residuals: tuple[Expression, ...]
    select: tuple[OutputColumn, ...]
    keeps_order: bool
    freshness: tuple[int, ...] = ()
    weight: Fraction = Fraction(1)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Return the lengths of its windows, in microseconds or rows."""
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
        """Return how old the rows of each source may be in a result of any member.

        Members leave out their own stale results.
        """
        return tuple(map(max, zip(*(member.freshness for member in self.members), strict=True)))

    @cached_property
    def join(self) -> Query:
        """Return the shared join as a query: it selects the columns that any member needs."""
        filters = [Predicate(expression) for mine in self.filters for expression in mine]
        return Query(
            name=self.name,
            text=f"the join of {_first_names([member.query for member in self.members])}",
            root=Join(self.sources, (), (*self.conditions, *filters), self._needed()),
            emit=_common([member.query.emit for member in self.members], Emit.INSERTS),
            every=_common([member.query.every for member in self.members], None),
            freshness=tuple(
                (place, resized(self.sources[place].window, size))
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
        return column_expression(reference, kind)

    @cached_property
    def signature(self) -> Signature:
        """Return the signature that all members have."""
        return signature_of(Join(self.sources, (), self.conditions, ()))

    @cached_property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """Return the different windows of the members, as lengths per source, in scheduling order.

        By the sum of the lengths: windows that contain others come after them, and a window that is
        added or dropped leaves the order of the others as it is.
        """
        return tuple(
            sorted({member.sizes for member in self.members}, key=lambda sizes: (sum(sizes), sizes))
        )

    def reweighed(self, name: str, weight: Fraction) -> SharingGroup:
        """Return the group with another weight for a member."""
        changed = replace(self.member(name), weight=weight)
        members = (changed if each.query.name == name else each for each in self.members)
        return replace(self, members=tuple(members))

    def member(self, name: str) -> Member:
        """Return the member of this name."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Member]:
        return {member.query.name: member for member in self.members}


def add_query(
    groups: Sequence[SharingGroup],
    query: Query,
    freshness: tuple[int, ...] = (),
    weight: Fraction = Fraction(1),
    *,
    counted: bool = False,
) -> tuple[SharingGroup, ...]:
    """Return the groups with one more query.

    In the first group that it can share with, or in a new one at the end.

    ``freshness`` has how old the rows of the query's sources may be in a result, where that counts.
    Where stale results are ``counted`` by the join, those who share have the same. Their ``weight``
    may differ.
    """
    signature = signature_of(query.join)
    for number, group in enumerate(groups if len(query.sources) > 1 else ()):
        if group.signature.key == signature.key and group.options == join_options(query):
            places = find_places(signature, group.signature)
            member = _member(query, places, freshness) if places is not None else None
            alike = member is not None and (not counted or member.freshness == group.freshness)
            if member is not None and alike:
                member = replace(member, weight=weight)
                joined = _with_members(group, (*group.members, member))
                return (*groups[:number], joined, *groups[number + 1 :])
    return (*groups, _found(query, freshness, weight))


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


def _found(query: Query, freshness: tuple[int, ...], weight: Fraction) -> SharingGroup:
    """Return the group of a query that shares with nobody yet."""
    member = replace(_member(query, tuple(range(len(query.sources))), freshness), weight=weight)
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
    selections = [member.selections for member in members]
    common = set.intersection(*({key for key, _ in mine} for mine in selections))
    return replace(
        group,
        sources=tuple(
            replace(source, window=window)
            for source, window in zip(group.sources, largest, strict=True)
        ),
        filters=tuple(
            source_filters(selections, common, place) for place in range(len(group.sources))
        ),
        members=tuple(_with_residuals(member, common) for member in members),
    )


def _with_residuals(member: Member, common: set[str]) -> Member:
    residuals = tuple(expression for key, expression in member.selections if key not in common)
    return member if residuals == member.residuals else replace(member, residuals=residuals)


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


def join_options(query: Query) -> Options:
    """Return the options of a query that say how its join is run.

    Its weight and where its results go are its own business.
    """
    given = ((name.lower(), value) for name, value in query.options)
    return tuple(
        sorted(
            (name, value)
            for name, value in given
            if name in DECLARATIONS and DECLARATIONS[name].compared
        )
    )


def _first_names(queries: Sequence[Query]) -> str:
    more = [f"{len(queries) - SHOWN} more"] if len(queries) > SHOWN else []
    return listed([*(query.name for query in queries[:SHOWN]), *more])


def listed(names: Sequence[str]) -> str:
    """Return names as an English list.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
