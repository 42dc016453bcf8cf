"""Measure the costs of the steps of a join on this machine, by timing a few small joins.

This happens once per process, when a running query first looks for a better plan, and takes a few
tenths of a second of processor time, which is what is measured. A plan made before any data uses
the numbers of ``planner/unit_costs.py``, so it does not depend on the machine. A busy machine
distorts measurements: a cost is at most five times the default and at least a fifth of it; one that
is not positive is replaced by the default.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from functools import cache

import numpy as np
import pyarrow as pa

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.kernels import layout
from muntin.kernels.jit import prepare
from muntin.kernels.result_order import sort_matches
from muntin.model.catalog import Catalog
from muntin.model.settings import Settings
from muntin.operators.join import NewRows, Tools, make_join
from muntin.operators.workspace import Workspace
from muntin.plan.join import JoinPlan
from muntin.planner.join_planner import plan_join
from muntin.planner.unit_costs import DEFAULT_COSTS, UnitCosts
from muntin.sql.script import read_query
from muntin.sql.streams import make_stream
from muntin.state.batch import Batch

_REPEAT = 5
_MOST_FACTOR = 5.0
_SCHEMA = pa.schema([pa.field("k", pa.int64()), pa.field("ts", pa.timestamp("us"))])


@dataclass(frozen=True)
class Timed:
    """Nanoseconds of a small join, and its counters."""

    nanoseconds: float
    counters: list[int]

    def per(self, counter: int) -> float:
        """Return the nanoseconds per unit of a counter."""
        return self.nanoseconds / max(self.counters[counter], 1)

    def more_per(self, counter: int, other: Timed) -> float:
        """Return the additional nanoseconds per additional unit of a counter."""
        return (self.nanoseconds - other.nanoseconds) / max(
            self.counters[counter] - other.counters[counter], 1
        )


@cache
def calibrated_costs() -> UnitCosts:
    """Return the costs on this machine."""
    prepare()
    duck = Duck()
    chain = "WHERE A.k = B.k WINDOW 200 MICROSECONDS"
    stored = _timed(duck, "SELECT A.k FROM A WINDOW 1 SECOND", 20_000, 1 << 40)
    expired = _timed(duck, "SELECT A.k FROM A WINDOW 1 MICROSECOND", 20_000, 1 << 40)
    scans = _timed(duck, f"SELECT A.k FROM A, B {chain}", 2_000, 1 << 40, join="nested_loop")
    chains = _timed(duck, f"SELECT A.k FROM A, B {chain}", 2_000, 1 << 40, buckets="1")
    all_equal = "WHERE A.k = B.k AND A.k = C.k WINDOW"
    once = _timed(duck, f"SELECT A.k FROM A, B, C {all_equal} 4 MILLISECONDS", 20_000, 1 << 40)
    twice = _timed(duck, f"SELECT A.k FROM A, B, C {all_equal} 4 MILLISECONDS", 20_000, 4_000)
    kept = _timed(
        duck, f"SELECT A.k FROM A, B, C {all_equal} 200 MICROSECONDS", 2_000, 20, tree="((A, B), C)"
    )
    insert = stored.per(layout.N_INSERTED)
    expire = expired.per(layout.N_INSERTED) - insert
    measured = UnitCosts(
        # Each row that is found causes one more probe; both joins insert and expire the same.
        probe=twice.more_per(layout.N_PROBES, once) - chains.per(layout.N_SCANNED),
        chained=chains.per(layout.N_SCANNED),
        scanned=scans.per(layout.N_SCANNED),
        insert=insert,
        expire=expire,
        link=DEFAULT_COSTS.link,
        partial_match=kept.per(layout.N_PARTIAL_MATCHES) - chains.per(layout.N_SCANNED),
        check=DEFAULT_COSTS.check,
        sort=_sorting(),
    )
    return bounded(measured)


def bounded(costs: UnitCosts) -> UnitCosts:
    """Return the costs, each within the allowed factor of its default, or the default itself."""
    names = [field.name for field in fields(UnitCosts)]
    usual = {name: getattr(DEFAULT_COSTS, name) for name in names}
    found = {name: getattr(costs, name) for name in names}
    return UnitCosts(
        **{
            name: min(max(figure, usual[name] / _MOST_FACTOR), usual[name] * _MOST_FACTOR)
            if figure > 0
            else usual[name]
            for name, figure in found.items()
        }
    )


def _timed(duck: Duck, sql: str, rows: int, keys: int, **settings: str) -> Timed:
    """Time a join over streams of random keys, one row per microsecond.

    A run has fixed costs, so the time of a short run is subtracted from that of a long one. The
    shortest of a few runs counts.
    """
    catalog = Catalog()
    for name in "ABC":
        catalog.add(make_stream(name, _SCHEMA, "ts", 0))
    query = read_query(sql, "calibration", catalog)
    plan = plan_join(query, Settings.of(**settings))
    short, long = (_run(plan, duck, number, keys) for number in (rows // 4, rows))
    counted = [after - before for before, after in zip(short.counters, long.counters, strict=True)]
    return Timed(long.nanoseconds - short.nanoseconds, counted)


def _run(plan: JoinPlan, duck: Duck, rows: int, keys: int) -> Timed:
    streams = [source.relation for source in plan.query.sources]
    random = np.random.default_rng(1)
    times = np.arange(rows, dtype=np.int64)
    news = []
    for stream in streams:
        table = pa.table(
            [pa.array(random.integers(0, keys, rows)), pa.array(times).cast(pa.timestamp("us"))],
            schema=_SCHEMA,
        )
        # The third stream stays silent: combinations of two are made, but no results.
        taken = 0 if stream == "C" else rows
        news.append(
            NewRows(times[:taken], Batch(table.slice(0, taken), times[:taken], np.zeros(taken)), 0)
        )
    shortest, counters = float("inf"), [0] * layout.COUNTERS
    for _ in range(_REPEAT):
        join = make_join(plan, streams, {}, Tools(Evaluator(duck), Workspace()))
        begin = time.thread_time_ns()
        for _ in join.run(news, rows):
            pass
        shortest = min(shortest, time.thread_time_ns() - begin)
        counters = [int(number) for number in join.state.counters]
    return Timed(shortest, counters)


def _sorting() -> float:
    """Return the nanoseconds to sort one result: eight per event, with partners in four sources."""
    count = 1 << 14
    random = np.random.default_rng(1)
    results = np.concatenate(
        [np.repeat(np.arange(count // 8), 8).reshape(1, -1), random.integers(0, 1_000, (5, count))]
    )
    shortest = float("inf")
    for _ in range(_REPEAT):
        out = results.copy()
        begin = time.thread_time_ns()
        sort_matches(out, np.empty(count, np.int64), np.empty(count, np.int64))
        shortest = min(shortest, time.thread_time_ns() - begin)
    return shortest / count
