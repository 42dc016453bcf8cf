"""Messages that cannot be read: their columns, and how they travel beside the rows.

A source adds the columns :data:`MESSAGE` to the rows of a stream. Where a message cannot be read,
``_muntin_reason`` says why, and the columns of the stream are NULL.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

MALFORMED = "malformed"
"""The kind of output that carries messages that cannot be read."""

DEAD_LETTER = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("reason", pa.string()),
    ]
)
"""The columns of a dead letter."""

MESSAGE = tuple(f"_muntin_{name}" for name in DEAD_LETTER.names)
"""The columns that a source adds to its rows."""


class ReadMessages(NamedTuple):
    """Messages of a task: the rows of those that can be read, and the others as dead letters.

    ``sources`` has the topic and the partition of each row.
    """

    rows: pa.Table
    malformed: pa.Table
    sources: pa.ChunkedArray


def split_messages(messages: pa.Table) -> ReadMessages:
    """Return the rows and the dead letters among messages with the columns :data:`MESSAGE`."""
    rows = messages.drop_columns(list(MESSAGE))
    reasons = messages.column(MESSAGE[-1])
    partitions = messages.column(MESSAGE[1]).cast(pa.string())
    sources = pc.binary_join_element_wise(messages.column(MESSAGE[0]), partitions, "/")
    if reasons.null_count == len(messages):
        return ReadMessages(rows, DEAD_LETTER.empty_table(), sources)
    readable = pc.is_null(reasons)
    malformed = messages.filter(pc.is_valid(reasons)).select(list(MESSAGE))
    letters = malformed.rename_columns(DEAD_LETTER.names).cast(DEAD_LETTER)
    return ReadMessages(rows.filter(readable), letters, sources.filter(readable))
