"""Equality of Arrow tables as tests mean it, and what differs as small text tables.

Exact: NULL equals NULL and NaN equals NaN, ``0.0`` differs from ``-0.0``, nested values are
compared by their parts, and the tables must have the same column names and types.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import groupby
from typing import TypeAlias

import pyarrow as pa

Row: TypeAlias = tuple[Hashable, ...]
"""One row of a table in a form in which ``==`` is the equality of this module."""

_SHOWN = 30


def rows_of(table: pa.Table) -> list[Row]:
    """Return the rows of a table as hashable tuples.

    >>> rows_of(pa.table({"x": [1.0, None]}))
    [('1.0',), (None,)]
    """
    columns = [[_exact(value) for value in _values(column)] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else []


def difference(expected: pa.Table, got: pa.Table) -> str:
    """Describe the difference of two tables as multisets of rows; empty if they are equal.

    >>> difference(pa.table({"x": [1, 2, 2]}), pa.table({"x": [2, 1, 2]}))
    ''
    >>> print(difference(pa.table({"x": [1, 2]}), pa.table({"x": [2, 3]})))
    missing (1 row):
      x
      1
    surplus (1 row):
      x
      3
    """
    return schema_difference(expected, got) or _bag_difference(expected, got)


def ordered_difference(expected: pa.Table, got: pa.Table) -> str:
    """Describe the difference of two tables as sequences of rows; empty if they are equal."""
    problem = difference(expected, got)
    if problem:
        return problem
    wanted, have = rows_of(expected), rows_of(got)
    first = next(
        (
            place
            for place, (left, right) in enumerate(zip(wanted, have, strict=True))
            if left != right
        ),
        None,
    )
    if first is None:
        return ""
    both = f"expected:\n{text_table(expected.slice(first))}\ngot:\n{text_table(got.slice(first))}"
    return f"same rows, other order from row {first + 1} on\n{both}"


def changes_difference(expected: pa.Table, got: pa.Table) -> str:
    """Describe the difference of two changelogs; empty if they are equal.

    The same instants must follow in order, each with the same multiset of changes.
    """
    problem = difference(expected, got)
    if problem:
        return problem
    if _instants(expected) != _instants(got):
        return f"same changes, but not in order of time\ngot:\n{text_table(got)}"
    return ""


def schema_difference(expected: pa.Table, got: pa.Table) -> str:
    """Describe how columns of two tables differ in name, order or type; empty if they do not."""
    wanted = [f"{field.name} {field.type}" for field in expected.schema]
    have = [f"{field.name} {field.type}" for field in got.schema]
    return (
        ""
        if wanted == have
        else f"expected the columns ({', '.join(wanted)})\ngot the columns      ({', '.join(have)})"
    )


def assert_same_rows(expected: pa.Table, got: pa.Table) -> None:
    """Fail with the difference unless the tables are equal as multisets."""
    problem = difference(expected, got)
    assert not problem, problem


def assert_same_sequence(expected: pa.Table, got: pa.Table) -> None:
    """Fail with the difference unless the tables are equal row by row."""
    problem = ordered_difference(expected, got)
    assert not problem, problem


def assert_same_changes(expected: pa.Table, got: pa.Table) -> None:
    """Fail with the difference unless the changelogs are equal instant by instant."""
    problem = changes_difference(expected, got)
    assert not problem, problem


def accumulate(changes: pa.Table) -> pa.Table:
    """Apply all changes; return the rows that were added and not removed.

    Raises
    ------
    AssertionError
        When a removal cancels no earlier addition.
    """
    payload = changes.drop_columns(["_op", "_ts"])
    held: dict[Row, list[int]] = {}
    for place, (operation, row) in enumerate(
        zip(changes.column("_op").to_pylist(), rows_of(payload), strict=True)
    ):
        if operation == "+":
            held.setdefault(row, []).append(place)
        else:
            assert held.get(row), (
                f"a row is removed that is not there:\n{text_table(changes.slice(place, 1))}"
            )
            held[row].pop()
    return payload.take(
        pa.array(sorted(place for places in held.values() for place in places), type=pa.int64())
    )


def without(rows: pa.Table, others: pa.Table) -> pa.Table:
    """Return the rows that remain when each of the others takes one equal row away."""
    return rows.take(pa.array(_without(rows_of(rows), rows_of(others)), pa.int64()))


def text_table(table: pa.Table) -> str:
    """Return the table as aligned text, indented by two, cut after a screenful."""
    cells = [
        [_show(value) for value in _values(column.slice(0, _SHOWN))] for column in table.columns
    ]
    more = f"\n  ... {table.num_rows - _SHOWN} more" if table.num_rows > _SHOWN else ""
    return aligned([table.column_names, *zip(*cells, strict=True)]) + more


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as text, columns aligned, indented by two.

    >>> print(aligned([["a", "b"], ["10", "x"]]))
      a   b
      10  x
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _bag_difference(expected: pa.Table, got: pa.Table) -> str:
    wanted, have = rows_of(expected), rows_of(got)
    missing, surplus = _without(wanted, have), _without(have, wanted)
    parts = []
    for title, places, table in (("missing", missing, expected), ("surplus", surplus, got)):
        if places:
            rows = table.take(pa.array(places, type=pa.int64()))
            parts.append(
                f"{title} ({len(places)} "
                f"{'row' if len(places) == 1 else 'rows'}):\n{text_table(rows)}"
            )
    return "\n".join(parts)


def _without(rows: list[Row], others: list[Row]) -> list[int]:
    """Return the places of the rows that remain when each other row removes one equal row."""
    spare = Counter(others)
    places = []
    for place, row in enumerate(rows):
        if spare[row] > 0:
            spare[row] -= 1
        else:
            places.append(place)
    return places


def _instants(changes: pa.Table) -> list[object]:
    return [instant for instant, _ in groupby(changes.column("_ts").cast(pa.int64()).to_pylist())]


def _values(column: pa.ChunkedArray) -> list[object]:
    # Nanoseconds do not fit Python's datetime; their numbers compare as well.
    if pa.types.is_temporal(column.type) and getattr(column.type, "unit", "") == "ns":
        column = column.cast(pa.int64())
    values: list[object] = column.to_pylist()
    return values


def _exact(value: object) -> Hashable:
    """Return a hashable stand-in that is equal for equal values only."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value)
    if isinstance(value, dict):
        return tuple((key, _exact(part)) for key, part in value.items())
    if isinstance(value, list | tuple):
        return ("list", *(_exact(part) for part in value))
    assert isinstance(value, Hashable), f"a value of type {type(value)} cannot be compared"
    return value


def _show(value: object) -> str:
    return "NULL" if value is None else repr(value) if isinstance(value, str) else str(value)
