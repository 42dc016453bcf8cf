"""Pathway in its static mode: one batch through its incremental dataflow.

It reads CSV, the only kind of file that it reads fast.

In its streaming mode a source of files never ends, and one written in Python takes rows one by one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

os.environ.setdefault("PATHWAY_THREADS", str(os.cpu_count() or 1))  # read on import

import pathway as pw
from pathway.internals.parse_graph import G

CANNOT: Mapping[str, str] = {
    "rows": "joins of streams are bounded by time or not at all; there are no windows of rows"
}


class _Row(pw.Schema):
    k: int
    g: int
    v: int
    ts: int


def begin(_: Mapping[str, Any]) -> None:
    """Nothing has to be started."""


def run(_: None, job: Mapping[str, Any]) -> dict[str, list[int]]:
    """Build the graph of all windows and run it."""
    G.clear()
    streams = [
        pw.io.csv.read(f"{job['data']}/csv-header/{name}", schema=_Row, mode="static")
        for name in job["streams"]
    ]
    make = {"join": _join, "three": _three, "distinct": _distinct, "aggregate": _aggregate}[
        job["kind"]
    ]
    found = {str(window): [0, 0] for window in job["windows"]}

    def listen(name: str, table: Any) -> None:
        def on_change(
            key: Any,  # noqa: ARG001
            row: Mapping[str, Any],
            time: int,  # noqa: ARG001
            is_addition: bool,  # noqa: FBT001
        ) -> None:
            if is_addition:
                found[name] = [row["n"], row["c"]]

        pw.io.subscribe(table, on_change)

    for window in job["windows"]:
        checksums = make(streams, job, window)
        listen(str(window), checksums.reduce(n=pw.reducers.count(), c=pw.reducers.sum(pw.this.c)))
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return found


def _mixed(number: Any) -> Any:
    """Return the term of a result in the checksum: a square, so that swapped partners show."""
    return (number % 1000003) * (number % 1000003) % 1000003


def _join(streams: list[Any], _: Mapping[str, Any], window: int) -> Any:
    a, b = streams
    near = pw.temporal.interval(1 - window, window - 1)
    return a.interval_join(b, a.ts, b.ts, near, a.k == b.k).select(
        c=_mixed(a.v * 7919 + b.v * 104729)
    )


def _three(streams: list[Any], _: Mapping[str, Any], window: int) -> Any:
    a, b, c = streams
    near = pw.temporal.interval(1 - window, window - 1)
    pairs = a.interval_join(b, a.ts, b.ts, near, a.k == b.k).select(
        a.k, at=a.ts, bt=b.ts, av=a.v, bv=b.v
    )
    triples = pairs.interval_join(c, pairs.at, c.ts, near, pairs.k == c.k).select(
        apart=pairs.bt - c.ts, c=_mixed(pairs.av * 7919 + pairs.bv * 104729 + c.v * 1299709)
    )
    return triples.filter((pw.this.apart < window) & (pw.this.apart > -window))


def _sliding(job: Mapping[str, Any], window: int) -> Any:
    return pw.temporal.sliding(hop=job["every"] * 1_000, duration=window, origin=0)


def _distinct(streams: list[Any], job: Mapping[str, Any], window: int) -> Any:
    (a,) = streams
    windows = a.windowby(a.ts, window=_sliding(job, window), instance=a.k)
    keys = windows.reduce(k=pw.this._pw_instance, t=pw.this._pw_window_end // 1_000)  # noqa: SLF001
    return keys.filter(pw.this.t <= job["end"]).select(
        c=_mixed(pw.this.t * 7919 + pw.this.k * 104729)
    )


def _aggregate(streams: list[Any], job: Mapping[str, Any], window: int) -> Any:
    a, b = streams
    joined = a.window_join(b, a.ts, b.ts, _sliding(job, window), a.k == b.k)
    pairs = joined.select(t=pw.this._pw_window_end // 1_000, g=a.g, v=b.v)  # noqa: SLF001
    groups = pairs.groupby(pw.this.t, pw.this.g).reduce(
        pw.this.t, pw.this.g, n=pw.reducers.count(), s=pw.reducers.sum(pw.this.v)
    )
    answers = groups.filter(pw.this.t <= job["end"])
    return answers.select(
        c=_mixed(pw.this.t * 7919 + pw.this.g * 104729 + pw.this.n * 1299709 + pw.this.s * 15485863)
    )
