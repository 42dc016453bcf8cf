"""Overload in an engine: entering and leaving it, reports about it, and unusual input."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.errors import SettingError, SqlError
from muntin.model.catalog import Stream
from muntin.operators.join.probe_limiter import Budgets
from muntin.runtime.dataflow import Frontier
from muntin.runtime.overload import Overload
from muntin.testing.dataflows import batches_of, dataflow_of

SECOND = 1_000_000
THREE = (
    "SELECT A.ts AS a, B.ts AS b, C.ts AS c FROM A, B, C WHERE A.k = B.k AND B.k = C.k "
    "WINDOW 3 SECONDS"
)
TWO = "SELECT A.ts AS a, B.ts AS b FROM A, B WHERE A.k = B.k WINDOW 3 SECONDS"


def engine_of(
    sql: str, names: str, **settings: object
) -> tuple[muntin.Engine, muntin.StandingQuery]:
    engine = muntin.Engine(**settings)
    for name in names:
        engine.stream(name, {"k": "bigint", "ts": "timestamp"}, time="ts")
    return engine, engine.query(sql, name="q")


def feed(
    engine: muntin.Engine,
    names: str,
    rates: list[tuple[int, int]],
    *,
    keys: int = 300,
    at_once: int = 1,
) -> None:
    """Push rows evenly spread over seconds, some seconds per push.

    Each entry is (seconds, rows per second of each stream).
    """
    random = np.random.default_rng(7)
    second = 0
    parts: dict[str, list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]] = {
        name: [] for name in names
    }
    for seconds, rate in rates:
        for _ in range(seconds):
            for place, name in enumerate(names):
                times = second * SECOND + np.arange(rate) * (SECOND // max(rate, 1)) + place
                parts[name].append((random.integers(0, keys, rate), times))
            second += 1
            if second % at_once == 0:
                push(engine, parts, second)
    push(engine, parts, second)


def push(
    engine: muntin.Engine,
    parts: dict[str, list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]],
    second: int,
) -> None:
    for name, pieces in parts.items():
        if pieces:
            keys, times = (np.concatenate(columns) for columns in zip(*pieces, strict=True))
            engine.push(
                name, pa.table({"k": pa.array(keys), "ts": pa.array(times, pa.timestamp("us"))})
            )
            pieces.clear()
    engine.advance(second * SECOND)


def overload(q: muntin.StandingQuery) -> dict[str, Any]:
    found = q.stats()["overload"]
    assert isinstance(found, dict)
    return found


def pairs(table: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


LOAD = [(10, 10), (10, 400), (15, 10)]


@pytest.mark.parametrize(("sql", "names"), [(TWO, "AB"), (THREE, "ABC")])
@pytest.mark.parametrize("policy", ["jaqpot", "grepp", "equal_hj"])
def test_results_are_complete_before_overload_and_one_window_after_it(
    sql: str, names: str, policy: str
) -> None:
    exact_engine, exact = engine_of(sql, names)
    feed(exact_engine, names, LOAD)
    engine, q = engine_of(sql, names, overload="adapt", resources=200, policy=policy)
    feed(engine, names, LOAD)
    decisions = overload(q)["decisions"]
    assert [decisions[0]["decision"], decisions[-1]["decision"]] == ["limit", "release"]
    assert decisions[0]["cycle"] <= 12
    left = decisions[-1]["cycle"]
    assert left < 30
    found, whole = pairs(q.poll()), pairs(exact.poll())
    assert set(found) <= set(whole)
    assert len(found) < len(whole)
    for rows in (found, whole):
        rows[:] = [row for row in rows if moment(row) < 10 or moment(row) >= left + 1 + 3]
    assert found == whole
    assert not overload(q)["overloaded"]
    assert overload(q)["share_of_results"] == 1.0


def moment(row: tuple[object, ...]) -> float:
    return (row[1] - EPOCH).total_seconds()  # type: ignore[no-any-return]


EPOCH = pa.scalar(0, pa.timestamp("us")).as_py()


@pytest.mark.parametrize("choice", ["oldest", "newest", "random"])
def test_a_hundredfold_jump_is_held_within_its_first_cycle(choice: str) -> None:
    engine, q = engine_of(TWO, "AB", overload="adapt", resources=100, probe_choice=choice)
    feed(engine, "AB", [(5, 10), (5, 1000)], at_once=10)
    probes = overload(q)["probes"]
    assert 5 * 2 * 10 < sum(probes.values()) <= 5 * 2 * 10 + 6 * 100


def test_a_stream_that_stops_leaves_its_unused_resources_to_the_others() -> None:
    engine, q = engine_of(THREE, "ABC", overload="adapt", resources=150)
    feed(engine, "ABC", [(8, 300)])
    limited = overload(q)
    assert limited["overloaded"]
    rows = [(1, 8 * SECOND + place * 10_000) for place in range(100 * 8)]
    engine.push("A", rows)
    engine.advance(17 * SECOND)
    assert overload(q)["resources_needed"] <= 150
    assert not overload(q)["overloaded"]
    before = sum(overload(q)["probes"].values())
    for name in "ABC":
        engine.push(name, [(-2, 18 * SECOND)])
    engine.advance(40 * SECOND)
    assert sum(overload(q)["probes"].values()) == before + 4, (
        "each row, and the partial match of A and B"
    )


def test_rows_of_one_push_and_of_many_are_limited_alike() -> None:
    results = []
    for at_once in (1, 3, 100):
        engine, q = engine_of(THREE, "ABC", overload="adapt", resources=120, probe_choice="random")
        feed(engine, "ABC", LOAD, at_once=at_once)
        results.append((pairs(q.poll()), overload(q)["decisions"]))
    assert results[0][0]
    assert results[0] == results[1] == results[2]


def test_explain_and_stats_show_what_is_limited_and_why() -> None:
    engine, q = engine_of(THREE, "ABC", overload="adapt", resources=100)
    assert "overload adapt: a tree" in q.explain()
    assert "not limited now" in q.explain()
    feed(engine, "ABC", [(8, 300)])
    reported = overload(q)
    assert reported["mode"] == "adapt"
    assert reported["overloaded"]
    assert 0 < reported["share_of_results"] < 1
    assert reported["resources"] == 100
    assert set(reported["budgets"]) == {"A into B", "B into A", "C into A+B", "A+B into C"}
    assert reported["oldest_rows"].keys() == {"A", "B", "C"}
    text = q.explain()
    assert "limited now: 100 probes per second, policy jaqpot, cycles of 1 second" in text
    assert "A+B into C: " in text
    assert "decided after cycle" in text
    assert engine.queries()[0].plan()["overload"]["overloaded"] is True  # type: ignore[index]


def test_without_adapt_the_lag_is_reported() -> None:
    engine, q = engine_of(TWO, "AB")
    engine.push("A", [(1, 0), (1, 10 * SECOND)])
    engine.push("B", [(1, 4 * SECOND)])
    assert overload(q) == {"mode": "queue", "lag_seconds": 6.0}


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT k FROM A WINDOW 3 SECONDS", "one source has nothing to join with"),
        ("SELECT A.k FROM A [PARTITION BY k ROWS 2], B [ROWS 3] WHERE A.k = B.k", "by partition"),
        (
            "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 3 ROWS EMIT CHANGES",
            "retracts what leaves",
        ),
        (f"{TWO} EMIT CHANGES WITH (pipeline = 'negative')", "retracts what leaves"),
        (f"{TWO} WITH (algorithm = 'lazy')", "the algorithm is lazy"),
        (f"{TWO} WITH (expiry = 'eager')", "expiry is eager"),
        (f"{TWO} WITH (tree = 'off')", "trees are off"),
        (f"{TWO} EMIT CHANGES WITH (state_rows = 5)", "cannot be retracted"),
    ],
)
def test_what_cannot_be_limited_runs_without_limit_and_reports_why(sql: str, why: str) -> None:
    engine, q = engine_of(sql, "AB", overload="adapt", resources=1)
    engine.push("A", [(1, 0)] * 5)
    engine.push("B", [(1, 1)] * 5)
    engine.advance(2)
    assert overload(q)["mode"] == "queue"
    assert why in q.stats()["without_effect"]["overload"]  # type: ignore[index]
    assert q.poll().num_rows
    join = engine.queries()[0].plan().get("join", {"reasons": []})
    reasons = join["reasons"]  # type: ignore[index]
    if "FROM A W" not in sql:
        assert any(why in reason["reason"] for reason in reasons)


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "many", "0.0"])
def test_resources_are_a_positive_number(value: str) -> None:
    with pytest.raises(
        SettingError, match=r"setting resources cannot be .* Give rows per second, more than 0"
    ):
        muntin.Engine(resources=value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("monitoring", "0 seconds"),
        ("monitoring", ""),
        ("overload", "shed"),
        ("policy", "best"),
        ("adapt_change", "-0.1"),
        ("adapt_gain", "x"),
        ("probe_choice", "some"),
        ("probe_seed", "-1"),
        ("probe_seed", ""),
        ("state_rows", "0"),
        ("state_rows", "1.5"),
        ("freshness", "on"),
    ],
)
def test_other_settings_of_overload_are_checked(name: str, value: str) -> None:
    with pytest.raises(SettingError, match=f"setting {name} cannot be"):
        muntin.Engine(**{name: value})


AUTO = {"monitoring": "auto", "adapt_change": "auto", "adapt_gain": "auto"}


def test_a_controller_that_tunes_itself_limits_rows_of_one_push_and_of_many_alike() -> None:
    results = []
    for at_once in (1, 7, 40):
        engine, q = engine_of(THREE, "ABC", overload="adapt", resources=120, **AUTO)
        feed(engine, "ABC", [(10, 15), (30, 60)], keys=60, at_once=at_once)
        reported = overload(q)
        assert reported["overloaded"]
        assert reported["cycles_observed_together"] > 1
        assert sum(reported["probes"].values()) <= 120 * 42
        results.append((pairs(q.poll()), reported["decisions"], reported["adapt_gain"]))
        assert "observed every" in q.explain()
    assert results[0][0]
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize(
    ("settings", "names", "why"),
    [
        ({}, {*AUTO}, "queue"),
        ({"overload": "adapt"}, {*AUTO}, "without resources"),
        ({"overload": "adapt", "tree": "off", "resources": "9"}, {*AUTO}, "not limited"),
        (
            {"overload": "adapt", "resources": "9", "policy": "equal_hj"},
            {"adapt_gain"},
            "always applied",
        ),
        ({"overload": "adapt", "resources": "9"}, set(), ""),
    ],
)
def test_settings_of_the_controller_without_effect_say_so(
    settings: dict[str, str], names: set[str], why: str
) -> None:
    _, q = engine_of(THREE, "ABC", **settings, **AUTO)
    found = q.stats()["without_effect"]
    assert isinstance(found, dict)
    assert {*found} & {*AUTO} == names
    assert all(why in str(found[name]) for name in names)


def test_freshness_below_the_window_is_refused() -> None:
    with pytest.raises(SqlError, match="smaller than its window"):
        engine_of(f"{TWO} FRESHNESS 2 SECONDS", "AB", overload="adapt")


def test_queries_with_other_windows_and_freshness_share_a_limited_join() -> None:
    engine, q = engine_of(f"{TWO} FRESHNESS 9 SECONDS", "AB", overload="adapt", scheduler="swf")
    other = engine.query(
        "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 2 SECONDS FRESHNESS 4 SECONDS", name="other"
    )
    assert q.stats()["shares_with"] == ["other"]
    assert q.stats()["without_effect"] == {"scheduler": "its join has probe budgets"}
    engine.push("A", [(1, 0)])
    engine.push("B", [(1, 2_500_000)])
    engine.advance(3 * SECOND)
    assert [each.poll().num_rows for each in (q, other)] == [1, 0]


def test_queries_of_a_limited_join_leave_out_what_is_stale_by_their_own_freshness() -> None:
    schema = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
    queries = {name: f"{TWO} FRESHNESS {age} SECONDS" for name, age in {"q": 9, "r": 4}.items()}
    dataflow = dataflow_of([Stream(name, schema, "ts") for name in "AB"], queries, overload="adapt")
    (join,) = dataflow.joins()
    assert isinstance(join.overload, Overload)
    join.overload.limiter.see(8 * SECOND, [0, 0])  # as a background engine does under overload
    rows = {
        name: pa.table([[1] * len(times), pa.array(times).cast(pa.timestamp("us"))], schema=schema)
        for name, times in (("A", [0, 6 * SECOND, 8 * SECOND]), ("B", [SECOND, 7 * SECOND]))
    }
    found: dict[str, list[tuple[int, int]]] = {"q": [], "r": []}
    batches, marks = batches_of(dataflow, rows), dict.fromkeys("AB", 9 * SECOND)
    for name, table in dataflow.step(batches, Frontier(low_marks=marks)):
        found[name] += [(row["a"].second, row["b"].second) for row in table.to_pylist()]
    assert found["q"] == [(0, 1), (6, 7), (8, 7)]
    assert found["r"] == [(6, 7), (8, 7)], "a row of 0 seconds is 8 seconds old by now"


def test_queries_whose_stale_results_are_counted_share_under_equal_freshness_only() -> None:
    settings = {"overload": "adapt", "freshness": "measure"}
    engine, q = engine_of(f"{TWO} FRESHNESS 9 SECONDS", "AB", **settings)
    alone = engine.query(TWO, name="alone")
    assert not q.stats()["shares_with"]
    assert (
        "its results may be of another age: A [RANGE 9 seconds], B [RANGE 9 seconds] "
        "instead of A [RANGE 3 seconds]"
    ) in alone.explain()


def test_states_of_a_fixed_size_keep_rows_beyond_their_windows_up_to_freshness() -> None:
    settings = {"overload": "adapt", "state_rows": 4, "tree": "((A, B), C)"}
    results = {}
    for freshness in ("enforce", "measure"):
        engine, q = engine_of(
            f"{THREE} FRESHNESS 6 SECONDS", "ABC", freshness=freshness, **settings
        )
        engine.push("A", [(1, 0)])
        engine.push("B", [(1, SECOND)])
        engine.push("C", [(1, 5 * SECOND), (1, 7 * SECOND)])
        engine.advance(8 * SECOND)
        results[freshness] = (
            [moment(row) for row in pairs(q.poll())],
            overload(q)["stale_results"],
            overload(q)["oldest_rows"]["A"],
        )
    assert results == {"enforce": ([5.0], 0, "5 seconds"), "measure": ([5.0, 7.0], 1, "7 seconds")}


def test_an_engine_in_the_background_limits_joins_without_waiting_for_analyses() -> None:
    engine, q = engine_of(THREE, "ABC", overload="adapt", resources=100)
    engine.start()
    feed(engine, "ABC", [(20, 300)])
    assert engine.settle(30)
    for _ in range(100):
        if overload(q)["overloaded"] and overload(q)["actuations"]:
            break
        time.sleep(0.02)
        engine.push("A", [(1, 21 * SECOND)])
    reported = overload(q)
    engine.stop()
    assert reported["overloaded"]
    assert sum(reported["probes"].values()) <= 22 * 100
    assert reported["stale_results"] == 0


def test_an_engine_in_the_background_derives_its_resources() -> None:
    engine, q = engine_of(TWO, "AB", overload="adapt")
    assert overload(q)["resources"] is None
    engine.start()
    feed(engine, "AB", [(10, 1000)])
    assert engine.settle(30)
    reported = overload(q)["resources"]
    engine.stop()
    assert reported > 10_000


def test_views_above_a_limited_join_retract_expired_results() -> None:
    schema = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
    sql = "SELECT A.k, COUNT(*) AS n FROM A, B WHERE A.k < B.k GROUP BY A.k WINDOW 3 SECONDS"
    dataflow = dataflow_of(
        [Stream(name, schema, "ts") for name in "AB"], {"q": sql}, partition=True, overload="adapt"
    )
    (quota,) = dataflow.quotas().values()
    quota.limit(Budgets((None, 1.0)))
    rows = {
        name: pa.table([keys, pa.array(times).cast(pa.timestamp("us"))], schema=schema)
        for name, keys, times in (("A", [1, 1], [0, 1]), ("B", [2, 2], [2, 3]))
    }
    for _ in dataflow.step(batches_of(dataflow, rows), Frontier(final=(-1, -1))):
        pass
    ((_, first),) = dataflow.step(frontier=Frontier(advanced=SECOND))
    assert first.select(["_op", "k", "n"]).to_pylist() == [{"_op": "+", "k": 1, "n": 2}]
    later = [table for _, table in dataflow.step(frontier=Frontier(advanced=10 * SECOND))]
    assert pa.concat_tables(later).column("_op").to_pylist()[-1] == "-"
    assert dataflow.queries["q"].answer().num_rows == 0
    assert quota.take()["probes"] == [2, 1]


@pytest.mark.parametrize(("resources", "late"), [(1_000_000, [11.0, 15.0]), (50, [15.0])])
def test_live_no_stale_results_are_made_while_overloaded_and_all_of_them_otherwise(
    resources: int, late: list[float]
) -> None:
    sql = (
        "SELECT A.ts AS a, B.ts AS b FROM A, B WHERE A.k = B.k WINDOW 3 SECONDS FRESHNESS 4 SECONDS"
    )
    engine, q = engine_of(sql, "AB", overload="adapt", resources=resources)
    engine.start()
    feed(engine, "AB", [(10, 100)], keys=20)
    assert engine.settle(30)
    assert q.poll().num_rows > 0
    engine.push("A", [(-1, 10 * SECOND), (-2, 14 * SECOND)])
    engine.push("B", [(-1, 11 * SECOND), (-2, 15 * SECOND)])
    engine.advance(16 * SECOND)
    assert engine.settle(30)
    found = [moment(row) for row in pairs(q.poll())]
    engine.stop()
    assert found == late


@pytest.mark.parametrize("resources", [300, 800])
def test_the_fraction_of_results_produced_is_estimated(resources: int) -> None:
    made = {}
    for settings in ({}, {"overload": "adapt", "resources": resources, "tree": "((A, B), C)"}):
        engine, q = engine_of(THREE, "ABC", **settings)
        feed(engine, "ABC", [(20, 300)])
        late = [row for row in pairs(q.poll()) if moment(row) >= 16]
        made[overload(q)["mode"]] = len(late), overload(q).get("share_of_results")
    share = made["adapt"][0] / made["queue"][0]
    assert made["adapt"][1] == pytest.approx(share, rel=0.2)
