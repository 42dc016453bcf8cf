"""Which tree is limited under overload, how, and how the plan reports it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.errors import SettingError
from muntin.model.catalog import Catalog, Stream
from muntin.model.settings import ProbeChoice, Settings
from muntin.model.statistics import StreamStatistics
from muntin.plan.join import JoinPlan
from muntin.plan.probe_limits import Limiting
from muntin.planner.draft import Knowledge
from muntin.planner.join_planner import plan_join
from muntin.sql.script import read_query

SCHEMA = pa.schema([("k", pa.int64()), ("j", pa.int64()), ("ts", pa.timestamp("us"))])
CHAIN = "SELECT A.k FROM A, B, C WHERE A.k = C.k AND C.j = B.j WINDOW 10 SECONDS"


def planned(sql: str, known: Knowledge | None = None, **settings: str) -> JoinPlan:
    catalog = Catalog()
    for name in "ABCDEFGH":
        catalog.add(Stream(name, SCHEMA, "ts"))
    return plan_join(
        read_query(sql, "q", catalog), Settings.of(overload="adapt", **settings), known
    )


def tree_of(plan: JoinPlan) -> str:
    assert plan.tree is not None
    return plan.tree.text


def test_two_sources_have_one_tree_without_inner_nodes() -> None:
    plan = planned("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 10 SECONDS")
    assert tree_of(plan) == "(A, B)"
    assert plan.tree is not None
    assert not plan.tree.nodes
    assert plan.reasons[-1].endswith("this one: two sources have no other")


def test_without_statistics_sources_are_joined_along_the_conditions() -> None:
    plan = planned(CHAIN)
    assert tree_of(plan) == "((A, C), B)"
    assert "nothing is known of the streams" in plan.reasons[-1]


def test_with_statistics_the_cheapest_tree_is_limited() -> None:
    statistics = {
        "A": StreamStatistics(1000, 5),
        "B": StreamStatistics(1, 1_000_000),
        "C": StreamStatistics(100, 5),
    }
    plan = planned(CHAIN, Knowledge(declared=statistics))
    assert tree_of(plan) == "(A, (B, C))"
    assert "predicted to be the cheapest" in plan.reasons[-1]


def test_too_many_sources_for_an_exhaustive_search_get_a_linear_tree() -> None:
    names = "ABCDEFGH"
    conditions = " AND ".join(f"A.k = {name}.k" for name in names[1:])
    sql = f"SELECT A.k FROM {', '.join(names)} WHERE {conditions} WINDOW 10 SECONDS"
    plan = planned(sql, Knowledge(declared=dict.fromkeys(names, StreamStatistics(10, 100))))
    assert tree_of(plan).startswith("(((((((A, B)")
    assert "too many sources to look at all trees" in plan.reasons[-1]


def test_a_tree_that_is_set_is_limited() -> None:
    assert tree_of(planned(CHAIN, tree="(A, (B, C))")) == "(A, (B, C))"


def test_settings_and_freshness_determine_the_limits() -> None:
    sql = "SELECT A.k FROM A [ROWS 5], B [RANGE 1 SECOND] WHERE A.k = B.k FRESHNESS A 9 ROWS"
    plan = planned(
        sql,
        monitoring="2 seconds",
        probe_choice="random",
        probe_seed="3",
        state_rows="7",
        freshness="measure",
    )
    assert plan.limiting == Limiting(
        2_000_000, (9, 1_000_000), ProbeChoice.RANDOM, 3, 7, enforce=False
    )


def test_without_adapt_nothing_is_limited() -> None:
    catalog = Catalog()
    for name in "AB":
        catalog.add(Stream(name, SCHEMA, "ts"))
    plan = plan_join(
        read_query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 10 SECONDS", "q", catalog),
        Settings(),
    )
    assert plan.limiting is None
    assert plan.tree is None


def test_what_cannot_be_limited_is_reported_and_planned_as_usual() -> None:
    plan = planned("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 3 ROWS EMIT CHANGES")
    assert plan.limiting is None
    assert plan.tree is None
    assert plan.retracting
    assert plan.reasons[-1].startswith("not limited under overload: the join retracts what leaves")


def test_an_impossible_tree_setting_is_refused() -> None:
    with pytest.raises(SettingError, match="cannot run as a tree"):
        planned(
            "SELECT A.k FROM A [PARTITION BY k ROWS 2], B [ROWS 2] WHERE A.k = B.k", tree="(A, B)"
        )


def test_changes_of_a_join_without_equalities_are_retracted_above_it() -> None:
    plan = planned("SELECT A.k FROM A, B WHERE A.k < B.k WINDOW 3 SECONDS EMIT CHANGES")
    assert plan.limiting is not None
    assert not plan.retracting
