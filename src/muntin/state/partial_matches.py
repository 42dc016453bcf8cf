"""The partial matches of a join tree: flat arrays, a segment per inner node below the root.

Invariant: the partial matches of a node are in the order in which they were made, each chained in
the bucket of its key. A node that is full drops the dead ones, and doubles when more than half are
alive, so a partial match costs O(1). Dead ones are skipped until then, until as many rows have
expired as there are partial matches, or until a window of the node is empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from muntin.kernels import layout
from muntin.kernels.arrays import TreeNodes
from muntin.kernels.partial_matches import drop_dead, link_partial_matches
from muntin.model.arrays import Integers
from muntin.state.join_state import JoinState

_LEAST = 256
_BUCKETS_PER_SLOT = 1


@dataclass(frozen=True)
class NodeSpec:
    """A node.

    The sources of its partial matches, and the key under which its sibling looks them up, as
    (source, code) pairs.
    """

    sources: tuple[int, ...]
    key: tuple[tuple[int, int], ...]


@dataclass
class PartialMatches:
    """The partial matches of all nodes of a tree over the rows of ``state``."""

    state: JoinState
    specs: Sequence[NodeSpec]
    arrays: TreeNodes = field(init=False)
    nodes: Integers = field(init=False)
    members: Integers = field(init=False)
    links: npt.NDArray[np.int32] = field(init=False)

    def __post_init__(self) -> None:
        self._looked = 0
        self._lay_out([_LEAST] * len(self.specs))

    def _lay_out(self, capacities: Sequence[int]) -> None:
        """Empty segments of the given capacities."""
        stores = len(self.state.specs)
        keys = max((len(spec.key) for spec in self.specs), default=0)
        nodes = np.zeros((len(self.specs), layout.NODE_SOURCES + stores + 2 * keys), np.int64)
        member = link = 0
        for row, spec, capacity in zip(nodes, self.specs, capacities, strict=True):
            buckets = _BUCKETS_PER_SLOT * capacity if spec.key else 1
            row[[layout.NODE_MEMBERS, layout.NODE_WIDTH, layout.NODE_CAP]] = (
                member,
                len(spec.sources),
                capacity,
            )
            row[[layout.NODE_LINKS, layout.NODE_HEADS]] = link, link + capacity
            row[[layout.NODE_BUCKETS, layout.NODE_KEY_COUNT]] = buckets, len(spec.key)
            row[layout.NODE_SOURCES : layout.NODE_SOURCES + len(spec.sources)] = spec.sources
            first = layout.NODE_SOURCES + stores
            for place, (source, code) in enumerate(spec.key):
                row[first + 2 * place : first + 2 * place + 2] = (
                    spec.sources.index(source),
                    self.state.specs[source].code_word(code),
                )
            member += capacity * len(spec.sources)
            link += capacity + buckets
        self.arrays = TreeNodes(nodes, np.zeros(member, np.int64), np.zeros(link, np.int32))
        self.nodes, self.members, self.links = self.arrays

    def make_room(self, node: int, limits: Integers) -> None:
        """Make room in a node that is too small for one more climb.

        Drop dead partial matches, and double it when that is not enough.
        """
        before = int(self.nodes[node, layout.NODE_USED])
        alive = int(drop_dead(self.state.arena, self.arrays, limits, node))
        capacity = int(self.nodes[node, layout.NODE_CAP])
        if alive == before or 2 * alive > capacity:
            self._resize(node, 2 * capacity)
        self._link(node)

    def _resize(self, node: int, capacity: int) -> None:
        nodes, members, links = self.nodes, self.members, self.links
        self._lay_out(
            [capacity if n == node else int(row[layout.NODE_CAP]) for n, row in enumerate(nodes)]
        )
        for n, (old, new) in enumerate(zip(nodes, self.nodes, strict=True)):
            used = int(old[layout.NODE_USED])
            new[layout.NODE_USED] = used
            words = used * int(old[layout.NODE_WIDTH])
            start, origin = int(new[layout.NODE_MEMBERS]), int(old[layout.NODE_MEMBERS])
            self.members[start : start + words] = members[origin : origin + words]
            if n != node:
                size = int(old[layout.NODE_CAP] + old[layout.NODE_BUCKETS])
                start, origin = int(new[layout.NODE_LINKS]), int(old[layout.NODE_LINKS])
                self.links[start : start + size] = links[origin : origin + size]

    def _link(self, node: int) -> None:
        row = self.nodes[node]
        self.links[row[layout.NODE_HEADS] : row[layout.NODE_HEADS] + row[layout.NODE_BUCKETS]] = 0
        link_partial_matches(self.state.arena, self.arrays, node)

    def fit(self, limits: Integers) -> None:
        """Drop what is dead and return memory; called between batches.

        A node is looked through once as many rows have expired as there are partial matches, and
        when one of its windows is empty.
        """
        expired = int(self.state.counters[layout.N_EXPIRED])
        due = expired - self._looked >= max(self.rows(), 1)
        if due:
            self._looked = expired
        for node, spec in enumerate(self.specs):
            if due or not all(self.state.stores[source, layout.HELD] for source in spec.sources):
                self._drop_dead(node, limits)

    def _drop_dead(self, node: int, limits: Integers) -> None:
        if not self.nodes[node, layout.NODE_USED] and self.nodes[node, layout.NODE_CAP] <= _LEAST:
            return
        alive = int(drop_dead(self.state.arena, self.arrays, limits, node))
        if self.nodes[node, layout.NODE_CAP] > max(8 * alive, _LEAST):
            self._resize(node, max(_LEAST, 2 * alive))
        self._link(node)

    def rows(self) -> int:
        """Partial matches held, dead ones that were not yet dropped included."""
        return int(self.nodes[:, layout.NODE_USED].sum()) if len(self.nodes) else 0

    def nbytes(self) -> int:
        """Return the bytes of all arrays."""
        return int(self.nodes.nbytes + self.members.nbytes + self.links.nbytes)
