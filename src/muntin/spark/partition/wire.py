"""The messages between a worker and a state server: frames, which are decoded without pickle.

A message is a tuple of a word and its arguments. Both sides have proved that they hold the key of
the socket before the first one is sent. Only the functions of the run contain code
(:mod:`muntin.spark.exchange.shipped_functions`).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias

from muntin.runtime.codec import decode_values, encode_values
from muntin.runtime.frames import CheckpointError
from muntin.spark.exchange.partition_metrics import PartitionMetrics
from muntin.spark.exchange.shipped_functions import ShippedFunctions
from muntin.spark.partition.manifests import PartitionChange
from muntin.spark.partition.push_channel import PushTarget
from muntin.spark.partition.result_writer import ResultPlan
from muntin.spark.partition.spool import Sent
from muntin.spark.partition.stored_batches import StoredBatch
from muntin.spark.storage import Location

_KIND = "message"


@dataclass(frozen=True)
class Order:
    """What to do with the partition batch that follows this message as a frame.

    The partition must be in the state after batch ``version`` under the deployment with a
    ``digest``. ``file`` is the name of the partition batch in the ``storage``, ``results`` says
    where results go. With a ``target`` the server sends results to subscribers as it computes them.
    ``previous`` is the file of batch ``version`` in the manifest, empty before the first: other
    attempts and drivers that were replaced had batches of that number, too, in other files. None
    accepts any of them.
    """

    digest: str
    version: int
    file: str
    storage: Location
    spool: Location
    results: ResultPlan
    target: PushTarget | None = None
    previous: str | None = None


@dataclass(frozen=True)
class Answer:
    """The outputs of a partition batch, the change of the durable state, and metrics."""

    sent: list[Sent]
    change: PartitionChange
    stats: PartitionMetrics


Pieces: TypeAlias = tuple[tuple[bytes, str], ...]
"""Outputs of partitions: their rows as bytes, or the names of files in the spool."""


@dataclass(frozen=True)
class StageOrder:
    """What to do with the outputs of partitions for the global stage of one query in one batch.

    The stage must be in the state with the name ``state``, see :class:`StageAnswer`; empty if it
    has to be rebuilt from its log below ``logs``. ``place`` is that of the query in the deployment
    with a ``digest``. ``changes`` are by name of the part. ``token`` and ``starts`` are those of
    the driver's fence. With a ``target`` the results are sent to subscribers.
    """

    place: int
    batch: int
    state: str
    digest: str
    changes: Mapping[str, Pieces]
    clock: Pieces
    logs: Location
    token: str
    starts: Mapping[str, int]
    spool: Location
    results: ResultPlan
    target: PushTarget | None = None


@dataclass(frozen=True)
class StageAnswer:
    """What a global stage did in a batch: where its results are, and the ``state`` it is in now.

    ``state`` is a name that no other attempt gives; empty after a ``failure`` of the query.
    ``rows`` is the number of rows that the stage has, ``obsolete`` the batch before which entries
    of its log are not needed, and ``unsent`` results may not have reached subscribers.
    """

    sent: list[Sent]
    state: str
    rows: int = 0
    obsolete: int | None = None
    unsent: int = 0
    failure: str = ""


_MESSAGES: dict[str, tuple[Any, ...]] = {
    "functions": (ShippedFunctions,),
    "functions loaded": (),
    "apply": (Order,),
    "extend": (bytes,),
    "rebuild": (bytes, int, Location, tuple[StoredBatch, ...]),
    "extended": (),
    "extend?": (),
    "rebuild?": (),
    "rebuilt": (),
    "damaged": (str,),
    "release": (Path, Path),
    "released": (),
    "applied": (Answer,),
    "stage": (StageOrder,),
    "deploy?": (),
    "deploy": (bytes,),
    "deployed": (),
    "staged": (StageAnswer,),
    "failed": (str,),
}
"""The types of the arguments of each word."""


ALIVE = b""
"""Sent about once per second while a request is answered."""

_sending = threading.Lock()
"""Held while a message is sent, so that signs of life do not end up inside of others."""


def digest_of(deployment: bytes) -> str:
    """Return the digest that identifies a deployment."""
    return hashlib.sha256(deployment).hexdigest()


def send(connection: Connection, message: tuple[Any, ...]) -> None:
    """Send a message."""
    word, *values = message
    content = encode_values([word, *values], _KIND)
    with _sending:
        connection.send_bytes(content)


def send_alive(connection: Connection) -> None:
    """Tell a client from another thread that its request is being answered."""
    with _sending:
        connection.send_bytes(ALIVE)


def receive_answer(connection: Connection, patience: float) -> tuple[Any, ...]:
    """Return the answer of a server.

    Raises
    ------
    TimeoutError
        When the server gives no sign of life for ``patience`` seconds.
    OSError
        When the answer is not a known message.
    """
    while connection.poll(patience):
        content = connection.recv_bytes()
        if content != ALIVE:
            return _decoded(content)
    raise TimeoutError(f"no sign of life for {patience:g} seconds")


def receive(connection: Connection) -> tuple[Any, ...]:
    """Return the next message; raise OSError if it is not a known one."""
    return _decoded(connection.recv_bytes())


def _decoded(content: bytes) -> tuple[Any, ...]:
    try:
        return decode_values(content, _KIND, _MESSAGES, "a message between processes")
    except CheckpointError as error:
        raise OSError(error.fact) from error
