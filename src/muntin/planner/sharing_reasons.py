"""The reasons, in words, why queries share a join or do not; ``explain`` prints them."""

from __future__ import annotations

from collections.abc import Sequence

from muntin.model.window import resized
from muntin.plan.query import Query
from muntin.planner.sharing_groups import SHOWN, Member, SharingGroup, listed
from muntin.planner.signature import find_places, readable

_LOOKED_AT = 8
"""Other groups over the same streams among which a reason looks for the nearest."""


def reasons(groups: Sequence[SharingGroup]) -> dict[str, str]:
    """Return the reason, in words, why each query shares its join or runs it alone."""
    near: dict[tuple[str, ...], list[SharingGroup]] = {}
    for group in groups:
        near.setdefault(_relations(group), []).append(group)
    found = {}
    for group in groups:
        others = [other for other in near[_relations(group)] if other is not group][:_LOOKED_AT]
        for member in group.members:
            found[member.query.name] = (
                _why_shared(group, member) if len(group.members) > 1 else _why_alone(group, others)
            )
    return found


def _why_shared(group: SharingGroup, member: Member) -> str:
    others = [other.query for other in group.members[: SHOWN + 1] if other is not member][:SHOWN]
    more = len(group.members) - 1 - len(others)
    names = listed([*(query.name for query in others), *([f"{more} more"] if more else [])])
    relations = listed([source.relation for source in member.query.sources])
    return f"joins {relations} on the same conditions as {names}"


def _why_alone(group: SharingGroup, others: Sequence[SharingGroup]) -> str:
    """Return the obstacle to sharing with the query that comes nearest."""
    if len(group.sources) == 1:
        return "reads one source, so there is no join to share"
    if not others:
        return f"no other query joins {listed([source.relation for source in group.sources])}"
    return min((_obstacle(group, other) for other in others), key=lambda obstacle: obstacle[0])[1]


def _obstacle(group: SharingGroup, other: SharingGroup) -> tuple[int, str]:
    """Return the obstacle to sharing between two joins: its rank, lowest nearest, and text."""
    mine, theirs, name = group.join, other.join, other.members[0].query.name
    if sorted(group.signature.sources) != sorted(other.signature.sources):
        fact = f"{name} joins the same streams under windows of other kinds"
        return 2, f"{fact}: {_windows(theirs)} instead of {_windows(mine)}"
    if find_places(group.signature, other.signature) is None:
        fact = f"{name} joins the same streams on other conditions"
        return 1, f"{fact}: {_conditions(other)} instead of {_conditions(group)}"
    if group.options == other.options:
        fact = f"{name} joins the same, but its results may be of another age"
        return 0, f"{fact}: {_freshness(other)} instead of {_freshness(group)}"
    fact = f"{name} joins the same, but is to be run with other options"
    return 0, f"{fact}: {_options(other)} instead of {_options(group)}"


def _relations(group: SharingGroup) -> tuple[str, ...]:
    return tuple(sorted(source.relation for source in group.sources))


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
        f"{source.alias} {resized(source.window, size)}" for source, size in sizes if size
    )


def _windows(query: Query) -> str:
    return ", ".join(f"{source.alias} {source.window}" for source in query.sources)
