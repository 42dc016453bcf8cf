"""The progress display of a run: rates, lag, lines and JSON from made-up progress."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from muntin.cli.progress_view import ProgressView, Screen

NOTHING = {"mean": 0.0, "p50": 0.0, "p95": 0.0, "p99": 0.0, "max": 0.0}


def progress(
    batch: int,
    rows: int,
    *,
    watermark: str | None = "2026-01-01 00:00:10",
    late: int = 0,
    response: dict[str, float] | None = None,
    subscriber: dict[str, Any] | None = None,
    unsent: int = 0,
) -> dict[str, Any]:
    return {
        "runId": "r",
        "batchId": batch,
        "durationMs": {"triggerExecution": 1250},
        "muntin": {
            "streams": {"A": {"rows": rows, "late": late}},
            "results": {"q": 7},
            "queries": {
                "q": {
                    "batch_response_seconds": response or NOTHING,
                    "subscribers": [subscriber] if subscriber else [],
                }
            },
            "unsent": unsent,
            "rows_held": 1234,
            "watermark": watermark,
            "newest": "2026-01-01 00:00:11.500000",
        },
    }


def now() -> float:
    return datetime(2026, 1, 1, 0, 0, 12, 500_000, tzinfo=UTC).timestamp()


def test_rates_are_those_of_the_last_seconds() -> None:
    view = ProgressView(now)
    assert view.rates() == {}
    for moment, rows in enumerate([0, 1000, 2000, 3000, 4000, 5000, 6000, 16000]):
        assert view.take(progress(moment, rows), float(moment))
    assert view.rates() == {"A": (16000 - 2000) / 5}
    assert not view.take(progress(7, 16000), 9.0), "that batch is known"
    assert not view.take(None, 10.0)


def test_a_line_describes_the_last_batch() -> None:
    view = ProgressView(now)
    assert view.line() == "Spark is starting"
    view.take(progress(0, 1000, watermark=None), 0.0)
    assert (
        view.line()
        == "batch 0 in 1.25 s: A 1,000 rows; results: q 7; watermark none yet; 1,234 rows held"
    )
    view.take(progress(1, 3000, late=2, response={**NOTHING, "mean": 0.0124}), 2.0)
    assert view.line() == (
        "batch 1 in 1.25 s: A 3,000 rows (1,000/s), 2 late; results: q 7 (12.4 ms); "
        "watermark 2026-01-01 00:00:10, 2.5 s behind the clock; 1,234 rows held"
    )


@pytest.mark.parametrize(
    ("watermark", "clock", "said"),
    [
        ("2026-01-01 00:00:10", now, "2.5 s behind the clock"),
        ("2026-01-01 00:00:10", None, "1.5 s behind the newest row"),
        ("2025-12-30 00:00:11.5", now, "172,800.0 s behind the newest row"),
        ("2026-01-02 00:00:00", now, "0.0 s behind the newest row"),
    ],
    ids=["live", "replay", "old-files", "ahead-of-the-clock"],
)
def test_lag_is_measured_by_the_clock_or_else_by_the_newest_row(
    watermark: str, clock: Callable[[], float] | None, said: str
) -> None:
    view = ProgressView(clock)
    view.take(progress(0, 1, watermark=watermark), 0.0)
    assert f"watermark {watermark}, {said}; " in view.line()


def test_the_panel_has_streams_queries_and_the_batch() -> None:
    view = ProgressView(now)
    console = Console(width=120, file=None, record=True, quiet=False)
    view.take(progress(0, 1000), 0.0)
    view.take(progress(1, 3000, late=2), 2.0)
    with console.capture() as shown:
        console.print(view.panel())
    text = shown.get()
    lines = [line.split() for line in text.splitlines()]
    assert lines[0] == [
        "stream",
        "rows",
        "rows/s",
        "late",
        "query",
        "results",
        "response",
        "p95",
        "max",
    ]
    assert lines[1] == ["A", "3,000", "1,000", "2", "q", "7"]
    assert (
        "batch 1, 1.25 s; watermark 2026-01-01 00:00:10, 2.5 s behind the clock; 1,234 rows held"
        in text
    )


def shown(view: ProgressView, width: int) -> list[str]:
    console = Console(width=width)
    with console.capture() as captured:
        console.print(view.panel())
    return captured.get().splitlines()


def test_the_panel_has_response_times_of_the_last_batch_and_what_subscribers_miss() -> None:
    view = ProgressView(now)
    reported = progress(
        0,
        123_456_789,
        response={**NOTHING, "mean": 0.0124, "p95": 0.25, "max": 3.0},
        subscriber={"rows_left_out": 1200, "failures": 2, "last_failure": "OSError: no space left"},
        unsent=31,
    )
    view.take(reported, 0.0)
    head, row, *_, unsent, slow, failed = shown(view, 100)
    assert len(head) <= 100
    assert row.split() == [
        "A",
        "123,456,789",
        "0",
        "q",
        "7",
        "12.4",
        "ms",
        "250",
        "ms",
        "3.00",
        "s",
    ]
    assert (
        unsent.rstrip()
        == "31 results may not have reached subscribers: partitions cannot connect to the driver"
    )
    assert slow.rstrip() == "a subscriber of q is too slow: 1,200 results were dropped"
    assert failed.rstrip() == "a subscriber of q has failed 2 times: OSError: no space left"


def test_without_a_terminal_lines_are_few_and_the_last_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    screen = Screen(ProgressView(now), pause=3600)
    with screen.shown():
        for batch in range(5):
            screen.update(progress(batch, batch))
        screen.update(progress(4, 4), last=True)
        screen.update(progress(4, 4), last=True)
    said = capsys.readouterr()
    assert said.out == ""
    assert [line.split(" in ")[0] for line in said.err.splitlines()] == ["batch 0", "batch 4"]


def test_machines_get_every_batch_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(ProgressView(now), as_json=True)
    screen.update(None)
    for batch in (0, 0, 1):
        screen.update(progress(batch, batch))
    assert [json.loads(line) for line in capsys.readouterr().err.splitlines()] == [
        progress(0, 0),
        progress(1, 1),
    ]
