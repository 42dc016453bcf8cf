"""The metrics of an engine in process: exact, and counters never fall."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import muntin
from muntin.metrics import prometheus_text
from tests.unit.metrics.exposition import Exposition, Series, parsed

QUERIES = {
    "pairs": "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 4 SECONDS",
    "near": "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 2 SECONDS",
    "counts": "SELECT A.k, COUNT(*) AS n FROM A, B WHERE A.k = B.k GROUP BY A.k WINDOW 3 SECONDS",
    "rows": "SELECT k FROM A WINDOW 2 SECONDS EMIT CHANGES",
    "limited": (
        "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 3 SECONDS "
        "WITH (overload = 'adapt', resources = '1')"
    ),
}
SECOND = 1_000_000


def new_engine() -> muntin.Engine:
    engine = muntin.Engine(clock=None, max_advance="100 seconds")
    for name in "AB":
        engine.stream(name, {"k": "bigint", "ts": "timestamp"}, time="ts", slack="1 second")
    return engine


def scrape(engine: muntin.Engine) -> Exposition:
    return parsed(prometheus_text(engine))


class Driven:
    """An engine to which random things happen, with what its counters must say."""

    def __init__(self) -> None:
        self.engine = new_engine()
        self.pushed: Counter[str] = Counter()
        self.results: Counter[str] = Counter()
        self.late: Counter[str] = Counter()
        self.highest: dict[Series, float] = {}

    def push(self, stream: str, second: int) -> None:
        self.engine.push(stream, [(key, second * SECOND) for key in (1, 2, 1)])
        self.pushed[stream] += 3

    def toggle(self, name: str) -> None:
        if any(query.name == name for query in self.engine.queries()):
            self.poll()
            self.engine.drop(name)
        else:
            self.engine.query(QUERIES[name], name=name)

    def again(self, stream: str) -> None:
        """Drop a stream and declare it again, if no query reads it."""
        if not self.engine.queries():
            self.late[stream] += len(self.engine.late(stream))
            self.engine.execute(f"DROP STREAM {stream}")
            self.engine.stream(
                stream, {"k": "bigint", "ts": "timestamp"}, time="ts", slack="1 second"
            )

    def poll(self) -> None:
        for query in self.engine.queries():
            self.results[query.name] += len(query.poll())

    def check(self) -> None:
        """Counters never fall, also those that were away for a while, and they are exact."""
        found = scrape(self.engine)
        for series, value in found.counters().items():
            assert value >= self.highest.get(series, 0), series
            self.highest[series] = value
        self.poll()
        assert found.value("muntin_results_total") == self.results.total()
        for query in self.engine.queries():
            name = query.name
            assert found.value("muntin_query_results_total", query=name) == self.results[name]
        for stream in "AB":
            assert found.value("muntin_stream_rows_total", stream=stream) == self.pushed[stream]
            late = found.value("muntin_stream_late_rows_total", stream=stream)
            ahead = found.value("muntin_stream_ahead_rows_total", stream=stream)
            assert late + ahead == self.late[stream] + len(self.engine.late(stream))


ACTIONS = st.one_of(
    st.tuples(st.just("push"), st.sampled_from("AB"), st.integers(0, 12) | st.just(10_000)),
    st.tuples(st.just("toggle"), st.sampled_from(sorted(QUERIES))),
    st.tuples(st.just("again"), st.sampled_from("AB")),
)


@given(st.lists(ACTIONS, max_size=25))
def test_counters_are_exact_and_never_fall_whatever_is_dropped(
    actions: list[tuple[str | int, ...]],
) -> None:
    driven = Driven()
    for name, *arguments in actions:
        getattr(driven, str(name))(*arguments)
        driven.check()


def filled(seconds: int = 10) -> muntin.Engine:
    engine = new_engine()
    for name, text in QUERIES.items():
        engine.query(text, name=name)
    for second in range(seconds):
        for stream in "AB":
            engine.push(stream, [(key, second * SECOND) for key in range(5)])
    return engine


def test_figures_are_those_of_stats() -> None:
    engine = filled()
    engine.push("A", [(1, 30 * SECOND)])
    found, stats = scrape(engine), engine.stats()
    for name in ("pairs", "counts", "limited"):
        own = stats["queries"][name]  # type: ignore[index]
        assert found.value("muntin_query_state_rows", query=name) == sum(own["state_rows"].values())
        assert found.value("muntin_query_state_bytes", query=name) == own["state_bytes"]
        assert found.value("muntin_query_lag_seconds", query=name) == own["overload"]["lag_seconds"]
        buffered = found.value("muntin_query_buffer_rows", query=name, buffer="output")
        assert buffered == own["buffers"]["output"]
        assert found.value("muntin_query_waiting_seconds", query=name, stream="B") >= 0
    assert found.value("muntin_query_lag_seconds", query="pairs") == 22
    assert found.value("muntin_query_watermark_timestamp_seconds", query="pairs") == 8
    stream = stats["streams"]["A"]  # type: ignore[index]
    assert found.value("muntin_stream_held_rows", stream="A") == stream["rows_logged"]
    assert found.value("muntin_stream_waiting_rows", stream="A") == stream["rows_waiting"] > 0


def test_overload_shows_budgets_shares_and_ages() -> None:
    engine = filled(60)
    found, stats = scrape(engine), engine.handle("limited").stats()["overload"]
    share = found.value("muntin_query_results_share_ratio", query="limited")
    assert share == stats["share_of_results"]  # type: ignore[index]
    assert share < 1
    assert found.value("muntin_query_overloaded", query="limited") == 1
    budgets = [
        found.value("muntin_query_probe_budget", query="limited", half_join=half)
        for half in ("A into B", "B into A")
    ]
    assert sum(budgets) <= 1
    assert 0 <= found.value("muntin_query_oldest_row_seconds", query="limited", source="A") < 3
    assert ("muntin_query_overloaded", (("query", "pairs"),)) not in found.samples


def test_the_histogram_has_every_added_result() -> None:
    engine = filled()
    found = scrape(engine)
    polled = len(engine.handle("pairs").poll())
    assert polled > 0
    assert found.value("muntin_query_response_seconds_count", query="pairs") == polled
    total = engine.handle("pairs").stats()["response_seconds"]["mean"] * polled  # type: ignore[index]
    assert found.value("muntin_query_response_seconds_sum", query="pairs") == pytest.approx(total)


def test_a_suspended_query_keeps_its_counters() -> None:
    engine = new_engine()

    def failing(values: object) -> object:
        if engine.handle("q").stats()["rows_out"]:
            raise ValueError(values)
        return values

    engine.function("f", failing, {"x": "bigint"}, "bigint")
    engine.query("SELECT f(k) AS k FROM A WINDOW 1 SECOND", name="q")
    engine.push("A", [(1, 0)])
    engine.advance(SECOND)
    engine.push("A", [(1, 2 * SECOND)])
    engine.advance(3 * SECOND)
    found = scrape(engine)
    assert found.value("muntin_query_suspended", query="q") == 1
    assert found.value("muntin_queries", state="suspended") == 1
    assert found.value("muntin_query_results_total", query="q") == 1
    engine.drop("q")
    assert scrape(engine).value("muntin_results_total") == 1


def test_an_engine_without_anything_can_be_scraped() -> None:
    found = parsed(prometheus_text(muntin.Engine()))
    assert found.value("muntin_queries", state="running") == 0
    assert found.value("muntin_engine_info", engine="in_process") == 1


def test_names_of_all_kinds_are_labels() -> None:
    engine = new_engine()
    engine.query("SELECT k FROM A WINDOW 1 SECOND", name='say "x\\y"')
    found = scrape(engine)
    assert found.value("muntin_query_results_total", query='say "x\\y"') == 0


def test_metrics_can_be_read_while_the_engine_works_in_the_background() -> None:
    engine = new_engine()
    for name, text in QUERIES.items():
        engine.query(text, name=name)
    engine.start()
    try:
        highest: dict[Series, float] = {}
        for second in range(30):
            engine.push("A", [(1, second * SECOND)])
            engine.push("B", [(1, second * SECOND)])
            for series, value in scrape(engine).counters().items():
                assert value >= highest.get(series, 0)
                highest[series] = value
    finally:
        engine.stop()
    assert highest["muntin_stream_rows_total", (("stream", "A"),)] == 30
