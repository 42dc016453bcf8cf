"""Streams as folders of small parquet files, and the results of the in-process engine for them."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import muntin
from muntin.cli import main
from muntin.testing.compare import difference

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))])
SECOND = 1_000_000
JOIN = "SELECT A.k, A.v AS x, B.v AS y FROM A, B WHERE A.k = B.k WINDOW 4 SECONDS"
CHANGES = (
    "SELECT A.k, A.v AS x, B.v AS y FROM A [ROWS 3], B [RANGE 3 SECONDS] WHERE A.k = B.k "
    "EMIT CHANGES"
)


def rows(seconds: Sequence[float], *, keys: int = 3, start: int = 0) -> pa.Table:
    """Return rows at the given seconds; values count up from ``start``, keys repeat in a cycle."""
    values = range(start, start + len(seconds))
    times = pa.array([int(second * SECOND) for second in seconds], pa.int64()).cast(
        pa.timestamp("us")
    )
    return pa.table(
        [pa.array([value % keys for value in values]), pa.array(values, pa.int64()), times],
        schema=SCHEMA,
    )


def random_rows(seed: int, count: int, seconds: int) -> pa.Table:
    """Return random rows in order of time."""
    generator = np.random.default_rng(seed)
    times = np.sort(generator.integers(0, seconds * SECOND, count))
    return pa.table(
        [
            pa.array(generator.integers(0, 10, count)),
            pa.array(np.arange(count)),
            pa.array(times).cast(pa.timestamp("us")),
        ],
        schema=SCHEMA,
    )


@dataclass
class Folders:
    """The folders of some streams with the same columns, and the rows written there."""

    base: Path
    streams: tuple[str, ...] = ("A", "B")
    written: dict[str, list[pa.Table]] = field(default_factory=dict)
    _count: int = 0

    def __post_init__(self) -> None:
        for stream in self.streams:
            self.path(stream).mkdir(parents=True)
            self.written[stream] = []

    def path(self, stream: str) -> Path:
        return self.base / stream

    def write(self, stream: str, table: pa.Table) -> Path:
        """Write another file; Spark reads files in the order of their modification times."""
        self._count += 1
        part = self.path(stream) / f".{self._count}.part"
        pq.write_table(table, part)
        os.utime(part, (self._count, self._count))
        self.written[stream].append(table)
        return part.replace(self.path(stream) / f"{self._count:06d}.parquet")

    def declarations(self) -> str:
        return "".join(
            f"CREATE STREAM {stream} (k BIGINT, v BIGINT, ts TIMESTAMP) "
            f"WITH (format = 'parquet', path = '{self.path(stream)}', time = 'ts', "
            "maxFilesPerTrigger = '1');\n"
            for stream in self.streams
        )

    def expected(self, queries: Mapping[str, str], until: int | None = None) -> dict[str, pa.Table]:
        """Return the results of the in-process engine for all rows written."""
        engine = muntin.Engine()
        for stream in self.streams:
            engine.stream(stream, {"k": "bigint", "v": "bigint", "ts": "timestamp"}, time="ts")
        handles = {name: engine.query(sql, name=name) for name, sql in queries.items()}
        for stream, tables in self.written.items():
            for table in tables:
                engine.push(stream, table)
        if until is not None:
            engine.advance(until)
        return {name: handle.poll() for name, handle in handles.items()}

    def check(
        self, queries: Mapping[str, str], found: Mapping[str, pa.Table], until: int | None = None
    ) -> None:
        """Fail unless the results are those of the in-process engine, each exactly once."""
        for name, expected in self.expected(queries, until).items():
            assert len(expected), f"query {name} has results to compare"
            problem = difference(expected, found[name])
            assert not problem, f"{name}: {problem}"


def muntin_command(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    """Run ``muntin ...`` in this process and its session, without starting another JVM.

    Return the exit code, stdout and stderr.
    """
    program, *arguments = shlex.split(command)
    assert program == "muntin", "other commands are not run"
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["muntin", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err
