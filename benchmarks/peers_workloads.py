"""Workloads of ``python -m benchmarks peers``: six kinds, and one join that grows in four ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from benchmarks.peers_data import Streams, Workload

MINUTE = 60_000
SEVEN = (1_000, 5_000, 15_000, 30_000, 60_000, 300_000, 600_000)
_FEWER = ("Muntin", "Flink SQL", "Pathway", "Bytewax", "DuckDB, batch")
"""Systems in most of a quick run.

On Spark each workload takes seconds, however little data it has.
"""


def all_workloads() -> list[Workload]:
    """At full size; a row has about one partner in every other stream, by default."""
    rate = 5_000
    return [
        Workload("one window join", "join", Streams(rate, 150, 2 * 60 * rate)),
        Workload(
            "seven windows",
            "join",
            Streams(500, 1_200, 600_000, file_seconds=60),
            SEVEN,
            per_trigger=5,
        ),
        Workload("three-way join", "three", Streams(2_000, 150, 2 * 60 * 2_000, names="ABC")),
        Workload("join of the last 1000 rows", "rows", Streams(rate, 100, 1_000)),
        Workload("sliding DISTINCT", "distinct", Streams(rate, 150, 30 * rate, names="A")),
        Workload("aggregate over a join", "aggregate", Streams(1_000, 150, 60 * 1_000)),
        *_growth(rate=2_000, seconds=120, long_seconds=800),
    ]


def quick_workloads() -> list[Workload]:
    """Return one workload of each kind with little data, and two points of growth.

    Only the first of them runs on Spark.
    """
    few = Streams(100, 6, 200, file_seconds=2)
    three = Streams(50, 6, 100, names="ABC", file_seconds=2)
    one = Streams(100, 6, 50, names="A", file_seconds=2)
    near, every = (2_000,), 1
    return [
        Workload("one window join", "join", few, near),
        Workload("seven windows", "join", few, (500, 2_000), systems=_FEWER),
        Workload("three-way join", "three", three, near, systems=_FEWER),
        Workload("join of the last 1000 rows", "rows", few, near, last_rows=100, systems=_FEWER),
        Workload("sliding DISTINCT", "distinct", one, near, every, systems=_FEWER),
        Workload("aggregate over a join", "aggregate", few, near, every, systems=_FEWER),
        *(
            replace(
                _point({"queries": count}, few, _spread(2_000, count)),
                systems=("Muntin", "DuckDB, batch"),
            )
            for count in (1, 2)
        ),
    ]


def _growth(rate: int, seconds: int, long_seconds: int) -> list[Workload]:
    """Return points that each grow in one respect, with the same number of partners per row.

    One line grows in the partners themselves.

    Two points stand in two of the lines each.
    """
    most = 120 * rate
    few, middle = most // 100, most // 10
    slow = rate // 4
    return [
        *(
            _point(
                {"seconds of the window": window},
                Streams(slow, long_seconds, 2 * window * slow, file_seconds=30),
                (window * 1_000,),
            )
            for window in (4, 40, 400)
        ),
        _point({"keys": few}, Streams(rate, seconds, few, share=few / most)),
        _point(
            {"keys": middle, "partners of a row": 1},
            Streams(rate, seconds, middle, share=middle / most),
        ),
        _point({"keys": most, "queries": 1}, Streams(rate, seconds, most)),
        *(
            _point({"partners of a row": share * 10}, Streams(rate, seconds, middle, share=share))
            for share in (0.01, 1.0)
        ),
        *(
            _point({"queries": count}, Streams(rate, seconds, most), _spread(MINUTE, count))
            for count in (4, 8)
        ),
    ]


def _point(
    places: Mapping[str, float], streams: Streams, windows: tuple[int, ...] = (MINUTE,)
) -> Workload:
    name = ", ".join(f"{place:,.10g} {sweep}" for sweep, place in places.items())
    return Workload(f"growth: {name}", "join", streams, windows, places=places)


def _spread(largest: int, count: int) -> tuple[int, ...]:
    """Return windows up to the largest, at equal distances."""
    return tuple(largest * place // count for place in range(1, count + 1))
