"""``stats()`` has the same keys for every kind of query, and the documentation names them all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import muntin

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "read-stats-and-explain.md"
KINDS = {
    "plain": "SELECT k FROM A WINDOW 5 SECONDS",
    "join": "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS",
    "shared": "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 3 SECONDS",
    "three": "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 5 SECONDS",
    "tree": (
        "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 5 SECONDS "
        "WITH (tree = '((A, B), C)')"
    ),
    "adapt": (
        "SELECT A.v FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS "
        "WITH (overload = 'adapt', resources = '5')"
    ),
    "rows": "SELECT A.k FROM A [ROWS 3], B [PARTITION BY k ROWS 2] WHERE A.k = B.k",
    "naive": (
        "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS "
        "WITH (algorithm = 'naive', sharing = 'off')"
    ),
    "changes": "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS EMIT CHANGES",
    "every": "SELECT k FROM A WINDOW 5 SECONDS EVERY 2 SECONDS",
    "table": "SELECT A.k, T.n FROM A, T WHERE A.k = T.k WINDOW 5 SECONDS",
    "distinct": "SELECT DISTINCT k FROM A WINDOW 5 SECONDS",
    "group": "SELECT A.k, COUNT(*) AS n FROM A, B WHERE A.k = B.k GROUP BY A.k WINDOW 5 SECONDS",
    "again": "SELECT A.k, COUNT(*) AS n FROM A, B WHERE A.k = B.k GROUP BY A.k WINDOW 5 SECONDS",
    "total": "SELECT COUNT(*) AS n FROM A WINDOW 5 SECONDS",
    "union": "SELECT k FROM A UNION ALL SELECT k FROM B WINDOW 5 SECONDS",
    "except": "SELECT k FROM A EXCEPT SELECT k FROM A WHERE v > 1 WINDOW 5 SECONDS",
    "below": (
        "SELECT x.k FROM (SELECT k, COUNT(*) AS n FROM A GROUP BY k) x WHERE x.n > 1 "
        "WINDOW 5 SECONDS"
    ),
    "snapshot": "SELECT k FROM A WINDOW 5 SECONDS EVERY 1 SECOND EMIT SNAPSHOT",
}
PIPELINES = {"distinct", "group", "again", "total", "union", "except", "below", "snapshot"}
NESTED = ("buffers", "work", "response_seconds")


@pytest.fixture(scope="module", params=[False, True], ids=["before rows", "after rows"])
def reported(request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """Return the stats of a query of each kind, all in one engine."""
    engine = muntin.Engine()
    for name in "ABC":
        engine.stream(name, {"k": "int", "v": "int", "ts": "timestamp"})
    engine.table("T", [{"k": 1, "n": "one"}])
    handles = {name: engine.query(sql, name=name) for name, sql in KINDS.items()}
    if request.param:
        for second in range(8):
            for name in "ABC":
                engine.push(name, [(key, key, second * 1_000_000) for key in (1, 2, 1)])
        engine.advance(9_000_000)
    return {name: handle.stats() for name, handle in handles.items()}


def test_every_kind_of_query_has_the_same_keys(reported: dict[str, dict[str, Any]]) -> None:
    expected = reported["plain"]
    for name, stats in reported.items():
        assert sorted(stats) == sorted(expected), name
        for part in NESTED:
            assert sorted(stats[part]) == sorted(expected[part]), (name, part)
        assert {"mode", "lag_seconds"} <= stats["overload"].keys(), name
        assert stats["query"] == name


def test_views_add_up_the_counts_of_their_joins(reported: dict[str, dict[str, Any]]) -> None:
    for name, stats in reported.items():
        assert bool(stats["leaves"]) == (name in PIPELINES), name
        assert not stats["operators"] or name in PIPELINES, name
    assert [len(reported[name]["operators"]) for name in ("group", "union", "below")] == [1, 1, 2]
    assert reported["join"]["shares_with"] == ["shared"]
    assert "group" in reported["again"]["shares_with"]
    assert all(
        set(stats["shares_with"]) <= KINDS.keys() - {name}
        for name, stats in reported.items()
        if name in PIPELINES
    )
    group, join = reported["group"], reported["changes"]
    assert group["state_rows"].keys() == join["state_rows"].keys() == {"A", "B"}
    assert group["rows_in"] == group["leaves"][0]["rows_in"]
    assert group["work"] == group["leaves"][0]["work"]
    assert group["processed_until"] == group["leaves"][0]["processed_until"]
    assert reported["union"]["rows_in"] == sum(
        leaf["rows_in"] for leaf in reported["union"]["leaves"]
    )
    assert group["state_bytes"] == group["leaves"][0]["state_bytes"] + sum(
        one["bytes"] for one in group["operators"]
    )


def test_the_documentation_names_every_key(reported: dict[str, dict[str, Any]]) -> None:
    text = PAGE.read_text(encoding="utf-8").split("## stats")[1]
    documented = {
        name
        for row in re.findall(r"(?m)^\| (`.*?) \|", text)
        for name in re.findall(r"`(\w+)`", row)
    }
    assert set(reported["plain"]) == documented


def test_buffers_show_waiting_rows_window_rows_and_unpolled_results() -> None:
    engine = muntin.Engine()
    for name in "AB":
        engine.stream(name, {"k": "bigint", "ts": "timestamp"}, time="ts")
    engine.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 3 SECONDS", name="q0")
    engine.query("SELECT k FROM B WINDOW 1 SECOND", name="q1")
    rows = [(number, number * 1_000_000) for number in range(10)]
    engine.push("A", rows)
    engine.push("B", rows[:5])
    first, second = (engine.handle(name).stats()["buffers"] for name in ("q0", "q1"))
    unscheduled = {"most_input": 0, "held": 0, "most_held": 0}
    assert first == {"input": 5, "join": 3 + 3, "output": 5, **unscheduled}, (
        "the last five of A are ahead of B"
    )
    assert second == {"input": 0, "join": 1, "output": 5, **unscheduled}
    engine.handle("q0").poll()
    assert engine.handle("q0").stats()["buffers"]["output"] == 0  # type: ignore[index]
