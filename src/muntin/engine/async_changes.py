"""Results of a query for asyncio: ``async for batch in query.changes()``.

Threads of the engine put results into a feed; the iterator takes them out in its event loop. The
feed never waits: when more results wait than its buffer holds, it stops and the iterator raises,
after the results before the gap. An iterator that is closed, cancelled or no longer referred to
marks its feed, which is removed when the next results come: no lock is taken where the garbage
collector may run.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress

import pyarrow as pa

from muntin.errors import MuntinError, SubscriberError


class ChangeFeed:
    """The results that wait for one iterator."""

    def __init__(self, query: str, buffer: int, loop: asyncio.AbstractEventLoop) -> None:
        self.query = query
        self.cancelled = False
        self._buffer = buffer
        self._loop = loop
        self._arrived = asyncio.Event()
        self._lock = threading.Lock()
        self._waiting: deque[pa.RecordBatch] = deque()
        self._bytes = self._rows = self._left_out = 0
        self._ended = False
        self._failure: MuntinError | None = None

    def offer(self, results: pa.RecordBatch) -> None:
        """Take results, or end when the buffer is full; never wait."""
        with self._lock:
            if self.cancelled or self._ended:
                return
            if self._waiting and self._bytes + results.nbytes > self._buffer:
                self._left_out += len(results)
                self._ended = True
                self._failure = SubscriberError(
                    f"changes of query {self.query} were left out: more than {self._buffer} bytes "
                    "wait for the iterator",
                    hint="Call changes again and begin with answer(), or give it a larger buffer",
                )
            else:
                self._waiting.append(results)
                self._bytes += results.nbytes
        self._wake()

    def end(self, failure: MuntinError | None = None) -> None:
        """End the iteration after the results that wait, with a failure if there is one."""
        with self._lock:
            if not self._ended:
                self._ended, self._failure = True, failure
        self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(self._arrived.set)

    async def take(self) -> pa.RecordBatch:
        """Return the next results, when there are any."""
        while True:
            with self._lock:
                if self._waiting:
                    results = self._waiting.popleft()
                    self._bytes -= results.nbytes
                    self._rows += len(results)
                    return results
                if self._ended or self.cancelled:
                    failure, self._failure = self._failure, None
                    if failure is not None:
                        raise failure
                    raise StopAsyncIteration
                self._arrived.clear()
            await self._arrived.wait()

    def stats(self) -> dict[str, object]:
        """Return its counts, under the names of those of a subscriber."""
        with self._lock:
            return {
                "rows": self._rows,
                "rows_waiting": sum(map(len, self._waiting)),
                "rows_left_out": self._left_out,
                "failures": 0,
                "last_failure": None,
            }


class AsyncChanges:
    """An asynchronous iterator over the results of a query, as RecordBatches."""

    def __init__(self, feed: ChangeFeed) -> None:
        self._feed = feed

    def __aiter__(self) -> AsyncChanges:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        return await self._feed.take()

    async def aclose(self) -> None:
        """End the iteration; results that wait are discarded."""
        self.__del__()
        self._feed.end()

    def __del__(self) -> None:
        self._feed.cancelled = True
