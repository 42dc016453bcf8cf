from __future__ import annotations

import muntin


def engine(**settings: str) -> muntin.Engine:
    found = muntin.Engine(**settings)
    for name in "ABC":
        found.stream(name, {"k": "bigint", "s": "varchar", "ts": "timestamp"})
    found.table("T", [{"k": 1}])
    return found


def test_a_plan_tells_windows_filters_indexes_steps_and_state() -> None:
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
        "  join: hybrid of hash and nested loops, algorithm eager, expiry own",
        "  source A [RANGE 90 seconds]",
        "    filter A.k > 3",
        "    index on A.k, A.s (about two buckets a row)",
        "    a new row looks into B (index) > T (scan)",
        "  source B [ROWS 5]",
        "    index on B.k, B.s (about two buckets a row)",
        "    a new row looks into A (index) > T (scan)",
        "  source T [STORED]",
        "  then keep A.s = B.s, hashed keys checked again",
        "  then keep T.k < A.k + B.k",
        "  select k, s",
        "  holds rows: A 2, B 1, T 1",
    ]


def test_all_queries_are_explained_and_none_is_said_so() -> None:
    e = engine(algorithm="naive", join="nested_loop", expiry="lazy")
    assert e.explain() == "no queries"
    e.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND", name="one")
    e.query("SELECT k FROM C c [PARTITION BY k ROWS 2] EMIT CHANGES", name="two")
    one, two = e.explain().split("\n\n")
    assert "join: nested loops, algorithm naive, expiry lazy" in one
    assert "a new row looks into (A new) > B (scan)" in one
    assert two.splitlines()[:2] == ["query two: emits changes at every change", "  source C c [PARTITION BY k ROWS 2]"]
    assert e.explain("TWO") == two


def test_buckets_and_chains_are_told() -> None:
    e = engine(buckets="5", expiry="probe")
    text = e.query("SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k < C.k WINDOW 1 SECOND").explain()
    assert "index on A.k (5 buckets)" in text
    assert "index on all rows in one bucket (1 buckets)" in text
