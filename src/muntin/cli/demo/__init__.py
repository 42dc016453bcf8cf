"""``muntin demo``: a story in three acts on a local Spark, of what one shared plan is good for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from pyspark.sql import SparkSession
from rich.console import Console, RenderableType

from muntin.cli.demo.readings import Readings, declarations
from muntin.cli.demo.screen import DemoScreen
from muntin.cli.demo.stages import STARTING
from muntin.cli.demo.story import LOOK, Story
from muntin.cli.demo.summary import summary
from muntin.cli.run import stopping
from muntin.errors import InputError
from muntin.spark.api import SparkEngine
from muntin.spark.session import local_session
from muntin.spark.temp_files import HeldFolder

_TRIGGER = "500 milliseconds"


def run_demo(
    seconds: float, rate: int, after_sixteen: Callable[[RenderableType], None] | None = None
) -> None:
    """Start Spark, make readings and play the acts.

    An act takes ``seconds``, and the load changes after as many. ``after_sixteen`` gets what a
    terminal shows when sixteen queries have run.
    """
    begin = time.monotonic()
    screen = DemoScreen(Console(highlight=False))
    with HeldFolder("demo") as folder, stopping() as stop, screen.shown():
        readings = Readings(folder, rate)
        readings.start()
        screen.begin(replace(STARTING, words=STARTING.words.format(rate=rate)))
        try:
            engine = SparkEngine(_session(screen, readings, stop), partitions=2, trigger=_TRIGGER)
            engine.execute(declarations(folder))
            story = Story(engine, readings, screen, stop)
            try:
                with opened_console(engine, screen):
                    story.play(seconds, after_sixteen)
            finally:
                engine.stop()
        finally:
            readings.stop()
    screen.say(summary(story.found, readings.rows, time.monotonic() - begin))


def opened_console(engine: SparkEngine, screen: DemoScreen) -> AbstractContextManager[object]:
    """Open the web console and print its address; without its extra there is none."""
    try:
        console = engine.console()
    except InputError:
        return nullcontext()
    screen.say(f"Watch it in the web console: {console.url}")
    return console


def _session(screen: DemoScreen, readings: Readings, stop: threading.Event) -> SparkSession:
    """Start Spark, and show how many readings there are meanwhile."""
    begin = time.monotonic()
    with ThreadPoolExecutor(1, thread_name_prefix="muntin-demo") as pool:
        session = pool.submit(local_session, 2, interrupted=stop.is_set)
        while not session.done():
            screen.stage.status = (
                f"{readings.rows:,} readings so far, {time.monotonic() - begin:.0f} s"
            )
            screen.update()
            time.sleep(LOOK)
        return session.result()
