"""A stream that occurs twice in a limited join has two windows, each with its own probe budgets."""

from __future__ import annotations

import muntin

SECOND = 1_000_000
QUERY = (
    "SELECT x.ts AS x, y.ts AS y, b.ts AS b FROM A x, A y, B b WHERE x.k = y.k AND y.k = b.k "
    "WINDOW 3 SECONDS"
)


def run(resources: str) -> tuple[list[tuple[object, ...]], dict[str, dict[str, int]]]:
    """Return the results and the counts of probes of twenty seconds."""
    engine = muntin.Engine(overload="adapt", resources=resources, tree="((x, y), b)")
    for name in "AB":
        engine.stream(name, {"k": "bigint", "ts": "timestamp"}, time="ts")
    q = engine.query(QUERY, name="q")
    for second in range(20):
        for place, name in enumerate("AB"):
            times = range(second * SECOND + place, (second + 1) * SECOND, SECOND // 20)
            engine.push(name, [(number % 7, time) for number, time in enumerate(times)])
        engine.advance((second + 1) * SECOND)
    overload = q.stats()["overload"]
    assert isinstance(overload, dict)
    return [tuple(row.values()) for row in q.poll().to_pylist()], overload


def test_a_stream_that_occurs_twice_has_half_joins_for_each_occurrence() -> None:
    exact, free = run("1000000")
    limited, cut = run("60")
    assert set(cut["budgets"]) == {"x into y", "y into x", "b into x+y", "x+y into b"}
    assert cut["arrivals"]["x into y"] == cut["arrivals"]["y into x"] == 400
    assert 0 < sum(cut["probes"].values()) < sum(free["probes"].values())
    assert 0 < len(limited) < len(exact)
    assert {*limited} <= {*exact}
