"""The entries of a FROM after they were found in the catalog, and how they are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muntin.plan.expression import Predicate
from muntin.plan.node import Node
from muntin.plan.nodes import Scan
from muntin.sql.asof_joins import check_asof
from muntin.sql.binder import Conditions
from muntin.sql.outer_joins import FromJoins, kind_of
from muntin.sql.shape import FromEntry


@dataclass(frozen=True)
class BoundFrom:
    """The entries of a FROM, as sources and as nodes, and the conditions between them.

    Those from ``nested`` on are joined with all others before them.
    """

    sources: tuple[Scan, ...]
    nodes: Sequence[Node | None]
    entries: Sequence[FromEntry]
    conditions: Conditions
    nested: int | None = None

    def joins(self, on: Sequence[Predicate]) -> FromJoins:
        """Return the joins, given the conditions of ON as predicates."""
        places = [condition.entry for condition in self.conditions.on]
        own = [
            tuple(one for one, at in zip(on, places, strict=True) if at == place)
            for place in range(len(self.entries))
        ]
        for place, entry in enumerate(self.entries):
            if "ASOF" in entry.join.split():
                self._check_asof(place, on)
        return FromJoins([entry.join for entry in self.entries], own, self.nested)

    @property
    def reads_stream(self) -> bool:
        """Return whether an entry or what is below it is a stream."""
        scans = (node for root in self.nodes if root is not None for node in root.walk())
        return any(isinstance(node, Scan) and not node.stored for node in (*scans, *self.sources))

    def _check_asof(self, place: int, on: Sequence[Predicate]) -> None:
        """Refuse an as-of join whose ON does not say which row is the match."""
        joins = [entry.join for entry in self.entries[: place + 1]]
        start = max(at for at, join in enumerate(joins) if join in {"", ","})
        own = [
            (condition, one)
            for condition, one in zip(self.conditions.on, on, strict=True)
            if condition.entry == place
        ]
        left, right = frozenset(range(start, place)), frozenset({place})
        check_asof(self.entries[place].tokens, own, left, right)

    @property
    def ordered(self) -> Sequence[object]:
        """Return the sub-selects and outer joins; their rows are outside the streams' order."""
        return [*self.nodes, *(kind_of(entry.join) for entry in self.entries)]
