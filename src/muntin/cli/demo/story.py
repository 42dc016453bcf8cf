"""The acts of the demo: one query, sixteen over the same join, and three times the load.

Shown is what was measured: batches as the engine reports them, response times from when a reading
was made to when a sink has the result, and Spark's own joins over the same readings.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, TypeVar

from rich.console import RenderableType

from muntin.cli.demo.comparison import BatchTimes, compare
from muntin.cli.demo.queries import WINDOWS, muggy, name_of, risks
from muntin.cli.demo.readings import MOST_LOAD, Readings
from muntin.cli.demo.screen import DemoScreen, Stage
from muntin.cli.demo.stages import COMPARED, LOADED, ONE, SIXTEEN
from muntin.cli.demo.tally import Tally
from muntin.model.clock import SECOND, parse_interval
from muntin.spark.api import SparkEngine

LOOK = 0.25
PATIENCE = 45.0
"""Seconds that Spark's own joins get in total."""
CATCH_UP = 60.0
"""Seconds after which the first act begins at the latest."""
FRESH = 3.0
"""Seconds of response time from which on the first batches have caught up."""

Result = TypeVar("Result")


@dataclass
class Found:
    """What the acts have shown; None and empty where an act was not played to its end."""

    one: float | None = None
    """Median seconds of a batch with one query."""
    sixteen: float | None = None
    compared: BatchTimes | None = None
    share: float | None = None
    """The estimated share of results under the largest load."""
    oldest: float = 0.0
    """The age of the oldest reading in a result of the limited join, in seconds."""
    complete_again: bool = False


class Story:
    """Plays the acts, each for ``seconds``, until ``stop`` is set."""

    def __init__(
        self, engine: SparkEngine, readings: Readings, screen: DemoScreen, stop: threading.Event
    ) -> None:
        self.engine = engine
        self.found = Found()
        self._readings = readings
        self._screen = screen
        self._stop = stop
        self._sinks: list[Tally] = []

    def play(
        self, seconds: float, after_sixteen: Callable[[RenderableType], None] | None = None
    ) -> None:
        """Play all acts; ``after_sixteen`` gets the panel of the second one."""
        for act in (self._one, self._sixteen, self._compared, self._loaded):
            if not self._stop.is_set():
                act(seconds)
            if act == self._sixteen and after_sixteen is not None:
                after_sixteen(self._screen.panel())

    def _one(self, seconds: float) -> None:
        self._add(WINDOWS[:1])
        self.engine.start()
        self._catch_up()
        self._begin(ONE)
        self.found.one = self._watch(seconds)

    def _sixteen(self, seconds: float) -> None:
        self._add(WINDOWS[1:])
        self._begin(SIXTEEN)
        self.found.sixteen = self._watch(seconds)

    def _compared(self, _: float) -> None:
        self._begin(COMPARED)
        self._readings.paused = True
        numbers = (WINDOWS[:1], WINDOWS)
        written, spark = self._readings.folder, self.engine.spark
        self.found.compared = self._wait_for(
            lambda: compare(spark, written, numbers, PATIENCE, self._report)
        )
        self._readings.paused = False

    def _loaded(self, seconds: float) -> None:
        for sink in self._sinks:
            self.engine.drop(sink.name)
        self._sinks = [Tally("risks")]
        self.engine.query(risks(self._readings.rate), name="risks", sink=self._sinks[0])
        self._begin(LOADED)
        for load in (1, MOST_LOAD, 1):
            self._readings.load = load
            self._watch(seconds, f"load: {load} times the usual")
            overload = self._overload()
            if load > 1 and overload.get("share_of_results") is not None:
                self.found.share = overload["share_of_results"]
                ages = overload["oldest_rows"].values()
                self.found.oldest = max(map(parse_interval, ages), default=0) / SECOND
        self.found.complete_again = not self._overload().get("overloaded", True)

    def _add(self, windows: Sequence[int]) -> None:
        """Add queries, all in one batch: each waits until it is in force."""
        new = [Tally(name_of(seconds)) for seconds in windows]
        self._report(f"adding {', '.join(sink.name for sink in new[:2])}, ..."[:40])
        with ThreadPoolExecutor(len(new)) as pool:
            for seconds, sink in zip(windows, new, strict=True):
                pool.submit(self.engine.query, muggy(seconds), name=sink.name, sink=sink)
        self._sinks.extend(new)

    def _catch_up(self) -> None:
        """Wait until results are made of readings that have just come."""
        begin = time.monotonic()
        while (passed := time.monotonic() - begin) < CATCH_UP and not self._stop.wait(LOOK):
            response = self._sinks[0].response()
            if response is not None and response[0] < FRESH:
                return
            self._report(
                f"{self._readings.rows:,} readings so far; the first batches, for which join "
                f"kernels may have to be compiled: {passed:.0f} s"
            )

    def _begin(self, stage: Stage) -> None:
        self._screen.begin(replace(stage, sinks=tuple(self._sinks)))

    def _report(self, status: str) -> None:
        self._screen.stage.status = status
        self._screen.update()

    def _overload(self) -> dict[str, Any]:
        progress = self.engine.progress
        queries = {} if progress is None else progress["muntin"]["queries"]
        found: dict[str, Any] = queries.get("risks", {}).get("overload", {})
        return found

    def _watch(self, seconds: float, status: str = "") -> float | None:
        """Show an act; return the median seconds of its batches, without its first quarter."""
        taken: dict[int, float] = {}
        begin = time.monotonic()
        while (passed := time.monotonic() - begin) < seconds and not self._stop.wait(LOOK):
            progress = self.engine.progress
            if progress is not None and passed > seconds / 4:
                taken[progress["batchId"]] = batch_seconds(progress)
            self._report(", ".join(part for part in (status, self._facts()) if part))
            if (failure := self.engine.exception()) is not None:
                raise failure
        return median(taken.values()) if taken else None

    def _facts(self) -> str:
        """Return the figures of the last batch as a line."""
        progress = self.engine.progress
        if progress is None:
            return ""
        facts = [
            f"last batch {batch_seconds(progress):.2f} s",
            f"{progress['muntin']['rows_held']:,} readings held",
        ]
        if (share := self._overload().get("share_of_results")) is not None:
            facts.append(f"about {share:.0%} of all results")
        return ", ".join(facts)

    def _wait_for(self, work: Callable[[], Result]) -> Result | None:
        """Return what a function returns, which runs in another thread; None if stopped."""
        with ThreadPoolExecutor(1, thread_name_prefix="muntin-demo") as pool:
            future = pool.submit(work)
            while not future.done() and not self._stop.wait(LOOK):
                self._screen.update()
            return future.result() if future.done() else None


def batch_seconds(progress: Mapping[str, Any]) -> float:
    """Return the seconds of the last batch."""
    return float(progress.get("durationMs", {}).get("triggerExecution", 0)) / 1_000
