"""The half joins of a binary tree of joins [Mukherji11, section 4.1].

Every subtree below the root probes the state of its sibling: that is one half join. Its number is
that of the probing side: the number of a leaf, 0 to k - 1, or ``k + node`` for an inner node below
the root. There are 2k - 2 half joins and k - 2 inner nodes for any shape (Lemma 2); nodes are
numbered bottom up, left before right, as in :class:`TreePlan`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from muntin.plan.join import TreePlan

ROOT = -1
"""The parent of the two sides of the last join."""


@dataclass(frozen=True)
class TreeShape:
    """A tree over ``leaves`` streams."""

    leaves: int
    """The number of streams k, at least two."""
    parent: tuple[int, ...]
    """For each half join, the one that takes its output; ``ROOT`` for results of the tree."""
    partner: tuple[int, ...]
    """For each half join, the one whose state it probes: its sibling."""

    @classmethod
    def of(cls, tree: TreePlan) -> TreeShape:
        """Return the shape of a plan."""
        leaves = len(tree.climbs)
        parent = [ROOT] * (2 * leaves - 2)
        partner = [0] * len(parent)
        for leaf, climbs in enumerate(tree.climbs):
            h = leaf
            for climb in climbs:
                sibling = climb.source if climb.node is None else leaves + climb.node
                assert sibling is not None, "a climb looks into a source or into a node"
                partner[h] = sibling
                parent[h] = ROOT if climb.parent is None else leaves + climb.parent
                h = parent[h]
        return cls(leaves, tuple(parent), tuple(partner))

    @property
    def count(self) -> int:
        """Return the number of half joins."""
        return 2 * self.leaves - 2

    @property
    def susceptible(self) -> tuple[int, ...]:
        """Return the half joins with states of intermediate results, which can grow stale."""
        return tuple(range(self.leaves, self.count))

    @cached_property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """For each leaf the half joins from it to the root (Definition 3)."""
        return tuple(tuple(self._upwards(leaf)) for leaf in range(self.leaves))

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """For each half join the leaves below it."""
        return tuple(
            tuple(leaf for leaf in range(self.leaves) if h in self.paths[leaf])
            for h in range(self.count)
        )

    @cached_property
    def joins(self) -> tuple[tuple[int, int], ...]:
        """Return the two half joins of each join operator, bottom up; those of the root last."""
        pairs = {
            (min(h, other), max(h, other)): self.parent[h] for h, other in enumerate(self.partner)
        }
        return tuple(sorted(pairs, key=lambda pair: (pairs[pair] == ROOT, pairs[pair])))

    @cached_property
    def top(self) -> tuple[int, int]:
        """Return the two half joins that produce results."""
        return self.joins[-1]

    def _upwards(self, h: int) -> Iterator[int]:
        while h != ROOT:
            yield h
            h = self.parent[h]
