"""Turn the failure of a run into an error that says what happened and what to do."""

from __future__ import annotations

from muntin.errors import RunError
from muntin.spark.driver.checkpoint import Checkpoint
from muntin.spark.driver.output_writer import OutputWriter
from muntin.spark.failures import fact_of
from muntin.spark.partition.state_client import LOST
from muntin.spark.session import java_log

_DATA_LOSS = ("KAFKA_DATA_LOSS", "failOnDataLoss")
"""Words in Spark's report of messages that Kafka does not have any more."""


class RunFailures:
    """Explains failures of the batches of an engine."""

    def __init__(self, writer: OutputWriter, checkpoint: Checkpoint) -> None:
        self._writer = writer
        self._folder = checkpoint.name

    def explained(self, text: str) -> RunError:
        """Return the error for a failure that Java describes in a text."""
        if self._writer.failure is not None:
            return self._writer.failure
        keep, fact = java_log.keep(), fact_of(text)
        if f"Checksum error: file:{self._folder}" in text or LOST in fact:
            return RunError(
                f"the checkpoint {self._folder} is damaged: {fact}",
                hint=f"Restore the entire folder from a copy, or begin a new checkpoint{keep}",
            )
        if any(word in text for word in _DATA_LOSS):
            return RunError(
                f"messages are gone from Kafka before they were read: {fact}",
                hint="Declare the stream with failOnDataLoss = 'false' to continue with the oldest "
                f"messages that are there, or begin a new checkpoint{keep}",
            )
        return RunError(
            f"the run failed: {fact}",
            hint=f"Nothing is lost: repair it and start again from the checkpoint{keep}",
        )

    def fact(self, text: str) -> RunError:
        """Return the cause in Java's text of a failure as an error without a remedy."""
        return self._writer.failure or RunError(fact_of(text))
