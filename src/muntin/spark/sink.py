"""The interface of sinks, the destinations of results.

Exactly once: Spark may repeat a batch, so a sink replaces what it has for a batch number. A sink
that can only append may hold a repeated batch twice; its docstring says so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from muntin.errors import RunError
from muntin.spark.batch_results import BatchResults
from muntin.spark.result_target import ResultTarget
from muntin.spark.sink_ownership import Folder, SinkOwner


class SinkError(RunError):
    """A sink failed; the batch runs again when the engine is started again."""


class Sink(ABC):
    """Takes the results of one query, batch by batch."""

    @abstractmethod
    def write(self, results: BatchResults, batch: int) -> None:
        """Store the results of a batch in place of what was stored for it before."""

    def sync(self) -> None:  # noqa: B027 (most sinks have nothing to do)
        """Make the batch that was written last durable; called in any thread.

        All sinks of a batch are synchronized at the same time, before the batch is complete.
        """

    def target(self) -> ResultTarget | None:
        """Return the folder to which executors write results themselves; None if they do not."""
        return None

    def read_back(self, spark: SparkSession, schema: pa.Schema) -> DataFrame | None:
        """Return all results so far, with the columns of ``schema``; None if that is impossible."""
        del spark, schema
        return None

    def place(self) -> Folder | None:
        """Return the folder of batches that no other query may use, if there is one."""
        return None

    def claim(self, owner: SinkOwner, *, replace: bool) -> None:
        """Prepare for the results of a query, before the first batch of a run.

        A query that starts again has another ``owner.incarnation`` than before. With ``replace``,
        what the sink has received so far should be deleted.
        """
        place = self.place()
        if place is not None:
            place.claim(owner, replace=replace)
