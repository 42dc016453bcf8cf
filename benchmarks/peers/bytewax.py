"""Bytewax: its sliding windows where they fit, and joins written by hand in Python elsewhere.

Bytewax has no join of rows that are less than some time apart, nor one of the last rows: these are
written with ``stateful_batch``, its way to make an operator. They rely on rows in the order of
their times, in which the source merges the streams. One worker: more would be threads of one
Python.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.operators import windowing
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import run_main

CANNOT: Mapping[str, str] = {}
_BATCH = 10_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def begin(_: Mapping[str, Any]) -> None:
    """Nothing has to be started."""


def run(_: None, job: Mapping[str, Any]) -> dict[str, list[int]]:
    """One dataflow that reads once and has a join for each window."""
    flow = Dataflow("peer")
    rows = op.input("rows", flow, _Files(job))
    found = {}
    make = {
        "join": _join,
        "three": _join,
        "rows": _rows,
        "distinct": _distinct,
        "aggregate": _aggregate,
    }[job["kind"]]
    for window in job["windows"]:
        found[str(window)] = [0, 0]
        op.output(f"out{window}", make(rows, job, window), _Totals(found[str(window)]))
    run_main(flow)
    return found


def _mixed(number: int) -> int:
    """Return the term of a result in the checksum: a square, so that swapped partners show."""
    return (number % 1000003) ** 2 % 1000003


class _Reader(StatelessSourcePartition):
    """Rows as ``(key, (time, stream, g, v))``, in the order of their times, then of the streams."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        self._batches = self._read(job)

    @staticmethod
    def _read(job: Mapping[str, Any]) -> Iterator[list[Any]]:
        files = [sorted((Path(job["data"]) / name).glob("*.parquet")) for name in job["streams"]]
        for paths in zip(*files, strict=True):
            tables = [pq.read_table(path) for path in paths]
            sides = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
            table = pa.concat_tables(tables)
            times = table.column("ts").cast(pa.int64()).to_numpy() // 1_000
            order = np.lexsort((sides, times))
            key, group, value = (table.column(name).to_numpy()[order].tolist() for name in "kgv")
            values = list(
                zip(times[order].tolist(), sides[order].tolist(), group, value, strict=True)
            )
            rows = list(zip(map(str, key), values, strict=True))
            for start in range(0, len(rows), _BATCH):
                yield rows[start : start + _BATCH]

    def next_batch(self) -> list[Any]:
        """Return the next rows; StopIteration ends the dataflow."""
        return next(self._batches)


class _Files(DynamicSource):
    def __init__(self, job: Mapping[str, Any]) -> None:
        self._job = job

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Reader:  # noqa: ARG002
        return _Reader(self._job)


class _Adding(StatelessSinkPartition):
    def __init__(self, total: list[int]) -> None:
        self._total = total

    def write_batch(self, items: list[Any]) -> None:
        for _, (count, checksum) in items:
            self._total[0] += count
            self._total[1] += checksum


class _Totals(DynamicSink):
    """Adds up numbers of results and checksums."""

    def __init__(self, total: list[int]) -> None:
        self._total = total

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Adding:  # noqa: ARG002
        return _Adding(self._total)


class _Near(op.StatefulBatchLogic):
    """The rows of one key.

    A new row joins its partners in the other streams that are less than the window older.
    """

    def __init__(self, streams: int, window: int) -> None:
        self._sides: list[deque[tuple[int, int]]] = [deque() for _ in range(streams)]
        self._window = window

    def on_batch(self, values: list[Any]) -> tuple[list[tuple[int, int]], bool]:
        count = checksum = 0
        for time, side, _, value in values:
            for rows in self._sides:
                while rows and rows[0][0] <= time - self._window:
                    rows.popleft()
            members = [
                [value] if place == side else [old for _, old in rows]
                for place, rows in enumerate(self._sides)
            ]
            if len(members) == 2:
                checks = [_mixed(a * 7919 + b * 104729) for a in members[0] for b in members[1]]
            else:
                checks = [
                    _mixed(a * 7919 + b * 104729 + c * 1299709)
                    for a in members[0]
                    for b in members[1]
                    for c in members[2]
                ]
            count += len(checks)
            checksum += sum(checks)
            self._sides[side].append((time, value))
        return ([(count, checksum)] if count else []), False

    def snapshot(self) -> None:
        """Nothing is recovered here."""


def _join(rows: Any, job: Mapping[str, Any], window: int) -> Any:
    streams = len(job["streams"])
    return op.stateful_batch(f"join{window}", rows, lambda _: _Near(streams, window))


class _LastRows(op.StatefulBatchLogic):
    """The last rows of two streams by key.

    One instance holds all keys, because a row leaves when other rows of its stream come.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._order: list[deque[str]] = [deque(), deque()]
        self._rows: list[dict[str, deque[int]]] = [{}, {}]

    def on_batch(self, values: list[Any]) -> tuple[list[tuple[int, int]], bool]:
        count = checksum = 0
        for key, (_, side, _, value) in values:
            partners = self._rows[1 - side].get(key, ())
            count += len(partners)
            if side == 0:
                checksum += sum(_mixed(value * 7919 + old * 104729) for old in partners)
            else:
                checksum += sum(_mixed(old * 7919 + value * 104729) for old in partners)
            self._rows[side].setdefault(key, deque()).append(value)
            self._order[side].append(key)
            if len(self._order[side]) > self._size:
                self._rows[side][self._order[side].popleft()].popleft()
        return ([(count, checksum)] if count else []), False

    def snapshot(self) -> None:
        """Nothing is recovered here."""


def _rows(rows: Any, job: Mapping[str, Any], _: int) -> Any:
    together = op.map("together", rows, lambda row: ("all", row))
    return op.stateful_batch("last", together, lambda _: _LastRows(job["last_rows"]))


def _moment(value: Any) -> datetime:
    return _EPOCH + timedelta(milliseconds=value[0])


def _sliding(
    job: Mapping[str, Any], window: int, moment: Callable[[Any], datetime] = _moment
) -> tuple[Any, Any]:
    # The two sides of a join come batch by batch, one after the other, and what comes late would be
    # lost.
    clock = windowing.EventClock(moment, wait_for_system_duration=timedelta(minutes=1))
    length, offset = timedelta(milliseconds=window), timedelta(seconds=job["every"])
    return clock, windowing.SlidingWindower(length=length, offset=offset, align_to=_EPOCH)


def _end(window_id: int, job: Mapping[str, Any], window: int) -> int:
    """Return the second at which a window closes."""
    return window_id * int(job["every"]) + window // 1_000


def _distinct(rows: Any, job: Mapping[str, Any], window: int) -> Any:
    counted = windowing.count_window(
        "count", rows, *_sliding(job, window, lambda row: _moment(row[1])), key=lambda row: row[0]
    )

    def check(item: Any) -> tuple[str, tuple[int, int]]:
        key, (window_id, _) = item
        end = _end(window_id, job, window)
        return key, (1, _mixed(end * 7919 + int(key) * 104729)) if end <= job["end"] else (0, 0)

    return op.map("check", counted.down, check)


def _aggregate(rows: Any, job: Mapping[str, Any], window: int) -> Any:
    sides = op.branch("sides", rows, lambda row: row[1][1] == 0)
    joined = windowing.join_window(
        "pairs",
        *_sliding(job, window),
        sides.trues,
        sides.falses,
        insert_mode="product",
        emit_mode="final",
    )

    def pair(item: Any) -> tuple[str, tuple[int, int]] | None:
        _, (window_id, (one, other)) = item
        end = _end(window_id, job, window)
        if one is None or other is None or end > job["end"]:
            return None
        return f"{end}/{one[2]}", (1, other[3])

    groups = op.reduce_final(
        "groups",
        op.filter_map("pair", joined.down, pair),
        lambda one, other: (one[0] + other[0], one[1] + other[1]),
    )

    def check(item: Any) -> tuple[str, tuple[int, int]]:
        key, (count, total) = item
        end, group = map(int, key.split("/"))
        return key, (1, _mixed(end * 7919 + group * 104729 + count * 1299709 + total * 15485863))

    return op.map("check", groups, check)
