"""Cases of the experiments of [Kostowski06]: predicted costs, timing and sampling.

The measurement is that of the paper's section 4.1: rows of 60 seconds, windows of 30 seconds on
both sides, the second half timed in one batch. Its rates are not printed; ours are what keeps this
machine busy for milliseconds to seconds.

Every case is run twice over: as it is, and *bare*, with the keys of one stream moved by a number
that all numbers of buckets divide. Then every row looks into the same bucket and compares with the
same rows, and none is equal, so nothing is made of them. The difference is what results cost, which
the paper's model does not have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.workload import SECOND, Join, Run, Workload, check_digest, run_in_turn
from muntin.model.settings import Expiry
from muntin.planner.lazy_orders import WindowStatistics
from muntin.testing.generators import uniform_stream
from muntin.testing.paper_costs.pair_join import pair_work, stale_rows

WINDOW = 30
SECONDS = 60
TIMED = SECONDS - WINDOW
SAMPLED = 2
_MOVED = 1_000_000


@dataclass(frozen=True)
class Case:
    """A case: rows per second of A and B, distinct keys, buckets per side, cleanup strategy."""

    rates: tuple[int, int]
    values: int = 100
    buckets: int = 100
    strategy: Expiry = Expiry.PROBE_INSERT

    @property
    def join(self) -> str:
        """The paper's name of the algorithm: nested loops are a hash join with one bucket."""
        return "WNL" if self.buckets == 1 else "WHJ"

    @property
    def settings(self) -> dict[str, str]:
        """The case in settings."""
        join = (
            {"join": "nested_loop"}
            if self.buckets == 1
            else {"join": "hash", "buckets": str(self.buckets)}
        )
        return {"expiry": self.strategy.value, **join}

    @property
    def sides(self) -> tuple[WindowStatistics, WindowStatistics]:
        """Both windows as the cost model sees them."""
        a, b = (
            WindowStatistics(rate, rate * WINDOW, self.values, self.buckets) for rate in self.rates
        )
        return a, b

    @property
    def predicted(self) -> Work:
        """The time that the cost model predicts for the seconds that are timed."""
        a, b = self.sides
        work = pair_work(self.strategy, a, b)
        results = 2 * WINDOW * self.rates[0] * self.rates[1] / self.values
        return Work(
            TIMED * sum(self.rates),
            TIMED * work.comparisons,
            TIMED * work.expiry_checks,
            TIMED * results,
        )

    @property
    def predicted_stale(self) -> float:
        """Rows of B outside its window that are held on average, as predicted."""
        a, b = self.sides
        return stale_rows(self.strategy, b, a)


@dataclass(frozen=True)
class Work:
    """What a join does: rows taken, rows compared, rows looked at to let them go, results made."""

    rows: float
    comparisons: float
    checks: float
    results: float

    def parts(self, *, bare: bool) -> list[float]:
        """One for each unit cost, in their order."""
        return [1.0, self.rows, self.comparisons, self.checks, 0.0 if bare else self.results]


@dataclass(frozen=True)
class UnitCosts:
    """Nanoseconds per unit of work.

    The units are a batch, a row (the paper's insert), a comparison (scan), a check (invalidate) and
    a result.
    """

    batch: float
    row: float
    scan: float
    check: float
    result: float

    def seconds(self, work: Work, *, bare: bool) -> float:
        """Return the seconds that the cost model predicts."""
        units = (self.batch, self.row, self.scan, self.check, self.result)
        return float(np.dot(work.parts(bare=bare), units)) / 1e9


@dataclass(frozen=True)
class Measured:
    """A case, what was counted in it, and the seconds of its runs, with results and bare."""

    case: Case
    counters: Mapping[str, int]
    seconds: Sequence[float]
    bare: Sequence[float]

    def median(self, *, bare: bool) -> float:
        """Return the median of its runs, in seconds."""
        return median(self.bare if bare else self.seconds)


def make_workload(rates: tuple[int, int], values: int, *, bare: bool) -> Workload:
    """Return the rows of a case in two batches, of which the second is timed.

    With ``bare`` the join produces no results.
    """
    streams = {}
    for seed, (name, rate) in enumerate(zip("AB", rates, strict=True), 1):
        rows = uniform_stream(rate * SECONDS, rate, values, seed).select(["k", "ts"])
        moved = pc.add(rows.column("k"), pa.scalar(_MOVED))
        streams[name] = rows.set_column(0, "k", moved) if bare and name == "B" else rows
    join = Join(dict.fromkeys("AB", WINDOW * SECOND), ["A.k"], [("A.k", "B.k")])
    return Workload(join, streams, [end * SECOND - 1 for end in (WINDOW, SECONDS)], 1)


def measure(cases: Sequence[Case], repeats: int) -> list[Measured]:
    """Time cases in turn that differ only in their settings.

    All must give the same results and match the digest of DuckDB.
    """
    assert len({(case.rates, case.values) for case in cases}) == 1, "they get the same rows"
    rates, values = cases[0].rates, cases[0].values
    settings = {str(number): case.settings for number, case in enumerate(cases)}
    whole, bare = (
        _runs(make_workload(rates, values, bare=bare), settings, repeats) for bare in (False, True)
    )
    assert not bare["0"][0].counters["matches"], "bare runs are without results"
    return [
        Measured(
            case,
            whole[name][0].counters,
            [one.seconds for one in whole[name]],
            [one.seconds for one in bare[name]],
        )
        for name, case in zip(settings, cases, strict=True)
    ]


def _runs(
    workload: Workload, settings: Mapping[str, Mapping[str, str]], repeats: int
) -> dict[str, list[Run]]:
    """Run cases in turn; check their results, but do not keep them."""
    runs = run_in_turn(workload, settings, repeats)
    check_digest(workload, runs["0"][0].results)
    return {
        name: [replace(one, results=one.results.slice(0, 0)) for one in mine]
        for name, mine in runs.items()
    }


def fit_costs(measured: Sequence[Measured]) -> UnitCosts:
    """Return the unit costs that fit measured times best, by least squares of relative errors."""
    lines = [(one, bare, one.median(bare=bare) * 1e9) for one in measured for bare in (False, True)]
    parts = np.array([one.case.predicted.parts(bare=bare) for one, bare, _ in lines])
    times = np.array([nanoseconds for _, _, nanoseconds in lines])
    used = list(range(parts.shape[1]))
    costs = np.zeros(parts.shape[1])
    while used:
        found = np.linalg.lstsq(parts[:, used] / times[:, None], np.ones(len(lines)), rcond=None)[0]
        if found.min() >= 0:
            costs[used] = found
            break
        used.pop(int(found.argmin()))  # noise may make a small cost negative: it is none then
    return UnitCosts(*costs.tolist())


def sample_held(case: Case) -> list[tuple[int, int, int]]:
    """Return, for every second second: the second, rows of B held, and those inside the window.

    Stale rows are counted for both sides together. Those of A are a handful where B is much faster,
    as here.
    """
    workload = make_workload(case.rates, case.values, bare=False)
    engine = workload.engine()
    for name, value in case.settings.items():
        engine.execute(f"SET {name} = '{value}'")
    q = engine.query(workload.join.sql, name="q")
    samples = []
    for end in range(SAMPLED, SECONDS + 1, SAMPLED):
        for name, rate in zip("AB", case.rates, strict=True):
            engine.push(name, workload.streams[name].slice((end - SAMPLED) * rate, SAMPLED * rate))
        engine.advance(end * SECOND - 1)
        q.poll()
        stats = q.stats()
        inside, stale = stats["state_rows"], stats["stale_rows_held"]
        assert isinstance(inside, dict), "stats reports it"
        assert isinstance(stale, int), "stats reports it"
        samples.append((end, inside["B"] + stale, inside["B"]))
    return samples
