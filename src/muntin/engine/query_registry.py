"""The queries of an engine by name, running or suspended, and their results that wait for poll.

Users hold a :class:`StandingQuery` of each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from muntin.engine.async_changes import AsyncChanges
from muntin.engine.declarations import Declarations
from muntin.engine.delivery import Deliveries
from muntin.engine.fair_lock import FairLock
from muntin.engine.figures import query_counts, stream_counts
from muntin.engine.live_view import Display, LiveOptions, LiveView, Reading
from muntin.engine.subscription import BUFFER, Subscription
from muntin.errors import QuerySuspendedError
from muntin.metrics.figures import QueryCounts, StreamCounts
from muntin.metrics.finished import Finished
from muntin.model.arguments import check_name
from muntin.model.settings import Settings
from muntin.plan.explanation import Explanation
from muntin.plan.query import Query
from muntin.runtime.dataflow import Dataflow
from muntin.runtime.query_group import Output, QueryGroup
from muntin.runtime.stalled_stream import Waiting
from muntin.state.columns import empty_table

if TYPE_CHECKING:
    from muntin.engine.inspector import Inspector
    from muntin.engine.suspended_query import SuspendedQuery

Subscriber: TypeAlias = Callable[[pa.RecordBatch], None]


@dataclass
class QueryEntry:
    """A registered query: results not polled yet, its registration moment, and its suspension.

    ``settings`` are those that it runs with. ``late_before`` is how many rows had been late for its
    group when it was registered.
    """

    query: Query
    settings: Settings
    since: float
    late_before: int
    results: list[pa.Table] = field(default_factory=list)
    suspended: SuspendedQuery | None = None

    def rows_waiting(self) -> int:
        """Return the rows that were not polled yet."""
        return sum(map(len, self.results))

    def waits_for(self, group: QueryGroup) -> Waiting | None:
        """Return the stream that the query waits for in its group, and since when."""
        stream = group.waits_for()
        if stream is None:
            return None
        since = self.since if stream.last_row is None else stream.last_row
        return Waiting(stream.stream.name, stream.newest, time.monotonic() - since)


class QueryRegistry:
    """Finds queries by name, whatever its case, and routes outputs to polls and subscribers."""

    def __init__(self, lock: FairLock, dataflow: Dataflow, declared: Declarations) -> None:
        self.deliveries = Deliveries(lock)
        self._lock = lock
        self._dataflow = dataflow
        self._declared = declared
        self._entries: dict[str, QueryEntry] = {}
        self.finished = Finished(QueryCounts())
        """The counts of dropped queries."""
        self.finished_streams = Finished(StreamCounts())
        """The counts of dropped streams."""
        self._taps: dict[str, list[Callable[[pa.Table], None]]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, query: Query, settings: Settings, initial: list[pa.Table]) -> None:
        """Add a query that runs, with its results from before any row."""
        late = self._dataflow.group_of(query.name).rows_late()
        self.put(QueryEntry(query, settings, time.monotonic(), late, initial))

    def put(self, entry: QueryEntry) -> None:
        """Add a query as it was when a checkpoint was written."""
        self._entries[entry.query.name.casefold()] = entry

    def remove(self, name: str) -> QueryEntry:
        """Remove a query, which still runs, with its results and subscribers; keep its counts."""
        entry = self._entries[name.casefold()]
        self.finished.add(entry.query.name, query_counts(self._dataflow, entry))
        self.deliveries.forget(name)
        self._taps.pop(name.casefold(), None)
        return self._entries.pop(name.casefold())

    def forget_stream(self, name: str) -> None:
        """Keep the counts of a stream that is dropped next."""
        self.finished_streams.add(name, stream_counts(self._dataflow.streams[name]))

    def find(self, name: str) -> QueryEntry:
        """Return a query, or raise an error that names those that exist."""
        check_name(name, "the name of a query")
        with self._lock:
            entry = self._entries.get(name.casefold())
            if entry is None:
                raise self._declared.unknown_query(name)
            return entry

    def entries(self) -> list[QueryEntry]:
        """Return all queries in the order in which they were registered."""
        return list(self._entries.values())

    def take(self, outputs: Iterable[Output]) -> None:
        """Keep results for poll and for subscribers; a query with live ones keeps none for poll."""
        deliveries = self.deliveries
        for name, table in outputs:
            for tap in self._taps.get(name.casefold(), ()):
                tap(table)
            subscribers = [*deliveries.of(name), *deliveries.feeds(name)]
            if subscribers:
                deliveries.hand(name, table)
            if not (deliveries.live and subscribers):
                self._entries[name.casefold()].results.append(table)

    def poll(self, name: str) -> pa.Table:
        """Take the results of a query; after an interrupt they are still there for the next call.

        Once the results of a suspended query are taken, its failure is raised.
        """
        taken: list[list[pa.Table]] = []
        try:
            with self._lock:
                entry = self.find(name)
                taken.append(entry.results)
                entry.results = []
                if entry.suspended is not None and not taken[0]:
                    raise entry.suspended.error
            if not taken[0]:
                return empty_table(entry.query.output_schema)
            return taken[0][0] if len(taken[0]) == 1 else pa.concat_tables(taken[0])
        except KeyboardInterrupt:
            if taken:
                with self._lock:
                    entry = self.find(name)
                    entry.results = [*taken[0], *entry.results]
            raise

    def answer(self, name: str) -> pa.Table:
        """Return the answer of a query now; raise the failure of a suspended one."""
        with self._lock:
            entry = self.find(name)
            if entry.suspended is not None:
                raise entry.suspended.error
            return self._dataflow.queries[entry.query.name].answer()

    def subscribe(self, name: str, callback: object, buffer: int) -> Subscription:
        """Add a subscriber of a query."""
        with self._lock:
            self.find(name)
            return self.deliveries.subscribe(name, callback, buffer)

    def tap(self, name: str, callback: Callable[[pa.Table], None]) -> Callable[[], None]:
        """Call a function with the results of a query, and return what ends that.

        It is called under the lock, so it must return at once. Polls and subscribers get the
        results all the same.
        """
        with self._lock:
            key = self.find(name).query.name.casefold()
            self._taps[key] = [*self._taps.get(key, ()), callback]

        def cancel() -> None:
            with self._lock:
                self._taps[key] = [each for each in self._taps.get(key, ()) if each != callback]

        return cancel

    def changes(self, name: str, buffer: int) -> AsyncChanges:
        """Return the results of a query from now on, for the event loop that runs."""
        with self._lock:
            self.find(name)
            return AsyncChanges(self.deliveries.feed(name, buffer))


class StandingQuery:
    """A registered query; made by :meth:`muntin.Engine.query`.

    Examples
    --------
    >>> import muntin
    >>> engine = muntin.Engine()
    >>> engine.stream("A", {"k": "bigint", "ts": "timestamp"}, time="ts")
    >>> q = engine.query("SELECT k FROM A WINDOW 1 MINUTE", name="q")
    >>> engine.push("A", [(7, "2026-01-01")])
    >>> q.poll().column("k").to_pylist()
    [7]
    """

    def __init__(self, name: str, registry: QueryRegistry, inspector: Inspector) -> None:
        self.name = name
        self._registry = registry
        self._inspector = inspector

    def poll(self) -> pa.Table:
        """Return the changes since the last poll: ``_op``, ``_ts``, then the select list."""
        return self._registry.poll(self.name)

    def answer(self) -> pa.Table:
        """Return the answer now: the select list over the rows inside their windows."""
        return self._registry.answer(self.name)

    def stats(self) -> dict[str, object]:
        """Return rows in and out, response times, state rows and bytes, and the work done."""
        return self._inspector.query_stats(self.name)

    def explain(self) -> Explanation:
        """Return how this query is run: a tree for people, a picture in a notebook."""
        return self._inspector.explain(self.name)

    def plan(self) -> dict[str, object]:
        """Return how this query is run, for machines: :meth:`explain` as nested dicts and lists."""
        return self._inspector.plan(self.name)

    def subscribe(self, callback: Subscriber, buffer: int = BUFFER) -> Subscription:
        """Call ``callback`` with a RecordBatch whenever results are released, in order.

        While the engine runs in the background (:meth:`muntin.Engine.start`), each subscriber is
        called in a separate thread as results are released. A failure is logged and counted, see
        ``stats()["subscribers"]``. If a subscriber is so slow that ``buffer`` bytes of results wait
        for it, further results are skipped and counted.

        Otherwise the callback runs in the thread that pushed or advanced, after the engine has
        finished its work, so it may poll or push (results of that push are delivered after it
        returns). When it fails, the push raises :class:`muntin.errors.SubscriberError` after all
        subscribers were called, and the results stay available to ``poll``.
        """
        return self._registry.subscribe(self.name, callback, buffer)

    def changes(self, buffer: int = BUFFER) -> AsyncChanges:
        """Return an asynchronous iterator over the results from now on, as RecordBatches.

        Call it in a coroutine: ``async for batch in query.changes(): ...``. The iteration ends when
        the query is dropped, and raises :class:`muntin.errors.QuerySuspendedError` when it fails.
        If more than ``buffer`` bytes of results wait, it raises
        :class:`muntin.errors.SubscriberError` after them. While the engine runs in the background,
        results go to the iterator and are not kept for ``poll``.
        """
        return self._registry.changes(self.name, buffer)

    def live(
        self,
        seconds: float = 60.0,
        refresh: float = 1.0,
        *,
        view: str = "chart",
        display: Display | None = None,
    ) -> LiveView:
        """Show the query in a notebook, refreshed until it is dropped or the time is over.

        Results stay available to ``poll``.

        Parameters
        ----------
        seconds : float
            How long it is refreshed.
        refresh : float
            The seconds between two updates; 0.1 or more.
        view : str
            ``"chart"``: results per second; ``"table"``: the first rows of the answer.
        display : callable, optional
            Shows HTML and returns a function that replaces it. None: the notebook that runs.

        Returns
        -------
        LiveView
            Its ``stop()`` ends it earlier.
        """
        options = LiveOptions(seconds, refresh, view, display)
        return LiveView(self.name, partial(self._reading, answers=view == "table"), options)

    def _reading(self, *, answers: bool) -> Reading:
        stats: Any = self.stats()
        if stats["suspended"]:
            raise QuerySuspendedError(self.name, stats["suspended"])
        figures = {
            "rows in": stats["rows_in"],
            "results": stats["rows_out"],
            "p95 seconds": f"{stats['response_seconds']['p95']:.3g}",
            "lag seconds": f"{stats['overload']['lag_seconds']:.3g}",
            "rows in windows": sum(stats["state_rows"].values()),
            "watermark": stats["watermark"],
        }
        return Reading(stats["rows_out"], figures, self.answer() if answers else None)

    def __repr__(self) -> str:
        return f"StandingQuery({self.name!r})"

    def _repr_html_(self) -> str:
        return self._inspector.query_html(self.name)
