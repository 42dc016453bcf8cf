"""The client of a partition's state server, used by the worker that Spark gives the partition to.

It starts the server if there is none, or takes over an idle one.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import secrets
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from pathlib import Path
from typing import Any, TypeAlias

from muntin.errors import RunError
from muntin.spark.exchange.shipped_functions import NO_FUNCTIONS, ShippedFunctions
from muntin.spark.partition.server_files import idle_keys, short_path
from muntin.spark.partition.socket_timeouts import limit
from muntin.spark.partition.stored_batches import StoredBatch
from muntin.spark.partition.wire import (
    ALIVE,
    Answer,
    Order,
    StageAnswer,
    StageOrder,
    receive_answer,
    send,
)
from muntin.spark.temp_files import private_folder, sweep

_log = logging.getLogger("muntin.spark")

_PATIENCE = 60.0
"""Seconds without a sign of life after which a state server is killed."""

_BUSY = 120.0
"""Seconds in which a state server must accept a connection; it may be busy with another one."""

_START = 120.0
"""Seconds within which a new process must accept connections."""

_MOST_OPEN = 16
"""Connections that a process keeps open: a worker serves any partition of any engine."""

LOST = "cannot be brought to batch"
"""Part of the error for a checkpoint from which a partition cannot be rebuilt."""


class StateServerError(RunError):
    """A state server failed or could not be started."""


Ask: TypeAlias = Callable[[Connection], tuple[Any, ...]]
"""Sends a request over a connection and returns the answer."""


@dataclass(frozen=True)
class Request:
    """A partition batch to apply, as a frame, under a deployment.

    ``stored`` returns what the partition is rebuilt from if its server has lost it.
    """

    deployment: bytes
    order: Order
    frame: bytes
    stored: Callable[[], tuple[StoredBatch, ...]]


@contextlib.contextmanager
def _reached(path: Path, patience: float) -> Iterator[socket.socket]:
    """Connect to a server within ``patience`` seconds; it need not have accepted yet."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as own, short_path(path) as name:
        own.settimeout(patience)
        own.connect(name)
        yield own


def _proved(own: socket.socket, key: bytes, patience: float) -> Connection:
    """Exchange the proofs of the key; every answer must come within ``patience`` seconds."""
    limit(own, patience)
    connection = Connection(os.dup(own.fileno()))
    try:
        answer_challenge(connection, key)
        deliver_challenge(connection, key)
    except BaseException:
        connection.close()
        raise
    return connection


_open: dict[Path, Connection] = {}
"""Connections that this process keeps from batch to batch, by socket, the last used one last."""


def _keep(path: Path, connection: Connection) -> None:
    _open[path] = connection
    while len(_open) > _MOST_OPEN:
        _open.pop(next(iter(_open))).close()


def _kept(path: Path) -> Connection | None:
    """Return the connection that was kept, if the server is still at its other end."""
    connection = _open.pop(path, None)
    if connection is None:
        return None
    try:
        while connection.poll():
            late = connection.recv_bytes()
            assert late == ALIVE, "a sign of life can come after the answer, and nothing else"
    except (EOFError, OSError):
        connection.close()
        return None
    return connection


def _peer(descriptor: int) -> int:
    """Return the process that listens at the other end of a socket."""
    size = struct.calcsize("3i")
    with socket.socket(fileno=os.dup(descriptor)) as own:
        found = own.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    process: int = struct.unpack("3i", found)[0]
    return process


def _killed(process: int | None) -> int | None:
    """Kill a process, even one that is stopped; return its process id."""
    if not process:
        return None
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    return process


def _applied(connection: Connection, request: Request) -> tuple[Any, ...]:
    """Send the order and the partition batch; return the answer."""
    send(connection, ("apply", request.order))
    connection.send_bytes(request.frame)
    return receive_answer(connection, _PATIENCE)


def _deployed(
    connection: Connection, message: tuple[Any, ...], functions: ShippedFunctions
) -> tuple[Any, ...]:
    """Send a message with a deployment, the functions that it calls before it; return the answer.

    The answer is that to the functions if they cannot be loaded.
    """
    if functions.keys:
        send(connection, ("functions", functions.from_here()))
        answer = receive_answer(connection, _PATIENCE)
        if answer[0] == "failed":
            return answer
    send(connection, message)
    return receive_answer(connection, _PATIENCE)


def _staged(
    connection: Connection, order: StageOrder, deployment: bytes, functions: ShippedFunctions
) -> tuple[Any, ...]:
    """Send an order for a global stage, and the deployment if it is needed; return the answer."""
    send(connection, ("stage", order))
    answer = receive_answer(connection, _PATIENCE)
    if answer[0] == "deploy?":
        answer = _deployed(connection, ("deploy", deployment), functions)
        if answer[0] == "deployed":
            send(connection, ("stage", order))
            answer = receive_answer(connection, _PATIENCE)
    return answer


class StateClient:
    """Connects to the state server of a partition.

    ``run`` identifies the engine, ``parent`` is the process that the server must not outlive,
    ``functions`` are what the queries of a deployment call.
    """

    def __init__(
        self, run: str, number: int, parent: int, functions: ShippedFunctions = NO_FUNCTIONS
    ) -> None:
        self._functions = functions
        self._number = number
        self._parent = parent
        name = hashlib.sha256(f"{run}/{number}".encode()).hexdigest()[:24]
        folder = private_folder()
        self._socket = folder / f"{name}.sock"
        self._key = folder / f"{name}.key"
        self._lock = folder / f"{name}.lock"

    def apply(self, request: Request) -> Answer:
        """Apply a batch to the partition."""
        answer = self._asked(
            lambda connection: self._answer(connection, request), request.order.version
        )
        if answer[0] == "failed":
            raise self._failed(f"partition {self._number}", answer[1])
        if answer[0] != "applied":
            damage = f": {answer[1]}" if answer[0] == "damaged" else ""
            raise StateServerError(
                f"partition {self._number} {LOST} {request.order.version} "
                f"from the checkpoint{damage}",
                hint="Restore it, or begin a new one",
            )
        applied: Answer = answer[1]
        return applied

    def run_stage(self, query: str, order: StageOrder, deployment: bytes) -> StageAnswer:
        """Run the global stage of a query, which the server holds beside its partition."""
        answer = self._asked(
            lambda connection: _staged(connection, order, deployment, self._functions),
            order.batch - 1,
        )
        name = f"the global stage of query {query}"
        if answer[0] == "failed":
            raise self._failed(name, answer[1])
        if answer[0] != "staged":
            raise StateServerError(
                f"{name} {LOST} {order.batch - 1} from the checkpoint: {answer[1]}",
                hint="Restore it, or begin a new one",
            )
        staged: StageAnswer = answer[1]
        return staged

    @staticmethod
    def _failed(what: str, reason: str) -> StateServerError:
        return StateServerError(
            f"{what} failed: {reason}", hint="The batch will be tried again from the checkpoint"
        )

    def _asked(self, ask: Ask, after: int) -> tuple[Any, ...]:
        """Return the answer of the server, or that of another one if it ends meanwhile."""
        try:
            return self._asked_once(ask)
        except (EOFError, OSError):
            pass  # another executor of this host had started the server, which ended with it
        try:
            return self._asked_once(ask)
        except (EOFError, OSError) as error:
            raise StateServerError(
                f"the process of partition {self._number} ended twice "
                f"in the middle of the batch after {after}",
                hint="Check that the machine has enough memory; "
                "the batch will be tried again from the checkpoint",
            ) from error

    def _asked_once(self, ask: Ask) -> tuple[Any, ...]:
        with self._connected() as connection:
            try:
                return ask(connection)
            except TimeoutError:
                process = _peer(connection.fileno())
                _killed(process)
                _log.warning(
                    "the state server %d of partition %d gave no sign of life for %g seconds and "
                    "was killed",
                    process,
                    self._number,
                    _PATIENCE,
                )
                raise

    def _answer(self, connection: Connection, request: Request) -> tuple[Any, ...]:
        answer = _applied(connection, request)
        if answer[0] == "extend?":
            answer = _deployed(connection, ("extend", request.deployment), self._functions)
            if answer[0] == "extended":
                answer = _applied(connection, request)
        if answer[0] == "rebuild?":
            rebuild = (request.deployment, self._number, request.order.storage)
            message = ("rebuild", *rebuild, request.stored())
            answer = _deployed(connection, message, self._functions)
            if answer[0] == "rebuilt":
                answer = _applied(connection, request)
        return answer

    def stop(self, patience: float = 10.0) -> int | None:
        """Make the server idle, if there is one; it releases its partition.

        A server that does not answer within ``patience`` seconds is killed; return its process id.
        """
        killed = self._make_idle(patience)
        for path in (self._socket, self._key, self._lock):
            path.unlink(missing_ok=True)
        return killed

    def _make_idle(self, patience: float) -> int | None:
        process = None
        try:
            with _reached(self._socket, patience) as own:
                process = _peer(own.fileno())
                with _proved(own, self._key.read_bytes(), patience) as connection:
                    send(connection, ("release", self._socket, self._key))
                    receive_answer(connection, patience)
        except (BlockingIOError, TimeoutError):  # the first: a timeout in the middle of an answer
            return _killed(process)
        except (OSError, EOFError, AuthenticationError):
            pass  # it has ended, or belongs to another engine by now
        return None

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Connection]:
        """Connect to the server; a connection on which nothing failed is kept for later batches."""
        connection = _kept(self._socket) or self._connect() or self._start()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        _keep(self._socket, connection)

    def _connect(self) -> Connection | None:
        """Connect to the server, if there is one; kill one that does not accept connections."""
        process = None
        try:
            with _reached(self._socket, _BUSY) as own:
                process = _peer(own.fileno())
                return _proved(own, self._key.read_bytes(), _BUSY)
        except (BlockingIOError, TimeoutError):
            _log.warning("the state server %s accepted no connection and was killed", process)
            _killed(process)
        except (OSError, EOFError, AuthenticationError):
            pass  # the last error: it was replaced since its key was read
        return None

    def _start(self) -> Connection:
        with self._lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            connection = self._connect()
            if connection is not None:
                return connection
            connection = self._taken_over()
            if connection is not None:
                return connection
            sweep()
            self._socket.unlink(missing_ok=True)
            descriptor = os.open(self._key, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.write(descriptor, secrets.token_bytes(32))
            os.close(descriptor)
            arguments = [
                sys.executable,
                "-m",
                "muntin.spark.partition.state_server",
                str(self._socket),
                str(self._key),
                str(self._parent),
            ]
            process = subprocess.Popen(  # noqa: S603
                arguments,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
            until = time.monotonic() + _START
            while time.monotonic() < until and process.poll() is None:
                connection = self._connect()
                if connection is not None:
                    return connection
                time.sleep(0.02)
        raise StateServerError(
            f"the process of partition {self._number} did not start",
            hint=f"Try: {sys.executable} -c 'import muntin.spark.partition.state_server'",
        )

    def _taken_over(self) -> Connection | None:
        """Connect to an idle server, which has this partition's name from now on."""
        for key in idle_keys(self._parent):
            with contextlib.suppress(FileNotFoundError):  # another client was faster
                key.rename(self._key)
                key.with_suffix(".sock").rename(self._socket)
                connection = self._connect()
                if connection is not None:
                    return connection
        return None
