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
from typing import TypeAlias

from muntin.plan.join import TreePlan

Nested: TypeAlias = "int | tuple[Nested, Nested]"
"""A leaf, or two subtrees."""

ROOT = -1
"""The parent of the two sides of the last join."""


@dataclass(frozen=True)
class TreeShape:
    """A tree over ``leaves`` streams.

    Parameters
    ----------
    leaves
        The number of streams k, at least two.
    parent
        For each half join, the one that takes its output; ``ROOT`` for results of the tree.
    partner
        For each half join, the one whose state it probes: its sibling.
    """

    leaves: int
    parent: tuple[int, ...]
    partner: tuple[int, ...]

    @classmethod
    def of(cls, tree: Nested | TreePlan) -> TreeShape:
        """Return the shape of nested pairs of leaf numbers, or of a plan.

        >>> shape = TreeShape.of(((0, 1), 2))
        >>> shape.parent, shape.partner, shape.paths
        ((3, 3, -1, -1), (1, 0, 3, 2), ((0, 3), (1, 3), (2,)))
        """
        return _of_plan(tree) if isinstance(tree, TreePlan) else _of_nested(tree)

    @property
    def count(self) -> int:
        """The number of half joins."""
        return 2 * self.leaves - 2

    @property
    def susceptible(self) -> tuple[int, ...]:
        """The half joins with states of intermediate results, which can grow stale."""
        return tuple(range(self.leaves, self.count))

    @cached_property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """For each leaf the half joins from it to the root (Definition 3)."""
        return tuple(tuple(self._upwards(leaf)) for leaf in range(self.leaves))

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """For each half join the two that feed it; none for a leaf."""
        found: list[list[int]] = [[] for _ in range(self.count)]
        for child, parent in enumerate(self.parent):
            if parent != ROOT:
                found[parent].append(child)
        return tuple(tuple(pair) for pair in found)

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """For each half join the leaves below it."""
        return tuple(
            tuple(leaf for leaf in range(self.leaves) if h in self.paths[leaf])
            for h in range(self.count)
        )

    @cached_property
    def joins(self) -> tuple[tuple[int, int], ...]:
        """The two half joins of each join operator, bottom up; those of the root last."""
        pairs = {
            (min(h, other), max(h, other)): self.parent[h] for h, other in enumerate(self.partner)
        }
        return tuple(sorted(pairs, key=lambda pair: (pairs[pair] == ROOT, pairs[pair])))

    @cached_property
    def top(self) -> tuple[int, int]:
        """The two half joins that produce results."""
        return self.joins[-1]

    def _upwards(self, h: int) -> Iterator[int]:
        while h != ROOT:
            yield h
            h = self.parent[h]


def _of_nested(tree: Nested) -> TreeShape:
    leaves = sorted(_leaves(tree))
    assert leaves == list(range(len(leaves))), (
        f"{tree} does not have every leaf once, numbered from 0"
    )
    assert len(leaves) >= 2, "a join has two sides"
    parent = [ROOT] * (2 * len(leaves) - 2)
    partner = [0] * len(parent)
    made = len(leaves)

    def build(part: Nested) -> int:
        """Return the number of a subtree; that of the root is never used."""
        nonlocal made
        if isinstance(part, int):
            return part
        left, right = build(part[0]), build(part[1])
        number, made = made, made + 1
        partner[left], partner[right] = right, left
        parent[left] = parent[right] = number if number < len(parent) else ROOT
        return number

    build(tree)
    return TreeShape(len(leaves), tuple(parent), tuple(partner))


def _of_plan(tree: TreePlan) -> TreeShape:
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
    return TreeShape(leaves, tuple(parent), tuple(partner))


def _leaves(tree: Nested) -> Iterator[int]:
    if isinstance(tree, int):
        yield tree
    else:
        yield from _leaves(tree[0])
        yield from _leaves(tree[1])
