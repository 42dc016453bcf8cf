"""Counted work per second of joins on one attribute, on streams as in [Golab03].

For comparing cost models with the engine. A tick brings one row, of a stream drawn by the rates,
with a value drawn uniformly, as in the paper's section 6.1; a second has as many ticks as rows come
in it, so rates, windows and numbers of values are those of a table of the paper. Both are drawn in
rounds: every 100 seconds each stream has its number of rows, and each of its values comes once
before any comes again, in random order. Drawn one by one they have the same mean and scatter more:
in Table 6 only one row in a hundred of stream 2 finds partners everywhere, and hours of stream
would have to be counted. Counting begins when all windows are full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from muntin.engine.engine import Engine
from muntin.engine.query_registry import StandingQuery
from muntin.model.clock import SECOND
from muntin.planner.lazy_orders import WindowStatistics

_ROUND = 100


@dataclass(frozen=True)
class PaperStream:
    """A line of [Golab03, Tables 5 to 7]: rows per second, window seconds, distinct values."""

    rate: int
    window: int
    distinct: int


TABLE_5 = (
    PaperStream(10, 100, 500),
    PaperStream(1, 100, 50),
    PaperStream(1, 200, 40),
    PaperStream(3, 100, 5),
)
TABLE_6 = (
    PaperStream(100, 100, 200),
    PaperStream(1, 100, 200),
    PaperStream(1, 100, 20),
    PaperStream(3, 100, 2),
)
TABLE_7 = (
    PaperStream(11, 100, 200),
    PaperStream(10, 100, 100),
    PaperStream(1, 100, 65),
    PaperStream(1, 100, 20),
)


def statistics_of(streams: Sequence[PaperStream], buckets: int = 1) -> list[WindowStatistics]:
    """Return the streams as the cost models see them.

    >>> statistics_of(TABLE_5)[0]
    WindowStatistics(rate=10, rows=1000, distinct=500, buckets=1)
    """
    return [
        WindowStatistics(stream.rate, stream.rate * stream.window, stream.distinct, buckets)
        for stream in streams
    ]


def order_setting(order: Sequence[int]) -> str:
    """Return a global order as the value of the setting ``order``.

    >>> order_setting([1, 0])
    'S2, S1'
    """
    return ", ".join(f"S{place + 1}" for place in order)


def orders_setting(orders: Sequence[Sequence[int]]) -> str:
    """Return an order for each origin as the value of the setting ``order``.

    >>> orders_setting([[0, 1], [0, 1]])
    'S1: S1, S2; S2: S1, S2'
    """
    return "; ".join(
        f"S{origin + 1}: {order_setting(order)}" for origin, order in enumerate(orders)
    )


@dataclass(frozen=True)
class Counted:
    """Counts per second of one run, by the names of ``stats()["work"]``."""

    work: dict[str, float]

    @property
    def comparisons(self) -> float:
        """Return the attributes compared per second."""
        return self.work["comparisons"]

    @property
    def scanned(self) -> float:
        """Rows looked at per second."""
        return self.work["rows_scanned"]


def make_streams(streams: Sequence[PaperStream], seconds: int, seed: int) -> list[pa.Table]:
    """Return rows that fill all windows and then come for ``seconds`` more."""
    random = np.random.default_rng(seed)
    rates = [stream.rate for stream in streams]
    ticks = (_filling(streams) + seconds) * sum(rates)
    stream_of_tick = _rounds(
        np.repeat(np.arange(len(rates)), np.array(rates) * _ROUND), ticks, random
    )
    times = (np.arange(1, ticks + 1) * (SECOND // sum(rates))).view("datetime64[us]")
    tables = []
    for place, stream in enumerate(streams):
        mine = times[stream_of_tick == place]
        values = _rounds(np.arange(1, stream.distinct + 1), len(mine), random)
        tables.append(pa.table({"attr": values, "ts": pa.array(mine)}))
    return tables


def _rounds(
    items: npt.NDArray[np.int64], count: int, random: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return the items in random order, again and again, until there are ``count``."""
    rounds = np.tile(items, (-(-count // len(items)), 1))
    return random.permuted(rounds, axis=1).reshape(-1)[:count]


def count_work(
    streams: Sequence[PaperStream], rows: Sequence[pa.Table], seconds: int, **settings: str
) -> Counted:
    """Run the join over rows of :func:`make_streams` and count its work in the last ``seconds``."""
    engine = Engine(**settings)
    for number in range(1, len(streams) + 1):
        engine.stream(f"S{number}", {"attr": "bigint", "ts": "timestamp"}, time="ts")
    froms = ", ".join(
        f"S{number} [RANGE {stream.window} SECONDS]" for number, stream in enumerate(streams, 1)
    )
    equal = " AND ".join(f"S1.attr = S{number}.attr" for number in range(2, len(streams) + 1))
    query = engine.query(f"SELECT S1.attr FROM {froms} WHERE {equal}")
    full = _filling(streams)
    before = _push(engine, query, rows, 0, full)
    after = _push(engine, query, rows, full, full + seconds)
    return Counted({name: (after[name] - before[name]) / seconds for name in after})


def _filling(streams: Sequence[PaperStream]) -> int:
    """Seconds until all windows are full, and a round more."""
    return max(stream.window for stream in streams) + _ROUND


def _push(
    engine: Engine, query: StandingQuery, rows: Sequence[pa.Table], since: int, until: int
) -> dict[str, int]:
    """Push the rows after one second up to another and return what was counted until then."""
    for number, table in enumerate(rows, 1):
        times = table.column("ts").cast("int64").to_numpy()
        engine.push(
            f"S{number}", table.filter((times > since * SECOND) & (times <= until * SECOND))
        )
    engine.advance(until * SECOND)
    query.poll()
    work = query.stats()["work"]
    assert isinstance(work, dict), "the counts have names"
    return work
