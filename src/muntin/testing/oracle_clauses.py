"""The oracle clause of every node: the SQL that DuckDB runs for it.

A window join is a table under its name that holds its answer. MINUS, which DuckDB does not have, is
an anti-join: a left row stays while no equal right row is present.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from muntin.aggregates import aggregate_functions
from muntin.plan.asof_join import AsofJoin
from muntin.plan.expression import ColumnRef, OutputColumn, Predicate, quote
from muntin.plan.node import Node
from muntin.plan.nodes import (
    Aggregate,
    Distinct,
    Exchange,
    GroupBy,
    Join,
    Project,
    Scan,
    SetOperation,
    SetOperator,
)
from muntin.plan.outer_inserts import Kept, OuterInserts
from muntin.plan.semi_join import SemiJoin
from muntin.plan.sessions import SessionWindows
from muntin.plan.top_n import RowNumbering, SortKey, TopN
from muntin.plan.window_functions import FrameMode, RowFunction, WindowCall, WindowFunctions

Clause: TypeAlias = Callable[[Any, list[str]], str]
"""Makes the SQL of a node, given that of its inputs."""


def clause_of(node: Node) -> str:
    """Return the SQL of a tree."""
    return ORACLE_CLAUSES[type(node)](node, [clause_of(child) for child in node.inputs])


def _scan(node: Scan, _: list[str]) -> str:
    columns = ", ".join(map(quote, node.schema.names))
    return f"SELECT {columns} FROM {quote(f'stored {node.relation}')}"


def _exchange(node: Exchange, _: list[str]) -> str:
    return f"SELECT * FROM {quote(node.part)}"


def _join(node: Join, inputs: list[str]) -> str:
    if node.is_leaf:
        return f"SELECT * FROM {quote(node.name)}"
    return _select(node.sources, inputs, (*node.on, *node.where), node.select)


def _project(node: Project, inputs: list[str]) -> str:
    return _select((node.input,), inputs, node.where, node.select)


def _select(
    nodes: tuple[Node, ...],
    inputs: list[str],
    predicates: tuple[Predicate, ...],
    select: tuple[OutputColumn, ...],
) -> str:
    sources = ", ".join(
        _flat(place, text, node.schema.names)
        for place, (text, node) in enumerate(zip(inputs, nodes, strict=True))
    )
    where = " AND ".join(f"({predicate.expression.sql})" for predicate in predicates)
    return f"SELECT {_items(select)} FROM {sources}{f' WHERE {where}' if where else ''}"


def _items(select: tuple[OutputColumn, ...]) -> str:
    return ", ".join(f"{column.expression.sql} AS {quote(column.name)}" for column in select)


def _flat(place: int, sql: str, names: list[str]) -> str:
    """Return a select in FROM with its columns under the names that expressions use."""
    columns = ", ".join(f"{quote(name)} AS {quote(ColumnRef(place, name).flat)}" for name in names)
    return f"(SELECT {columns} FROM ({sql})) AS i{place}"


def _group_by(node: GroupBy, inputs: list[str]) -> str:
    names = node.input.schema.names
    keys = [quote(name) for name in names[: node.keys]]
    items = keys + [f"{_call(one, names)} AS a{n}" for n, one in enumerate(node.aggregates)]
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    grouped = f"SELECT {', '.join(items)} FROM ({inputs[0]}){by}"
    having = f" WHERE ({node.having.sql})" if node.having else ""
    return f"SELECT {_items(node.select)} FROM {_flat(0, grouped, node.groups.names)}{having}"


def _call(aggregate: Aggregate, names: list[str]) -> str:
    if aggregate.argument is None:
        return "count(*)"
    return aggregate_functions()[aggregate.function].oracle.format(
        name=aggregate.function,
        distinct="DISTINCT " if aggregate.distinct else "",
        argument=quote(names[aggregate.argument]),
        fraction=f", {aggregate.fraction}" if aggregate.fraction else "",
        key=quote(names[aggregate.order[0]]) if aggregate.order else "",
        order=", ".join(quote(names[place]) for place in aggregate.order),
    )


def _distinct(_: Distinct, inputs: list[str]) -> str:
    return f"SELECT DISTINCT * FROM ({inputs[0]})"


def _set_operation(node: SetOperation, inputs: list[str]) -> str:
    left, right = inputs
    if node.operator is not SetOperator.MINUS:
        return f"SELECT * FROM ({left}) {node.operator.value} SELECT * FROM ({right})"
    names = [f"r{place}" for place in range(len(node.right.schema))]
    pairs = zip(node.left.schema.names, names, strict=True)
    same = " AND ".join(f"l.{quote(name)} IS NOT DISTINCT FROM r.{other}" for name, other in pairs)
    equal = f"SELECT 1 FROM ({right}) r({', '.join(names)}) WHERE {same}"
    return f"SELECT * FROM ({left}) l WHERE NOT EXISTS ({equal})"


def _top_n(node: TopN, inputs: list[str]) -> str:
    names = node.input.schema.names
    order = [_sort_key(key, names) for key in node.order]
    by = ", ".join(quote(names[place]) for place in node.keys)
    peers = order if node.numbering is RowNumbering.ROW_NUMBER else order[: node.peers]
    over = f"{f'PARTITION BY {by} ' if by else ''}ORDER BY {', '.join(peers)}"
    number = f"{node.numbering.value}() OVER ({over})"
    items = [quote(names[place]) for place in node.columns]
    items += [f"{number} AS {quote(node.number)}"] if node.number else []
    bound = "" if node.stop is None else f" AND {number} <= {node.stop}"
    kept = f"{number} > {node.offset}{bound}"
    return f"SELECT {', '.join(items)} FROM ({inputs[0]}) QUALIFY {kept}"


def _window_functions(node: WindowFunctions, inputs: list[str]) -> str:
    items = [f"{_over(node, call)} AS {quote(call.name)}" for call in node.calls]
    return f"SELECT *, {', '.join(items)} FROM ({inputs[0]})"


def _over(node: WindowFunctions, call: WindowCall) -> str:
    """Return a call; of peers in RANGE, whose order DuckDB leaves open, the list is made first."""
    names = node.input.schema.names
    by = ", ".join(quote(names[place]) for place in node.keys)
    partition = f"PARTITION BY {by} " if by else ""
    every = ", ".join(_sort_key(key, names) for key in node.order)
    peers = ", ".join(_sort_key(key, names) for key in node.order[: node.peers])
    rows = call.frame.mode is FrameMode.ROWS
    order = every if rows else peers
    over = f"OVER ({partition}{f'ORDER BY {order} ' if order else ''}{call.frame.sql})"
    argument = "*" if call.argument is None else quote(names[call.argument])
    if call.function in {RowFunction.LAG, RowFunction.LEAD}:
        default = "NULL" if call.default is None else quote(names[call.default])
        over = f"OVER ({partition}{f'ORDER BY {every}' if every else ''})"
        return f"{call.function}({argument}, {call.number}, {default}) {over}"
    if call.function not in set(RowFunction):
        return f"{call.function}({argument}) {over}"
    place = {RowFunction.FIRST_VALUE: 1, RowFunction.LAST_VALUE: -1}
    number = place.get(RowFunction(call.function), call.number)
    return f"(list({argument}{f' ORDER BY {every}' if every else ''}) {over})[{number}]"


def _sort_key(key: SortKey, names: list[str]) -> str:
    direction = "DESC" if key.descending else "ASC"
    nulls = "FIRST" if key.nulls_first else "LAST"
    return f"{quote(names[key.column])} {direction} NULLS {nulls}"


def _semi_join(node: SemiJoin, inputs: list[str]) -> str:
    left, right = (
        _flat(place, text, child.schema.names)
        for place, (text, child) in enumerate(zip(inputs, node.inputs, strict=True))
    )
    equal = "IS NOT DISTINCT FROM" if node.nulls_match else "="
    on = [f"({key.left.sql}) {equal} ({key.right.sql})" for key in node.keys]
    on += [f"({condition.sql})" for condition in node.conditions]
    names = (f"{quote(ColumnRef(0, name).flat)} AS {quote(name)}" for name in node.schema.names)
    word = "NOT EXISTS" if node.anti else "EXISTS"
    return (
        f"SELECT {', '.join(names)} FROM {left} "
        f"WHERE {word} (SELECT 1 FROM {right} WHERE {' AND '.join(on)})"
    )


def _asof_join(node: AsofJoin, inputs: list[str]) -> str:
    names = [child.schema.names for child in node.inputs]
    numbered = f"(SELECT *, row_number() OVER () AS number FROM {_flat(0, inputs[0], names[0])})"
    on = [f"({key.left.sql}) = ({key.right.sql})" for key in node.keys]
    on += [f"({node.at.left.sql}) {node.operator} ({node.at.right.sql})"]
    on += [f"({condition.sql})" for condition in node.conditions]
    direction = "ASC" if node.is_forward else "DESC"
    ties = [quote(ColumnRef(1, names[1][key.column]).flat) for key in node.ties]
    order = ", ".join(
        f"{text} {direction} NULLS LAST" for text in (f"({node.at.right.sql})", *ties)
    )
    items = [
        f"{quote(ColumnRef(side, names[side][place]).flat)} AS {quote(names[side][place])}"
        for side, places in enumerate((node.left_columns, node.right_columns))
        for place in places
    ]
    return (
        f"SELECT {', '.join(items)} FROM {numbered} {'LEFT ' if node.outer else ''}JOIN "
        f"{_flat(1, inputs[1], names[1])} ON {' AND '.join(on)} "
        f"QUALIFY row_number() OVER (PARTITION BY number ORDER BY {order}) = 1"
    )


def _outer_inserts(node: OuterInserts, inputs: list[str]) -> str:
    matches, sides = inputs[0], inputs[1 : 1 + len(node.sides)]
    shown = ", ".join(map(quote, node.schema.names))
    parts = [f"SELECT {shown} FROM ({matches})"] if node.kept is Kept.OUTER else []
    word = "IN" if node.kept is Kept.SEMI else "NOT IN"
    for side, text in zip(node.sides, sides, strict=True):
        items = ", ".join(
            quote(field.name) if field.name in side.schema.names else f"NULL AS {quote(field.name)}"
            for field in node.schema
        )
        identity = f"({', '.join(map(quote, node.identity(side)))})"
        matched = f"SELECT {identity} FROM ({matches})"
        parts.append(f"SELECT {items} FROM ({text}) WHERE {identity} {word} ({matched})")
    return " UNION ALL ".join(parts)


def _sessions(node: SessionWindows, inputs: list[str]) -> str:
    """Return the columns of sessions, which :mod:`muntin.testing.session_oracle` computes."""
    return f"SELECT {', '.join(map(quote, node.schema.names))} FROM ({inputs[0]})"


ORACLE_CLAUSES: Mapping[type[Node], Clause] = {
    Scan: _scan,
    Exchange: _exchange,
    Join: _join,
    Project: _project,
    GroupBy: _group_by,
    Distinct: _distinct,
    SetOperation: _set_operation,
    TopN: _top_n,
    WindowFunctions: _window_functions,
    SemiJoin: _semi_join,
    OuterInserts: _outer_inserts,
    SessionWindows: _sessions,
    AsofJoin: _asof_join,
}
"""The clause of every node class."""
