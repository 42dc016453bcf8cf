from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.engine.explain import describe_plan
from muntin.plan.description import draw, to_dict
from muntin.runtime.running_query import RunningQuery


def engine(**settings: str) -> muntin.Engine:
    found = muntin.Engine(**settings)
    for name in "ABC":
        found.stream(name, {"k": "bigint", "s": "varchar", "ts": "timestamp"})
    found.table("T", [{"k": 1}])
    return found


def test_a_plan_shows_windows_filters_indexes_steps_and_state() -> None:
    e = engine()
    q = e.query(
        "SELECT A.k, B.s FROM A [RANGE 90 SECONDS], B [ROWS 5], T"
        " WHERE A.k = B.k AND A.s = B.s AND A.k > 3 AND T.k < A.k + B.k EVERY 2 SECONDS",
        name="q",
    )
    e.push("A", [(4, "x", 0), (5, "x", 1)])
    e.push("B", [(4, "x", 3_000_000)])
    e.advance(4_000_000)
    assert q.explain().splitlines() == [
        "query q: emits inserts every 2 seconds",
        "├─ sharing group: this query alone",
        "├─ join: hybrid of hash and nested loops, algorithm eager, expiry own",
        "├─ source A [RANGE 90 seconds]: holds 2 rows",
        "│  ├─ filter A.k > 3",
        "│  ├─ index on A.k, A.s (about two buckets a row)",
        "│  └─ a new row looks into B (index) > T (scan)",
        "├─ source B [ROWS 5]: holds 1 row",
        "│  ├─ index on B.k, B.s (about two buckets a row)",
        "│  └─ a new row looks into A (index) > T (scan)",
        "├─ source T [STORED]: holds 1 row",
        "├─ then keep A.s = B.s, hashed keys checked again",
        "├─ then keep T.k < A.k + B.k",
        "├─ select k, s",
        "└─ measured since 1970-01-01 00:00:00, 4 seconds: 0.5 comparisons per second",
        "   └─ in all: 2 comparisons, 2 rows scanned, 1 matches, 1 results",
    ]


def test_all_queries_are_explained_and_having_none_is_reported() -> None:
    e = engine(algorithm="naive", join="nested_loop", expiry="lazy")
    assert e.explain() == "no queries"
    e.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND", name="one")
    e.query("SELECT k FROM C c [PARTITION BY k ROWS 2] EMIT CHANGES", name="two")
    one, two = e.explain().split("\n\n")
    assert "join: nested loops, algorithm naive, expiry lazy" in one
    assert "a new row looks into (A new) > B (scan)" in one
    why = "negative tuple: a window in rows does not determine in advance when a row leaves it"
    turn = "this join retracts every row in its turn, so its windows hold no expired rows"
    assert two.splitlines() == [
        f"query two: emits changes at every change, {why}",
        f"├─ sharing group: this query alone: its join retracts what leaves ({why})",
        f"├─ the setting expiry = 'lazy' has no effect: {turn}",
        "├─ source C c [PARTITION BY k ROWS 2]: holds 0 rows",
        "└─ select k",
    ]
    assert e.explain("TWO") == two


def test_plans_show_which_queries_share_a_join_and_why_others_do_not() -> None:
    e = engine()
    small = e.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND", name="small")
    large = e.query("SELECT B.k FROM B, A WHERE B.k = A.k WINDOW 9 SECONDS", name="large")
    other = e.query("SELECT A.k FROM A, B WHERE A.k < B.k WINDOW 9 SECONDS", name="other")
    for query in (small, large):
        assert "sharing group: one join for small, large" in query.explain()
        assert "source A [RANGE 9 seconds]" in query.explain(), "the join has the largest window"
    assert small.plan()["sharing_group"] == {
        "queries": ["small", "large"],
        "why": "joins A and B on the same conditions as large",
        "scheduler": "mqt",
        "scheduler_reason": "the engine does not run in the background",
    }
    assert "scheduler = 'mqt' has no effect: the engine does not run" in small.explain()
    e.start()
    assert ", scheduler mqt" in small.explain()
    assert small.stats()["without_effect"] == {}
    e.stop()
    assert (
        "this query alone: small joins the same streams on other conditions: A.k = B.k "
        "instead of A.k < B.k"
    ) in other.explain()
    assert small.stats()["shares_with"] == ["large"]
    e.drop("large")
    assert "source A [RANGE 1 second]" in small.explain()
    assert small.stats()["shares_with"] == []
    why = "no query with other windows shares its join"
    assert small.stats()["without_effect"] == {"scheduler": why}


def test_what_cannot_be_scheduled_says_so() -> None:
    e = engine(scheduler="swf", pipeline="negative")
    body = "SELECT A.k, COUNT(*) AS n FROM A, B WHERE A.k = B.k GROUP BY A.k WINDOW"
    e.query(f"{body} 1 SECOND", name="small")
    query = e.query(f"{body} 9 SECONDS", name="large")
    e.start()
    why = "its join cannot be scheduled: it takes back what leaves"
    assert query.stats()["without_effect"] == {"scheduler": why}
    assert f"scheduler = 'swf' has no effect: {why}" in query.explain()
    e.stop()


def test_buckets_and_chains_are_shown() -> None:
    e = engine(buckets="5, B = 1", expiry="probe")
    text = e.query(
        "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k < C.k WINDOW 1 SECOND"
    ).explain()
    assert "join: hybrid of hash and nested loops, algorithm eager, expiry probe" in text
    assert "index on A.k (5 buckets)" in text
    assert "index on B.k (1 bucket)" in text
    assert text.count("all rows in one chain") == 2
    assert "a new row looks into B (index) > C (scan)" in text


def test_checks_are_shown_without_those_that_an_index_decides() -> None:
    sql = "SELECT A.k FROM A, B WHERE A.k = B.k AND A.ts < B.ts WINDOW 1 SECOND"
    assert "in B checks B.ts > A.ts" in engine().query(sql).explain()
    assert (
        "in B checks B.k = A.k and B.ts > A.ts" in engine(join="nested_loop").query(sql).explain()
    )


def test_machines_get_numbers_lists_and_empty_lists() -> None:
    e = engine(expiry="lazy", expiry_interval="3 seconds", buckets="B = 7")
    q = e.query(
        "SELECT A.k FROM A, B WHERE A.k = B.k AND A.k > 3 WINDOW 2 ROWS EVERY 500 MILLISECONDS",
        name="q",
    )
    assert [each.plan() for each in e.queries()] == [e.handle("Q").plan()] == [q.plan()]
    assert json.loads(json.dumps(q.plan())) == q.plan() == {
        "query": "q",
        "emit": "inserts",
        "every_seconds": 0.5,
        "sharing_group": {"queries": ["q"], "why": None},
        "join": {
            "method": "hash",
            "algorithm": "eager",
            "reevaluation_seconds": 0.5,
            "expiry": "lazy",
            "expiry_interval_seconds": 3.0,
            "reasons": [],
        },
        "sources": [
            {
                "alias": "A", "relation": "A", "window": "[ROWS 2]", "stored": False,
                "rows_held": 0,
                "filters": [{"condition": "A.k > 3"}],
                "indexes": [{"keys": ["A.k"], "buckets": None}],
                "order": {"steps": [{"source": "B", "access": "index", "keys": ["B.k"],
                    "checks": []}]},
            },
            {
                "alias": "B", "relation": "B", "window": "[ROWS 2]", "stored": False,
                "rows_held": 0,
                "filters": [],
                "indexes": [{"keys": ["B.k"], "buckets": 7}],
                "order": {"steps": [{"source": "A", "access": "index", "keys": ["A.k"],
                    "checks": []}]},
            },
        ],
        "residuals": [],
        "output": {"columns": ["k"]},
    }  # fmt: skip


def three_streams(rates: dict[str, int], **settings: str) -> muntin.Engine:
    e = muntin.Engine(**settings)
    for name, rate in rates.items():
        e.execute(
            f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP) WITH (rate = {rate}, distinct = 200)"
        )
    e.query("SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 10 SECONDS", name="q")
    return e


def run(e: muntin.Engine, rates: dict[str, int], start: int, seconds: int) -> None:
    """Push evenly spaced rows with random keys."""
    for name, rate in rates.items():
        keys = np.random.default_rng(rate + start).integers(0, 200, seconds * rate)
        times = start * 1_000_000 + np.arange(1, len(keys) + 1) * 1_000_000 // rate
        e.push(name, pa.table({"k": keys, "ts": pa.array(times).cast(pa.timestamp("us"))}))
    e.advance((start + seconds) * 1_000_000)


def test_measured_comparisons_are_shown_beside_the_prediction_and_near_it() -> None:
    rates = {"A": 10, "B": 2, "C": 5}
    e = three_streams(rates, replan="off")
    assert "measured" not in e.queries()[0].plan()
    run(e, rates, 0, 200)
    plan: Any = e.queries()[0].plan()
    assert (
        plan["measured"]["predicted_comparisons_a_second"]
        == plan["join"]["prediction"]["comparisons_a_second"]
    )
    assert plan["measured"]["comparisons_a_second"] == pytest.approx(
        plan["join"]["prediction"]["comparisons_a_second"], rel=0.15
    )
    costs = [other["comparisons_a_second"] for other in plan["join"]["prediction"]["alternatives"]]
    assert costs == sorted(costs)
    assert plan["join"]["prediction"]["comparisons_a_second"] <= costs[0]
    work = e.queries()[0].stats()["work"]
    assert plan["measured"]["counts"]["comparisons"] == work["comparisons"]  # type: ignore[index]
    assert plan["measured"]["counts"]["results"] == len(e.queries()[0].poll())
    text = e.explain()
    assert f"└─ order {', '.join(plan['join']['prediction']['order'])}: " in text
    assert text.count("instead of ") == len(costs)
    assert " predicted\n   └─ in all: " in text


def test_a_new_plan_is_measured_from_its_beginning() -> None:
    before, after = {"A": 40, "B": 4, "C": 20}, {"A": 4, "B": 40, "C": 20}
    e = three_streams(before, join="nested_loop")
    run(e, before, 0, 40)
    run(e, after, 40, 60)
    stats: Any = e.queries()[0].stats()
    (switch,) = stats["order_switches"]
    plan: Any = e.queries()[0].plan()
    order = plan["join"]["prediction"]["order"]
    assert switch["to"] == [
        f"{origin}: {', '.join(other for other in order if other != origin)}" for origin in "ABC"
    ]
    assert "measured" not in plan, "no time has passed since the switch"
    run(e, after, 100, 60)
    plan = e.queries()[0].plan()
    assert (plan["measured"]["since"], plan["measured"]["seconds"]) == (switch["at"], 60.0)
    later: Any = e.queries()[0].stats()
    since = later["work"]["comparisons"] - stats["work"]["comparisons"]
    assert since <= plan["measured"]["counts"]["comparisons"] < 1.01 * since, (
        "rows of the very instant of the switch may follow it"
    )


def test_reasons_are_shown() -> None:
    e = engine()
    e.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND", name="q")
    running = e.dataflow.queries["q"]
    assert isinstance(running, RunningQuery)
    plan = replace(running.plan, reasons=("hash: 1 predicted, nested loops 9",))
    assert (
        "├─ join: hash, algorithm eager, expiry own\n│  └─ hash: 1 predicted, nested loops 9\n"
        in draw(describe_plan(plan))
    )
    assert to_dict(describe_plan(plan))["join"]["reasons"] == [  # type: ignore[index]
        {"reason": "hash: 1 predicted, nested loops 9"}
    ]


@pytest.mark.parametrize("policy", ["own", "lazy", "probe", "probe_insert", "probe_all", "all"])
def test_an_expiry_policy_that_does_not_apply_is_named(policy: str) -> None:
    e = engine(expiry=policy)
    without = f"the setting expiry = '{policy}' has no effect: this join retracts every row"
    join = "FROM A, B WHERE A.k = B.k WINDOW 9 SECONDS EMIT CHANGES WITH (pipeline = '{}')"
    e.query(f"SELECT A.k {join.format('negative')}", name="retracting")
    e.query(f"SELECT A.k {join.format('hybrid')}", name="inserting")
    e.query("SELECT k, COUNT(*) AS n FROM A GROUP BY k WINDOW 9 SECONDS", name="grouping")
    assert without in e.explain("retracting")
    assert without in e.explain("grouping")
    assert "has no effect" not in e.explain("inserting")
    assert "this join retracts" in without_effect(e, "retracting")["expiry"]
    assert "expiry" not in without_effect(e, "inserting")


@pytest.mark.parametrize("policy", ["probe", "all"])
def test_an_expiry_policy_has_no_effect_in_operators_above_joins(policy: str) -> None:
    e = engine(expiry=policy, pipeline="hybrid")
    above = f"expiry = '{policy}' has no effect above joins"
    e.query(
        "SELECT A.k, COUNT(*) AS n FROM A, B WHERE A.k = B.k GROUP BY A.k WINDOW 9 SECONDS",
        name="grouping",
    )
    assert above in e.explain("grouping")
    assert f"algorithm eager, expiry {policy}" in e.explain("grouping")
    assert "expiry" not in without_effect(e, "grouping")
    e.query("SELECT DISTINCT k FROM A WINDOW 9 SECONDS WITH (pipeline = 'probing')", name="single")
    assert above in e.explain("single")
    why = "no row looks into the window of a single source"
    assert f"the setting expiry = '{policy}' has no effect: {why}" in e.explain("single")
    assert without_effect(e, "single")["expiry"] == why


def without_effect(e: muntin.Engine, query: str) -> dict[str, str]:
    found = e.handle(query).stats()["without_effect"]
    assert isinstance(found, dict)
    return found
