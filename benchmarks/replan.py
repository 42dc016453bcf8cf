"""Compare a query whose streams change rates with one planned for the new rates.

Four streams with one key; two are slow and two are fast, and half-way the slow ones become fast and
the fast ones slow. Three queries get the same rows, under default settings otherwise: one with
replanning, one that stays with the order that was right at the start, and one that has had from its
start the order that is best after the change. What is timed is the time after the change from when
the windows hold nothing older any more. Which order is best then is found by counting the work of
all 24 on the rows after the change.

Results are checked twice: all of them by DuckDB (number and sums), and row for row, order included,
with the oracle on a smaller version, in which the order is changed as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, permutations

import pyarrow as pa

from benchmarks.report import Claim, Figure, Progress, Report
from benchmarks.workload import (
    SECOND,
    Join,
    Run,
    Workload,
    check_digest,
    fastest,
    run,
    run_all,
    run_in_turn,
)
from muntin.model.catalog import Catalog, Stream
from muntin.sql.script import read_query
from muntin.testing.compare import assert_same_sequence
from muntin.testing.generators import multi_join_streams
from muntin.testing.oracle import Oracle

NAMES = ("S1", "S2", "S3", "S4")
_TICK = 1_000
"""Microseconds between rows."""


@dataclass(frozen=True)
class Change:
    """Streams that change: rates, which are reversed; values; time units per window and part."""

    rates: tuple[int, ...] = (1, 5, 100, 200)
    distinct: int = 200
    window: int = 20
    before: int = 200
    turning: int = 100
    timed: int = 1_500
    batch: int = 50

    @property
    def unit(self) -> int:
        """Microseconds of a unit of time: as many rows come in it as the rates add up to."""
        return sum(self.rates) * _TICK

    @property
    def join(self) -> Join:
        """The query."""
        equal = [(f"{one}.attr", f"{other}.attr") for one, other in pairwise(NAMES)]
        return Join(
            dict.fromkeys(NAMES, self.window * self.unit), [f"{name}.ts" for name in NAMES], equal
        )

    def workload(self) -> Workload:
        """Return rows before and after the change; timing starts when windows hold only new rows.

        The streams are declared with their rates at the start, so that every query begins with the
        order that is right then.
        """
        first = _streams(self, self.rates, self.before, seed=1)
        second = _streams(self, self.rates[::-1], self.turning + self.timed, seed=2)
        streams = {
            name: pa.concat_tables([first[name], _later(second[name], self.before * self.unit)])
            for name in NAMES
        }
        declared = {
            name: f"rate = {rate * SECOND / self.unit}, distinct = {self.distinct}"
            for name, rate in zip(NAMES, self.rates, strict=True)
        }
        return self._workload(streams, self.before + self.turning, self.timed, declared)

    def after(self) -> Workload:
        """Return rows of the time after the change alone, for counting."""
        return self._workload(
            _streams(self, self.rates[::-1], 2 * self.batch, seed=3), self.batch, self.batch, {}
        )

    def _workload(
        self, streams: Mapping[str, pa.Table], filling: int, timed: int, declared: Mapping[str, str]
    ) -> Workload:
        ends = [end * self.unit - 1 for end in range(self.batch, filling + timed + 1, self.batch)]
        return Workload(self.join, streams, ends, filling // self.batch, declared)


SMALL = Change(
    rates=(1, 2, 10, 20), distinct=120, window=20, before=150, turning=50, timed=50, batch=25
)


def _streams(change: Change, rates: tuple[int, ...], units: int, seed: int) -> dict[str, pa.Table]:
    rows = units * sum(rates)
    distinct = [change.distinct] * len(rates)
    return dict(
        zip(
            NAMES,
            multi_join_streams(rows, rates=rates, distinct=distinct, seed=seed, unit=_TICK),
            strict=True,
        )
    )


def _later(rows: pa.Table, micros: int) -> pa.Table:
    times = pa.array(rows.column("ts").cast(pa.int64()).to_numpy() + micros)
    return rows.set_column(rows.schema.get_field_index("ts"), "ts", times.cast(pa.timestamp("us")))


def best_order(workload: Workload) -> str:
    """Return the order with the least work."""
    done = run_all(
        workload, {order: {"order": order} for order in map(", ".join, permutations(NAMES))}
    )
    return min(done, key=lambda order: done[order].work)


def check_with_oracle(workload: Workload) -> Run:
    """Run with replanning and compare all results and their order with those of the oracle."""
    done = run(workload, {})
    catalog = Catalog()
    for name, rows in workload.streams.items():
        catalog.add(Stream(name, rows.schema, "ts"))
    oracle = Oracle(read_query(workload.join.sql, "q", catalog), workload.streams, {}, catalog)
    assert_same_sequence(oracle.inserts(workload.ends[-1]), done.results)
    return done


def bench_replan(progress: Progress, *, quick: bool = False) -> Report:
    """Run all three in turn, several times."""
    change, repeats = (Change(before=100, timed=200), 2) if quick else (Change(), 7)
    progress("comparing with the oracle")
    small = check_with_oracle(SMALL.workload())
    assert small.switches, "the oracle is to see a run in which the order changed"
    progress("looking for the order that is best after the change")
    best = best_order(change.after())
    workload = change.workload()
    settings: dict[str, dict[str, str]] = {
        "replanned": {},
        "not replanned": {"replan": "off"},
        "planned for it": {"order": best},
    }
    progress(f"running three queries {repeats} times each")
    runs = run_in_turn(workload, settings, repeats)
    check_digest(workload, runs["replanned"][0].results)
    ours, theirs = fastest(runs["replanned"]), fastest(runs["planned for it"])
    return Report(
        "replan",
        "Does a query become as fast as one planned for the new rates, when rates change?",
        [_row(name, done, best) for name, done in runs.items()],
        [
            Claim(
                "rows per second after the change, replanned over planned for it",
                round(ours.rate / theirs.rate, 3),
                0.9,
                "at least",
            ),
            Claim(
                "probes and comparisons after the change, replanned over planned for it",
                round(ours.work / theirs.work, 3),
                1.1,
            ),
        ],
    )


def _row(name: str, done: list[Run], best: str) -> dict[str, Figure]:
    switches = done[0].switches
    return {
        "query": name,
        "order at the end": _readable(switches[-1]["to"])
        if switches
        else {"planned for it": best}.get(name, "as at the start"),
        "rows/s after the change": round(fastest(done).rate),
        "probes and comparisons per row": round(done[0].work / done[0].rows, 2),
        "order changes": len(switches),
        "results": len(done[0].results),
    }


def _readable(order: object) -> str:
    return ", ".join(map(str, order)) if isinstance(order, list) else str(order)
