"""Joins whose work is predicted and counted: the check of the cost models of [Golab03].

Every other order of Tables 5, 6 and 7 under EAGER, from the best to the worst, and Table 5's
streams under the other algorithms, at intervals of 1, 5 and 10 seconds, with nested loops and with
hash indexes of five buckets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from muntin.planner.lazy_orders import Work
from muntin.testing.join_counts import (
    TABLE_5,
    TABLE_6,
    TABLE_7,
    Counted,
    PaperStream,
    count_work,
    make_streams,
    order_setting,
    orders_setting,
    statistics_of,
)
from muntin.testing.paper_costs.lazy_join import general_lazy_work, lazy_work, naive_work
from muntin.testing.paper_costs.multi_join import eager_cost
from muntin.testing.paper_costs.order_search import exhaustive

_SEED = 1
_BEST, _WORST = (0, 1, 2, 3), (2, 3, 1, 0)
_MIXED = ((0, 2, 1, 3), (0, 1, 3, 2), (3, 1, 2, 0), (2, 1, 0, 3))
"""An order for each origin, with the origin at the first, second, third and last place."""


@dataclass(frozen=True)
class CountedCase:
    """A join of some streams under some settings, and its predicted work per second."""

    name: str
    settings: dict[str, str]
    predicted: Work


@dataclass(frozen=True)
class Group:
    """Cases over the same rows, and how many seconds of them are counted."""

    name: str
    streams: tuple[PaperStream, ...]
    seconds: int
    cases: tuple[CountedCase, ...]

    def count(self, every: int = 1) -> Iterator[tuple[CountedCase, Counted]]:
        """Run all cases, or one in ``every``."""
        rows = make_streams(self.streams, self.seconds, _SEED)
        for case in self.cases[::every]:
            yield case, count_work(self.streams, rows, self.seconds, **case.settings)


def groups() -> list[Group]:
    """Return all groups."""
    table_6 = _eager_cases(TABLE_6)
    return [
        Group("Table 5", TABLE_5, 600, _eager_cases(TABLE_5)),
        # Which rows of streams 2 and 3 go together decides what the cheaper orders cost; those are
        # few, so it takes longer.
        Group("Table 6, cheaper orders", TABLE_6, 1_200, table_6[:7]),
        Group("Table 6, more expensive orders", TABLE_6, 300, table_6[7:]),
        Group("Table 7", TABLE_7, 600, _eager_cases(TABLE_7)),
        Group("Other algorithms", TABLE_5, 600, tuple(_other_cases())),
    ]


def _eager_cases(streams: Sequence[PaperStream]) -> tuple[CountedCase, ...]:
    found = exhaustive(statistics_of(streams))
    return tuple(_eager(candidate.order, streams, 1) for candidate in [*found[:-1:2], found[-1]])


def _eager(order: Sequence[int], streams: Sequence[PaperStream], buckets: int) -> CountedCase:
    cost = eager_cost(order, statistics_of(streams, buckets))
    return CountedCase(
        _name("EAGER", order, buckets),
        _settings(buckets) | {"order": order_setting(order)},
        Work(cost, cost),
    )


def _other_cases() -> Iterator[CountedCase]:
    for buckets in (1, 5):
        windows = statistics_of(TABLE_5, buckets)
        if buckets > 1:
            yield from (_eager(order, TABLE_5, buckets) for order in (_BEST, _WORST))
        settings = _settings(buckets) | {"algorithm": "naive", "order": order_setting(_BEST)}
        name = _name("NAIVE row by row", _BEST, buckets)
        yield CountedCase(name, settings, naive_work(_BEST, windows))
        for interval in (1, 5, 10):
            lazy = _settings(buckets) | {"reevaluation": f"{interval} seconds", "algorithm": "lazy"}
            general = lazy | {"algorithm": "general_lazy"}
            for order in (_BEST, _WORST):
                name = _name(f"LAZY {interval} s", order, buckets)
                yield CountedCase(
                    name,
                    lazy | {"order": order_setting(order)},
                    lazy_work(order, windows, interval),
                )
            name = _name(f"NAIVE {interval} s", _BEST, buckets)
            yield CountedCase(
                name,
                general | {"order": order_setting(_BEST)},
                naive_work(_BEST, windows, interval),
            )
            name = f"GENERAL LAZY {interval} s, own orders{_suffix(buckets)}"
            yield CountedCase(
                name,
                general | {"order": orders_setting(_MIXED)},
                general_lazy_work(_MIXED, windows, interval),
            )


def _settings(buckets: int) -> dict[str, str]:
    return {"join": "nested_loop"} if buckets == 1 else {"join": "hybrid", "buckets": str(buckets)}


def _name(algorithm: str, order: Sequence[int], buckets: int) -> str:
    return f"{algorithm}, {order_setting(order)}{_suffix(buckets)}"


def _suffix(buckets: int) -> str:
    return "" if buckets == 1 else f", {buckets} buckets"
