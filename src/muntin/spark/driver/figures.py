"""Read the figures of an engine on Spark, for :mod:`muntin.metrics`.

Figures are those after the last batch. They come from any thread while batches run, so they are
read under the lock of the counts.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

from muntin.engine.figures import overload_figures, seconds_of
from muntin.metrics.figures import (
    BatchFigures,
    EngineFigures,
    QueryFigures,
    StreamCounts,
    StreamFigures,
    Waits,
)
from muntin.model.clock import BEFORE_ALL
from muntin.spark.driver.metrics import QueryMetrics, RunMetrics
from muntin.spark.exchange.partition_metrics import QueryClock

_SECOND = 1_000_000
_QUEUE = {"mode": "queue"}


def read_figures(
    metrics: RunMetrics,
    streams: Collection[str],
    queries: Mapping[str, Mapping[str, Any] | None],
    suspended: Collection[str],
) -> EngineFigures:
    """Return the figures of an engine; ``queries`` has the report on the overload of each."""
    with metrics.lock:
        return EngineFigures(
            kind="spark",
            streams={name: _stream_figures(metrics, name) for name in streams},
            queries={
                name: _query_figures(metrics, name, report or _QUEUE, name in suspended)
                for name, report in queries.items()
            },
            results=metrics.finished.total.results + sum(metrics.results.values()),
            held_bytes=metrics.bytes_held,
            held_rows=metrics.rows_held,
            batches=BatchFigures(
                metrics.batches,
                dict(metrics.phases),
                metrics.last_batch,
                metrics.rebuilds.partitions,
                metrics.rebuilds.rows,
                metrics.rebuilds.partition_seconds,
                metrics.unsent,
            ),
        )


def _stream_figures(metrics: RunMetrics, name: str) -> StreamFigures:
    ahead, last = metrics.ahead[name], metrics.last_rows.get(name)
    return StreamFigures(
        StreamCounts(metrics.rows_in[name], metrics.late[name] - ahead, ahead),
        idle=None if last is None else time.monotonic() - last,
    )


def _query_figures(
    metrics: RunMetrics, name: str, overload: Mapping[str, Any], suspended: object
) -> QueryFigures:
    key = name.casefold()
    own, clock = metrics.queries.get(key, QueryMetrics()), metrics.clocks.get(key, QueryClock())
    waiting = metrics.waiting(key)
    is_behind = metrics.newest > BEFORE_ALL and clock.watermark > BEFORE_ALL
    return QueryFigures(
        metrics.finished.before(key) + metrics.query_counts(key),
        suspended=bool(suspended),
        lag=max(metrics.newest - clock.watermark, 0) / _SECOND if is_behind else 0.0,
        watermark=seconds_of(clock.watermark),
        waits=None if waiting is None else Waits(waiting.stream, waiting.since_seconds),
        state_rows=own.buffers["join"],
        buffers={each: own.buffers[each] for each in ("input", "held", "output")},
        overload=overload_figures(overload),
    )
