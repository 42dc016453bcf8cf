"""The process of a partition: it ends with its parent, is replaced by another, and is built again from what is kept."""

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
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener
from pathlib import Path

import pytest

from muntin.runtime.frames import pack
from muntin.spark.exchange.deployment_file import encode_deployment
from muntin.spark.exchange.messages import PartitionBatch, from_blob
from muntin.spark.partition.recovery import (
    Answer,
    RecoverablePartition,
    RetainedFrame,
    encode_retained,
)
from muntin.spark.partition.server_files import idle_keys
from muntin.spark.partition.state_client import Request, StateClient, StateServerError
from muntin.testing.processes import kill, residents, wait_gone
from tests.unit.spark.exchange.test_frames import Trap
from tests.unit.spark.partition.test_recovery import PAIRS, program_of, texts
from tests.unit.spark.partition.test_recovery import partition_batches as shares

pytestmark = pytest.mark.filterwarnings(
    "ignore:subprocess .* is still running:ResourceWarning"
)  # residents outlive who starts them

PROGRAM = program_of(f"{PAIRS} WINDOW 10 SECONDS")
CONTENT = encode_deployment("run", PROGRAM)
SHARES = list(shares(PROGRAM, ["1", "2", "3"]))


@pytest.fixture
def run() -> Iterator[str]:
    """A name that nobody else has; what was started under it ends with the test."""
    name = uuid.uuid4().hex
    yield name
    StateClient(name, 0, 0).stop()
    for pid in residents(os.getpid()):
        kill(pid)
    for key in idle_keys(os.getpid()):
        kill(int(key.stem.rpartition("-")[2]))
        key.unlink()
        key.with_suffix(".sock").unlink()


@pytest.fixture
def executor() -> Iterator[subprocess.Popen[bytes]]:
    """Something for residents to end with."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def nothing() -> Iterator[RetainedFrame]:
    return iter(())


def request(version: int, share: PartitionBatch) -> Request:
    return Request(CONTENT, version, share, Path("nowhere"))


def told(answer: Answer) -> list[tuple[str, list[str]]]:
    return [(sent.kind, sorted(map(str, from_blob(sent.blob).to_pylist()))) for sent in answer.sent]


def told_in_process() -> list[list[tuple[str, list[str]]]]:
    partition = RecoverablePartition(PROGRAM, 0)
    return [texts(partition.apply(share).outputs) for share in SHARES]


def test_a_partition_whose_executor_died_is_built_again_under_another(
    run: str, executor: subprocess.Popen[bytes]
) -> None:
    first = StateClient(run, 0, executor.pid)
    kept: list[RetainedFrame] = []
    for share in SHARES[:2]:
        kept.append(
            encode_retained(
                first.apply(request(share.batch - 1, share), lambda: iter(kept)).note, share
            )
        )
    (pid,) = residents(os.getpid())
    executor.kill()
    executor.wait()
    assert not wait_gone([pid], 30), "it ends with the executor"
    applied = StateClient(run, 0, os.getpid()).apply(request(1, SHARES[2]), lambda: iter(kept))
    assert told(applied) == told_in_process()[2]


def short_lived(client: StateClient, times: int) -> threading.Thread:
    """In place of a client: takes so many requests, and ends in the middle of each."""
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


def test_a_resident_that_ends_in_the_middle_is_replaced(run: str) -> None:
    client = StateClient(run, 0, os.getpid())
    thread = short_lived(client, 1)
    assert told(client.apply(request(-1, SHARES[0]), nothing)) == told_in_process()[0]
    thread.join()


def test_one_that_ends_again_is_an_error_that_says_so(run: str) -> None:
    client = StateClient(run, 0, os.getpid())
    thread = short_lived(client, 2)
    with pytest.raises(
        StateServerError, match="the process of partition 0 ended twice in the middle of batch 0"
    ):
        client.apply(request(-1, SHARES[0]), nothing)
    thread.join()


def test_somebody_without_the_key_is_refused_and_disturbs_nobody(run: str) -> None:
    client = StateClient(run, 0, os.getpid())
    client.apply(request(-1, SHARES[0]), nothing)
    with pytest.raises((AuthenticationError, EOFError)):
        Client(str(client._socket), "AF_UNIX", authkey=b"guessed")
    assert (
        told(client.apply(request(0, SHARES[1]), lambda: pytest.fail("it was built again")))
        == told_in_process()[1]
    )


def test_messages_are_never_unpickled(run: str, tmp_path: Path) -> None:
    client = StateClient(run, 0, os.getpid())
    client.apply(request(-1, SHARES[0]), nothing)
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
    assert (
        told(client.apply(request(0, SHARES[1]), lambda: pytest.fail("it was built again")))
        == told_in_process()[1]
    )
    assert not (tmp_path / "sprung").exists()


def test_a_forged_share_ends_in_an_error_that_says_what_to_do(run: str) -> None:
    with pytest.raises(
        StateServerError, match="partition 0 cannot be brought to batch 0 from the checkpoint"
    ):
        StateClient(run, 0, os.getpid()).apply(
            request(0, SHARES[1]), lambda: iter([pack("share", {}), pack("share", {})])
        )


def test_a_key_that_is_out_of_date_leads_to_the_resident_that_is_there(
    run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = StateClient(run, 0, os.getpid())
    client.apply(request(-1, SHARES[0]), nothing)
    late = StateClient(run, 0, os.getpid())
    right = late._key.read_bytes()
    keys = iter([b"of the one before", right, right])
    monkeypatch.setattr(type(late._key), "read_bytes", lambda _: next(keys))
    applied = late.apply(request(0, SHARES[1]), lambda: pytest.fail("another was started"))
    assert told(applied) == told_in_process()[1]


def test_one_that_rests_is_taken_by_the_next_engine_and_has_nothing_of_the_one_before(
    run: str,
) -> None:
    first = StateClient(run, 0, os.getpid())
    kept = encode_retained(first.apply(request(-1, SHARES[0]), nothing).note, SHARES[0])
    (pid,) = residents(os.getpid())
    first.stop()
    assert residents(os.getpid()) == []
    asked = []

    def recall() -> Iterator[RetainedFrame]:
        asked.append(pid)
        return iter([kept])

    other = StateClient(f"{run}-other", 3, os.getpid())
    applied = other.apply(request(0, SHARES[1]), recall)
    assert residents(os.getpid()) == [pid]
    assert asked, "it was built again"
    assert told(applied) == told_in_process()[1]
    other.stop()


def test_two_that_rest_are_taken_by_two_and_one_that_was_killed_by_nobody(run: str) -> None:
    both = [StateClient(run, number, os.getpid()) for number in (0, 1)]
    for client in both:
        client.apply(request(-1, SHARES[0]), nothing)
    one, two = residents(os.getpid())
    for client in both:
        client.stop()
    kill(one)
    assert not wait_gone([one], 10)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda client: client.apply(request(-1, SHARES[0]), nothing), both))
    found = residents(os.getpid())
    assert two in found
    assert len(found) == 2
    both[1].stop()


def test_one_of_another_parent_is_not_taken_and_one_that_rests_ends_with_its_parent(
    run: str, executor: subprocess.Popen[bytes]
) -> None:
    first = StateClient(run, 0, executor.pid)
    first.apply(request(-1, SHARES[0]), nothing)
    (pid,) = residents(os.getpid())
    first.stop()
    first = StateClient(run, 0, os.getpid())
    first.apply(request(-1, SHARES[0]), nothing)
    assert pid not in residents(os.getpid())
    assert idle_keys(executor.pid)
    executor.kill()
    executor.wait()
    assert not wait_gone([pid], 30)
    assert not idle_keys(executor.pid), "nothing of it is left"


def test_it_starts_without_pandas_and_pyspark() -> None:
    """Every partition has such a process; both together are a third of the time that it takes to start, and memory."""
    code = "import sys, muntin.spark.partition.state_server; print({'muntin', 'pandas', 'pyspark'} & {*sys.modules})"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "{'muntin'}\n"
    )


def test_a_suspended_process_is_killed_when_it_does_not_answer_in_time(run: str) -> None:
    client = StateClient(run, 0, os.getpid())
    client.apply(request(-1, SHARES[0]), nothing)
    (process,) = residents(os.getpid())
    os.kill(process, signal.SIGSTOP)
    began = time.monotonic()
    assert client.stop(0.5) == process
    assert time.monotonic() - began < 20
    os.waitpid(process, 0)
    assert not wait_gone([process], 10)
    assert client.stop(0.5) is None, "there is none any more"


def test_a_partition_has_its_process_however_long_the_name_of_the_temporary_folder(
    run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    client = StateClient(run, 0, os.getpid())
    client.apply(request(-1, SHARES[0]), nothing)
    assert client.stop() is None
    (key,) = idle_keys(os.getpid())
    again = StateClient(f"{run}-again", 0, os.getpid())
    again.apply(request(-1, SHARES[0]), nothing)
    assert not key.exists(), "the process that rested has woken"
    for pid in residents(os.getpid()):
        kill(pid)
