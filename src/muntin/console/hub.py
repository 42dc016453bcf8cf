"""What all open browsers get: a snapshot about once a second, and results of one query each.

An engine is looked at only while a browser is. A browser that reads slowly misses snapshots: only
the newest one waits for it, and a bounded number of results; what is left out is counted. So
neither the engine nor another browser ever waits for it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import anyio
from anyio.to_thread import run_sync

from muntin.console.graph import Graph
from muntin.console.result_buffer import ResultBuffer
from muntin.console.rows import plain, rows_of
from muntin.console.source import Cancel, ConsoleSource
from muntin.errors import MuntinError

INTERVAL = 1.0
"""Seconds between snapshots."""
RESULTS_EVERY = 0.25
"""Seconds between results."""
_PLANS_EVERY = 5.0
_REMEMBERED = 300
"""Snapshots that a browser gets when it connects, as points of charts."""
_PATIENCE = 120.0

Found = TypeVar("Found")


class BusyError(Exception):
    """The engine has not answered in time."""


class Hub:
    """Looks at an engine for all browsers."""

    def __init__(self, source: ConsoleSource, *, interval: float = INTERVAL) -> None:
        self.source = source
        self.viewers: set[Viewer] = set()
        self.history: deque[dict[str, Any]] = deque(maxlen=_REMEMBERED)
        self.closed = asyncio.Event()
        self.latest: dict[str, Any] | None = None
        self._interval = interval
        self._threads = anyio.CapacityLimiter(8)
        self._woken = asyncio.Event()
        self._planned = 0.0
        self._shape: object = None
        self._graph: dict[str, Any] = {"nodes": [], "edges": []}

    async def ask(self, call: Callable[[], Found]) -> Found:
        """Call the engine in another thread; raise :class:`BusyError` if it takes too long."""
        try:
            with anyio.fail_after(_PATIENCE):
                return await run_sync(call, abandon_on_cancel=True, limiter=self._threads)
        except TimeoutError as error:
            raise BusyError from error

    async def run(self) -> None:
        """Take snapshots while anybody looks, until cancelled."""
        while True:
            if not self.viewers:
                self._woken.clear()
                await self._woken.wait()
            began = time.monotonic()
            try:
                self._publish(plain(await self.ask(self._look)))
            except BusyError:
                pass  # the views stay as they are
            except Exception as error:  # noqa: BLE001 (shown; the next look may succeed)
                self._publish({"failure": f"{type(error).__name__}: {error}"})
            await asyncio.sleep(max(self._interval - (time.monotonic() - began), 0.05))

    def _look(self) -> dict[str, Any]:
        """Return a snapshot with the graph, which is made again when the queries have changed."""
        snapshot = self.source.snapshot()
        shape = [each["name"] for each in snapshot["queries"]]
        now = time.monotonic()
        if shape != self._shape or now - self._planned > _PLANS_EVERY:
            plans = self.source.plans()
            self._graph = {**Graph(plans).to_dict(), "orders": [order_of(each) for each in plans]}
            self._shape, self._planned = shape, now
        return {"at": time.time(), **snapshot, "graph": self._graph}

    def _publish(self, snapshot: dict[str, Any]) -> None:
        if "failure" not in snapshot:
            self.latest = snapshot
            self.history.append(_point(snapshot))
        for viewer in self.viewers:
            viewer.offer(snapshot)

    def join(self, viewer: Viewer) -> None:
        """Show a browser what is known, and look for it from now on."""
        self.viewers.add(viewer)
        self._woken.set()

    def close(self) -> None:
        """End the events of all browsers."""
        self.closed.set()

    def leave(self, viewer: Viewer) -> None:
        """Forget a browser."""
        self.viewers.discard(viewer)
        viewer.close()


class Viewer:
    """One browser: the snapshot that waits for it, and the results of the query it looks at."""

    def __init__(self, query: str | None) -> None:
        self.query = query
        self.results = ResultBuffer()
        self._cancel: Cancel | None = None
        self._waiting: dict[str, Any] | None = None
        self._missed = 0
        self._resume = 0.0
        self._closed = False
        self._lock = threading.Lock()
        self._changed = asyncio.Event()

    async def begin(self, hub: Hub) -> str:
        """Start to take results; return why there are none, if so."""
        if self.query is None:
            return ""
        name = self.query
        try:
            await hub.ask(lambda: self._keep(hub.source.tap(name, self.results.offer)))
        except MuntinError as error:
            return str(error)
        except BusyError:
            return "the engine has not answered in time"
        return ""

    def _keep(self, cancel: Cancel) -> None:
        """Keep what ends the results; end them if the browser has left meanwhile."""
        with self._lock:
            if not self._closed:
                self._cancel = cancel
                return
        cancel()

    def close(self) -> None:
        """Take no more results."""
        with self._lock:
            self._closed = True
            cancel, self._cancel = self._cancel, None
        if cancel is not None:
            cancel()

    def offer(self, snapshot: dict[str, Any]) -> None:
        """Keep a snapshot for the browser, in place of one that it has not read."""
        self._missed += self._waiting is not None
        self._waiting = snapshot
        self._changed.set()

    async def next(self, longest: float) -> list[tuple[str, dict[str, Any]]]:
        """Return what is new as pairs of an event and its data; nothing after ``longest`` seconds.

        Results wait for a moment, so that they come in few pieces.
        """
        until = time.monotonic() + longest
        while not self._changed.is_set():
            now = time.monotonic()
            if len(self.results) and now >= self._resume:
                break
            if now >= until:
                return []
            step = until - now if self.query is None else min(until - now, RESULTS_EVERY)
            with suppress(TimeoutError):
                async with asyncio.timeout(step):
                    await self._changed.wait()
        self._resume = time.monotonic() + RESULTS_EVERY
        self._changed.clear()
        events: list[tuple[str, dict[str, Any]]] = []
        if self._waiting is not None:
            snapshot, self._waiting = self._waiting, None
            missed, self._missed = self._missed, 0
            events.append(("snapshot", {**snapshot, "missed": missed}))
        taken = self.results.take()
        if taken.table is not None:
            events.append(
                (
                    "results",
                    {
                        "query": self.query,
                        "columns": taken.table.column_names,
                        "rows": rows_of(taken.table),
                        "count": taken.count,
                        "left_out": taken.left_out,
                    },
                )
            )
        return events


def order_of(plan: dict[str, Any]) -> dict[str, Any]:
    """Return what is known of the join order of a query: predicted, measured, and why."""
    return {
        "query": plan.get("query"),
        "joins": [
            {
                "sources": [each["alias"] for each in join["sources"]],
                "prediction": join.get("prediction") or (join.get("join") or {}).get("prediction"),
                "measured": join.get("measured"),
                "orders": {
                    each["alias"]: [_step(step) for step in each["order"].get("steps", ())]
                    for each in join["sources"]
                    if each.get("order")
                },
            }
            for join in _joins(plan)
            if len(join["sources"]) > 1
        ],
    }


def _step(step: dict[str, Any]) -> str:
    """Return where a new row looks next: into a source, or in a tree into several joined ones."""
    return str(step["source"]) if "source" in step else " with ".join(step.get("sources", ()))


def _joins(plan: dict[str, Any]) -> list[dict[str, Any]]:
    if plan.get("sources"):
        return [plan]
    return [join for each in plan.get("operators", ()) for join in _joins(each)]


def _point(snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of a snapshot that charts show."""
    return {
        "at": snapshot["at"],
        "streams": {each["name"]: each.get("rows_in", 0) for each in snapshot["streams"]},
        "queries": {
            each["name"]: {
                "rows_out": each.get("rows_out", 0),
                "response": each.get("response"),
                "lag": (each.get("overload") or {}).get("lag_seconds"),
                "share": (each.get("overload") or {}).get("share_of_results"),
            }
            for each in snapshot["queries"]
        },
    }
