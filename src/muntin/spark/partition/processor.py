"""The processor that Spark calls for each partition and micro-batch.

When a query starts, Spark starts a process only to ask for the names of the states. So this module
imports nothing from Muntin: the handler, which needs most of it, is kept as bytes until there are
rows.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle


class PartitionProcessor(StatefulProcessor):
    """Processes partitions for Spark with a :class:`muntin.spark.partition.task.Handler`."""

    def __init__(self, handler: Any) -> None:
        self._handler = pickle.dumps(handler)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the states: the retained batches, and a header with their numbers and count."""
        self._header = handle.getValueState("header", "oldest long, newest long, kept long")
        self._retained = handle.getMapState("shares", "batch long", "share binary")

    def handleInputRows(  # noqa: N802 (Spark's)
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803 (Spark's)
    ) -> Iterator[pd.DataFrame]:
        """Apply a partition's part of the micro-batch."""
        del timerValues
        handler = pickle.loads(self._handler)  # noqa: S301 (pickled in this class)
        yield handler.handle(int(key[0]), rows, self._header, self._retained)

    def close(self) -> None:
        """Do nothing: nothing is open."""
