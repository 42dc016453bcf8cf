"""A program that is interrupted at random moments and prints the outcome as JSON.

Run as ``python interrupted_child.py MODE MOMENTS SEED``; MODE is ``calls`` or ``live``.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter

import pyarrow as pa

import muntin

JOIN = "SELECT A.k AS k, A.n AS a, B.n AS b FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS"
SECOND = 1_000_000
SENTINEL = "SELECT k FROM A WINDOW 1 SECOND"


def declare(engine: muntin.Engine) -> None:
    for name in "AB":
        engine.stream(name, {"k": "bigint", "n": "bigint", "ts": "timestamp"}, time="ts")
    engine.query(JOIN + " EMIT CHANGES", name="changes")
    engine.query(JOIN, name="inserts")
    engine.query(JOIN, name="watched")
    engine.query("SELECT k, COUNT(*) AS c FROM A GROUP BY k WINDOW 3 SECONDS", name="counts")


def row(stream: str, number: int) -> tuple[int, int, int]:
    return (number * (3 if stream == "A" else 5)) % 4, number, number * SECOND // 4


class Sender:
    """Sends SIGINT to the main thread once, a random moment after :meth:`arm`."""

    def __init__(self, seed: int, longest: float) -> None:
        self._random = random.Random(seed)
        self._longest = longest
        self._armed = threading.Semaphore(0)
        threading.Thread(target=self._run, daemon=True).start()

    def arm(self) -> None:
        self._armed.release()

    def _run(self) -> None:
        while self._armed.acquire():
            time.sleep(self._random.random() * self._longest)
            os.kill(os.getpid(), signal.SIGINT)


class Program:
    def __init__(self) -> None:
        self.engine = muntin.Engine()
        declare(self.engine)
        self.seen: list[pa.RecordBatch] = []
        self.engine.handle("watched").subscribe(self.seen.append)
        self.got: dict[str, list[pa.Table]] = {"changes": [], "inserts": [], "counts": []}
        self.round = 0

    def rows_in(self, stream: str) -> int:
        return int(self.engine.stats()["streams"][stream]["rows_in"])  # type: ignore[index]

    def push(self) -> None:
        """Push the rows that the engine does not have yet, up to those of the next round."""
        self.round = max(self.rows_in("A") // 4, self.rows_in("B") // 4)
        if self.rows_in("A") == self.rows_in("B"):
            self.round += 1
        for name in "AB":
            if missing := range(self.rows_in(name), self.round * 4):
                self.engine.push(name, [row(name, number) for number in missing])

    def poll(self) -> None:
        for name, got in self.got.items():
            got.append(self.engine.handle(name).poll())

    def look(self) -> None:
        self.engine.explain()
        self.engine.handle("changes").answer()
        self.engine.advance(self.round * SECOND - SECOND)

    def change(self) -> None:
        names = [query.name for query in self.engine.queries()]
        if "extra" in names:
            self.engine.drop("extra")
        if "other" in names:
            self.engine.execute("DROP QUERY other")
        self.engine.query(SENTINEL, name="extra").subscribe([].append).cancel()
        self.engine.execute(f"CREATE QUERY other AS {SENTINEL}")

    def live(self) -> None:
        with contextlib.suppress(muntin.CatalogError):  # it runs already
            self.engine.start()
        self.push()
        self.engine.settle(10)
        self.engine.stop(10)

    def problems(self, *, live: bool) -> list[str]:
        turns = self.engine._lock
        found = []
        if live:  # the thread may have the lock now, but not for long
            if not self.engine.settle(10):
                found.append("it does not settle")
        elif turns._lock.locked() or turns._gate.locked() or turns._owner or turns._depth:
            found.append("the lock is held")
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            found.append("the handler of SIGINT was not restored")
        if any(self.rows_in(name) % 4 for name in "AB"):
            found.append("a push was taken in part")
        return found


def differences(program: Program) -> list[str]:
    """Return how the results differ from those of an engine that was not interrupted."""
    count = min(program.rows_in(name) for name in "AB")
    other = muntin.Engine()
    declare(other)
    for engine in (program.engine, other):
        for name in "AB":
            begin = engine.stats()["streams"][name]["rows_in"]  # type: ignore[index]
            engine.push(name, [row(name, number) for number in range(begin, count + 4)])
        engine.advance((count + 400) * SECOND)
    program.poll()
    found = []
    program.got["watched"] = [pa.Table.from_batches(program.seen)]
    for name, got in program.got.items():
        have = Counter(map(str, pa.concat_tables(got).to_pylist()))
        want = Counter(map(str, other.handle(name).poll().to_pylist()))
        if have != want:
            found.append(
                f"{name}: missing {list((want - have).items())[:3]}, surplus "
                f"{list((have - want).items())[:3]}"
            )
    return found


def main(mode: str, moments: int, seed: int) -> None:
    program = Program()
    steps = (
        [program.push, program.poll, program.look, program.change]
        if mode == "calls"
        else [program.live]
    )
    for step in steps * 2:
        step()
    begin = time.perf_counter()
    for step in steps:
        step()
    sender = Sender(seed, 2 * (time.perf_counter() - begin))
    problems: list[str] = []
    interrupted = 0
    while interrupted < moments:
        try:
            sender.arm()
            while True:
                for step in steps:
                    step()
        except KeyboardInterrupt:
            interrupted += 1
        problems += program.problems(live=mode == "live")
    if mode == "live":
        program.engine.stop(10)
        problems += program.problems(live=False)
    problems += differences(program)
    threads = [thread.name for thread in threading.enumerate() if thread.name == "muntin-executor"]
    sys.stdout.write(
        json.dumps({"interrupted": interrupted, "problems": problems, "threads": threads})
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
