"""The setting weight: queries of different weights share, and everything reports what counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import muntin
from muntin.errors import SettingError
from muntin.runtime.running_join import RunningJoin
from muntin.runtime.running_pipeline import RunningPipeline
from muntin.schedule.levels import Levels

JOIN = "FROM A, B WHERE A.k = B.k WINDOW {} SECONDS"
COUNTED = "SELECT A.k, COUNT(*) AS n FROM A, B WHERE A.k = B.k GROUP BY A.k WINDOW {} SECONDS"


@pytest.fixture
def engine() -> Iterator[muntin.Engine]:
    made = muntin.Engine()
    for name in "AB":
        made.stream(name, {"k": "bigint", "v": "bigint", "ts": "timestamp"}, time="ts")
    yield made
    made.stop()


def levels(engine: muntin.Engine) -> Levels:
    (join,) = engine.dataflow.joins()
    return levels_of(join)


def levels_of(join: RunningJoin) -> Levels:
    schedule = join.operator.tactic.schedule
    assert schedule is not None
    return schedule.levels


def test_queries_of_other_weights_share_a_join_and_levels_count_their_sums(
    engine: muntin.Engine,
) -> None:
    engine.query(f"SELECT A.v {JOIN.format(1)}", name="one")
    engine.query(f"SELECT B.v {JOIN.format(9)} WITH (weight = '3')", name="three")
    engine.query(f"SELECT A.k {JOIN.format(9)}", name="half", weight=0.5)
    assert engine.handle("one").stats()["shares_with"] == ["three", "half"]
    engine.start()
    assert levels(engine).counts == (2, 7)
    engine.drop("three")
    assert levels(engine).counts == (2, 1)


def test_stats_and_explain_show_weights_and_counts(engine: muntin.Engine) -> None:
    engine.query(f"SELECT A.v {JOIN.format(1)}", name="one")
    engine.query(f"SELECT B.v {JOIN.format(9)}", name="three", weight=3)
    engine.query(f"SELECT A.k {JOIN.format(9)}", name="more")
    why = "the engine does not run in the background"
    assert engine.handle("three").stats()["without_effect"] == {"scheduler": why, "weight": why}
    engine.start()
    stats = engine.handle("three").stats()
    assert (stats["weight"], engine.handle("one").stats()["weight"]) == (3.0, 1.0)
    assert stats["without_effect"] == {}
    assert stats["scan_rates"] == {"A": 1, "B": 1}
    one, nine = ({"A": f"[RANGE {n}]", "B": f"[RANGE {n}]"} for n in ("1 second", "9 seconds"))
    assert stats["levels"] == [
        {"windows": one, "queries": 1, "weight": 1.0, "count": 1},
        {"windows": nine, "queries": 2, "weight": 4.0, "count": 4},
    ]
    lines = engine.handle("three").explain().splitlines()
    assert "├─ sharing group: one join for one, three, more, scheduler mqt, weight 3" in lines
    assert "│  ├─ A [RANGE 1 second], B [RANGE 1 second]: 1 query, weight 1" in lines
    assert "│  └─ A [RANGE 9 seconds], B [RANGE 9 seconds]: 2 queries, weight 4" in lines
    group = engine.handle("three").plan()["sharing_group"]
    assert isinstance(group, dict)
    assert [level["count"] for level in group["levels"]] == [1, 4]


def test_a_weight_without_effect_is_reported(engine: muntin.Engine) -> None:
    with_lwo = f"SELECT A.v {JOIN.format(1)} WITH (scheduler = 'lwo', weight = 2)"
    query = engine.query(with_lwo, name="one")
    reason = "scheduler lwo does not count queries"
    assert query.stats()["without_effect"] == {"weight": reason}
    assert f"weight 2 has no effect: {reason}" in query.explain()


def test_queries_with_one_leaf_count_with_the_sum_of_their_weights(engine: muntin.Engine) -> None:
    engine.query(COUNTED.format(1), name="small")
    engine.query(COUNTED.format(9), name="first", weight=2)
    having = COUNTED.format(9).replace(" WINDOW", " HAVING COUNT(*) > 1 WINDOW")
    engine.query(having, name="second", weight=3)
    pipelines = (engine.dataflow.queries[name] for name in ("first", "second"))
    first, second = (each for each in pipelines if isinstance(each, RunningPipeline))
    assert list(first.leaves) == list(second.leaves)
    engine.start()
    assert levels(engine).counts == (1, 5)
    engine.drop("second")
    assert levels(engine).counts == (1, 2)
    assert engine.handle("first").stats()["weight"] == 2.0


@pytest.mark.parametrize("weight", ["0", "-1", "nan", "inf", "1e-9", "1e300", "heavy", ""])
def test_weights_are_positive_numbers(engine: muntin.Engine, weight: str) -> None:
    with pytest.raises(SettingError, match="setting weight cannot be"):
        engine.query(f"SELECT A.v {JOIN.format(1)} WITH (weight = '{weight}')")
    assert not engine.queries()


def test_two_weights_of_one_query_are_refused(engine: muntin.Engine) -> None:
    with pytest.raises(SettingError, match="query q1 has two weights"):
        engine.query(f"SELECT A.v {JOIN.format(1)} WITH (weight = 2)", weight=3)


def test_a_checkpoint_keeps_weights(engine: muntin.Engine, tmp_path: Path) -> None:
    engine.query(f"SELECT A.v {JOIN.format(1)}", name="one")
    engine.query(f"SELECT A.v {JOIN.format(9)}", name="two", weight=4)
    engine.checkpoint(tmp_path / "state")
    again = muntin.Engine.restore(tmp_path / "state")
    again.start()
    assert levels(again).counts == (1, 4)
    again.stop()


def test_rates_are_followed_while_the_engine_runs(engine: muntin.Engine) -> None:
    for seconds in (1, 9):
        engine.query(f"SELECT A.v {JOIN.format(seconds)}", name=f"q{seconds}")
    engine.start()
    second = 1_000_000
    for begin in range(3):
        for name, rate in (("A", 200), ("B", 50)):
            rows = [(n, n, begin * second + n * second // rate) for n in range(rate)]
            engine.push(name, rows)
        engine.advance((begin + 1) * second - 1)
        assert engine.settle(60)
    engine.push("A", [(1, 1, 4 * second)])
    assert engine.settle(60)
    assert engine.handle("q1").stats()["scan_rates"] == {"A": 4, "B": 1}
    assert "rows per unit of window, relative: A 4, B 1" in engine.explain("q1")
    assert len(levels(engine).reach) == 2
