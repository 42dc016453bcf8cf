"""A partition lives in a process of its own, which any Python worker of the host asks.

Spark gives a partition to another worker from batch to batch, so its state must not live in one. A resident process keeps the
engines, compiled code and all; whichever worker has the partition sends the share and gets the outputs. What the resident
holds is a cache: it says which batch it has applied last, and if that is not the one before the share (it is new, another host
had the partition, an attempt failed half-way), it is built again from the shares in Spark's state store.

A resident whose engine has stopped rests for a minute: the next engine under the same parent takes it, instead of waiting for another
process to load all code. Residents end when the process that Spark runs in ends, or after ten idle minutes.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import hashlib
import os
import secrets
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from multiprocessing import AuthenticationError
from multiprocessing.connection import (
    Client,
    Connection,
    Listener,
    answer_challenge,
    deliver_challenge,
)
from pathlib import Path
from typing import Any

from muntin.errors import RunError
from muntin.kernels.jit import prepare
from muntin.spark.exchange.deployment_file import decode_deployment
from muntin.spark.exchange.frames import CheckpointError
from muntin.spark.exchange.messages import PartitionBatch
from muntin.spark.partition.push_channel import Courier, Outlet
from muntin.spark.partition.recovery import Answer, Applied, KeptPartition, Memory, recalled
from muntin.spark.partition.spool import Spool
from muntin.spark.partition.wire import receive, send
from muntin.spark.temp_files import private_folder, sweep

_IDLE = 600.0
_REST = 60.0
_START = 120.0
_WATCH = 1.0
_LONGEST = 100
"""Bytes of a socket's path; the kernel takes 107."""
_ALL = b""
"""What comes after the last share."""


class ResidentError(RunError):
    """A resident failed or could not be started."""


@dataclass(frozen=True)
class Request:
    """What is asked of a resident: to apply a share to the partition as it was after batch ``version``, under a program.

    With an ``outlet`` it sends results to subscribers as they are made.
    """

    program: bytes
    version: int
    share: PartitionBatch
    outbox: Path
    outlet: Outlet | None = None

    def told(self) -> tuple[str, str, int, PartitionBatch, Path, Outlet | None]:
        """As it is sent; the program only by its digest."""
        return (
            "apply",
            digest_of(self.program),
            self.version,
            self.share,
            self.outbox,
            self.outlet,
        )


def resting_files(parent: int | str = "*", pid: int | str = "*") -> list[Path]:
    """The keys of residents that rest; the name tells with whom they end, and which process it is."""
    return sorted(private_folder().glob(f"resting-{parent}-{pid}.key"))


def digest_of(program: bytes) -> str:
    """What tells one program from another."""
    return hashlib.sha256(program).hexdigest()


@contextlib.contextmanager
def short_path(path: Path) -> Iterator[str]:
    """Give a socket's path a name that is short enough for the kernel, however long the path is."""
    if len(os.fsencode(path)) <= _LONGEST:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


@contextlib.contextmanager
def _reached(path: Path, patience: float) -> Iterator[socket.socket]:
    """Connect to a resident, at most for so long; whether it accepts, only an answer tells."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as own, short_path(path) as name:
        own.settimeout(patience)
        own.connect(name)
        yield own


def _proved(own: socket.socket, key: bytes, patience: float) -> Connection:
    """Exchange the proofs of the key; every answer must come within ``patience`` seconds."""
    own.setblocking(True)
    limit = struct.pack("ll", int(patience), int(patience % 1 * 1_000_000))
    own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
    connection = Connection(os.dup(own.fileno()))
    try:
        answer_challenge(connection, key)
        deliver_challenge(connection, key)
    except BaseException:
        connection.close()
        raise
    return connection


def _peer(own: socket.socket) -> int:
    """Return the process that listens at the other end of a socket."""
    size = struct.calcsize("3i")
    process: int = struct.unpack("3i", own.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[
        0
    ]
    return process


def _killed(process: int | None) -> int | None:
    """Kill a process, also one that is suspended; return its number."""
    if not process:
        return None
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    return process


class Resident:
    """The way to a partition's resident; ``run`` names the engine, ``parent`` the process it must not outlive."""

    def __init__(self, run: str, number: int, parent: int) -> None:
        self._number = number
        self._parent = parent
        name = hashlib.sha256(f"{run}/{number}".encode()).hexdigest()[:24]
        folder = private_folder()
        self._socket = folder / f"{name}.sock"
        self._key = folder / f"{name}.key"
        self._lock = folder / f"{name}.lock"

    def apply(self, request: Request, recall: Callable[[], Iterator[Memory]]) -> Answer:
        """Apply a share to the partition; ``recall`` tells what to build it from, if need be."""
        try:
            answer = self._asked(request, recall)
        except (EOFError, OSError):
            # Another executor of this host had started it, and it has ended with that one.
            answer = self._asked_again(request, recall)
        if answer[0] == "failed":
            raise ResidentError(
                f"partition {self._number} failed: {answer[1]}",
                hint="The batch will be tried again from the checkpoint",
            )
        if answer[0] != "applied":
            raise ResidentError(
                f"partition {self._number} cannot be brought to batch {request.version} from the checkpoint",
                hint="Restore it, or begin a new one",
            )
        applied: Answer = answer[1]
        return applied

    def _asked(self, request: Request, recall: Callable[[], Iterator[Memory]]) -> tuple[Any, ...]:
        with self._connected() as connection:
            send(connection, request.told())
            answer: tuple[Any, ...] = receive(connection)
            if answer[0] == "extend?":
                send(connection, ("extend", request.program))
                send(connection, request.told())
                answer = receive(connection)
            if answer[0] == "rebuild?":
                send(connection, ("rebuild", request.program, self._number))
                for memory in recall():
                    connection.send_bytes(memory)
                connection.send_bytes(_ALL)
                send(connection, request.told())
                answer = receive(connection)
        return answer

    def _asked_again(
        self, request: Request, recall: Callable[[], Iterator[Memory]]
    ) -> tuple[Any, ...]:
        try:
            return self._asked(request, recall)
        except (EOFError, OSError) as error:
            raise ResidentError(
                f"the process of partition {self._number} ended twice in the middle of batch {request.share.batch}",
                hint="See that the machine has memory for it; the batch will be tried again from the checkpoint",
            ) from error

    def stop(self, patience: float = 10.0) -> int | None:
        """Let the resident rest, if there is one; it forgets its partition.

        One that does not answer within ``patience`` seconds is killed; its process id is returned.
        """
        killed = self._put_to_rest(patience)
        for path in (self._socket, self._key, self._lock):
            path.unlink(missing_ok=True)
        return killed

    def _put_to_rest(self, patience: float) -> int | None:
        process = None
        try:
            with _reached(self._socket, patience) as own:
                process = _peer(own)
                with _proved(own, self._key.read_bytes(), patience) as connection:
                    send(connection, ("rest", self._socket, self._key))
                    receive(connection)
        except (BlockingIOError, TimeoutError):  # the first: a timeout in the middle of an answer
            return _killed(process)
        except (OSError, EOFError, AuthenticationError):
            pass  # it has ended, or belongs to another engine by now
        return None

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Connection]:
        connection = self._connect() or self._start()
        with connection:
            yield connection

    def _connect(self) -> Connection | None:
        try:
            with short_path(self._socket) as path:
                return Client(path, "AF_UNIX", authkey=self._key.read_bytes())
        except (
            OSError,
            EOFError,
            AuthenticationError,
        ):  # the last: it was replaced since its key was read
            return None

    def _start(self) -> Connection:
        with self._lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            connection = self._connect()
            if connection is not None:
                return connection
            connection = self._woken()
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
        raise ResidentError(
            f"the process of partition {self._number} did not start",
            hint=f"Try: {sys.executable} -c 'import muntin.spark.partition.state_server'",
        )

    def _woken(self) -> Connection | None:
        """A resident that rested, under our name from now on."""
        for key in resting_files(self._parent):
            with contextlib.suppress(FileNotFoundError):  # somebody else was faster
                key.rename(self._key)
                key.with_suffix(".sock").rename(self._socket)
                connection = self._connect()
                if connection is not None:
                    return connection
        return None


# -- the resident itself ------------------------------------------------------------------------------


class _Serving:
    """The partition of a resident, and the programs it knows."""

    def __init__(self) -> None:
        self._partition: KeptPartition | None = None
        self._program = ""
        self._courier = Courier()

    def forget(self) -> None:
        """Let the partition go, and what it has of the driver."""
        self._partition, self._program = None, ""
        self._courier.drop()
        gc.collect()

    def answer(self, connection: Connection, request: tuple[Any, ...]) -> None:
        """Answer one request."""
        if request[0] == "rebuild":
            self._rebuild(connection, *request[1:])
            return
        if request[0] == "extend":
            self._extend(request[1])
            return
        _, program, version, share, outbox, outlet = request
        partition = self._partition
        if partition is not None and self._program != program and partition.version == version:
            send(connection, ("extend?",))
            return
        if partition is None or partition.version != version:
            self._partition = None
            send(connection, ("rebuild?",))
            return
        # Until the share is applied as a whole, nobody must take this partition for one that is right.
        self._partition = None
        try:
            applied = self._applied(partition, share, outlet)
            sent = [Spool(outbox).put(output) for output in applied.outputs]
        except Exception as error:  # noqa: BLE001 (whatever it is, the worker has to hear of it)
            send(connection, ("failed", f"{type(error).__name__}: {error}"))
            return
        self._partition = partition
        send(
            connection,
            ("applied", Answer(sent, applied.note, applied.gone, applied.stats, applied.snapshot)),
        )

    def _applied(
        self, partition: KeptPartition, share: PartitionBatch, outlet: Outlet | None
    ) -> Applied:
        if outlet is None:
            return partition.apply(share)
        releases = self._courier.releases(outlet, share.batch, time.time())
        applied = partition.apply(share, releases)
        return replace(applied, stats=replace(applied.stats, unsent=releases.end()))

    def _rebuild(self, connection: Connection, program: bytes, number: int) -> None:
        memories = iter(connection.recv_bytes, _ALL)
        try:
            self._partition = KeptPartition.rebuilt(
                decode_deployment(program), number, map(recalled, memories)
            )
        except CheckpointError:
            # A forged share: without a partition, the worker learns that it cannot be rebuilt.
            self._partition = None
            for _ in memories:
                pass
        self._program = digest_of(program)

    def _extend(self, program: bytes) -> None:
        """Take a program with further changes; a partition of another one is let go."""
        if self._partition is not None and not self._partition.extend(decode_deployment(program)):
            self._partition = None
        self._program = digest_of(program)


@dataclass
class _Life:
    """How long a resident goes on: as long as its parent, and unless nobody asks for long."""

    parent: int
    idle: float | None = field(default_factory=time.monotonic)
    """Since when; None while there is something to do."""
    patience: float = _IDLE

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """While a request is answered."""
        self.idle, self.patience = None, _IDLE
        try:
            yield
        finally:
            self.idle = time.monotonic()

    def rest(self, socket: Path, key: Path) -> None:
        """Be there for the next engine under another name; this process ends if its own has gone."""
        name = f"resting-{self.parent}-{os.getpid()}"
        try:
            socket.rename(socket.with_name(f"{name}.sock"))
            key.rename(key.with_name(f"{name}.key"))  # who sees this finds the socket too
        except FileNotFoundError:
            os._exit(0)
        self.patience = _REST

    def watch(self) -> None:
        """End this process when it is time."""
        while (since := self.idle) is None or time.monotonic() - since <= self.patience:
            time.sleep(_WATCH)
            try:
                os.kill(self.parent, 0)
            except ProcessLookupError:
                break
            except PermissionError:
                pass
        for key in resting_files(self.parent, os.getpid()):
            for path in (key, key.with_suffix(".sock")):
                path.unlink(missing_ok=True)
        os._exit(0)


def serve(address: str, key: str, parent: int) -> None:
    """Serve one partition, and after a rest another one, until it is time to end."""
    life = _Life(parent)
    threading.Thread(target=life.watch, daemon=True).start()
    serving = _Serving()
    # It is never closed: that would remove a name which another may have by then.
    with short_path(Path(address)) as path:
        listener = Listener(path, "AF_UNIX", authkey=Path(key).read_bytes())
    prepare()  # whoever connects meanwhile waits; no request is answered by a process that has yet to load its kernels
    while True:
        with (
            contextlib.suppress(EOFError, OSError, AuthenticationError),
            listener.accept() as connection,
        ):
            while True:
                request = receive(connection)
                with life.busy():
                    if request[0] == "rest":
                        serving.forget()
                        life.rest(*request[1:])
                        send(connection, ("rests",))
                    else:
                        serving.answer(connection, request)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], int(sys.argv[3]))
