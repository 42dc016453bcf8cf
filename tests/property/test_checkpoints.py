"""An engine restored from a checkpoint, written anywhere, continues as if it had never stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

import muntin
from muntin.errors import MuntinError
from muntin.testing.case import Case
from muntin.testing.compare import assert_same_changes, assert_same_rows
from muntin.testing.pipeline_strategies import PipelineShape, pipeline_cases
from muntin.testing.strategies import cases
from tests.property.test_pipelines import SECOND, reported
from tests.property.test_query_groups import (
    CHANGES,
    INSERTS,
    NAMES,
    Story,
    note_story,
    stories,
    tell,
)

FORMS = (
    *INSERTS,
    *CHANGES,
    "SELECT {0}.v, {1}.v AS w FROM {0}, {1} WHERE {0}.k = {1}.k WINDOW {w} SECONDS EVERY 2 SECONDS",
    "SELECT k, MAX(v) AS m FROM {0} GROUP BY k WINDOW {w} SECONDS EVERY 3 SECONDS",
    "SELECT k, COUNT(*) AS n FROM {0} GROUP BY k WINDOW {w} SECONDS EVERY 2 SECONDS EMIT SNAPSHOT",
    "SELECT k FROM {0} [PARTITION BY k ROWS {w}] INTERSECT SELECT k FROM {1} [ROWS 3]",
    "SELECT SUM(v) AS s FROM {0} [UNBOUNDED]",
)


def counts(engine: muntin.Engine) -> dict[str, object]:
    """Return the statistics that must survive."""
    stats: Any = engine.stats()
    queries = {
        name: [each[key] for key in ("rows_in", "rows_out", "rows_late", "watermark")]
        for name, each in stats["queries"].items()
    }
    streams = {
        name: [each[key] for key in ("rows_in", "rows_late", "rows_waiting")]
        for name, each in stats["streams"].items()
    }
    late = {name: engine.late(name).to_pylist() for name in NAMES}
    return {"queries": queries, "streams": streams, "late": late, "mark": stats["watermark"]}


@settings(max_examples=settings().max_examples // 2)
@given(stories(FORMS), st.data())
def test_a_restored_engine_continues_as_if_it_had_never_stopped(
    story: Story, data: st.DataObject
) -> None:
    """Queries come and go while rows flow; some results wait for poll over several checkpoints."""
    note_story(story)
    unbroken, restored = story.engine(), story.engine()
    come = [data.draw(st.integers(0, len(story.events)), label="comes") for _ in story.queries]
    goes = data.draw(st.integers(0, 30), label="goes")
    with TemporaryDirectory() as folder:
        for number, (what, detail) in enumerate([*story.events, ("advance", 60)]):
            for engine in (unbroken, restored):
                for place, sql in enumerate(story.queries):
                    if come[place] == number:
                        engine.query(sql, name=f"q{place}")
                if number == goes and come[0] < goes:
                    engine.drop("q0")
            if data.draw(st.booleans(), label="checkpoint"):
                note(f"checkpoint before {number}")
                restored.checkpoint(folder)
                if data.draw(st.booleans(), label="restore"):
                    restored = muntin.Engine.restore(folder)
            for engine in (unbroken, restored):
                tell(engine, what, detail, number)
            assert counts(restored) == counts(unbroken)
            for mine, other in zip(unbroken.queries(), restored.queries(), strict=True):
                assert mine.name == other.name
                assert sorted(map(repr, other.answer().to_pylist())) == sorted(
                    map(repr, mine.answer().to_pylist())
                )
                if data.draw(st.booleans(), label="poll"):
                    assert other.poll().to_pylist() == mine.poll().to_pylist()


SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {"pipeline": "negative"},
    {"pipeline": "hybrid"},
    {"pipeline": "probing"},
    {"pipeline": "input"},
    {"algorithm": "lazy", "reevaluation": "2 seconds"},
    {"algorithm": "general_lazy"},
    {"expiry": "eager"},
    {"expiry": "lazy", "expiry_interval": "3 seconds"},
    {"expiry": "probe"},
    {"expiry": "all"},
    {"tree": "off", "replan": "off"},
    {"overload": "adapt"},
)


@given(
    st.one_of(cases(), pipeline_cases(pipelines=PipelineShape(spreads=True))),
    st.sampled_from(SETTINGS),
    st.data(),
)
def test_any_query_continues_as_if_the_engine_had_never_stopped(
    case: Case, options: dict[str, str], data: st.DataObject
) -> None:
    """Rows come in any order, so that some are late; time is advanced between them."""
    events = case.events
    if data.draw(st.booleans(), label="out of order"):
        events = tuple(data.draw(st.permutations(events), label="order"))
    case = replace(case, events=events)
    try:
        engines = [engine_of(case, options) for _ in range(2)]
    except MuntinError as error:
        note(f"{case.query}\n{error}")
        assume(False)
    with reported(case), TemporaryDirectory() as folder:
        unbroken, restored = engines
        steps: list[tuple[str, pa.Table | int]] = [*case.batches(), ("", case.end + 20 * SECOND)]
        for stream, rows in steps:
            if data.draw(st.booleans(), label="restore"):
                restored.checkpoint(folder)
                restored = muntin.Engine.restore(folder, clock=None)
                if options.get("pipeline") == "input":  # it releases what waits for rows
                    with TemporaryDirectory() as elsewhere:
                        unbroken.checkpoint(elsewhere)
            ahead = data.draw(st.sampled_from([None, None, 0, 2]), label="advance")
            for engine in (unbroken, restored):
                if isinstance(rows, int):
                    engine.advance(rows)
                    continue
                engine.push(stream, rows)
                if ahead is not None:
                    newest = pc.max(rows.column("ts").cast(pa.int64())).as_py()
                    engine.advance(newest + ahead * SECOND)
            mine, other = unbroken.handle("q"), restored.handle("q")
            assert_same_rows(mine.answer(), other.answer())
            if data.draw(st.booleans(), label="poll") or isinstance(rows, int):
                assert_same_changes(mine.poll(), other.poll())
        assert restored.late("A").equals(unbroken.late("A"))


def engine_of(case: Case, options: Mapping[str, str]) -> muntin.Engine:
    """Return an engine with the query of a case under settings."""
    engine = muntin.Engine(clock=None, **options)
    for statement in case.declarations:
        engine.execute(statement)
    for name, rows in case.stored().items():
        engine.table(name, rows)
    engine.query(case.query, name="q")
    return engine


STAMPED = (
    "SELECT A.k, B.k AS j FROM A, B WHERE A.k = B.k WINDOW 3 SECONDS EMIT CHANGES",
    "SELECT A.k, B.k AS j FROM A LEFT JOIN B ON A.k = B.k WINDOW 2 SECONDS EMIT CHANGES",
    "SELECT k, LIST(_arrival) AS seen FROM A GROUP BY k WINDOW 2 SECONDS",
    "SELECT k FROM A ORDER BY _arrival DESC LIMIT 1 WINDOW 2 SECONDS",
)


@given(
    st.sampled_from(STAMPED),
    st.lists(
        st.tuples(st.sampled_from("AB"), st.integers(0, 2), st.integers(-1, 2), st.booleans()),
        max_size=10,
    ),
)
def test_rows_are_stamped_as_if_the_engine_had_never_stopped(
    sql: str, pushes: list[tuple[str, int, int, bool]]
) -> None:
    """The clock stands still, or goes back, between pushes and restarts."""
    now = 0

    def clock() -> int:
        return now

    engines = [muntin.Engine(clock=clock) for _ in range(2)]
    for engine in engines:
        for name in "AB":
            engine.stream(name, {"k": "bigint"}, time="arrival")
        engine.query(sql, name="q")
    unbroken, restored = engines
    with TemporaryDirectory() as folder:
        for stream, key, passed, restarts in pushes:
            if restarts:
                restored.checkpoint(folder)
                restored = muntin.Engine.restore(folder, clock=clock)
            now += passed * SECOND
            for engine in (unbroken, restored):
                engine.push(stream, [{"k": key}, {"k": key + 1}])
            mine, other = unbroken.handle("q"), restored.handle("q")
            assert_same_rows(mine.answer(), other.answer())
            assert_same_changes(mine.poll(), other.poll())
