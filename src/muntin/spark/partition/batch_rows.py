"""The rows of a partition batch by partitioning and stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import pyarrow as pa

from muntin.spark.exchange.messages import Part, from_blob

RoutedRows: TypeAlias = dict[tuple[int, str], pa.Table]
"""Rows of each partitioning and stream."""


def rows_of(parts: Iterable[Part]) -> RoutedRows:
    """Return the rows of each partitioning and stream, tasks in their order."""
    grouped: dict[tuple[int, str], list[pa.Table]] = {}
    for part in sorted(parts, key=lambda part: (part.partitioning, part.stream, part.task)):
        grouped.setdefault((part.partitioning, part.stream), []).append(from_blob(part.blob))
    return {key: pa.concat_tables(tables).combine_chunks() for key, tables in grouped.items()}
