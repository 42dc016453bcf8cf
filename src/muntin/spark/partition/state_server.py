"""The state server: the process that holds the state of one partition.

Spark may give a partition to another Python worker in every batch, so its state must not be in a
worker. A state server holds the dataflows, with all code compiled; the worker that has the
partition sends the batch and gets the outputs. The state is a cache: the server compares the file
of the last batch that it applied with that of the batch before in the manifest. If they differ (the
server is new, another host had the partition, an attempt failed halfway, the driver was replaced),
the partition is rebuilt from the batches in the checkpoint.

When its engine stops, the server stays idle for a minute: the next engine under the same parent
takes it over instead of waiting until another process has loaded all code. State servers end when
the process that Spark runs in ends, or after ten idle minutes.
"""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge, wait
from pathlib import Path
from typing import Any

from muntin.kernels.jit import prepare
from muntin.runtime.frames import CheckpointError
from muntin.spark.exchange.deployment_file import decode_deployment
from muntin.spark.exchange.messages import PartitionBatch
from muntin.spark.exchange.shipped_functions import ShippedFunctions
from muntin.spark.partition.held_stages import HeldStages
from muntin.spark.partition.manifests import PartitionChange
from muntin.spark.partition.push_channel import PushConnection, PushTarget
from muntin.spark.partition.recovery import Applied, RecoverablePartition
from muntin.spark.partition.server_files import idle_keys, idle_name, short_path
from muntin.spark.partition.socket_timeouts import limit
from muntin.spark.partition.spool import Spool
from muntin.spark.partition.stored_batches import (
    StoredBatch,
    decode_batch,
    encode_batch,
    new_file,
    read_batches,
)
from muntin.spark.partition.wire import Answer, Order, digest_of, receive, send, send_alive
from muntin.spark.storage import Location, storage_at

_BACKLOG = 64
"""Connections that wait while it works, or is suspended: who ends it must still reach it."""

_IDLE = 600.0
"""Seconds without a request after which a server with a partition ends."""
_RELEASED = 60.0
"""Seconds without a request after which a server without a partition ends."""
_WATCH = 1.0
_PROOF = 10.0
"""Seconds in which a client must prove that it has the key, and each message of that must come."""
_STRANGE = (EOFError, OSError, AuthenticationError, AssertionError, ValueError)
"""The errors of a failed proof of the key, whatever is at the other end."""


class StateServer:
    """Applies batches to a partition under the last deployment that it received."""

    def __init__(self) -> None:
        self._partition: RecoverablePartition | None = None
        self._digest = ""
        self._file = ""
        """The file of the last batch that was applied; its name is unique to the attempt."""
        self._push = PushConnection()
        self._stages = HeldStages(self._push)

    def release(self) -> None:
        """Release the partition and the connection to the driver."""
        self._partition, self._digest, self._file = None, "", ""
        self._stages.release()
        self._push.drop()
        gc.collect()

    def answer(self, connection: Connection, request: tuple[Any, ...]) -> None:
        """Answer one request."""
        if request[0] == "functions":
            self._load(connection, request[1])
            return
        if request[0] == "rebuild":
            self._rebuild(connection, *request[1:])
            return
        if request[0] == "extend":
            self._extend(connection, request[1])
            return
        if request[0] in {"stage", "deploy"}:
            self._stages.answer(connection, request)
            return
        order: Order = request[1]
        frame = connection.recv_bytes()
        partition = self._partition
        current = (
            partition is not None
            and partition.version == order.version
            and order.previous in {None, self._file}
        )
        if current and self._digest != order.digest:
            send(connection, ("extend?",))
            return
        if partition is None or not current:
            self._partition = None
            send(connection, ("rebuild?",))
            return
        # Until the batch is applied completely, the partition must not be used for another one.
        self._partition = None
        try:
            answer = self._applied(partition, decode_batch(frame), order)
        except Exception as error:  # noqa: BLE001 (the worker must get any error)
            send(connection, ("failed", f"{type(error).__name__}: {error}"))
            return
        self._partition, self._file = partition, answer.change.added.file
        send(connection, ("applied", answer))

    def _applied(
        self, partition: RecoverablePartition, batch: PartitionBatch, order: Order
    ) -> Answer:
        """Apply a batch; store a snapshot, if one replaces the batch and those before it."""
        applied, unsent = self._pushed(partition, batch, order.target)
        file = order.file
        if applied.snapshot is not None:
            file = new_file(partition.number, batch.batch)
            storage_at(order.storage).put(file, encode_batch(applied.snapshot))
        stored = StoredBatch(file, applied.note)
        spool = Spool(storage_at(order.spool))
        return Answer(
            order.results.send(applied.outputs, spool, batch.batch, partition.number),
            PartitionChange(partition.number, stored, tuple(applied.gone)),
            replace(applied.stats, unsent=unsent),
        )

    def _pushed(
        self, partition: RecoverablePartition, batch: PartitionBatch, target: PushTarget | None
    ) -> tuple[Applied, int]:
        """Apply a batch; return how many results may not have reached subscribers."""
        if target is None:
            return partition.apply(batch), 0
        push = self._push.begin(target, batch.batch, time.time())
        return partition.apply(batch, push), push.end()

    @staticmethod
    def _load(connection: Connection, functions: ShippedFunctions) -> None:
        """Load the functions that the next deployment calls."""
        try:
            functions.load()
        except Exception as error:  # noqa: BLE001 (the worker must get any error)
            send(connection, ("failed", f"loading functions: {type(error).__name__}: {error}"))
            return
        send(connection, ("functions loaded",))

    def _rebuild(
        self,
        connection: Connection,
        deployment: bytes,
        number: int,
        storage: Location,
        stored: Sequence[StoredBatch],
    ) -> None:
        self._partition = None
        try:
            partition = RecoverablePartition.rebuilt(
                decode_deployment(deployment), number, read_batches(storage_at(storage), stored)
            )
        except CheckpointError as error:
            send(connection, ("damaged", error.fact))
            return
        except Exception as error:  # noqa: BLE001 (the worker must get any error)
            send(connection, ("failed", f"rebuilding it: {type(error).__name__}: {error}"))
            return
        self._partition, self._digest = partition, digest_of(deployment)
        self._file = stored[-1].file if stored else ""
        send(connection, ("rebuilt",))

    def _extend(self, connection: Connection, deployment: bytes) -> None:
        """Take a deployment with further changes; release the partition of any other one."""
        partition, self._partition = self._partition, None
        try:
            extended = partition is not None and partition.extend(decode_deployment(deployment))
        except Exception as error:  # noqa: BLE001 (the worker must get any error)
            send(connection, ("failed", f"changing its queries: {type(error).__name__}: {error}"))
            return
        if extended:
            self._partition, self._digest = partition, digest_of(deployment)
        send(connection, ("extended",))


@dataclass
class _Lifetime:
    """Ends the process when its parent has ended or no request has come for long."""

    parent: int
    idle: float | None = field(default_factory=time.monotonic)
    """Since when it is idle; None while it is busy."""
    patience: float = _IDLE

    client: Connection | None = None
    """The client whose request is answered."""
    waiting: Callable[[], list[Connection]] = list
    """Returns the clients whose requests wait."""

    @contextlib.contextmanager
    def busy(self, client: Connection | None = None) -> Iterator[None]:
        """Count as busy while a request is answered, or kernels are loaded."""
        self.idle, self.patience, self.client = None, _IDLE, client
        try:
            yield
        finally:
            self.idle, self.client = time.monotonic(), None

    def offer(self, address: Path, key: Path) -> None:
        """Rename the files so that the next engine finds them; end if they are gone."""
        name = idle_name(self.parent, os.getpid())
        try:
            address.rename(address.with_name(f"{name}.sock"))
            key.rename(key.with_name(f"{name}.key"))  # last: where the key is, the socket is too
        except FileNotFoundError:
            os._exit(0)
        self.patience = _RELEASED

    def watch(self) -> None:
        """Wait until the process must end, then end it."""
        while (since := self.idle) is None or time.monotonic() - since <= self.patience:
            time.sleep(_WATCH)
            if self.idle is None:
                for one in {*self.waiting(), *([] if (own := self.client) is None else [own])}:
                    with contextlib.suppress(OSError):  # it has given up
                        send_alive(one)
            try:
                os.kill(self.parent, 0)
            except ProcessLookupError:
                break
            except PermissionError:
                pass
        for key in idle_keys(self.parent, os.getpid()):
            for path in (key, key.with_suffix(".sock")):
                path.unlink(missing_ok=True)
        os._exit(0)


class Clients:
    """The connections of a server: workers keep theirs from batch to batch.

    A thread accepts new ones, so that a client gets signs of life however long another one's
    request takes.
    """

    def __init__(self, listening: socket.socket, key: bytes) -> None:
        self._listening = listening
        self._key = key
        self._open: list[Connection] = []
        self._accepted, self._news = socket.socketpair()
        """The second one is readable when a connection was added."""
        threading.Thread(target=self._accept_all, daemon=True).start()

    def next(self) -> tuple[Connection, tuple[Any, ...]]:
        """Wait for the next request of any client, and return it with the connection."""
        while True:
            for ready in wait([self._news, *self._open]):
                if ready is self._news:
                    self._news.recv(_BACKLOG)
                    continue
                assert isinstance(ready, Connection), "one of the open ones"
                try:
                    return ready, receive(ready)
                except (EOFError, OSError):
                    self.drop(ready)

    def waiting(self) -> list[Connection]:
        """Return the clients that have sent something that was not read; call it in any thread."""
        try:
            ready = wait(list(self._open), 0)
        except (OSError, ValueError):  # one was closed at this moment
            return []
        return [one for one in ready if isinstance(one, Connection)]

    def _accept_all(self) -> None:
        while True:
            self._accept()

    def _accept(self) -> None:
        """Accept a client that proves in time that it has the key."""
        with contextlib.suppress(*_STRANGE):
            own, _ = self._listening.accept()
            with own:
                connection = Connection(os.dup(own.fileno()))
                limit(own, _PROOF)
                try:
                    deliver_challenge(connection, self._key)
                    answer_challenge(connection, self._key)
                except BaseException:
                    connection.close()
                    raise
                limit(own, 0)  # batches may be far apart
            self._open.append(connection)
            self._accepted.send(b"+")

    def drop(self, connection: Connection) -> None:
        """Close a connection."""
        connection.close()
        self._open.remove(connection)

    def keep_only(self, connection: Connection) -> None:
        """Close all connections but one: whoever comes next belongs to another engine."""
        for other in [known for known in self._open if known is not connection]:
            self.drop(other)


def serve(address: str, key: str, parent: int) -> None:
    """Serve one partition after the other, until the process must end."""
    lifetime = _Lifetime(parent)
    threading.Thread(target=lifetime.watch, daemon=True).start()
    server = StateServer()
    # It is never closed: that would remove a name which another server may have by then.
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with short_path(Path(address)) as path:
        listening.bind(path)
    listening.listen(_BACKLOG)
    clients = Clients(listening, Path(key).read_bytes())
    lifetime.waiting = clients.waiting
    with lifetime.busy():
        prepare()  # requests wait until the kernels are loaded
    while True:
        connection, request = clients.next()
        try:
            with lifetime.busy(connection):
                if request[0] == "release":
                    clients.keep_only(connection)
                    server.release()
                    lifetime.offer(*request[1:])
                    send(connection, ("released",))
                else:
                    server.answer(connection, request)
        except (EOFError, OSError):
            clients.drop(connection)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], int(sys.argv[3]))
