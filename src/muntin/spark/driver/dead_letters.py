"""Keep the messages that cannot be read: in a folder or in a topic, as their stream declares.

In a folder every batch has at most one file, which a repeated batch replaces, so each dead letter
is there once. A topic may get the dead letters of a repeated batch twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from muntin.model.kafka import KafkaStream
from muntin.spark.kafka_sink import append_dead_letters
from muntin.spark.malformed import DEAD_LETTER
from muntin.spark.session import hadoop_settings
from muntin.spark.storage import checkpoint_place, storage_at
from muntin.spark.storage.tables import TablesByBatch


class DeadLetters:
    """The dead letters of a run, which is part of the name of their folder."""

    def __init__(self, run: str = "") -> None:
        self._run = run
        self._folders: dict[str, TablesByBatch] = {}

    def write(
        self, spark: SparkSession, kafka: KafkaStream, letters: Sequence[pa.Table], batch: int
    ) -> None:
        """Keep the dead letters of a stream in place of those of an earlier attempt."""
        target, table = kafka.dead_letter, pa.concat_tables([DEAD_LETTER.empty_table(), *letters])
        assert target is not None, "the caller has checked it"
        if target.folder is not None:
            self._folder(spark, kafka.stream.name, target.folder).write(table, batch)
        elif target.topic is not None and len(table):
            append_dead_letters(spark, kafka.stream.options, target.topic, table)

    def _folder(self, spark: SparkSession, stream: str, folder: str) -> TablesByBatch:
        if stream not in self._folders:
            place = checkpoint_place(folder, partial(hadoop_settings, spark))
            storage = storage_at(place).below(f"run={self._run}")
            self._folders[stream] = TablesByBatch(storage)
        return self._folders[stream]
