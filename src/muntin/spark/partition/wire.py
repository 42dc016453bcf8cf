"""The messages between a worker and a state server: frames, so neither side unpickles anything.

A message is a tuple of a word and its arguments. Both sides have proved that they hold the key of
the socket before the first one is sent.
"""

from __future__ import annotations

import hashlib
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from muntin.runtime.codec import decode_values, encode_values
from muntin.runtime.frames import CheckpointError
from muntin.spark.exchange.messages import PartitionBatch
from muntin.spark.partition.push_channel import PushTarget
from muntin.spark.partition.recovery import Answer

_KIND = "message"
_MESSAGES: dict[str, tuple[Any, ...]] = {
    "apply": (str, int, PartitionBatch, Path, PushTarget | None),
    "extend": (bytes,),
    "rebuild": (bytes, int),
    "extend?": (),
    "rebuild?": (),
    "release": (Path, Path),
    "released": (),
    "applied": (Answer,),
    "failed": (str,),
}
"""The types of the arguments of each word."""

NO_MORE = b""
"""Sent after the last of the batches from which a partition is rebuilt."""


def digest_of(deployment: bytes) -> str:
    """Return the digest that identifies a deployment."""
    return hashlib.sha256(deployment).hexdigest()


def send(connection: Connection, message: tuple[Any, ...]) -> None:
    """Send a message."""
    word, *values = message
    connection.send_bytes(encode_values([word, *values], _KIND))


def receive(connection: Connection) -> tuple[Any, ...]:
    """Return the next message; raise OSError if it is not a known one."""
    content = connection.recv_bytes()
    try:
        return decode_values(content, _KIND, _MESSAGES, "a message between processes")
    except CheckpointError as error:
        raise OSError(error.fact) from error
