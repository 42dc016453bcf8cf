"""Filters below a shared join [Hammad03, section 2.2].

Conditions over one source that all members have are filters below the join. Of those that differ,
each member keeps its own above the join, and their disjunction is pushed below: a row that meets
the conditions of no member is never stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

import pyarrow as pa

from muntin.plan.expression import Expression

Selections: TypeAlias = tuple[tuple[str, Expression], ...]
"""The selections of a member, each with a text that does not depend on how it is spaced."""

MOST_ALTERNATIVES = 64
"""A disjunction of more alternatives is not pushed below the join: testing them costs more than
storing the row."""


def source_filters(
    members: Sequence[Selections], common: AbstractSet[str], place: int
) -> tuple[Expression, ...]:
    """Return the filters of a source: those of all members, and the disjunction of the others.

    ``common`` has the texts of the selections that all members have. A condition that reads no
    source is a filter of the first source if all members have it.
    """
    shared = [
        each for key, each in members[0] if key in common and min(each.sources, default=0) == place
    ]
    alternatives = [
        {key: each for key, each in mine if key not in common and each.sources == {place}}
        for mine in members
    ]
    return (*shared, *_disjunction(alternatives))


def _disjunction(alternatives: Sequence[Mapping[str, Expression]]) -> tuple[Expression, ...]:
    """Return ``a AND b OR c ...`` over the different alternatives.

    Empty if a member has no condition here, or if there are too many alternatives.
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
