"""Checkpoints in a folder: atomic, incremental, and refused with a reason when damaged."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import muntin
from muntin.engine import checkpoint_files
from muntin.engine.checkpoint_files import MANIFEST
from muntin.runtime import frames
from muntin.runtime.frames import CheckpointError

SECOND = 1_000_000
COLUMNS = {"k": "bigint", "ts": "timestamp"}


def started(**settings: object) -> muntin.Engine:
    engine = muntin.Engine(clock=None, **settings)
    engine.stream("A", COLUMNS, time="ts")
    engine.query("SELECT k, COUNT(*) AS n FROM A GROUP BY k WINDOW 10 SECONDS", name="q")
    return engine


def push(engine: muntin.Engine, *seconds: int) -> None:
    engine.push("A", [(second % 3, second * SECOND) for second in seconds])


def chunks(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("rows-*"))


def test_settings_tables_and_undelivered_results_come_back(tmp_path: Path) -> None:
    engine = started(scheduler="mqt")
    engine.table("T", [{"k": 1, "name": "one"}])
    engine.execute("SET expiry = 'lazy'")
    joined = "SELECT T.name FROM A, T WHERE A.k = T.k WINDOW 5 SECONDS"
    engine.query(joined, name="named")
    push(engine, 1, 2, 4)
    engine.checkpoint(tmp_path)
    again = muntin.Engine.restore(tmp_path, clock=None)
    assert [query.name for query in again.queries()] == ["q", "named"]
    assert again.handle("named").poll().equals(engine.handle("named").poll())
    assert again.handle("q").poll().to_pylist() == engine.handle("q").poll().to_pylist()
    assert again._declared.settings == engine._declared.settings
    assert (
        again.handle("q").stats()["response_seconds"]
        == engine.handle("q").stats()["response_seconds"]
    )
    assert "suspended" not in again.explain()


def test_rows_are_written_once(tmp_path: Path) -> None:
    """A second checkpoint adds a chunk with the new rows, and one without new rows adds none."""
    engine = started()
    push(engine, *range(1, 9))
    engine.checkpoint(tmp_path)
    first = chunks(tmp_path)
    push(engine, 9)
    engine.checkpoint(tmp_path)
    second = chunks(tmp_path)
    assert len(first) == 1
    assert set(first) < set(second)
    engine.checkpoint(tmp_path)
    assert chunks(tmp_path) == second
    again = muntin.Engine.restore(tmp_path, clock=None)
    assert again.handle("q").answer().equals(engine.handle("q").answer())
    engine.advance(60 * SECOND)
    engine.checkpoint(tmp_path)
    assert not chunks(tmp_path)  # all rows have left their window


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_a_crash_leaves_the_checkpoint_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """The disk is full after some writes: of rows, of the state, or of the manifest."""
    engine = started()
    push(engine, 1, 2)
    engine.checkpoint(tmp_path)
    push(engine, 3)
    left = [writes]

    def failing(path: Path, content: frames.Buffer) -> None:
        if not left[0]:
            raise OSError(28, "No space left on device")
        left[0] -= 1
        frames.write_file(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_files, "write_file", failing)
        with pytest.raises(CheckpointError, match="No space left"):
            engine.checkpoint(tmp_path)
    again = muntin.Engine.restore(tmp_path, clock=None)
    push(again, 3)
    push(again, 5)
    assert again.handle("q").answer().num_rows == 3
    engine.checkpoint(tmp_path)
    whole = muntin.Engine.restore(tmp_path, clock=None)
    assert whole.handle("q").answer().equals(engine.handle("q").answer())


KILLED = """
import os, pathlib, signal, sys
import muntin
from muntin.engine import checkpoint_files
from muntin.runtime import frames

engine = muntin.Engine.restore(sys.argv[1], clock=None)
engine.push("A", [(0, 3_000_000)])
left = int(sys.argv[2])

def killing(path, content):
    global left
    left -= 1
    if left < 0:
        path.write_bytes(bytes(content)[:40])
        os.kill(os.getpid(), signal.SIGKILL)
    frames.write_file(path, content)

checkpoint_files.write_file = killing
engine.checkpoint(sys.argv[1])
"""


@pytest.mark.parametrize("writes", [0, 1])
def test_a_kill_leaves_the_checkpoint_before(tmp_path: Path, writes: int) -> None:
    """The process dies while it writes the rows or the state; what it left is deleted later."""
    engine = started()
    push(engine, 1, 2)
    engine.checkpoint(tmp_path)
    died = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), str(writes)], check=False, timeout=120
    )
    assert died.returncode == -signal.SIGKILL
    again = muntin.Engine.restore(tmp_path, clock=None)
    assert again.stats() == muntin.Engine.restore(tmp_path, clock=None).stats()
    assert again.handle("q").answer().equals(engine.handle("q").answer())
    push(again, 3)
    again.checkpoint(tmp_path)
    assert len(list(tmp_path.glob("state-*"))) == 1
    whole = muntin.Engine.restore(tmp_path, clock=None)
    assert whole.handle("q").answer().equals(again.handle("q").answer())


def test_two_engines_may_take_turns_in_one_folder(tmp_path: Path) -> None:
    """Each writes all rows again, since the other has deleted its chunks."""
    one, other = started(), started()
    push(one, 1, 2)
    push(other, 7)
    for engine in (one, other, one):
        engine.checkpoint(tmp_path)
        again = muntin.Engine.restore(tmp_path, clock=None)
        assert again.handle("q").answer().equals(engine.handle("q").answer())


def newer(path: Path) -> None:
    content = bytearray(frames.pack("engine checkpoint", {}))
    content[8:12] = (frames.VERSION + 1).to_bytes(4, "little")
    content[24:28] = bytes(4)
    content[24:28] = frames._checksum([bytes(content)]).to_bytes(4, "little")
    path.write_bytes(content)


@pytest.mark.parametrize("name", [MANIFEST, "state-00000000", "rows-00000000-0000"])
@pytest.mark.parametrize(
    ("harm", "error"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-9]), "is damaged"),
        (lambda path: path.write_bytes(path.read_bytes()[:60] + b"!" * 99), "is damaged"),
        (lambda path: path.write_bytes(b""), "is damaged"),
        (lambda path: path.unlink(), "is missing|no checkpoint"),
        (newer, f"has format {frames.VERSION + 1}"),
    ],
    ids=["truncated", "corrupt", "empty", "missing", "newer"],
)
def test_harmed_files_are_refused_with_a_reason(
    tmp_path: Path, name: str, harm: Callable[[Path], None], error: str
) -> None:
    engine = started()
    push(engine, 1, 2)
    engine.checkpoint(tmp_path)
    harm(tmp_path / name)
    with pytest.raises(CheckpointError, match=error):
        muntin.Engine.restore(tmp_path)


def test_a_folder_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no checkpoint in"):
        muntin.Engine.restore(tmp_path / "nothing")


def test_a_checkpoint_releases_what_an_input_triggered_query_holds_back(tmp_path: Path) -> None:
    engine = started(pipeline="input")
    push(engine, 3)
    engine.advance(60 * SECOND)
    found: list[int] = []
    engine.handle("q").subscribe(lambda batch: found.append(batch.num_rows))
    assert engine.handle("q").poll().column("_op").to_pylist() == ["+"]
    engine.checkpoint(tmp_path)
    again = muntin.Engine.restore(tmp_path, clock=None)
    assert found == [1]
    for each in (engine, again):
        assert each.handle("q").poll().column("_op").to_pylist() == ["-"]
        push(each, 63)
        each.advance(63 * SECOND)
        assert each.handle("q").poll().column("_op").to_pylist() == ["+"]


def test_a_suspended_query_stays_suspended(tmp_path: Path) -> None:
    engine = started()
    push(engine, 1)
    running = engine.dataflow.queries["q"]
    running.failure = ValueError("out of luck")
    engine.dataflow.group_of("q").failed.append(running)
    push(engine, 2)
    engine.checkpoint(tmp_path)
    again = muntin.Engine.restore(tmp_path, clock=None)
    with pytest.raises(muntin.errors.QuerySuspendedError, match="out of luck"):
        again.handle("q").poll()
    assert "out of luck" in again.explain("q")
    again.drop("q")


def test_a_checkpoint_while_running_in_the_background_is_complete(tmp_path: Path) -> None:
    engine = started()
    engine.start()
    push(engine, *range(1, 200))
    engine.checkpoint(tmp_path)
    engine.stop()
    again = muntin.Engine.restore(tmp_path, clock=None)
    assert again.handle("q").answer().equals(engine.handle("q").answer())
    assert again.handle("q").poll().to_pylist() == engine.handle("q").poll().to_pylist()


def test_views_and_queries_that_read_queries_come_back(tmp_path: Path) -> None:
    engine = started()
    engine.execute("CREATE VIEW low AS SELECT k FROM A WHERE k < 2")
    engine.query("SELECT COUNT(*) AS n FROM low WINDOW 10 SECONDS", name="lows")
    engine.query("SELECT k FROM q WHERE n > 1", name="frequent")
    push(engine, 1, 2, 3, 4)
    engine.checkpoint(tmp_path)
    restored = muntin.Engine.restore(tmp_path)
    restored.query("SELECT k FROM low WINDOW 10 SECONDS", name="later")
    for each in (engine, restored):
        push(each, 5, 6, 7)
        each.advance(8 * SECOND)
    handles = {handle.name: handle for handle in restored.queries()}
    assert handles["lows"].answer().to_pylist() == [{"n": 5}]
    assert sorted(handles["frequent"].answer().column("k").to_pylist()) == [0, 1, 2]
    assert sorted(handles["later"].answer().column("k").to_pylist()) == [0, 1]
