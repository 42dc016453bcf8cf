"""A join tree with stored intermediate results, of any shape, gives what a join without gives."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

import muntin
from muntin.planner import choices
from muntin.runtime import plan_monitor
from muntin.sql.script import read_query
from muntin.state import partial_matches
from muntin.testing.case import Case
from muntin.testing.compare import assert_same_rows, assert_same_sequence
from muntin.testing.strategies import Shape, cases
from tests.property.case_runs import poll_every_batch

SHAPE = Shape(emits=("", "EMIT INSERTS"), least=3, partitions=False)


def brackets(draw: st.DrawFn, aliases: Sequence[str]) -> str:
    if len(aliases) == 1:
        return aliases[0]
    cut = draw(st.integers(1, len(aliases) - 1))
    return f"({brackets(draw, aliases[:cut])}, {brackets(draw, aliases[cut:])})"


@given(cases(SHAPE), st.data(), st.sampled_from(["auto", "nested_loop"]), st.integers(1, 3))
def test_every_tree_gives_the_oracles_results(
    case: Case, data: st.DataObject, join: str, least: int
) -> None:
    query = read_query(case.query, "q", case.catalog())
    aliases = data.draw(st.permutations([source.alias for source in query.sources]))
    tree = data.draw(st.composite(brackets)(aliases))
    with patch.object(partial_matches, "_LEAST", least):
        results, q = poll_every_batch(case, muntin.Engine(tree=tree, join=join))
    oracle = case.oracle(query)
    assert_same_sequence(oracle.inserts(case.end), results)
    assert_same_rows(oracle.answer(case.end), q.answer())


@given(cases(Shape(least=3)), st.sampled_from(["", "12"]))
def test_plans_of_any_kind_that_change_at_every_chance_give_the_oracles_results(
    case: Case, memory: str
) -> None:
    case = Case(case.streams, case.tables, case.query, case.events, tuple(range(len(case.events))))
    query = read_query(case.query, "q", case.catalog())
    with (
        patch.object(plan_monitor, "_LEAST_MEASURED", 1),
        patch.object(choices, "_TREE_PAYS", 1e9),
        patch.object(choices, "_TREE_KEEPS", 1e9),
    ):
        results, q = poll_every_batch(
            case, muntin.Engine(replan_change="1", replan_gain="1", index_memory=memory)
        )
    oracle = case.oracle(query)
    if query.emit == "inserts":
        assert_same_sequence(oracle.inserts(case.end), results)
    else:
        assert_same_rows(oracle.answer(case.end), q.answer())


def test_a_tree_expires_its_intermediate_results_with_their_windows() -> None:
    engine = muntin.Engine(tree="((A, B), C)")
    for name in "ABC":
        engine.stream(name, {"k": "bigint", "ts": "timestamp"}, time="ts")
    q = engine.query("SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 1 MILLISECOND")
    for start in range(0, 20_000, 1_000):
        rows = [(time % 500, time) for time in range(start, start + 1_000)]
        for name in "ABC":
            engine.push(name, rows)
    held = q.stats()["intermediate_rows"]
    engine.advance(30_000)
    assert isinstance(held, int)
    assert 1_000 < held < 10_000
    assert q.stats()["intermediate_rows"] == 0
    for name in "ABC":
        engine.push(name, [(1, 40_000)])
    engine.advance(40_500)
    assert q.stats()["intermediate_rows"] == 1
