"""Rows with their own ends in a window join: the bounds of windows, and which rows can meet.

The bounds of the window of a row are expressions over its time, so they need no columns. A result
needs rows that are all present when the newest of them comes: the end of each row with one is
later than the times of all others, which the binder adds to the conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from muntin.model.catalog import Catalog, Stream
from muntin.model.clock import AFTER_ALL
from muntin.model.window import PartitionedWindow, RowsWindow, TimeWindow, has_own_ends
from muntin.plan.column_rename import pieces_of
from muntin.plan.expression import ColumnRef, Comparison, Expression, OutputColumn, Predicate, quote
from muntin.plan.nodes import Join, Scan
from muntin.plan.sessions import WINDOW_END, WINDOW_START
from muntin.sql.shape import SelectParts
from muntin.sql.typecheck import Condition
from muntin.sql.writer import Draft


def with_own_ends(join: Join, catalog: Catalog) -> Join:
    """Return a window join as it is run: over columns of streams, with the conditions of ends."""
    times = [_time(place, source, catalog) for place, source in enumerate(join.scans)]
    bounds = bounds_of(join, catalog)
    more: list[Predicate] = []
    for place, source in enumerate(join.scans):
        time, window = times[place], source.window
        if time is None or not isinstance(window, TimeWindow):
            continue
        if window.phase is not None:
            end = _aligned_end(time, window)
            others = [other for other in times if other is not time]
        elif window.until is not None:
            end = _stated_end(ColumnRef(place, window.until))
            others = list(times)  # a row may end before it comes
        else:
            continue
        more += [_later(end, other) for other in others if other is not None]
    if not more and not bounds:
        return join
    return replace(
        join,
        sources=tuple(_without_bounds(source) for source in join.scans),
        on=tuple(_predicate(each, bounds) for each in join.on),
        where=(*(_predicate(each, bounds) for each in join.where), *more),
        select=tuple(
            OutputColumn(column.name, _over_times(column.expression, bounds))
            for column in join.select
        ),
    )


def bounds_of(join: Join, catalog: Catalog) -> dict[ColumnRef, Expression]:
    """Return the bounds of the windows of the rows of a window join, over columns of streams."""
    bounds = {}
    for place, source in enumerate(join.scans):
        time, window = _time(place, source, catalog), source.window
        if time is not None and isinstance(window, TimeWindow) and window.phase is not None:
            end = _aligned_end(time, window)
            start = Expression(f"({end.sql} - {window.micros})", end.references, end.type)
            bounds[ColumnRef(place, WINDOW_START)] = _instant(start)
            bounds[ColumnRef(place, WINDOW_END)] = _instant(end)
    return bounds


def refuse_mixed(shape: SelectParts, sources: Sequence[Scan]) -> None:
    """Raise if a window in rows is beside rows with their own ends."""
    own = next((source for source in sources if has_own_ends(source.window)), None)
    for entry, source in zip(shape.entries, sources, strict=True):
        if own and isinstance(source.window, (RowsWindow, PartitionedWindow)):
            raise entry.tokens.error(
                entry.tokens[0],
                f"{source.alias} has a window in rows, and the rows of {own.alias} end on "
                "their own",
                f"Write (SELECT * FROM {source.relation} {source.window}) AS {source.alias}",
            )


def _time(place: int, source: Scan, catalog: Catalog) -> Expression | None:
    """Return the time of the rows of a stream, in microseconds."""
    stream = None if source.stored else catalog.find(source.relation)
    if not isinstance(stream, Stream):
        return None
    reference = ColumnRef(place, stream.time)
    return Expression(f"epoch_us({quote(reference.flat)})", (reference,), pa.int64())


def _aligned_end(time: Expression, window: TimeWindow) -> Expression:
    size = window.micros
    since = f"(({time.sql} - {window.phase}) % {size} + {size}) % {size}"
    return Expression(f"({time.sql} - {since} + {size})", time.references, pa.int64())


def _stated_end(column: ColumnRef) -> Expression:
    sql = f"coalesce(epoch_us({quote(column.flat)}), {AFTER_ALL})"
    return Expression(sql, (column,), pa.int64())


def _instant(micros: Expression) -> Expression:
    return Expression(f"make_timestamp({micros.sql})", micros.references, pa.timestamp("us"))


def _later(end: Expression, time: Expression) -> Predicate:
    references = tuple(dict.fromkeys((*end.references, *time.references)))
    whole = Expression(f"{end.sql} > {time.sql}", references, pa.bool_())
    return Predicate(whole, Comparison(">", end, time))


def _without_bounds(source: Scan) -> Scan:
    if not isinstance(source.window, TimeWindow) or source.window.phase is None:
        return source
    columns = [field for field in source.schema if field.name not in {WINDOW_START, WINDOW_END}]
    return replace(source, schema=pa.schema(columns))


def _over_times(expression: Expression, bounds: Mapping[ColumnRef, Expression]) -> Expression:
    """Return an expression with the bounds of windows replaced by what they are over times."""
    if not any(reference in bounds for reference in expression.references):
        return expression
    texts = {quote(reference.flat): bound.sql for reference, bound in bounds.items()}
    sql = "".join(texts.get(piece, piece) for piece in pieces_of(expression.sql))
    references = tuple(dict.fromkeys(_references(expression, bounds)))
    return Expression(sql, references, expression.type)


def _references(
    expression: Expression, bounds: Mapping[ColumnRef, Expression]
) -> Iterator[ColumnRef]:
    for reference in expression.references:
        yield from bounds[reference].references if reference in bounds else (reference,)


def _predicate(predicate: Predicate, bounds: Mapping[ColumnRef, Expression]) -> Predicate:
    comparison = predicate.comparison
    if comparison is not None:
        comparison = replace(
            comparison,
            left=_over_times(comparison.left, bounds),
            right=_over_times(comparison.right, bounds),
        )
    return Predicate(_over_times(predicate.expression, bounds), comparison)


def landmark_conditions(
    shape: SelectParts, sources: Sequence[Scan], catalog: Catalog
) -> Iterator[Condition]:
    """Yield the conditions of landmark windows: rows from an instant on."""
    for place, (entry, source) in enumerate(zip(shape.entries, sources, strict=True)):
        relation = catalog.find(source.relation)
        if isinstance(source.window, TimeWindow) and source.window.since is not None:
            assert isinstance(relation, Stream), "tables have no window"
            time = ColumnRef(place, relation.time)
            text = f"epoch_us({quote(time.flat)}) >= {source.window.since}"
            yield Condition(Draft(text, (time,), entry.tokens))
