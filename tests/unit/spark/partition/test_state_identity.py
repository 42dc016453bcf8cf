"""A state server continues only from the attempt that a manifest lists, and reports failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

import pytest

from muntin.runtime.codec import decode, encode
from muntin.spark.exchange.controls import Controls
from muntin.spark.exchange.deployment_file import encode_deployment
from muntin.spark.exchange.messages import Part, PartitionBatch, from_blob
from muntin.spark.partition import recovery, state_server
from muntin.spark.partition.manifests import ManifestLog
from muntin.spark.partition.recovery import RecoverablePartition
from muntin.spark.partition.result_writer import ResultPlan
from muntin.spark.partition.state_server import StateServer
from muntin.spark.partition.stored_batches import StoredBatch, encode_batch
from muntin.spark.partition.task import BatchOrder, previous_files
from muntin.spark.partition.wire import Order, digest_of
from muntin.spark.storage import LocalStorage
from tests.unit.spark.partition.test_recovery import PAIRS, program_of, texts
from tests.unit.spark.partition.test_recovery import partition_batches as shares

PROGRAM = program_of(f"{PAIRS} WINDOW 10 SECONDS")
CONTENT = encode_deployment("run", PROGRAM)
SHARES = list(shares(PROGRAM, ["1", "2", "3"]))
OTHERS = list(shares(PROGRAM, ["1", "2 @20", "3"]))
"""The batches of a driver that was replaced: its second one had another control."""


@dataclass
class Server:
    """A state server in this process; ``asked`` returns its answer."""

    storage: LocalStorage
    server: StateServer = field(default_factory=StateServer)
    frame: bytes = b""

    def recv_bytes(self) -> bytes:
        return self.frame

    def asked(self, *request: Any) -> tuple[Any, ...]:
        found: list[tuple[Any, ...]] = []
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(state_server, "send", lambda _, message: found.append(message))
            self.server.answer(cast("Connection", self), request)
        (answer,) = found
        return answer

    def rebuilt(self, *stored: StoredBatch) -> tuple[Any, ...]:
        return self.asked("rebuild", CONTENT, 0, self.storage.place, stored)

    def applied(self, share: PartitionBatch, file: str, previous: str | None) -> tuple[Any, ...]:
        self.frame = encode_batch(share)
        place = self.storage.place
        order = Order(
            digest_of(CONTENT), share.batch - 1, file, place, place.below("spool"), ResultPlan()
        )
        self.storage.put(file, self.frame)
        return self.asked("apply", replace(order, previous=previous))


@pytest.fixture
def server(tmp_path: Path) -> Server:
    found = Server(LocalStorage(tmp_path))
    assert found.rebuilt() == ("rebuilt",)
    return found


def told(answer: Sequence[Any]) -> list[tuple[str, list[str]]]:
    assert answer[0] == "applied"
    return [(one.kind, sorted(map(str, from_blob(one.blob).to_pylist()))) for one in answer[1].sent]


def test_a_batch_of_another_driver_is_not_the_base_of_the_next(server: Server) -> None:
    partition = RecoverablePartition(PROGRAM, 0)
    first = StoredBatch("state/0", partition.apply(SHARES[0]).note)
    second = StoredBatch("state/ours", partition.apply(SHARES[1]).note)
    expected = texts(partition.apply(SHARES[2]).outputs)
    server.applied(SHARES[0], "state/0", "")
    server.storage.put("state/ours", encode_batch(SHARES[1]))
    server.applied(OTHERS[1], "state/theirs", "state/0")
    assert server.applied(SHARES[2], "state/2", "state/ours") == ("rebuild?",)
    assert server.rebuilt(first, second) == ("rebuilt",)
    assert told(server.applied(SHARES[2], "state/2", "state/ours")) == expected


def test_a_server_that_applied_the_listed_batch_continues(server: Server) -> None:
    partition, previous = RecoverablePartition(PROGRAM, 0), ""
    for share in SHARES:
        file = f"state/{share.batch}"
        assert told(server.applied(share, file, previous)) == texts(partition.apply(share).outputs)
        previous = file


def test_the_order_names_what_the_manifest_lists_even_if_it_is_a_snapshot(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "FEW", -1_000)
    monkeypatch.setattr(recovery, "MANY", 0)
    log, previous, written = ManifestLog(server.storage), "", set()
    for share in SHARES:
        word, answer = server.applied(share, f"state/{share.batch}", previous)
        assert word == "applied"
        written.add(answer.change.added.file)
        log.commit([answer.change])
        order = BatchOrder(0, 0, "", Controls(), ResultPlan(), previous_files(log.state))
        order = decode(encode(order, "order"), "order", BatchOrder, "an order")
        previous = order.previous_of(0) or ""
        assert previous == answer.change.added.file
        assert not order.previous_of(1), "it has no state"
        log.commit([])  # a batch in which partitions have no work
        assert previous_files(log.state) == (previous,)
    assert written - {f"state/{share.batch}" for share in SHARES}, "there were snapshots"


def test_a_rebuild_that_fails_names_the_cause_and_the_server_continues(server: Server) -> None:
    note = RecoverablePartition(PROGRAM, 0).apply(SHARES[0]).note
    bad = replace(SHARES[0], parts=(Part(0, "A", 0, b"garbage"),))
    server.storage.put("state/bad", encode_batch(bad))
    word, cause = server.rebuilt(StoredBatch("state/bad", note))
    assert word == "failed"
    assert cause.startswith("rebuilding it: ArrowInvalid: ")
    assert server.rebuilt() == ("rebuilt",)
    assert server.applied(SHARES[0], "state/0", "")[0] == "applied"


def test_a_change_of_queries_that_fails_names_the_cause(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> bool:
        raise RuntimeError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(RecoverablePartition, "extend", failing)
        assert server.asked("extend", CONTENT) == (
            "failed",
            "changing its queries: RuntimeError: no room",
        )
    assert server.applied(SHARES[0], "state/0", "") == ("rebuild?",)
