"""Check whether the windows of a query fit into memory, as far as declared rates show."""

from __future__ import annotations

import os
from collections.abc import Mapping

import pyarrow as pa

from muntin.errors import InputError
from muntin.model.clock import SECOND
from muntin.model.settings import Settings
from muntin.model.settings.values import format_bytes
from muntin.model.statistics import StreamStatistics
from muntin.model.window import PartitionedWindow, RowsWindow, TimeWindow
from muntin.plan.nodes import Scan
from muntin.plan.query import Query

_STATE = 40
"""Bytes of a row in the store and its index; ``python -m benchmarks join`` measures them."""
_TEXT = 32
"""Bytes of a value whose length is not fixed, for want of better."""
_PLAUSIBLE = 1e9
"""Rows per second above which a declared rate is a slip, which the data will overrule."""


def check_windows(
    query: Query, settings: Settings, declared: Mapping[str, StreamStatistics] | None
) -> None:
    """Raise when the windows of a query surely take more memory than there is.

    Counted are windows in rows, and windows in time over streams that are declared with a rate.
    Windows per partition are not: nobody knows the number of partitions; nor are landmark windows,
    whose rows are counted while they come.
    """
    limit = settings.join.window_memory or _machine()
    sizes = {
        source.alias: _rows(source, declared or {}) * _row_bytes(source)
        for source in query.sources
        if not source.stored
    }
    total = sum(sizes.values())
    if total > limit:
        largest = max(sizes, key=sizes.__getitem__)
        rows = _rows(
            next(source for source in query.sources if source.alias == largest), declared or {}
        )
        raise InputError(
            f"query {query.name}: its windows take about {format_bytes(total)}, "
            f"more than the {format_bytes(limit)} there are; that of {largest} has {rows:,.0f} "
            "rows",
            hint="Take smaller windows, or say by the setting window_memory how much they may take",
        )


def _rows(source: Scan, declared: Mapping[str, StreamStatistics]) -> float:
    match source.window:
        case RowsWindow(rows):
            return float(rows)
        case TimeWindow(micros) if not source.window.is_landmark:
            known = declared.get(source.relation)
            return known.rate * micros / SECOND if known and known.rate < _PLAUSIBLE else 0.0
        case PartitionedWindow() | _:
            return 0.0


def _row_bytes(source: Scan) -> float:
    return _STATE + sum(_width(field.type) for field in source.schema)


def _width(kind: pa.DataType) -> float:
    try:
        return float(kind.bit_width) / 8
    except ValueError:
        return _TEXT


def _machine() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
