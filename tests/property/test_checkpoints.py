"""An engine restored from a checkpoint, written anywhere, continues as if it had never stopped."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, note, settings
from hypothesis import strategies as st

import muntin
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
    folder = TemporaryDirectory()
    for number, (what, detail) in enumerate([*story.events, ("advance", 60)]):
        for engine in (unbroken, restored):
            for place, sql in enumerate(story.queries):
                if come[place] == number:
                    engine.query(sql, name=f"q{place}")
            if number == goes and come[0] < goes:
                engine.drop("q0")
        if data.draw(st.booleans(), label="checkpoint"):
            note(f"checkpoint before {number}")
            restored.checkpoint(folder.name)
            if data.draw(st.booleans(), label="restore"):
                restored = muntin.Engine.restore(folder.name)
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
    folder.cleanup()
