"""What Spark calls for each partition and micro-batch.

When a query starts, Spark makes a process of its own only to hear which states there are. So this module imports nothing of Muntin: the
handler, which needs most of it, is kept as bytes until there are rows.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle


class PartitionProcessor(StatefulProcessor):
    """Spark's view of the partitions; ``handler`` is a :class:`muntin.spark.partition.task.Handler`."""

    def __init__(self, handler: Any) -> None:
        self._handler = pickle.dumps(handler)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark's states: the shares that windows still reach, one entry of a map each, and a header that says which batches those are."""
        self._header = handle.getValueState("header", "oldest long, newest long, kept long")
        self._shares = handle.getMapState("shares", "batch long", "share binary")

    def handleInputRows(  # noqa: N802 (Spark's)
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803 (Spark's)
    ) -> Iterator[pd.DataFrame]:
        """Apply a partition's share of the batch."""
        del timerValues
        handler = pickle.loads(self._handler)  # noqa: S301 (our own)
        yield handler.handle(int(key[0]), rows, self._header, self._shares)

    def close(self) -> None:
        """Nothing is open."""
