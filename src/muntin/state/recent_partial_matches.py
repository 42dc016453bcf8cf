"""Partial matches of which each node keeps the last ``count``, however old they are.

States of a fixed size ([Mukherji11, section 2]). Invariant: the last ``count`` slots of a node are
its last partial matches in the order in which they were made. Older ones are skipped until the node
is full, and then dropped, so a partial match costs O(1). Those that lost a row keep their place but
are in no chain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muntin.kernels import layout
from muntin.kernels.budgeted_join import link_held
from muntin.model.arrays import Integers
from muntin.state.partial_matches import PartialMatches


@dataclass
class RecentPartialMatches(PartialMatches):
    """The last ``count`` partial matches of each node."""

    count: int = 1

    def make_room(self, node: int, limits: Integers) -> None:  # noqa: ARG002 (any age)
        """Make room in a node that is too small for one more climb.

        Drop what is not among the last, or double it.
        """
        row = self.nodes[node]
        used, width, first = (
            int(row[field]) for field in (layout.NODE_USED, layout.NODE_WIDTH, layout.NODE_MEMBERS)
        )
        if used > self.count:
            kept = self.members[first + (used - self.count) * width : first + used * width].copy()
            self.members[first : first + len(kept)] = kept
            row[layout.NODE_USED] = self.count
        else:
            self._resize(node, 2 * int(row[layout.NODE_CAP]))
        self._link(node)

    def _link(self, node: int) -> None:
        row = self.nodes[node]
        self.links[row[layout.NODE_HEADS] : row[layout.NODE_HEADS] + row[layout.NODE_BUCKETS]] = 0
        link_held(self.state.arena, self.arrays, node)

    def fit(self, limits: Integers) -> None:
        """Do nothing: a node keeps a fixed number."""

    def rows(self) -> int:
        """Partial matches that count, those that have lost a row included."""
        return (
            int(np.minimum(self.nodes[:, layout.NODE_USED], self.count).sum())
            if len(self.nodes)
            else 0
        )

    def oldest(self, source: int) -> int | None:
        """Return the oldest row of a source that a partial match refers to and its store still has.

        By its number; None if there is none.
        """
        found = []
        tail = int(self.state.stores[source, layout.TAIL])
        for row, spec in zip(self.nodes, self.specs, strict=True):
            if source in spec.sources and row[layout.NODE_USED]:
                used, width, first = (
                    int(row[field])
                    for field in (layout.NODE_USED, layout.NODE_WIDTH, layout.NODE_MEMBERS)
                )
                last = self.members[
                    first + max(used - self.count, 0) * width : first + used * width
                ].reshape(-1, width)
                rows = last[:, spec.sources.index(source)]
                found.append(int(rows.min(initial=layout.NEVER, where=rows >= tail)))
        oldest = min(found, default=layout.NEVER)
        return None if oldest == layout.NEVER else oldest
