"""The oracle of as-of joins that emit inserts: matches when they arise, and with LEFT other rows.

At each instant the matches are compared with those of the instant before. A left row that comes
without a match is emitted beside NULLs, one that loses its match is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from muntin.plan.asof_join import AsofJoin
from muntin.plan.node import Node
from muntin.plan.nodes import Exchange
from muntin.testing.compare import rows_of, without
from muntin.testing.connection import run_sql
from muntin.testing.oracle_clauses import clause_of

_EMITTED = "emitted"


def emits_matches(root: Node) -> bool:
    """Return whether a tree has such a join."""
    return any(isinstance(node, AsofJoin) and node.inserts for node in root.walk())


def asof_inserts(
    root: Node, read: Callable[[int, str], pa.Table], instants: Sequence[int]
) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows that are emitted at instants; ``read`` runs SQL over the leaves at one."""
    (node,) = (one for one in root.walk() if isinstance(one, AsofJoin) and one.inserts)
    above = root.transform(
        lambda one: (
            Exchange(_EMITTED, one.schema) if isinstance(one, AsofJoin) and one.inserts else one
        )
    )
    width, more = len(node.left.schema), len(node.right.schema)
    every = replace(
        node, left_columns=tuple(range(width)), right_columns=tuple(range(more)), outer=False
    )
    shown = [*node.left_columns, *(width + place for place in node.right_columns)]
    matches, rows = clause_of(every), clause_of(node.left)
    before = every.schema.empty_table(), node.left.schema.empty_table()
    for instant in instants:
        now = read(instant, matches), read(instant, rows)
        came = without(now[0], before[0]).select(shown)
        parts = [came.rename_columns(node.schema.names).cast(node.schema)]
        if node.outer:
            matched = {row[:width] for row in rows_of(now[0])}
            new = without(now[1], before[1])
            alone = new.filter(pa.array([row not in matched for row in rows_of(new)], pa.bool_()))
            nulls = [
                pa.nulls(len(alone), node.right.schema.field(at).type) for at in node.right_columns
            ]
            columns = [*alone.select(node.left_columns).columns, *nulls]
            parts.append(pa.table(columns, names=node.schema.names).cast(node.schema))
        before = now
        yield instant, run_sql(clause_of(above), {_EMITTED: pa.concat_tables(parts)})
