"""What the steps of a join cost on the machine at hand: a few small joins, timed once a process.

Processor time is taken, not the clock's. It takes a few tenths of a second when a running query first looks for a better plan.
A plan made before any data uses the numbers of ``planner/unit_costs.py``, so that it does not depend on the machine. A figure
that a busy machine distorts beyond reason is bounded by five times the usual one either way.
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
from muntin.kernels.compiling import prepare
from muntin.model.catalog import Catalog
from muntin.model.settings import Settings
from muntin.operators.events import NewRows
from muntin.operators.join import JoinOperator, Tools
from muntin.operators.workspace import Workspace
from muntin.planner.join_planner import plan_join
from muntin.planner.unit_costs import DEFAULT_COSTS, UnitCosts
from muntin.sql.script import read_query
from muntin.sql.streams import make_stream
from muntin.state.batch import Batch

_REPEAT = 3
_REASON = 5.0
_SCHEMA = pa.schema([pa.field("k", pa.int64()), pa.field("ts", pa.timestamp("us"))])


@dataclass(frozen=True)
class Timed:
    """Nanoseconds of a small join, and its counters."""

    nanoseconds: float
    counters: list[int]

    def per(self, counter: int) -> float:
        """Nanoseconds for each of something that was counted."""
        return self.nanoseconds / max(self.counters[counter], 1)


@cache
def calibrated_costs() -> UnitCosts:
    """The costs here."""
    prepare()
    duck = Duck()
    chain = "WHERE A.k = B.k WINDOW 200 MICROSECONDS"
    stored = _timed(duck, "SELECT A.k FROM A WINDOW 1 SECOND", 4_000, 1 << 40)
    expired = _timed(duck, "SELECT A.k FROM A WINDOW 1 MICROSECOND", 4_000, 1 << 40)
    scans = _timed(duck, f"SELECT A.k FROM A, B {chain}", 1_000, 1 << 40, join="nested_loop")
    chains = _timed(duck, f"SELECT A.k FROM A, B {chain}", 1_000, 1 << 40, buckets="1")
    probes = _timed(duck, "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND", 4_000, 1 << 40)
    kept = _timed(duck, f"SELECT A.k FROM A, B, C {chain.replace('B.k ', 'B.k AND B.k = C.k ')}", 1_000, 20, tree="((A, B), C)")
    insert = stored.per(layout.N_INSERTED)
    measured = UnitCosts(
        probe=(probes.nanoseconds - insert * probes.counters[layout.N_INSERTED]) / max(probes.counters[layout.N_PROBES], 1),
        chained=chains.per(layout.N_SCANNED),
        scanned=scans.per(layout.N_SCANNED),
        insert=insert,
        expire=expired.per(layout.N_INSERTED) - insert,
        link=DEFAULT_COSTS.link,
        composite=kept.per(layout.N_COMPOSITES) - chains.per(layout.N_SCANNED),
        check=DEFAULT_COSTS.check,
    )
    return bounded(measured)


def bounded(costs: UnitCosts) -> UnitCosts:
    """The costs, none further from the usual one than reason allows."""
    names = [field.name for field in fields(UnitCosts)]
    usual = {name: getattr(DEFAULT_COSTS, name) for name in names}
    return UnitCosts(**{name: min(max(getattr(costs, name), usual[name] / _REASON), usual[name] * _REASON) for name in names})


def _timed(duck: Duck, sql: str, rows: int, keys: int, **settings: str) -> Timed:
    """The shortest of a few runs of a join over streams of random keys, a row a microsecond."""
    catalog = Catalog()
    for name in "ABC":
        catalog.add(make_stream(name, _SCHEMA, "ts", 0))
    query = read_query(sql, "calibration", catalog)
    plan = plan_join(query, Settings(**settings))
    streams = [source.relation for source in query.sources]
    random = np.random.default_rng(1)
    times = np.arange(rows, dtype=np.int64)
    news = []
    for stream in streams:
        table = pa.table([pa.array(random.integers(0, keys, rows)), pa.array(times).cast(pa.timestamp("us"))], schema=_SCHEMA)
        # Where intermediate results are timed, the last stream stays silent: there are no results.
        taken = 0 if plan.tree is not None and stream == "C" else rows
        news.append(NewRows(times[:taken], Batch(table.slice(0, taken), times[:taken], np.zeros(taken)), 0))
    shortest, counters = float("inf"), [0] * layout.COUNTERS
    for _ in range(_REPEAT):
        join = JoinOperator(plan, streams, {}, Tools(Evaluator(duck), Workspace()))
        begin = time.thread_time_ns()
        for _ in join.run(news, rows):
            pass
        shortest = min(shortest, time.thread_time_ns() - begin)
        counters = [int(number) for number in join.state.counters]
    return Timed(shortest, counters)
