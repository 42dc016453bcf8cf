"""The demo without Spark: its readings, its queries over them in process, and what it shows."""

from __future__ import annotations

import io
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import muntin
from muntin.cli.demo import opened_console
from muntin.cli.demo.comparison import BatchTimes
from muntin.cli.demo.queries import FRESHNESS, WINDOWS, muggy, name_of, risks
from muntin.cli.demo.readings import MOST_LOAD, SENSORS, STEP, Readings, declarations
from muntin.cli.demo.screen import DemoScreen, Stage, queries_table
from muntin.cli.demo.stages import COMPARED, LOADED, ONE, SIXTEEN, STARTING
from muntin.cli.demo.story import Found
from muntin.cli.demo.summary import NEXT, summary
from muntin.cli.demo.tally import Tally
from muntin.errors import InputError
from muntin.model.clock import SECOND
from muntin.spark import SparkEngine
from muntin.spark.batch_results import BatchResults

NOON = 1_767_268_800_000_000
RATE = 40


def stepped(folder: Path, loads: list[int]) -> Readings:
    """Return readings of steps with these loads, one after the other from noon on."""
    readings = Readings(folder, RATE)
    for step, load in enumerate(loads, 1):
        readings.load = load
        readings.write(NOON + round(step * STEP * SECOND))
    return readings


def times_of(folder: Path, stream: str) -> list[list[int]]:
    """Return the times of each file."""
    return [
        pq.read_table(path).column("ts").cast("int64").to_pylist()
        for path in sorted((folder / stream).iterdir())
    ]


def test_a_file_has_the_readings_of_its_step_evenly_spaced_at_every_load(tmp_path: Path) -> None:
    readings = stepped(tmp_path, [1, MOST_LOAD, 1])
    for stream in SENSORS:
        files = times_of(tmp_path, stream)
        assert [len(times) for times in files] == [20, 60, 20]
        for step, times in enumerate(files):
            begin = NOON + round(step * STEP * SECOND)
            assert begin < times[0] < times[-1] == begin + STEP * SECOND
            assert max(np.diff(times)) - min(np.diff(times)) <= 1
    assert readings.rows == 3 * 100


def test_values_repeat_after_a_while_and_times_do_not(tmp_path: Path) -> None:
    stepped(tmp_path, [1] * 61)
    first, again = (
        pq.read_table(tmp_path / "Humidity" / f"{step:06d}.parquet") for step in (0, 60)
    )
    assert first.column("Value").equals(again.column("Value"))
    assert again.column("ts")[0].as_py() > first.column("ts")[-1].as_py()


def test_nothing_is_written_while_sensors_pause(tmp_path: Path) -> None:
    readings = Readings(tmp_path, RATE)

    def written(within: float) -> bool:
        until = time.monotonic() + within
        while not readings.rows and time.monotonic() < until:
            time.sleep(0.01)
        return readings.rows > 0

    readings.paused = True
    readings.start()
    assert not written(within=2 * STEP)
    readings.paused = False
    assert written(within=30)
    readings.stop()
    assert not list(tmp_path.rglob(".*")), "no file is left half written"


def test_every_query_of_the_demo_has_results_and_wider_windows_have_more(tmp_path: Path) -> None:
    readings = Readings(tmp_path, 400)
    for step in range(1, 41):
        readings.write(NOON + round(step * STEP * SECOND))
    engine = muntin.Engine()
    engine.execute(declarations(tmp_path))
    pairs = [engine.query(muggy(seconds), name=name_of(seconds)) for seconds in WINDOWS]
    limited = engine.query(risks(400), name="risks")
    for stream in SENSORS:
        files = sorted((tmp_path / stream).iterdir())
        engine.push(stream, pa.concat_tables(pq.read_table(path) for path in files))
    counts = [len(handle.poll()) for handle in pairs]
    assert counts[0] > 0
    assert counts == sorted(set(counts))
    found = limited.poll()
    assert len(found)
    ages = [
        found.column("_ts").cast("int64").to_numpy() - found.column(name).cast("int64").to_numpy()
        for name in "ths"
    ]
    assert max(age.max() for age in ages) < FRESHNESS * SECOND


def tally(name: str, rows: int = 9) -> Tally:
    """Return the tally of a query with results, of which the newest is a second old."""
    engine = muntin.Engine(clock=None)
    engine.stream("A", {"k": "int", "v": "double", "ts": "timestamp"})
    query = engine.query("SELECT k, v FROM A [RANGE 1 MINUTE]", name="q")
    now = time.time_ns() // 1_000
    engine.push("A", [(k, k / 2, now - (rows - k) * SECOND) for k in range(rows)])
    engine.advance(now)
    made = Tally(name)
    made.write(BatchResults.of(query.poll()), 0)
    made.write(BatchResults.of(query.poll()), 1)
    return made


def test_a_tally_counts_results_and_how_long_they_took() -> None:
    found = tally("q")
    assert found.total == 9
    assert [re.sub(r"\d\d:\d\d:\d\d\.\d\d", "TIME", line) for line in found.lines] == [
        f"+ TIME  k {k}  v {k / 2:g}" for k in range(5, 9)
    ]
    response = found.response()
    assert response is not None
    middle, longest = response
    assert 5 <= middle < 6, "the median of 1 to 9 seconds"
    assert 9 <= longest < 10
    assert Tally("none").response() is None


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("stage", [STARTING, ONE, SIXTEEN, COMPARED, LOADED])
def test_every_stage_fits_a_terminal(stage: Stage, width: int) -> None:
    console = Console(width=width, height=24, file=io.StringIO(), force_terminal=True)
    sinks = tuple(tally(name_of(seconds)) for seconds in WINDOWS)
    stage = Stage(stage.title, stage.words, "load: 3 times the usual", sinks, stage.changes)
    screen = DemoScreen(console, stage)
    lines = console.render_lines(screen.panel())
    text = ["".join(segment.text for segment in line) for line in lines]
    assert stage.title in text[0]
    assert len(text) <= (29 if stage.changes else 25)
    shown = " ".join(line.strip("│ ") for line in text)
    assert " ".join(stage.words.split()) in shown
    assert sum("muggy_" in shown for shown in text) == (16 if width == 80 else 8)


def test_lines_without_a_terminal_repeat_nothing() -> None:
    out = io.StringIO()
    screen = DemoScreen(Console(file=out, width=80))
    with screen.shown():
        screen.begin(Stage("Act", "words", "status", (tally("q"),)))
        for _ in range(3):
            screen._line_at = 0.0
            screen.update()
    lines = [line for line in out.getvalue().splitlines() if line]
    assert lines[:2] == ["Act", "words"]
    assert len(lines) == 3
    assert re.fullmatch(r"  status; q 9 results after \d\.\d\d s", lines[2])


def test_the_summary_says_what_was_measured() -> None:
    compared = BatchTimes(28_400, {1: 0.25, 16: 0.5}, {1: 1.0, 16: None})
    text = summary(Found(0.2, 0.25, compared, 0.6, 4.9, complete_again=True), 1_000, 90.4)
    assert text.splitlines()[1:7] == [
        "1,000 readings in 90 seconds, the start of Spark included.",
        "A batch took 0.20 s with one query and 0.25 s with 16.",
        "The same 28,400 readings in one batch:",
        "   1 query    Muntin 0.25 s, Spark's own joins 1.00 s (4.0 times as long)",
        "  16 queries  Muntin 0.50 s, Spark's own joins over 45 s (stopped)",
        (
            "At 3 times the load about 60% of the results were made; the oldest reading in one was "
            "4.9 s old, 5 s are allowed."
        ),
    ]
    assert text.endswith(NEXT)


def test_the_summary_of_a_demo_that_was_stopped_claims_nothing() -> None:
    assert summary(Found(), 300, 4).splitlines()[1:3] == [
        "300 readings in 4 seconds, the start of Spark included.",
        "",
    ]
    text = summary(Found(share=0.5, oldest=1.0), 300, 4)
    assert "results were not complete again yet" in text


def test_queries_stand_side_by_side_in_a_wide_terminal() -> None:
    sinks = [tally(name) for name in "abc"]
    assert queries_table(sinks, wide=False).row_count == 3
    assert queries_table(sinks, wide=True).row_count == 2


def test_the_address_of_the_web_console_is_printed_if_its_extra_is_there() -> None:
    class Engine:
        def console(self) -> object:
            return opened

    opened = SimpleNamespace(url="address?token=x")
    screen = DemoScreen(Console(file=(text := io.StringIO())))
    assert opened_console(cast("SparkEngine", Engine()), screen) is opened
    assert text.getvalue() == "Watch it in the web console: address?token=x\n"

    class Bare:
        def console(self) -> object:
            raise InputError("the console needs starlette")

    with opened_console(cast("SparkEngine", Bare()), screen):
        assert text.getvalue().count("Watch") == 1
