"""The events of queries that follow from the reports on batches, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muntin.errors import RunError
from muntin.spark.driver.query_events import QueryEvent, QueryEvents

STATS = {"suspended": None, "sink": "memory"}


class Run:
    """A run whose events are texts; queries have their names as ids, unless given."""

    def __init__(self, *queries: str, first: int = 0, suspended: str = "") -> None:
        self.now: Mapping[str, Any] = counts(first - 1, *queries, suspended=suspended)
        self.seen: list[QueryEvent] = []
        self.events = QueryEvents(first, lambda: self.now, self.seen.extend)
        self.events.begin("run", "now")

    def batch(self, number: int, *queries: str, suspended: str = "") -> None:
        self.now = counts(number, *queries, suspended=suspended)
        progress = {"runId": "run", "batchId": 0, "timestamp": f"at {number}"}
        self.events.report(progress, self.now)

    def texts(self) -> list[str]:
        """Return the events since the last call, as kind, id, and number or error."""
        found = []
        for event in self.seen:
            about = "" if event.progress is None else f" {event.progress['batchId']}"
            about += "" if event.error is None else f" {event.error.fact}"
            found.append(f"{event.kind.removeprefix('onQuery')} {event.id}{about}")
        self.seen.clear()
        return found


def counts(number: int, *queries: str, suspended: str) -> dict[str, Any]:
    """Return the counts after a batch; a query is given as ``name`` or ``name=id``."""
    names = [text.partition("=") for text in queries]
    return {
        "batch": {"number": number, "results": {name: number * 10 for name, _, _ in names}},
        "results": {name: number * 100 for name, _, _ in names},
        "queries": {
            name: {
                **STATS,
                "id": own or name,
                "suspended": "it fails" if name == suspended else None,
            }
            for name, _, own in names
        },
    }


def test_queries_start_with_the_run_progress_with_each_batch_and_end_with_the_run() -> None:
    run = Run("a", "b")
    assert run.texts() == ["Started a", "Started b"]
    run.batch(0, "a", "b")
    assert run.texts() == ["Progress a 0", "Progress b 0"]
    run.events.idle("later")
    assert run.texts() == ["Idle a", "Idle b"]
    run.events.end(None)
    assert run.texts() == ["Terminated a", "Terminated b"]


def test_an_event_has_the_ids_name_and_numbers_of_its_query() -> None:
    run = Run("a=1", "b=2")
    run.batch(0, "a=1", "b=2")
    started, other, progress, _ = run.seen
    assert (started.id, started.name, started.timestamp) == ("1", "a", "now")
    assert started.run_id not in {"run", other.run_id}
    assert progress.progress == {
        "runId": started.run_id,
        "batchId": 0,
        "timestamp": "at 0",
        "id": "1",
        "name": "a",
        "sink": {"description": "memory", "numOutputRows": 0},
        "muntin": {"query": "a", "results": 0, "rows_out": 0, **STATS, "id": "1"},
    }


def test_added_and_dropped_queries_start_and_end_in_between() -> None:
    run = Run("a")
    run.batch(0, "a", "b")
    run.batch(1, "b")
    assert run.texts() == [
        *("Started a", "Started b", "Progress a 0", "Progress b 0"),
        *("Terminated a", "Progress b 1"),
    ]
    run.batch(2, "b=again")
    assert run.texts() == ["Terminated b", "Started again", "Progress again 2"]


def test_a_suspended_query_ends_with_its_error_and_does_not_start_again() -> None:
    run = Run("a", "b")
    run.texts()
    run.batch(0, "a", "b", suspended="a")
    run.batch(1, "a", "b", suspended="a")
    run.events.end(None)
    assert run.texts() == [
        *("Progress a 0", "Terminated a query a is suspended: it fails", "Progress b 0"),
        *("Progress b 1", "Terminated b"),
    ]
    assert Run("a", "b", first=2, suspended="a").texts() == ["Started b"]


def test_a_query_that_fails_in_its_first_batch_has_all_events() -> None:
    run = Run("a")
    run.batch(0, "a", "b", suspended="b")
    assert run.texts()[1:] == [
        *("Started b", "Progress a 0", "Progress b 0"),
        "Terminated b query b is suspended: it fails",
    ]


def test_a_failed_run_ends_its_queries_with_its_error_and_dropped_ones_without() -> None:
    run = Run("a", "b")
    run.texts()
    run.now = counts(0, "a", suspended="")
    run.events.end(RunError("no space left"))
    assert run.texts() == ["Terminated b", "Terminated a no space left"]


def test_reports_are_put_in_order_and_repeated_ones_are_ignored() -> None:
    run = Run("a", first=3)
    run.texts()
    run.batch(4, "b")  # without rows, so it is reported before the one with rows
    assert run.texts() == []
    run.batch(3, "a", "b")
    run.batch(3, "a", "b")
    assert run.texts() == [
        *("Started b", "Progress a 3", "Progress b 3"),
        *("Terminated a", "Progress b 4"),
    ]
    run.batch(6, "b")
    run.events.end(None)
    assert run.texts() == ["Progress b 6", "Terminated b"]


def test_a_report_that_never_comes_holds_back_only_some_others() -> None:
    run = Run("a")
    run.texts()
    for number in range(1, 20):
        run.batch(number, "a")
    assert run.texts() == [f"Progress a {number}" for number in range(1, 20)]
