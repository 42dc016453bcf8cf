"""The state server of a partition ends with its parent, is replaced, and is rebuilt."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener
from pathlib import Path

import pytest

from muntin.runtime.frames import pack
from muntin.spark.exchange.deployment_file import encode_deployment
from muntin.spark.exchange.messages import PartitionBatch, from_blob
from muntin.spark.partition import state_client
from muntin.spark.partition.recovery import RecoverablePartition
from muntin.spark.partition.result_writer import ResultPlan
from muntin.spark.partition.server_files import idle_keys
from muntin.spark.partition.state_client import Request, StateClient, StateServerError
from muntin.spark.partition.stored_batches import StoredBatch, encode_batch
from muntin.spark.partition.wire import Answer, Order, digest_of, send, send_alive
from muntin.spark.storage import LocalStorage, Location
from muntin.testing.processes import kill, state_servers, wait_gone
from tests.unit.runtime.test_frames import Trap
from tests.unit.spark.partition.test_recovery import PAIRS, program_of, texts
from tests.unit.spark.partition.test_recovery import partition_batches as shares

pytestmark = pytest.mark.filterwarnings(
    "ignore:subprocess .* is still running:ResourceWarning"
)  # state servers outlive who starts them

PROGRAM = program_of(f"{PAIRS} WINDOW 10 SECONDS")
CONTENT = encode_deployment("run", PROGRAM)
SHARES = list(shares(PROGRAM, ["1", "2", "3"]))


@pytest.fixture
def run() -> Iterator[str]:
    """Yield a unique run name; everything started under it ends with the test."""
    name = uuid.uuid4().hex
    yield name
    StateClient(name, 0, 0).stop()
    for pid in state_servers(os.getpid()):
        kill(pid)
    for key in idle_keys(os.getpid()):
        kill(int(key.stem.rpartition("-")[2]))
        key.unlink()
        key.with_suffix(".sock").unlink()


@pytest.fixture
def executor() -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process for state servers to end with."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "checkpoint")


Stored = Callable[[], tuple[StoredBatch, ...]]


def nothing() -> tuple[StoredBatch, ...]:
    return ()


def not_again() -> tuple[StoredBatch, ...]:
    pytest.fail("it was built again")


def request(
    version: int,
    share: PartitionBatch,
    stored: Stored = nothing,
    storage: LocalStorage = LocalStorage(Path("nowhere")),  # noqa: B008 (immutable)
) -> Request:
    file = f"state/{share.batch}"
    places = (storage.place, Location("nowhere"))
    order = Order(digest_of(CONTENT), version, file, *places, ResultPlan())
    return Request(CONTENT, order, encode_batch(share), stored)


def kept(storage: LocalStorage, share: PartitionBatch, answer: Answer) -> StoredBatch:
    """Store a partition batch as a task does."""
    storage.put(answer.change.added.file, encode_batch(share))
    return answer.change.added


def told(answer: Answer) -> list[tuple[str, list[str]]]:
    return [(sent.kind, sorted(map(str, from_blob(sent.blob).to_pylist()))) for sent in answer.sent]


def told_in_process() -> list[list[tuple[str, list[str]]]]:
    partition = RecoverablePartition(PROGRAM, 0)
    return [texts(partition.apply(share).outputs) for share in SHARES]


def test_a_partition_whose_executor_died_is_rebuilt_under_another(
    run: str, executor: subprocess.Popen[bytes], storage: LocalStorage
) -> None:
    first = StateClient(run, 0, executor.pid)
    stored = [
        kept(storage, share, first.apply(request(share.batch - 1, share))) for share in SHARES[:2]
    ]
    (pid,) = state_servers(os.getpid())
    executor.kill()
    executor.wait()
    assert not wait_gone([pid], 30), "it ends with the executor"
    again = request(1, SHARES[2], lambda: tuple(stored), storage)
    applied = StateClient(run, 0, os.getpid()).apply(again)
    assert told(applied) == told_in_process()[2]


def short_lived(client: StateClient, times: int) -> threading.Thread:
    """Replace a state server by one that exits in the middle of each of some requests."""
    client._key.write_bytes(b"key")
    ready = threading.Event()

    def serve() -> None:
        with Listener(str(client._socket), "AF_UNIX", authkey=b"key") as listener:
            ready.set()
            for _ in range(times):
                with listener.accept() as connection:
                    connection.recv_bytes()

    thread = threading.Thread(target=serve)
    thread.start()
    assert ready.wait(10)
    return thread


def test_a_state_server_that_exits_during_a_request_is_replaced(run: str) -> None:
    client = StateClient(run, 0, os.getpid())
    thread = short_lived(client, 1)
    assert told(client.apply(request(-1, SHARES[0]))) == told_in_process()[0]
    thread.join()


def test_a_state_server_that_exits_again_is_a_clear_error(run: str) -> None:
    client = StateClient(run, 0, os.getpid())
    thread = short_lived(client, 2)
    with pytest.raises(
        StateServerError,
        match="the process of partition 0 ended twice in the middle of the batch after -1",
    ):
        client.apply(request(-1, SHARES[0]))
    thread.join()


def test_a_worker_keeps_its_connection_and_another_one_gets_its_turn(run: str) -> None:
    clients = [StateClient(run, 0, os.getpid()) for _ in range(2)]
    clients[0].apply(request(-1, SHARES[0]))
    kept = state_client._open[clients[0]._socket]
    clients[0].apply(request(0, SHARES[1]))
    assert state_client._open[clients[0]._socket] is kept
    state_client._open.clear()  # as in another process, while this one stays connected
    clients[1].apply(request(1, SHARES[2], not_again))
    assert not kept.closed
    state_client._open[clients[0]._socket] = kept
    clients[0].stop()
    assert kept.poll(10)
    assert state_client._kept(clients[0]._socket) is None, "an idle server keeps no connection"


def test_a_client_without_the_key_is_refused_and_disturbs_nothing(run: str) -> None:
    client = StateClient(run, 0, os.getpid())
    client.apply(request(-1, SHARES[0]))
    with pytest.raises((AuthenticationError, EOFError)):
        Client(str(client._socket), "AF_UNIX", authkey=b"guessed")
    assert told(client.apply(request(0, SHARES[1], not_again))) == told_in_process()[1]


def test_messages_are_never_unpickled(run: str, tmp_path: Path) -> None:
    client = StateClient(run, 0, os.getpid())
    client.apply(request(-1, SHARES[0]))
    for content in (
        pickle.dumps(Trap(tmp_path / "sprung")),
        b"",
        pack("message", ["apply", 1]),
        pack("message", {}),
    ):
        with Client(str(client._socket), "AF_UNIX", authkey=client._key.read_bytes()) as connection:
            connection.send_bytes(content)
            with pytest.raises(EOFError):
                connection.recv_bytes()
    assert told(client.apply(request(0, SHARES[1], not_again))) == told_in_process()[1]
    assert not (tmp_path / "sprung").exists()


def test_a_damaged_partition_batch_leads_to_an_error_that_names_it(
    run: str, storage: LocalStorage
) -> None:
    client = StateClient(run, 0, os.getpid())
    stored = kept(storage, SHARES[0], client.apply(request(-1, SHARES[0])))
    client.stop()
    again = request(0, SHARES[1], lambda: (stored,), storage)
    whole = bytes(storage.get(stored.file))
    for content, damage in (
        (pack("partition batch", {}), "state/0 is damaged"),
        (whole[:-1], "state/0 is damaged"),
        (b"", "state/0 is damaged"),
        (None, "state/0 is missing"),
    ):
        if content is None:
            storage.delete([stored.file])
        else:
            storage.put(stored.file, content)
        with pytest.raises(
            StateServerError,
            match=rf"partition 0 cannot be brought to batch 0 from the checkpoint: .*{damage}",
        ):
            client.apply(again)
    storage.put(stored.file, whole)
    assert told(client.apply(again)) == told_in_process()[1]


def test_a_partition_that_its_batches_do_not_bring_far_enough_is_an_error(run: str) -> None:
    with pytest.raises(
        StateServerError, match="partition 0 cannot be brought to batch 0 from the checkpoint\\."
    ):
        StateClient(run, 0, os.getpid()).apply(request(0, SHARES[1]))


def test_an_outdated_key_leads_to_the_current_state_server(
    run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = StateClient(run, 0, os.getpid())
    client.apply(request(-1, SHARES[0]))
    late = StateClient(run, 0, os.getpid())
    right = late._key.read_bytes()
    keys = iter([b"of the one before", right, right])
    monkeypatch.setattr(type(late._key), "read_bytes", lambda _: next(keys))
    applied = late.apply(request(0, SHARES[1], not_again))
    assert told(applied) == told_in_process()[1]


def test_an_idle_state_server_is_reused_by_the_next_engine_without_old_state(
    run: str, storage: LocalStorage
) -> None:
    first = StateClient(run, 0, os.getpid())
    stored = kept(storage, SHARES[0], first.apply(request(-1, SHARES[0])))
    (pid,) = state_servers(os.getpid())
    first.stop()
    assert state_servers(os.getpid()) == []
    asked = []

    def recall() -> tuple[StoredBatch, ...]:
        asked.append(pid)
        return (stored,)

    other = StateClient(f"{run}-other", 3, os.getpid())
    applied = other.apply(request(0, SHARES[1], recall, storage))
    assert state_servers(os.getpid()) == [pid]
    assert asked, "it was built again"
    assert told(applied) == told_in_process()[1]
    other.stop()


def test_two_idle_state_servers_are_reused_by_two_engines_and_a_killed_one_by_none(
    run: str,
) -> None:
    both = [StateClient(run, number, os.getpid()) for number in (0, 1)]
    for client in both:
        client.apply(request(-1, SHARES[0]))
    one, two = state_servers(os.getpid())
    for client in both:
        client.stop()
    kill(one)
    assert not wait_gone([one], 10)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda client: client.apply(request(-1, SHARES[0])), both))
    found = state_servers(os.getpid())
    assert two in found
    assert len(found) == 2
    both[1].stop()


def test_a_state_server_of_another_parent_is_not_reused_and_an_idle_one_ends_with_its_parent(
    run: str, executor: subprocess.Popen[bytes]
) -> None:
    first = StateClient(run, 0, executor.pid)
    first.apply(request(-1, SHARES[0]))
    (pid,) = state_servers(os.getpid())
    first.stop()
    first = StateClient(run, 0, os.getpid())
    first.apply(request(-1, SHARES[0]))
    assert pid not in state_servers(os.getpid())
    assert idle_keys(executor.pid)
    executor.kill()
    executor.wait()
    assert not wait_gone([pid], 30)
    assert not idle_keys(executor.pid), "nothing of it is left"


def test_a_state_server_starts_without_pandas_and_pyspark() -> None:
    """Every partition has a state server; the imports would take a third of its start time."""
    code = (
        "import sys, muntin.spark.partition.state_server; print({'muntin', 'pandas', 'pyspark'} "
        "& {*sys.modules})"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "{'muntin'}\n"
    )


def test_a_suspended_process_is_killed_when_it_does_not_answer_in_time(run: str) -> None:
    client = StateClient(run, 0, os.getpid())
    client.apply(request(-1, SHARES[0]))
    (process,) = state_servers(os.getpid())
    os.kill(process, signal.SIGSTOP)
    began = time.monotonic()
    assert client.stop(0.5) == process
    assert time.monotonic() - began < 20
    os.waitpid(process, 0)
    assert not wait_gone([process], 10)
    assert client.stop(0.5) is None, "there is none any more"


def test_a_process_that_is_suspended_between_batches_is_killed_and_replaced(
    run: str, storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_client, "_BUSY", 3.0)
    client = StateClient(run, 0, os.getpid())
    stored = kept(storage, SHARES[0], client.apply(request(-1, SHARES[0])))
    (process,) = state_servers(os.getpid())
    os.kill(process, signal.SIGSTOP)
    applied = client.apply(request(0, SHARES[1], lambda: (stored,), storage))
    assert told(applied) == told_in_process()[1]
    assert not wait_gone([process], 10)


def test_a_process_that_is_suspended_during_a_batch_is_killed_and_replaced(
    run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_client, "_PATIENCE", 2.0)
    killed: list[int] = []
    monkeypatch.setattr(state_client, "_killed", killed.append)  # the server is in this process
    client = StateClient(run, 0, os.getpid())
    client._key.write_bytes(b"key")
    ready = threading.Event()
    done = threading.Event()

    def serve() -> None:
        with Listener(str(client._socket), "AF_UNIX", authkey=b"key") as listener:
            ready.set()
            with listener.accept() as connection:
                listener.close()
                connection.recv_bytes()
                connection.recv_bytes()
                done.wait(30)

    thread = threading.Thread(target=serve)
    thread.start()
    assert ready.wait(10)
    assert told(client.apply(request(-1, SHARES[0]))) == told_in_process()[0]
    done.set()
    thread.join()
    assert killed == [os.getpid()]


def test_a_batch_that_takes_longer_than_the_patience_is_waited_for(
    run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_client, "_PATIENCE", 3.0)
    client = StateClient(run, 0, os.getpid())
    client._key.write_bytes(b"key")
    ready = threading.Event()

    def serve() -> None:
        with Listener(str(client._socket), "AF_UNIX", authkey=b"key") as listener:
            ready.set()
            with listener.accept() as connection:
                connection.recv_bytes()
                connection.recv_bytes()
                for _ in range(4):
                    time.sleep(1.0)
                    send_alive(connection)
                send(connection, ("failed", "at last"))

    thread = threading.Thread(target=serve)
    thread.start()
    assert ready.wait(10)
    with pytest.raises(StateServerError, match="partition 0 failed: at last"):
        client.apply(request(-1, SHARES[0]))
    thread.join()


def test_a_state_server_starts_under_a_temporary_folder_of_any_length(
    run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    client = StateClient(run, 0, os.getpid())
    client.apply(request(-1, SHARES[0]))
    assert client.stop() is None
    (key,) = idle_keys(os.getpid())
    again = StateClient(f"{run}-again", 0, os.getpid())
    again.apply(request(-1, SHARES[0]))
    assert not key.exists(), "the process that rested has woken"
    for pid in state_servers(os.getpid()):
        kill(pid)
