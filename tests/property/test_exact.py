"""The engine equals the oracle on random queries and rows, for all batches and join settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from hypothesis import given, note
from hypothesis import strategies as st

import muntin
from muntin.plan.query import Emit, Query
from muntin.sql.script import read_query
from muntin.testing.case import Case
from muntin.testing.compare import assert_same_changes, assert_same_rows, assert_same_sequence
from muntin.testing.strategies import Shape, cases
from tests.property.case_runs import declare

SECOND = 1_000_000

ALGORITHMS = st.sampled_from(["auto", "eager", "naive", "lazy", "general_lazy"])
EXPIRIES = st.sampled_from(
    ["auto", "own", "eager", "lazy", "probe", "probe_insert", "probe_all", "all"]
)


@st.composite
def settings_of(draw: st.DrawFn) -> dict[str, str]:
    """Draw any valid combination of settings."""
    algorithm = draw(ALGORITHMS)
    lazy = algorithm in {"lazy", "general_lazy"}
    return {
        "algorithm": algorithm,
        "expiry": draw(st.sampled_from(["own", "lazy"])) if lazy else draw(EXPIRIES),
        "expiry_interval": draw(st.sampled_from(["", "1 second", "3 seconds", "20 seconds"])),
        "reevaluation": draw(st.sampled_from(["", "1 second", "4 seconds"])),
        "join": draw(st.sampled_from(["auto", "nested_loop", "hybrid"])),
        "buckets": draw(st.sampled_from(["", "1", "2", "7", "a = 3, b = 1"])),
        "index": draw(st.sampled_from(["", "", "a", "b, c"])),
        "index_memory": draw(st.sampled_from(["", "", "8", "40"])),
    }


@contextmanager
def replayable(case: Case, query: Query) -> Iterator[None]:
    """Print a failing case as a golden script."""
    try:
        yield
    except AssertionError:
        note(case.script(query))
        raise


@st.composite
def orders_of(draw: st.DrawFn, query: Query, algorithm: str) -> str:
    """Draw no order, one for all origins, or one for each.

    The origin has any place if the algorithm allows it.
    """
    aliases = [source.alias for source in query.sources]
    kind = draw(st.sampled_from(["", "global", "each"]))
    if kind == "global":
        return ", ".join(draw(st.permutations(aliases)))
    if kind == "each":
        anywhere = algorithm in {"naive", "general_lazy"}
        places = {
            alias: draw(
                st.permutations(
                    aliases if anywhere else [other for other in aliases if other != alias]
                )
            )
            for alias in aliases
        }
        return "; ".join(f"{alias}: {', '.join(order)}" for alias, order in places.items() if order)
    return ""


def start(case: Case, settings: dict[str, str]) -> tuple[muntin.Engine, muntin.StandingQuery]:
    engine = declare(case, muntin.Engine())
    aliases = {source.alias for source in read_query(case.query, "q", case.catalog()).sources}
    for name, value in settings.items():
        named = (
            {part.partition("=")[0].strip() for part in value.split(",")}
            if name == "index" or "=" in value
            else set()
        )
        if named <= aliases | {""}:
            engine.execute(f"SET {name} = '{value}'")
    return engine, engine.query(case.query, name="q")


def expected(case: Case, query: Query, until: int) -> pa.Table:
    oracle = case.oracle(query)
    return oracle.inserts(until) if query.emit is Emit.INSERTS else oracle.changes(until)


def check(case: Case, query: Query, got: pa.Table, until: int) -> None:
    """Compare inserts with the oracle's in content and order; changes as a multiset in order."""
    if query.emit is Emit.INSERTS:
        assert_same_sequence(expected(case, query, until), got)
    else:
        assert_same_changes(expected(case, query, until), got)


@given(cases(), settings_of(), st.integers(0, 25), st.data())
def test_results_and_answers_equal_the_oracle(
    case: Case, settings: dict[str, str], beyond: int, data: st.DataObject
) -> None:
    query = read_query(case.query, "q", case.catalog())
    settings["order"] = data.draw(orders_of(query, settings["algorithm"]))
    engine, q = start(case, settings)
    for stream, rows in case.batches():
        engine.push(stream, rows)
    until = case.end + beyond * SECOND
    engine.advance(until)
    with replayable(case, query):
        check(case, query, q.poll(), until)
        assert_same_rows(case.oracle(query).answer(until), q.answer())


@given(cases(), settings_of(), st.data())
def test_answers_are_right_at_every_instant(
    case: Case, settings: dict[str, str], data: st.DataObject
) -> None:
    """Rows arrive in order of time, so time can advance between any two of them."""
    query = read_query(case.query, "q", case.catalog())
    events = tuple(sorted(case.events, key=lambda event: event.time))
    case = Case(case.streams, case.tables, case.query, events, tuple(range(len(events))))
    engine, q = start(case, settings)
    oracle = case.oracle(query)
    collected = []
    before = 0
    with replayable(case, query):
        for (stream, rows), event in zip(case.batches(), events, strict=True):
            if event.time > before and data.draw(st.integers(0, 3)) == 0:
                at = data.draw(st.integers(before, event.time - 1))
                engine.advance(at)
                assert_same_rows(oracle.answer(at), q.answer())
            before = event.time
            engine.push(stream, rows)
            collected.append(q.poll())
        engine.advance(case.end)
        collected.append(q.poll())
        check(case, query, pa.concat_tables(collected), case.end)


@given(cases(Shape(slack=False)), settings_of(), st.randoms())
def test_the_order_of_pushes_to_different_streams_does_not_matter(
    case: Case, settings: dict[str, str], random: object
) -> None:
    query = read_query(case.query, "q", case.catalog())
    engine, q = start(case, settings)
    names = [stream.name for stream in case.streams]
    random.shuffle(names)  # type: ignore[attr-defined]
    rows = case.rows()
    for name in names:
        engine.push(name, rows[name])
    engine.advance(case.end)
    with replayable(case, query):
        check(case, query, q.poll(), case.end)


@given(cases(Shape(emits=("",), every=False)), settings_of())
def test_state_empties_when_windows_have_passed(case: Case, settings: dict[str, str]) -> None:
    engine, q = start(case, settings)
    for stream, rows in case.batches():
        engine.push(stream, rows)
    engine.advance(case.end + 100 * SECOND)
    query = read_query(case.query, "q", case.catalog())
    held = q.stats()["state_rows"]
    assert isinstance(held, dict)
    for source in query.sources:
        if not source.stored and "RANGE" in str(source.window):
            assert held[source.alias] == 0
