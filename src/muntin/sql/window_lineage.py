"""Which columns of a node tell the end of the window of its rows.

Found by following ``window_end`` and ``window_start`` upwards. A row that has such a column is
there because a row of that window is, so it leaves when the window ends at the latest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

import pyarrow as pa

from muntin.model.catalog import Catalog
from muntin.model.window import TimeWindow
from muntin.plan.expression import ColumnRef, OutputColumn, column_expression
from muntin.plan.node import Node
from muntin.plan.nodes import Distinct, GroupBy, Join, Project, SetOperation, SetOperator
from muntin.plan.semi_join import SemiJoin
from muntin.plan.sessions import WINDOW_END, SessionWindows
from muntin.plan.top_n import TopN
from muntin.plan.window_functions import WindowFunctions
from muntin.sql.own_ends import bounds_of

HIDDEN = "#window_end"
"""The name of a column that rows carry only for the end of their window."""
Ends: TypeAlias = Mapping[int, int]
"""Columns by place, and the microseconds from their instant to the end of the window."""
_EITHER = {SetOperator.UNION, SetOperator.UNION_ALL}


def ends_of(node: Node, catalog: Catalog) -> Ends:
    """Return the columns of a node that tell the end of the window of a row."""
    match node:
        case Join(sources=sources) if not node.is_leaf:
            return _selected(node.select, _known(sources, catalog))
        case Join():
            return _of_leaf(node, catalog)
        case Project(input=below):
            return _selected(node.select, _known((below,), catalog))
        case GroupBy():
            return _selected(node.select, _known_keys(node, catalog))
        case SessionWindows():
            return {node.schema.names.index(WINDOW_END): 0}
        case Distinct(input=below) | SemiJoin(left=below) | WindowFunctions(input=below):
            return ends_of(below, catalog)
        case TopN(input=below):
            ends = ends_of(below, catalog)
            return {at: ends[place] for at, place in enumerate(node.columns) if place in ends}
        case SetOperation():
            left, right = ends_of(node.left, catalog), ends_of(node.right, catalog)
            either = node.operator in _EITHER
            return {at: add for at, add in left.items() if not either or right.get(at) == add}
        case _:
            return {}


def showing_end(node: Node, catalog: Catalog) -> Node:
    """Return a node whose rows carry the end of their window, if need be in a last column.

    The same node where another column would change its rows, and where there is no end.
    """
    return node if ends_of(node, catalog) else _appended(node, catalog)


def _appended(node: Node, catalog: Catalog) -> Node:
    """Return a node with the end of the window of its rows in one more column, if it has one."""
    match node:
        case Join() if node.is_leaf:
            bounds = bounds_of(node, catalog)
            ends = [bounds[column] for column in bounds if column.column == WINDOW_END]
            return _with(node, [OutputColumn(HIDDEN, end) for end in ends])
        case GroupBy():
            return _with(node, _passed_on(_known_keys(node, catalog), (node.groups,)))
        case Project(input=below):
            below = showing_end(below, catalog)
            known = _known((below,), catalog)
            return _with(replace(node, input=below), _passed_on(known, (below.schema,)))
        case Join(sources=sources):
            sources = tuple(showing_end(each, catalog) for each in sources)
            schemas = [each.schema for each in sources]
            known = _known(sources, catalog)
            return _with(replace(node, sources=sources), _passed_on(known, schemas))
        case TopN(input=below, number=""):
            below = showing_end(below, catalog)
            places = list(ends_of(below, catalog))
            return replace(node, input=below, columns=(*node.columns, *places[:1]))
        case WindowFunctions(input=below):
            return replace(node, input=showing_end(below, catalog))
        case SemiJoin():
            return replace(node, left=_appended(node.left, catalog))
        case SetOperation(operator=SetOperator.UNION_ALL):
            left, right = _appended(node.left, catalog), _appended(node.right, catalog)
            carried = len(left.schema) == len(right.schema) == len(node.schema) + 1
            return replace(node, left=left, right=right) if carried else node
        case _:
            return node


def _of_leaf(node: Join, catalog: Catalog) -> Ends:
    told: dict[str, int] = {}
    for column, bound in bounds_of(node, catalog).items():
        window = node.scans[column.source].window
        assert isinstance(window, TimeWindow), "it has bounds"
        told[bound.sql] = 0 if column.column == WINDOW_END else window.micros
    columns = ((at, column.expression.sql) for at, column in enumerate(node.select))
    return {at: told[sql] for at, sql in columns if sql in told}


def _known(nodes: Sequence[Node], catalog: Catalog) -> dict[ColumnRef, int]:
    """Return the columns of inputs that tell an end."""
    return {
        ColumnRef(source, node.schema.names[place]): add
        for source, node in enumerate(nodes)
        for place, add in ends_of(node, catalog).items()
    }


def _known_keys(node: GroupBy, catalog: Catalog) -> dict[ColumnRef, int]:
    """Return the keys of groups that tell an end."""
    ends = ends_of(node.input, catalog).items()
    return {ColumnRef(0, node.groups.names[at]): add for at, add in ends if at < node.keys}


def _selected(select: Sequence[OutputColumn], known: Mapping[ColumnRef, int]) -> Ends:
    columns = ((at, column.expression.column) for at, column in enumerate(select))
    return {at: known[column] for at, column in columns if column is not None and column in known}


def _passed_on(known: Mapping[ColumnRef, int], schemas: Sequence[pa.Schema]) -> list[OutputColumn]:
    """Return columns of inputs as columns of a select list."""
    return [
        OutputColumn(
            HIDDEN, column_expression(column, schemas[column.source].field(column.column).type)
        )
        for column in known
    ]


_Select = TypeVar("_Select", Join, Project, GroupBy)


def _with(node: _Select, columns: Sequence[OutputColumn]) -> _Select:
    """Return a node with the first of some columns behind its select list."""
    return replace(node, select=(*node.select, *columns[:1]))
