"""A multi-way join as benchmarks run it: the same batches, timed once the windows are full.

A workload is streams, windows and a query; settings come with each run. So runs of one workload
differ in their settings and in nothing else, must give the same results in the same order, and
DuckDB must find as many with the same sums.

Seconds are those of the processor that this process used. The engine works in one thread and never
waits, so on an idle machine they are seconds on the wall; on a busy one, what other programs take
does not count. They still slow it down, through caches they share with it, and never speed it up:
of repeated runs the fastest counts.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import muntin

SECOND = 1_000_000
_TYPES = {"int64": "BIGINT", "double": "DOUBLE", "timestamp[us]": "TIMESTAMP"}

Digest = tuple[int, ...]
"""The number of results and the sum of each column, times in microseconds."""


@dataclass(frozen=True)
class Join:
    """A join of streams: windows in microseconds in FROM order, select list, equal columns."""

    windows: Mapping[str, int]
    select: Sequence[str]
    equal: Sequence[tuple[str, str]]

    @property
    def where(self) -> str:
        """The condition."""
        return " AND ".join(f"{one} = {other}" for one, other in self.equal)

    @property
    def sql(self) -> str:
        """The query."""
        sources = ", ".join(
            f"{name} [RANGE {micros} MICROSECONDS]" for name, micros in self.windows.items()
        )
        columns = ", ".join(f"{column} AS c{place}" for place, column in enumerate(self.select))
        return f"SELECT {columns} FROM {sources} WHERE {self.where}"


@dataclass(frozen=True)
class Workload:
    """A join, its rows, the times at which batches end, and the number of batches of warm-up.

    ``declared`` has options of single streams, such as ``rate = 10, distinct = 500``.
    """

    join: Join
    streams: Mapping[str, pa.Table]
    ends: Sequence[int]
    filling: int
    declared: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def batches(self) -> list[dict[str, pa.Table]]:
        """The rows of each batch, by stream."""
        batches: list[dict[str, pa.Table]] = [{} for _ in self.ends]
        for name, rows in self.streams.items():
            cuts = np.searchsorted(
                rows.column("ts").cast(pa.int64()).to_numpy(), self.ends, side="right"
            )
            for batch, begin, end in zip(batches, [0, *cuts[:-1]], cuts, strict=True):
                batch[name] = rows.slice(begin, end - begin)
        return batches

    @property
    def timed_rows(self) -> int:
        """Rows that come after the windows are full."""
        return sum(len(rows) for batch in self.batches[self.filling :] for rows in batch.values())

    def engine(self) -> muntin.Engine:
        """Return an engine with the streams declared."""
        engine = muntin.Engine()
        for name, rows in self.streams.items():
            columns = ", ".join(
                f"{column.name} {_TYPES[str(column.type)]}" for column in rows.schema
            )
            options = ", ".join(filter(None, ["time = 'ts'", self.declared.get(name, "")]))
            engine.execute(f"CREATE STREAM {name} ({columns}) WITH ({options})")
        return engine


@dataclass(frozen=True)
class Run:
    """What one run gave, and what it took on full windows.

    ``switches`` are all changes of the join order; the last ``late_switches`` of them came on full
    windows.
    """

    seconds: float
    rows: int
    counters: Mapping[str, int]
    results: pa.Table
    switches: Sequence[Mapping[str, object]]
    late_switches: int

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / self.seconds

    @property
    def work(self) -> int:
        """Windows probed and rows compared, which do not depend on the machine or its load."""
        return self.counters["probes"] + self.counters["comparisons"]


def fastest(runs: Sequence[Run]) -> Run:
    """Return the run that took the least time."""
    return min(runs, key=lambda one: one.seconds)


def run(workload: Workload, settings: Mapping[str, str]) -> Run:
    """Push all batches under the given settings; time those that come when the windows are full."""
    engine = workload.engine()
    for name, value in settings.items():
        engine.execute(f"SET {name} = '{value}'")
    q = engine.query(workload.join.sql, name="q")
    steps = list(zip(workload.batches, workload.ends, strict=True))
    results = [_push(engine, q, batch, end) for batch, end in steps[: workload.filling]]
    counted, switched = _counters(q), len(_switches(q))
    begin = time.process_time()
    results += [_push(engine, q, batch, end) for batch, end in steps[workload.filling :]]
    seconds = time.process_time() - begin
    counters = {name: count - counted[name] for name, count in _counters(q).items()}
    switches = _switches(q)
    return Run(
        seconds,
        workload.timed_rows,
        counters,
        pa.concat_tables(results),
        switches,
        len(switches) - switched,
    )


def _push(
    engine: muntin.Engine, q: muntin.StandingQuery, batch: Mapping[str, pa.Table], end: int
) -> pa.Table:
    for name, rows in batch.items():
        engine.push(name, rows)
    engine.advance(end)
    return q.poll()


def _counters(q: muntin.StandingQuery) -> dict[str, int]:
    work = q.stats()["work"]
    assert isinstance(work, dict), "stats reports it"
    return work


def _switches(q: muntin.StandingQuery) -> list[Mapping[str, object]]:
    switches = q.stats()["order_switches"]
    assert isinstance(switches, list), "stats reports it"
    return switches


def run_all(workload: Workload, settings: Mapping[str, Mapping[str, str]]) -> dict[str, Run]:
    """Run once under each of several settings; all must give the same results, kept once."""
    done: dict[str, Run] = {}
    for name, chosen in settings.items():
        one = run(workload, chosen)
        expected = next(iter(done.values())).results if done else one.results
        check_same(expected, one.results)
        done[name] = replace(one, results=expected)
    return done


def run_in_turn(
    workload: Workload, settings: Mapping[str, Mapping[str, str]], repeats: int
) -> dict[str, list[Run]]:
    """Run several times under each of several settings, in turn, with a rotating start."""
    names = list(settings)
    runs: dict[str, list[Run]] = {name: [] for name in names}
    for repeat in range(repeats):
        first = repeat % len(names)
        done = run_all(workload, {name: settings[name] for name in names[first:] + names[:first]})
        for name, one in done.items():
            check_same(runs[names[0]][0].results if runs[names[0]] else one.results, one.results)
            runs[name].append(
                one if repeat == 0 else replace(one, results=runs[names[0]][0].results)
            )
    return runs


def check_same(expected: pa.Table, results: pa.Table) -> None:
    """Stop the benchmark when two runs differ: a plan that loses results is no plan."""
    assert results.equals(expected), (
        f"all runs must give the same {len(expected):,} results in the same order; one gave "
        f"{len(results):,}"
    )


def check_digest(workload: Workload, results: pa.Table) -> None:
    """Stop the benchmark when DuckDB finds other results than a run."""
    assert digest(results) == duckdb_digest(workload), (
        "Muntin and DuckDB must give the same results"
    )


def digest(results: pa.Table) -> Digest:
    """Count and sums of polled results."""
    columns = [name for name in results.column_names if not name.startswith("_")]
    return len(results), *(
        pc.sum(results.column(name).cast(pa.int64())).as_py() or 0 for name in columns
    )


def duckdb_digest(workload: Workload) -> Digest:
    """Return the count and sums of all results by DuckDB, one stretch of time after the other.

    A stretch is as long as the longest window and computed from it and the one before, because
    results that are completed in it have no older rows.
    """
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET enable_progress_bar = false")
    for name, rows in workload.streams.items():
        place = rows.schema.get_field_index("ts")
        connection.register(name, rows.set_column(place, "ts", rows.column("ts").cast(pa.int64())))
    stretch = max(workload.join.windows.values())
    query = _digest_sql(workload.join)
    total = np.zeros(1 + len(workload.join.select), object)
    for begin in range(-1, workload.ends[-1], stretch):
        end = min(begin + stretch, workload.ends[-1])
        found = connection.execute(query, {"begin": begin, "end": end}).fetchone()
        assert found is not None, "an aggregate gives one row"
        total += np.array([int(value or 0) for value in found], object)
    return tuple(total)


def _digest_sql(join: Join) -> str:
    """Return the aggregate over results completed after ``$begin``, up to ``$end``.

    Distances between streams that share no key are left to the end, lest DuckDB joins on them.
    """
    newest = f"greatest({', '.join(f'{name}.ts' for name in join.windows)})"
    pairs = {(one.partition(".")[0], other.partition(".")[0]) for one, other in join.equal}
    near = [
        f"{one}.ts < {other}.ts + {join.windows[other]}"
        for pair in sorted(pairs)
        for one, other in (pair, pair[::-1])
    ]
    inside = [f"{newest} < {name}.ts + {micros}" for name, micros in join.windows.items()]
    sources = ", ".join(
        f"(SELECT * FROM {name} WHERE ts > $begin - {micros} AND ts <= $end) AS {name}"
        for name, micros in join.windows.items()
    )
    sums = ", ".join(f"sum({column})" for column in join.select)
    return (
        f"SELECT count(*), {sums} FROM {sources} WHERE "
        f"{' AND '.join([join.where, *near, *inside])} AND {newest} > $begin"
    )
