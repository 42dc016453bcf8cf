"""Rule: the conditions of ON join those of WHERE.

Sound for inner joins only: they keep exactly the combinations of rows that satisfy both, so the two
are one conjunction, which may be tested in any order. An outer join keeps a row without partners,
which ON decides and WHERE may still drop; its conditions stay apart.
"""

from __future__ import annotations

from dataclasses import replace

from muntin.plan.node import Node
from muntin.plan.nodes import Join, JoinKind

_SOUND_FOR = frozenset({JoinKind.INNER})


def merge_conditions(node: Node) -> Node:
    """Return an inner join with all of its conditions in WHERE; other nodes as they are."""
    if isinstance(node, Join) and node.on and node.kind in _SOUND_FOR:
        return replace(node, on=(), where=(*node.on, *node.where))
    return node
