"""Call the listeners that users have added to a session with the events of Muntin's queries.

Spark's own dispatcher would be the wrong place: one listener that is slow would hold up the reports
of all streaming queries, ours included. A thread of ours asks the session for its listeners and
calls each of them. Whatever they do, the engine continues: an exception is logged, and behind a
listener that does not return, events wait in a bounded queue, from which the oldest progress is
left out.

Events are made in Java, so listeners in any language get them. PySpark asks Java for each number of
a progress separately: an event costs a listener in Python about 20 ms of a core.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from muntin.spark.driver.listener import own_listeners
from muntin.spark.driver.query_events import EventKind, QueryEvent
from muntin.spark.failures import fact_of

_log = logging.getLogger("muntin.spark")

_MOST = 1000
"""Events that wait at most."""
_LINGER = 2.0
"""Seconds without events after which the thread ends."""
_STUCK = 10.0
"""Seconds after which a call is no longer waited for."""
_LOSABLE = (EventKind.PROGRESS, EventKind.IDLE)


class ListenerCalls:
    """Calls listeners in a thread, which exists while there are events.

    ``call`` calls all listeners with an event; it is replaced in tests.
    """

    def __init__(
        self,
        session: SparkSession,
        most: int = _MOST,
        call: Callable[[QueryEvent], None] | None = None,
    ) -> None:
        self._session = session
        self._most = most
        self._call = call or self._call_listeners
        self._waiting: deque[QueryEvent] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._since: float | None = None
        """The beginning of the call that has not returned."""
        self.left_out = 0

    def put(self, events: Sequence[QueryEvent]) -> None:
        """Add events; return at once."""
        with self._changed:
            self._waiting.extend(events)
            while len(self._waiting) > self._most:
                self._leave_out()
            if self._waiting and self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="muntin-listeners", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def _leave_out(self) -> None:
        """Leave out the oldest progress; if there is none, the oldest event."""
        lost = next((event for event in self._waiting if event.kind in _LOSABLE), self._waiting[0])
        self._waiting.remove(lost)
        if self.left_out == 0:
            _log.warning(
                "listeners of the session are %d events behind; progress of queries is left out",
                self._most,
            )
        self.left_out += 1

    def drain(self, seconds: float) -> bool:
        """Wait until listeners have been called with all events; return whether they have.

        Not inside a listener, and not for a call that has not returned for long.
        """
        until = time.monotonic() + seconds
        with self._changed:
            if self._thread is threading.current_thread():
                return False
            while self._waiting or self._since is not None:
                now = time.monotonic()
                stuck = self._since is not None and now - self._since > _STUCK
                if now >= until or stuck:
                    _log.warning(
                        "listeners of the session have yet to receive %d events of queries",
                        len(self._waiting) + (self._since is not None),
                    )
                    return False
                self._changed.wait(min(until - now, 1.0))
        return True

    def _run(self) -> None:
        while (event := self._take()) is not None:
            try:
                self._call(event)
            except Exception as error:  # noqa: BLE001 (the session may end at any time)
                _log.debug("events of queries are not reported: %s", error)
            finally:
                with self._changed:
                    self._since = None
                    self._changed.notify_all()

    def _take(self) -> QueryEvent | None:
        """Return the next event; None, and no thread from then on, if none comes for a while."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting, _LINGER):
                self._thread = None
                return None
            self._since = time.monotonic()
            return self._waiting.popleft()

    # -- Java ------------------------------------------------------------------------------------

    def _call_listeners(self, event: QueryEvent) -> None:
        found = self._session.streams._jsqm.listListeners()  # noqa: SLF001 (not in PySpark)
        ours = own_listeners()
        listeners = [one for one in found if not any(one.equals(own) for own in ours)]
        if not listeners:
            return
        made = java_event(self._session, event)
        for listener in listeners:
            try:
                getattr(listener, event.kind)(made)
            except Exception as error:  # noqa: BLE001 (whatever it does, the others are called)
                _log.warning(
                    "a listener failed at %s of query %s; the run continues: %s",
                    event.kind,
                    event.name,
                    fact_of(str(error)),
                )


def java_event(session: SparkSession, event: QueryEvent) -> Any:
    """Return an event as the object that Spark gives to its listeners."""
    jvm: Any = session._jvm  # noqa: SLF001 (PySpark's own listeners do the same)
    package = jvm.org.apache.spark.sql.streaming

    def made(kind: str, *values: Any) -> Any:
        return getattr(package, f"StreamingQueryListener${kind}")(*values)

    if event.kind is EventKind.PROGRESS:
        assert event.progress is not None, "progress has one"
        companion = getattr(getattr(package, "StreamingQueryProgress$"), "MODULE$")
        return made("QueryProgressEvent", companion.fromJson(progress_text(event.progress)))
    ids = [jvm.java.util.UUID.fromString(text) for text in (event.id, event.run_id)]
    if event.kind is EventKind.STARTED:
        return made("QueryStartedEvent", *ids, event.name, event.timestamp)
    if event.kind is EventKind.IDLE:
        return made("QueryIdleEvent", *ids, event.timestamp)
    error = event.error
    texts = (None, None) if error is None else (str(error), type(error).__name__)
    return made("QueryTerminatedEvent", *ids, *map(jvm.scala.Option.apply, texts))


def progress_text(progress: Mapping[str, Any]) -> str:
    """Return the progress of a query as a text from which Java makes Spark's progress.

    Spark's has no place for our counts, except among the metrics of the sink, which are texts. It
    must have all fields, although their text omits empty ones.
    """
    sink = {**progress["sink"], "metrics": {"muntin": json.dumps(progress["muntin"])}}
    sources = [{"metrics": {}, **source} for source in progress["sources"]]
    defaults = {"batchDuration": 0, "eventTime": {}, "stateOperators": [], "observedMetrics": {}}
    given = {key: value for key, value in progress.items() if key != "muntin"}
    return json.dumps({**defaults, **given, "sources": sources, "sink": sink})
