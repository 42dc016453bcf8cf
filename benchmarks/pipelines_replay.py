"""Replays of the workload of [HammadTR]: output delays, time to results, wall-clock errors.

Delays are those on a simulated clock.

The delay of a result is the moment of its release minus its creation [HammadTR, section 2.2]; its
creation is its ``_ts``. The clock is simulated: a row comes at its own time, and the clock ticks
every 10 ms. At both the engine works, and the time that the processor took for it is added: work
begins when the row or tick comes, or when the work before it is done, and results are released when
it ends. Ticks at which no row leaves a window would find nothing to do and are left out.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.pipelines_workload import SECOND, WINDOW, Case

TICK = 10_000
"""Microseconds between two ticks of the simulated clock."""
LATE_TICKS = 3
"""With a wall clock, ticks after which a row reaches its aggregate [HammadTR, Figure 1(b)]."""
_FILLED = WINDOW * SECOND


@dataclass(frozen=True)
class Delays:
    """Results, and milliseconds summed over them: from creation to release, and of processing."""

    changes: pa.Table
    average: float
    longest: float
    work: float

    @property
    def results(self) -> int:
        """How many results there were."""
        return len(self.changes)


def replay(case: Case, strategy: str | None) -> Delays:
    """Run a query row by row on the simulated clock, once its window is full.

    Without any results the delays are not a number.
    """
    engine, q = case.start(strategy)
    times = {name: _times(rows) for name, rows in case.streams.items()}
    for name, rows in case.streams.items():
        engine.push(name, rows.filter(pa.array(times[name] < _FILLED)))
    engine.advance(_FILLED)
    q.poll()
    delays, changes = [], [q.poll()]
    work = free = 0.0
    events = _events(times)
    for moment, name, row in events:
        begin = time.process_time_ns()
        if name:
            engine.push(name, case.streams[name].slice(row, 1))
        engine.advance(moment)
        results = q.poll()
        took = (time.process_time_ns() - begin) / 1_000
        work += took
        free = max(free, moment) + took
        if len(results):
            delays.append(free - _micros(results))
            changes.append(results)
    found = np.concatenate(delays) / 1_000 if delays else np.array([np.nan])
    return Delays(
        pa.concat_tables(changes),
        float(found.mean()),
        float(found.max()),
        work / 1_000 / len(events),
    )


def _times(rows: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    times: np.ndarray[tuple[int], np.dtype[np.int64]] = (
        rows.column("ts").cast(pa.int64()).to_numpy()
    )
    return times


def _micros(results: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return _times(
        results.rename_columns(
            ["ts" if name == "_ts" else f"_{name}" for name in results.column_names]
        )
    )


def _events(
    times: Mapping[str, np.ndarray[tuple[int], np.dtype[np.int64]]],
) -> list[tuple[int, str, int]]:
    """Return rows once the window is full, and ticks after rows leave it, in order.

    A tick has no stream.
    """
    last = max(int(own[-1]) for own in times.values())
    rows = [
        (int(own[row]), name, int(row))
        for name, own in times.items()
        for row in np.flatnonzero(own >= _FILLED)
    ]
    ends = np.concatenate([own + WINDOW * SECOND for own in times.values()])
    ticks = np.unique(-(-ends[ends <= last] // TICK) * TICK)
    return sorted([*rows, *((int(tick), "", 0) for tick in ticks)])


def seconds_to(case: Case, strategy: str | None, marks: Sequence[int], batch: int) -> list[float]:
    """Return the CPU seconds until a number of results, with rows pushed as fast as possible."""
    engine, q = case.start(strategy)
    filling = int(case.rate * WINDOW)
    for name, rows in case.streams.items():
        engine.push(name, rows.slice(0, filling))
    q.poll()
    found: list[float] = []
    results = 0
    begin = time.process_time()
    for start in range(filling, min(len(rows) for rows in case.streams.values()) - batch, batch):
        for name, rows in case.streams.items():
            engine.push(name, rows.slice(start, batch))
        results += len(q.poll())
        while len(found) < len(marks) and results >= marks[len(found)]:
            found.append(time.process_time() - begin)
        if len(found) == len(marks):
            return found
    raise AssertionError(f"{case.query} has given {results} results; give it more rows")


def wrong_by_wall_clock(case: Case) -> tuple[int, int]:
    """Results of the paper's Clock Triggered way that are wrong, and all of them.

    Rows come to the operators three ticks after they came in, and leave when a window's length has
    passed on the wall's clock: so they are missing at first. A result is wrong if it was in no
    answer of those three ticks.
    """
    late = LATE_TICKS * TICK
    engine, q = case.start(None)
    other, clocked = case.start(None, WINDOW - late / SECOND)
    for name, rows in case.streams.items():
        engine.push(name, rows)
        shifted = pa.array(_times(rows) + late).cast(pa.timestamp("us"))
        other.push(name, rows.set_column(rows.schema.get_field_index("ts"), "ts", shifted))
    right = _spans(q.poll())
    coming = clocked.poll()
    coming = coming.filter(pc.equal(coming.column("_op"), "+"))
    keys = _rows(coming)
    wrong = 0
    for key, moment in zip(keys, _micros(coming).tolist(), strict=True):
        wrong += not any(begin <= moment and end > moment - late for begin, end in right[key])
    return wrong, len(keys)


def _rows(results: pa.Table) -> list[tuple[object, ...]]:
    columns = results.drop_columns(["_op", "_ts"]).columns
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def _spans(changes: pa.Table) -> dict[tuple[object, ...], list[tuple[int, int]]]:
    """From when to when each row was in the answer."""
    spans: dict[tuple[object, ...], list[tuple[int, int]]] = defaultdict(list)
    there: dict[tuple[object, ...], int] = {}
    for key, sign, moment in zip(
        _rows(changes), changes.column("_op").to_pylist(), _micros(changes).tolist(), strict=True
    ):
        if sign == "+":
            there[key] = moment
        else:
            spans[key].append((there.pop(key), moment))
    for key, moment in there.items():
        spans[key].append((moment, 1 << 62))
    return spans
