"""A view of a query in a notebook that refreshes itself: a chart of its results, or a table.

A thread reads the query at a bounded rate and replaces what the notebook shows. It ends at the
deadline, when the query is dropped or suspended, or with :meth:`LiveView.stop`; the view then says
why, and stays.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias

import pyarrow as pa

from muntin.engine.live_html import POINTS, Point, view_html
from muntin.errors import InputError, MuntinError

_log = logging.getLogger("muntin")

Update: TypeAlias = Callable[[str], object]
"""Replaces what is shown by other HTML."""
Display: TypeAlias = Callable[[str], Update]
"""Shows HTML, and returns the function that replaces it."""

_LEAST = 0.1
"""Seconds between two updates, at least."""
_JOIN = 10.0


@dataclass(frozen=True)
class Reading:
    """A query at one moment: results so far, figures by name, and the rows of its answer if any."""

    results: int
    figures: Mapping[str, object]
    answer: pa.Table | None = None


@dataclass(frozen=True)
class LiveOptions:
    """What a view shows, how long it lives and how often it is refreshed, in seconds."""

    seconds: float
    refresh: float
    view: str
    display: Display | None = None

    def check(self) -> None:
        """Raise if an option makes no sense."""
        for name, value, least in (
            ("seconds", self.seconds, 0),
            ("refresh", self.refresh, _LEAST),
        ):
            if not (isfinite(value) and value >= least):
                raise InputError(
                    f"{name} cannot be {value!r}",
                    hint=f"Pass a number of seconds, {least:g} or more",
                )
        if self.view not in {"chart", "table"}:
            raise InputError(f"view cannot be {self.view!r}", hint="It is 'chart' or 'table'")


def notebook_display(html: str) -> Update:
    """Show HTML in the notebook that runs."""
    try:
        from IPython.display import HTML, display  # noqa: PLC0415 (optional)
    except ImportError as error:
        raise MuntinError(
            "IPython is not installed, so there is no notebook to show a view in",
            hint="Call it in a notebook, or pass display=...",
        ) from error
    handle = display(HTML(html), display_id=True)
    if handle is None:
        raise MuntinError(
            "no notebook runs that could show a view",
            hint="Call it in a notebook, or pass display=...",
        )
    return lambda other: handle.update(HTML(other))


class LiveView:
    """A view while it refreshes itself; made by :meth:`muntin.StandingQuery.live`."""

    def __init__(self, name: str, read: Callable[[], Reading], options: LiveOptions) -> None:
        options.check()
        self.name = name
        self._read = read
        self._options = options
        self._until = time.monotonic() + options.seconds
        self._points: deque[Point] = deque(maxlen=POINTS)
        self._last: tuple[float, int] | None = None
        self._reading = read()
        self._stop = threading.Event()
        self._update = (options.display or notebook_display)(self._html("starts"))
        self._thread = threading.Thread(target=self._run, name=f"muntin-live-{name}", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """True while the view refreshes itself."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Stop refreshing; what is shown stays."""
        self._stop.set()
        self.wait(_JOIN)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the view has ended; return whether it has within ``timeout`` seconds."""
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        ended = ""
        while not ended:
            ended = self._step()
            left = self._until - time.monotonic()
            if not ended and self._stop.is_set():
                ended = "stopped"
            elif not ended and left <= 0:
                ended = f"ended after {self._options.seconds:g} seconds"
            try:
                self._update(self._html(ended or f"{left:.0f} seconds left"))
            except Exception:  # noqa: BLE001 (the notebook may be gone)
                _log.debug("the view of query %s cannot be updated", self.name, exc_info=True)
                return
            if not ended:
                self._stop.wait(min(self._options.refresh, left))

    def _step(self) -> str:
        """Read the query and add a point; return why the view ends, if it does."""
        try:
            self._reading = self._read()
        except MuntinError as error:
            return f"ended: {error.fact}"
        now, results = time.monotonic(), self._reading.results
        if self._last is not None:
            before, count = self._last
            # A query that was registered again under the name begins at 0.
            new = results - count if results >= count else results
            self._points.append(Point(now, new / max(now - before, 1e-9)))
        self._last = now, results
        return ""

    def _html(self, state: str) -> str:
        reading = self._reading
        points = None if self._options.view == "table" else list(self._points)
        return view_html(self.name, state, points, reading.figures, reading.answer)

    def __repr__(self) -> str:
        return f"LiveView({self.name!r}, {'running' if self.is_running else 'ended'})"
