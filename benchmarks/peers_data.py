"""The workloads of ``python -m benchmarks peers`` and their data: the same files for every system.

Streams have a key ``k``, a group ``g``, a number ``v`` that no other row of the stream has, and a
time ``ts`` in whole milliseconds, which is as fine as Flink's event time. No row is at a whole
second: there some systems count a row to the window before, others to the one after. The last row
of a stream comes two seconds after the others and has no partner, so that watermarks pass the end.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

Kind = Literal["join", "three", "rows", "distinct", "aggregate"]

_START = 1_767_225_600
"""Seconds: the beginning of 2026."""
_MS = 1_000
_WARM_SECONDS = 4


@dataclass(frozen=True)
class Streams:
    """Streams of ``rate`` rows per second over ``seconds``, as files of ``file_seconds``.

    Keys are uniform among ``keys``. Of the rows of streams other than A a ``share`` has keys that A
    has; the others match nothing.
    """

    rate: int
    seconds: int
    keys: int
    names: str = "AB"
    share: float = 1.0
    file_seconds: int = 10
    groups: int = 50

    @property
    def rows(self) -> int:
        """Rows of all streams, without the last of each."""
        return self.rate * self.seconds * len(self.names)

    @property
    def end(self) -> int:
        """The last instant of which answers are compared, in seconds."""
        return _START + self.seconds


@dataclass(frozen=True)
class Workload:
    """What is asked of every system.

    Parameters
    ----------
    name
        What stands in the table.
    kind
        ``join``: pairs with equal keys less than a window apart, one query for each window.
        ``three``: triples of three streams, of which all are less than the window apart. ``rows``:
        pairs of a row and one of the last ``last_rows`` of the other stream. ``distinct``: the
        distinct keys of the last window, at every multiple of ``every`` seconds. ``aggregate``:
        pairs inside the last window at such instants, counted and added up by group.
    streams
        The data.
    windows
        In milliseconds.
    per_trigger
        Files of a stream in a micro-batch, for systems on Spark.
    places
        For growth: how large it is here, by what grows.
    """

    name: str
    kind: Kind
    streams: Streams
    windows: tuple[int, ...] = (60_000,)
    every: int = 10
    last_rows: int = 1_000
    per_trigger: int = 3
    places: Mapping[str, float] = field(default_factory=dict)
    systems: Sequence[str] = field(default=())
    """Who takes part; all, if there is none."""

    def job(self, data: Path) -> dict[str, object]:
        """As the scripts of the systems get it."""
        return {
            "kind": self.kind,
            "data": str(data),
            "streams": self.streams.names,
            "windows": list(self.windows),
            "every": self.every,
            "last_rows": self.last_rows,
            "end": self.streams.end,
            "per_trigger": self.per_trigger,
        }

    def warm(self) -> Workload:
        """Return the same over little data, for a run that is not timed."""
        seconds = min(_WARM_SECONDS, self.streams.seconds)
        return replace(
            self,
            streams=replace(
                self.streams, seconds=seconds, rate=min(self.streams.rate, 500), file_seconds=1
            ),
        )


def write_data(folder: Path, streams: Streams) -> None:
    """Write all streams as parquet files, and as one CSV each for systems that cannot read parquet.

    The CSV is written with and without a header.
    """
    for number, name in enumerate(streams.names):
        table = _stream(streams, number)
        (folder / name).mkdir(parents=True)
        files = -(-streams.seconds // streams.file_seconds)
        size = streams.rate * streams.file_seconds
        for place in range(files):
            path = folder / name / f"{place:05d}.parquet"
            pq.write_table(table.slice(place * size, size if place < files - 1 else None), path)
            os.utime(path, (place + 1_000, place + 1_000))
        plain = table.set_column(
            3, "ts", table.column("ts").cast(pa.int64()).combine_chunks().cast(pa.int64())
        )
        plain = plain.set_column(3, "ts", pa.array(plain.column("ts").to_numpy() // _MS))
        for kind, header in (("csv", False), ("csv-header", True)):
            target = folder / kind / name
            target.mkdir(parents=True)
            pa.csv.write_csv(
                plain,
                target / "data.csv",
                pa.csv.WriteOptions(include_header=header, quoting_style="none"),
            )


def _stream(streams: Streams, number: int) -> pa.Table:
    """Stream number so much, with its last row."""
    random = np.random.default_rng(number + 1)
    rows = streams.rate * streams.seconds
    keys = random.integers(0, streams.keys, rows)
    if number:
        keys[random.random(rows) >= streams.share] += number * streams.keys
    times = np.arange(rows) * _MS // streams.rate
    times += times % _MS == 0
    keys = np.append(keys, -1 - number)
    times = np.append(times, streams.seconds * _MS + 2 * _MS + number + 1)
    groups = keys % streams.groups
    moments = pa.array((_START * _MS + times) * _MS).cast(pa.timestamp("us"))
    return pa.table({"k": keys, "g": groups, "v": np.arange(rows + 1), "ts": moments})
