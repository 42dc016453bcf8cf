"""The oracle of outer, semi and anti joins that emit inserts: each row once.

A match is emitted when it arises. A row of a kept side is emitted when it leaves its window, if no
match of the inner join has it; with SEMI, at its first match instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from muntin.plan.expression import quote
from muntin.plan.node import Node
from muntin.plan.nodes import Exchange
from muntin.plan.outer_inserts import Kept, OuterInserts
from muntin.testing.connection import run_sql
from muntin.testing.oracle import Oracle
from muntin.testing.oracle_clauses import clause_of

_EMITTED = "emitted"


def emits_once(root: Node) -> bool:
    """Return whether a tree has such a join."""
    return any(isinstance(node, OuterInserts) for node in root.walk())


def inserts_of(root: Node, leaves: Sequence[Oracle], until: int) -> Iterator[tuple[int, pa.Table]]:
    """Yield instants up to ``until`` and the rows that are emitted at each.

    ``leaves`` are the oracles of the window joins below, in the order of the tree.
    """
    (node,) = (node for node in root.walk() if isinstance(node, OuterInserts))
    emitted = _emitted(node, leaves, until)
    above = root.transform(
        lambda one: Exchange(_EMITTED, one.schema) if isinstance(one, OuterInserts) else one
    )
    for instant in sorted(set(emitted.column("instant").to_pylist())):
        rows = run_sql(
            f"SELECT * EXCLUDE (instant) FROM emitted WHERE instant = {instant}",
            {_EMITTED: emitted},
        )
        yield instant, run_sql(clause_of(above), {_EMITTED: rows})


def _emitted(node: OuterInserts, leaves: Sequence[Oracle], until: int) -> pa.Table:
    """Return the rows that the join emits, with the ``instant`` of each."""
    matches, *sides = (leaf.lifetimes() for leaf in leaves[: 1 + len(node.sides)])
    shown = ", ".join(map(quote, node.schema.names))
    parts = []
    if node.kept is Kept.OUTER:
        parts.append(f"SELECT {shown}, begins AS instant FROM matches WHERE begins <= {until}")
    tables = {"matches": matches}
    for place, (side, rows) in enumerate(zip(node.sides, sides, strict=True)):
        tables[f"side{place}"] = rows
        items = ", ".join(
            f"s.{quote(field.name)}" if field.name in side.schema.names else "NULL"
            for field in node.schema
        )
        same = " AND ".join(f"m.{quote(one)} = s.{quote(one)}" for one in node.identity(side))
        first = f"(SELECT min(begins) FROM matches m WHERE {same})"
        at = first if node.kept is Kept.SEMI else "s.ends"
        unmatched = "" if node.kept is Kept.SEMI else f" AND {first} IS NULL"
        parts.append(
            f"SELECT {items}, {at} AS instant FROM side{place} s WHERE {at} <= {until}{unmatched}"
        )
    return run_sql(" UNION ALL ".join(parts), tables)
