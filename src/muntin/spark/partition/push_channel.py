"""Send results from partitions to the driver while a batch is still being processed.

The driver listens on a port; the port's address and key travel with the tasks and are never on
disk. A partition whose queries have subscribers connects and sends results as soon as they are
released. At the end of a batch it waits for one confirmation from the driver: when the batch is
complete, everything that was released is in the subscribers' buffers. A driver that cannot be
reached or does not respond delays a batch by some seconds, at most once per minute; results that
may be lost are counted.

Both sides prove that they have the key before anything is sent. Messages are JSON and Arrow, never
code.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import TypeAlias

import pyarrow as pa

from muntin.errors import RunError
from muntin.spark.exchange.marks import Mark
from muntin.spark.exchange.messages import from_blob, to_blob
from muntin.spark.partition.socket_timeouts import limit

_log = logging.getLogger("muntin.spark")

_PATIENCE = 5.0
"""Timeout in seconds for connecting, for the proof of the key, and for each send and receive."""
_END = b""
"""Sent after the last results of a batch, and the answer to it."""
_PAUSE = 60.0
"""Seconds after which a driver that could not be reached is tried again."""
_BROKEN = (EOFError, OSError, AuthenticationError)
_STRANGE = (*_BROKEN, AssertionError, ValueError)
"""The errors of a failed proof of the key, whatever is at the other end."""

Take: TypeAlias = Callable[[str, Mark, pa.Table], None]


@dataclass(frozen=True)
class Address:
    """The host and port where the driver listens, and the key."""

    host: str
    port: int
    key: bytes = field(repr=False)


@dataclass(frozen=True)
class PushTarget:
    """The address to which a partition sends results, and the queries that have subscribers."""

    address: Address
    partition: int
    queries: frozenset[str]


def _connection(own: socket.socket, patience: float) -> Connection:
    """Return a connection over a duplicate of a socket.

    Small messages are sent at once, and no call takes longer than ``patience`` seconds.
    """
    own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    limit(own, patience)
    return Connection(os.dup(own.fileno()))


def _packed(query: str, mark: Mark, results: pa.Table) -> bytes:
    head = json.dumps([query, mark.batch, mark.partition, mark.sequence, mark.arrived])
    return head.encode() + b"\n" + to_blob(results, compressed=False)


def _unpacked(message: bytes) -> tuple[str, Mark, pa.Table]:
    head, _, blob = message.partition(b"\n")
    query, batch, partition, sequence, arrived = json.loads(head)
    return query, Mark(batch, partition, sequence, arrived), from_blob(blob)


class PushReceiver:
    """Receives results in the driver and passes them to ``take``, in one thread per partition.

    ``host`` is the driver's name for the machines of partitions, ``bind`` its address here.
    """

    def __init__(self, host: str, bind: str, take: Take) -> None:
        self._take = take
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        try:
            family = socket.AF_INET6 if ":" in bind else socket.AF_INET
            self._socket = socket.create_server((bind, 0), family=family)
        except OSError as error:
            raise RunError(
                f"the driver cannot listen for results at {bind}: {error.strerror}",
                hint="Set spark.driver.bindAddress to an address it has",
            ) from error
        self.address = Address(host, self._socket.getsockname()[1], secrets.token_bytes(32))
        threading.Thread(target=self._accept, name="muntin-receiver", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                own, _ = self._socket.accept()
            except OSError:  # it was closed
                return
            with self._lock:
                self._open.add(own)
            threading.Thread(
                target=self._serve, args=(own,), name="muntin-receiver-partition", daemon=True
            ).start()

    def _serve(self, own: socket.socket) -> None:
        """Receive from one partition until either side closes the connection."""
        try:
            with _connection(own, _PATIENCE) as connection:
                if self._proved(connection):
                    limit(own, 0, socket.SO_RCVTIMEO)  # batches may be far apart
                    with contextlib.suppress(*_BROKEN):
                        self._receive(connection)
        finally:
            with self._lock:
                self._open.discard(own)
            own.close()

    def _proved(self, connection: Connection) -> bool:
        """Return whether the other side has the key, too."""
        try:
            deliver_challenge(connection, self.address.key)
            answer_challenge(connection, self.address.key)
        except _STRANGE:
            return False
        return True

    def _receive(self, connection: Connection) -> None:
        while True:
            message = connection.recv_bytes()
            if message == _END:
                connection.send_bytes(_END)
            else:
                self._take(*_unpacked(message))

    def close(self) -> None:
        """Stop listening."""
        for own in [self._socket, *self._open]:
            with contextlib.suppress(OSError):
                own.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class PushConnection:
    """A partition's connection to the driver, kept from batch to batch once one was needed."""

    def __init__(self) -> None:
        self._address: Address | None = None
        self._connection: Connection | None = None
        self._not_before = 0.0

    def begin(self, target: PushTarget, batch: int, arrived: float) -> BatchPush:
        """Return a sender for the results of one batch."""
        if target.address != self._address:
            self.drop()
            self._address, self._not_before = target.address, 0.0
        if self._connection is None and time.monotonic() >= self._not_before:
            self._connect(target.address)
        return BatchPush(self, target, Mark(batch, target.partition, 0, arrived))

    def _connect(self, address: Address) -> None:
        self._not_before = time.monotonic() + _PAUSE
        try:
            with socket.create_connection((address.host, address.port), _PATIENCE) as own:
                connection = _connection(own, _PATIENCE)
            answer_challenge(connection, address.key)
            deliver_challenge(connection, address.key)
        except _STRANGE as error:
            _log.warning(
                "the driver at %s:%d cannot be reached for subscribers: %s",
                address.host,
                address.port,
                error,
            )
            return
        self._connection, self._not_before = connection, 0.0

    @property
    def connected(self) -> bool:
        """True while there is a connection."""
        return self._connection is not None

    def send(self, message: bytes) -> None:
        """Send a message if there is a connection."""
        if self._connection is not None:
            try:
                self._connection.send_bytes(message)
            except _BROKEN:
                self.drop()

    def confirmed(self) -> bool:
        """Return whether the driver confirms that it has received all messages."""
        self.send(_END)
        if self._connection is None:
            return False
        try:
            self._connection.recv_bytes()
        except _BROKEN:
            self.drop()
        return self.connected

    def drop(self) -> None:
        """Close the connection; the next batch tries again."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class BatchPush:
    """Sends the results of one batch as they are released; called with each of them."""

    def __init__(self, connection: PushConnection, target: PushTarget, first: Mark) -> None:
        self._connection = connection
        self._queries = target.queries
        self._first = first
        self._released: Counter[str] = Counter()
        self._complete = connection.connected

    def __call__(self, query: str, results: pa.Table) -> None:
        """Send results of a query, if it has subscribers."""
        if query in self._queries and len(results):
            mark = Mark(
                self._first.batch, self._first.partition, self._released[query], self._first.arrived
            )
            self._released[query] += len(results)
            if self._complete:
                self._connection.send(_packed(query, mark, results))
                self._complete = self._connection.connected

    def end(self) -> int:
        """End the batch; return how many of its results may not have reached the driver."""
        released = self._released.total()
        return 0 if not released or (self._complete and self._connection.confirmed()) else released
