"""The state of a dataflow between two steps: the rows from which it can be built again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Snapshot:
    """The rows that are held of each stream, in order.

    ``came_before`` is for each query how many of them, stream by stream, came before it.
    """

    rows: Mapping[str, pa.Table]
    came_before: Mapping[str, Mapping[str, int]]
