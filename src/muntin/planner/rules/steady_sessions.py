"""Keep the rows of sessions as they are while sessions are extended, where nothing shows their end.

If a row extends a session, the end of the window changes for all of its rows, which costs as much
as they are many. Two rules avoid that, and then the cost is that of the new rows:

* If nothing above reads the end, rows need none that changes.
* A grouping by all keys of the session and by a bound of its window has one group per session. So
  the end is no key: it is the greatest of the ends that single rows set, an aggregate.

Sound because the start of an open session never changes: rows come in the order of time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from muntin.plan.column_rename import renamed
from muntin.plan.expression import ColumnRef, Expression, OutputColumn, column_expression
from muntin.plan.node import Node
from muntin.plan.nodes import Aggregate, GroupBy, Join, Project
from muntin.plan.sessions import WINDOW_END, WINDOW_START, SessionEnds, SessionWindows

_INSTANT = pa.timestamp("us")


def steady_sessions(node: Node) -> Node:
    """Return a node over sessions whose rows do not change, if that is sound; else the same one."""
    match node:
        case Project(input=SessionWindows() as below) if _is_each(below):
            return _unread(node, (below,))
        case Join(sources=sources) if not node.is_leaf and any(map(_is_each, sources)):
            return _unread(node, sources)
        case GroupBy(input=Project(where=(), input=SessionWindows() as below) as select) if (
            _is_each(below)
        ):
            return _by_start(node, select, below)
        case _:
            return node


def _is_each(node: Node) -> bool:
    return isinstance(node, SessionWindows) and node.ends is SessionEnds.EACH


def _steady(node: Node) -> Node:
    return replace(node, ends=SessionEnds.STEADY) if isinstance(node, SessionWindows) else node


def _unread(node: Project | Join, inputs: tuple[Node, ...]) -> Node:
    """Return a node that takes steady rows of the sessions whose end it does not read."""
    conditions = node.where if isinstance(node, Project) else (*node.on, *node.where)
    read = _read([one.expression for one in conditions])
    read |= _read([one.expression for one in node.select])
    return node.with_children(
        tuple(
            _steady(each) if _is_each(each) and ColumnRef(place, WINDOW_END) not in read else each
            for place, each in enumerate(inputs)
        )
    )


def _read(expressions: Iterable[Expression]) -> set[ColumnRef]:
    return {reference for expression in expressions for reference in expression.references}


def _by_start(node: GroupBy, select: Project, below: SessionWindows) -> Node:
    """Return a grouping by keys and start, with the end as an aggregate; else the same one."""
    columns = select.select
    keys = [column.expression.column for column in columns[: node.keys]]
    own = {ColumnRef(0, below.input.schema.names[place]) for place in below.keys}
    start, end = ColumnRef(0, WINDOW_START), ColumnRef(0, WINDOW_END)
    if any(key is None for key in keys) or keys.count(end) != 1:
        return node
    if own != set(keys) - {start, end} or end in _read(c.expression for c in columns[node.keys :]):
        return node
    at = keys.index(end)
    # The start takes the place of the end among the keys; the end is the last argument.
    key = OutputColumn(columns[at].name, column_expression(start, _INSTANT))
    taken = {column.name for column in columns}
    name = next(name for n in range(len(taken) + 1) if (name := f"#end{n}") not in taken)
    last = OutputColumn(name, column_expression(end, _INSTANT))
    greatest = Aggregate("max", len(columns), _INSTANT, text=f"max({WINDOW_END})")
    meant = {ColumnRef(0, columns[at].name): ColumnRef(0, f"a{len(node.aggregates)}")}
    return replace(
        node,
        input=Project(_steady(below), (), (*columns[:at], key, *columns[at + 1 :], last)),
        aggregates=(*node.aggregates, greatest),
        having=renamed(node.having, meant) if node.having else None,
        select=tuple(
            replace(column, expression=renamed(column.expression, meant)) for column in node.select
        ),
    )
