"""Views in the engine: state, statistics and changes, and answers in edge cases."""

from __future__ import annotations

from decimal import Decimal
from math import fsum, inf, isnan, nan

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.errors import CatalogError, SqlError
from muntin.runtime.holdings import bytes_held, rows_held, state_rows

SECOND = 1_000_000


def engine() -> muntin.Engine:
    made = muntin.Engine()
    made.stream("A", {"k": "int", "b": "bigint", "v": "double", "s": "varchar", "ts": "timestamp"})
    made.stream("B", {"k": "int", "ts": "timestamp"})
    return made


def row(
    second: int,
    k: int | None = 1,
    b: int | None = None,
    v: float | None = None,
    s: str | None = None,
) -> tuple[object, ...]:
    return (k, b, v, s, second * SECOND)


def test_a_sum_that_does_not_fit_is_null_until_it_fits_again() -> None:
    """Values that cannot be computed are NULL; rows that left the window do not corrupt the sum."""
    e = muntin.Engine()
    e.stream("A", {"d": "decimal(38, 0)", "ts": "timestamp"})
    q = e.query("SELECT SUM(d) AS total, AVG(d) AS mean FROM A WINDOW 10 SECONDS")
    most = Decimal("9" * 38)
    e.push("A", [(most, 0)])
    e.advance(0)
    assert q.answer().to_pylist() == [{"total": most, "mean": 1e38}]
    e.push("A", [(most, 1 * SECOND), (Decimal(7), 5 * SECOND)])
    e.advance(5 * SECOND)
    assert q.answer().column("total").to_pylist() == [None]
    assert q.answer().column("mean").to_pylist() == pytest.approx([2e38 / 3])
    e.advance(12 * SECOND)
    assert q.answer().to_pylist() == [{"total": Decimal(7), "mean": 7.0}]
    signs = q.poll().column("_op").to_pylist()
    assert signs.count("+") == signs.count("-") + 1


def test_sums_of_bigint_do_not_overflow() -> None:
    e = engine()
    q = e.query("SELECT SUM(b) AS total FROM A WINDOW 10 SECONDS")
    e.push("A", [row(0, b=2**63 - 1), row(0, b=2**63 - 1), row(1, b=-(2**63))])
    e.advance(SECOND)
    assert q.answer().to_pylist() == [{"total": Decimal(2**63 - 2)}]


def test_null_is_a_group_and_all_null_groups_have_null_aggregates() -> None:
    e = engine()
    q = e.query(
        "SELECT k, COUNT(*) AS n, COUNT(v) AS c, SUM(v) AS t, MIN(s) AS m, MEDIAN(v) AS d, "
        "VAR_POP(v) AS p FROM A GROUP BY k WINDOW 9 ROWS"
    )
    e.push("A", [row(0, None), row(0, None), row(0, 1, v=2.0, s="x")])
    e.advance(0)
    none = {"k": None, "n": 2, "c": 0, "t": None, "m": None, "d": None, "p": None}
    assert q.answer().to_pylist() == [
        none,
        {"k": 1, "n": 1, "c": 1, "t": 2.0, "m": "x", "d": 2.0, "p": 0.0},
    ]


def test_numbers_that_are_not_finite_leave_no_trace() -> None:
    e = engine()
    q = e.query("SELECT SUM(v) AS t, MAX(v) AS m FROM A WINDOW 10 SECONDS")
    e.push("A", [row(0, v=1e308), row(0, v=1e308)])
    e.advance(0)
    assert q.answer().column("t").to_pylist() == [inf]
    e.push("A", [row(1, v=inf), row(2, v=nan), row(5, v=0.25)])
    e.advance(5 * SECOND)
    assert isnan(q.answer().column("t")[0].as_py())
    assert isnan(q.answer().column("m")[0].as_py())
    e.advance(12 * SECOND)
    assert q.answer().to_pylist() == [{"t": 0.25, "m": 0.25}]


def test_the_spread_of_numbers_far_from_zero() -> None:
    """Plain sums of squares near 1e18 would lose a variance of 2/3 completely."""
    e = engine()
    q = e.query("SELECT VAR_POP(v) AS p, STDDEV_SAMP(v) AS s FROM A WINDOW 10 SECONDS")
    e.push("A", [row(0, v=1e9), row(0, v=1e9 + 1), row(0, v=1e9 + 2)])
    e.advance(0)
    assert q.answer().to_pylist() == [
        {"p": pytest.approx(2 / 3, rel=1e-12), "s": pytest.approx(1.0, rel=1e-12)}
    ]


def test_texts_in_order_and_counted() -> None:
    e = engine()
    q = e.query("SELECT MIN(s) AS a, MAX(s) AS z, COUNT(DISTINCT s) AS n FROM A WINDOW 100 ROWS")
    for second in range(400):
        e.push("A", [row(second, s=f"{second * 7919 % 1000:03}")])
    e.advance(400 * SECOND)
    there = sorted(f"{second * 7919 % 1000:03}" for second in range(300, 400))
    assert q.answer().to_pylist() == [{"a": there[0], "z": there[-1], "n": 100}]
    changes = q.poll()
    assert changes.slice(len(changes) - 1).to_pylist()[0]["a"] == there[0]


def test_results_reach_subscribers_and_polls_alike() -> None:
    e = engine()
    q = e.query("SELECT DISTINCT k FROM A WINDOW 10 SECONDS", name="q")
    seen: list[pa.RecordBatch] = []
    q.subscribe(seen.append)
    e.push("A", [row(0), row(1), row(1, 2)])
    e.advance(20 * SECOND)
    assert pa.Table.from_batches(seen).equals(q.poll())
    assert e.handle("q").poll().num_rows == 0


def test_stats_and_explain_describe_operators_and_joins() -> None:
    e = engine()
    q = e.query(
        "SELECT A.k, COUNT(*) AS n FROM A, B WHERE A.k = B.k GROUP BY A.k "
        "HAVING COUNT(*) > 1 WINDOW 10 SECONDS",
        name="q",
    )
    e.push("A", [row(0), row(1, 2)])
    e.push("B", [(1, SECOND)])
    e.advance(2 * SECOND)
    stats = q.stats()
    assert [entry["entries"] for entry in stats["operators"]] == [1]  # type: ignore[attr-defined]
    held = [leaf["state_rows"] for leaf in stats["leaves"]]  # type: ignore[attr-defined]
    assert held == [{"A": 2, "B": 1}]
    assert (
        "group by 1 of the columns below: COUNT(*), having 0.a0 > 1, 1 entries kept" in q.explain()
    )
    assert "join below" in q.explain()
    assert q.plan()["operators"][0]["operator"] == "GroupBy"  # type: ignore[index]
    assert state_rows(e.dataflow) == {"A": 2, "B": 1}
    assert bytes_held(e.dataflow) > 0


def test_a_dropped_view_releases_its_rows() -> None:
    e = engine()
    e.query("SELECT k FROM A EXCEPT SELECT k FROM B WINDOW 10 SECONDS", name="q")
    e.push("A", [row(0)])
    e.push("B", [(2, 0)])
    e.advance(SECOND)
    assert rows_held(e.dataflow) == 2
    with pytest.raises(SqlError, match="stream A is read by query q"):
        e.execute("DROP STREAM A")
    with pytest.raises(CatalogError, match="the name q is taken"):
        e.query("SELECT DISTINCT k FROM A WINDOW 1 SECOND", name="q")
    e.drop("q")
    assert rows_held(e.dataflow) == 0
    e.execute("DROP STREAM A")


def test_state_expires_with_the_windows() -> None:
    e = engine()
    q = e.query("SELECT s, MIN(v) AS m, COUNT(DISTINCT b) AS n FROM A GROUP BY s WINDOW 10 SECONDS")
    for second in range(300):
        e.push("A", [row(second, b=second, v=float(second), s=str(second))])
    assert q.stats()["operators"][0]["entries"] <= 12  # type: ignore[index]
    e.advance(400 * SECOND)
    assert q.stats()["operators"][0]["entries"] == 0  # type: ignore[index]


AGGREGATES = [
    "SUM(v)", "AVG(v)", "MIN(v)", "MAX(s)", "MEDIAN(v)", "QUANTILE_DISC(v, 0.5)",
    "QUANTILE_CONT(v, 0.5)", "STDDEV(v)", "VAR_POP(v)",
    "FIRST(v)", "LAST(s)", "SUM(DISTINCT b)", "AVG(DISTINCT v)", "MAX(v) FILTER (WHERE k > 5)",
    "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY v)",
]  # fmt: skip


@pytest.mark.parametrize("call", AGGREGATES)
def test_aggregates_over_nothing_and_over_null_are_null(call: str) -> None:
    """This holds before any row, over NULLs and after all rows left; an empty group disappears."""
    e = engine()
    whole = e.query(
        f"SELECT {call} AS x, COUNT(v) AS n, COUNT(DISTINCT s) AS d FROM A WINDOW 10 SECONDS"
    )
    groups = e.query(f"SELECT k, {call} AS x FROM A GROUP BY k WINDOW 10 SECONDS")
    assert (whole.answer().to_pylist(), groups.answer().to_pylist()) == (
        [{"x": None, "n": 0, "d": 0}],
        [],
    )
    e.push("A", [row(0), row(1)])
    e.advance(2 * SECOND)
    assert (whole.answer().to_pylist(), groups.answer().to_pylist()) == (
        [{"x": None, "n": 0, "d": 0}],
        [{"k": 1, "x": None}],
    )
    e.push("A", [row(3, k=9, b=4, v=4.0, s="x"), row(3, k=9, b=4, v=4.0, s="x")])
    e.advance(3 * SECOND)
    assert whole.answer().column("n").to_pylist() == [2]
    e.advance(20 * SECOND)
    assert (whole.answer().to_pylist(), groups.answer().to_pylist()) == (
        [{"x": None, "n": 0, "d": 0}],
        [],
    )
    for query in (whole, groups):
        changes = query.poll()
        values = [tuple(change.values())[2:] for change in changes.to_pylist()]
        signs = changes.column("_op").to_pylist()
        for value in set(values):
            balance = sum(
                1 if sign == "+" else -1
                for sign, other in zip(signs, values, strict=True)
                if other == value
            )
            assert balance == (query is whole and value == (None, 0, 0))


def test_a_sum_does_not_drift_while_a_million_rows_pass() -> None:
    """1e300 passes through the window too; the sum of the last thousand rows stays exact."""
    e = muntin.Engine()
    e.stream("N", {"v": "double", "ts": "timestamp"})
    q = e.query(
        "SELECT SUM(v) AS total, AVG(v) AS mean, SUM(DISTINCT v) AS once FROM N "
        "WINDOW 1000 ROWS EVERY 1 SECOND"
    )
    values = np.random.default_rng(3).normal(0, 1e6, 1_000_000)
    values[500_000] = 1e300
    times = pa.array(np.arange(1_000_000) * 100).cast(pa.timestamp("us"))
    rows = pa.table({"v": values, "ts": times})
    for start in range(0, 1_000_000, 200_000):
        e.push("N", rows.slice(start, 200_000))
    e.advance(100 * SECOND)
    exact = fsum(values[-1_000:])
    assert q.answer().to_pylist() == [{"total": exact, "mean": exact / 1_000, "once": exact}]
    assert q.poll().to_pylist()[-1]["total"] == exact


def test_first_and_last_follow_the_rows_of_a_join() -> None:
    """A joined row is as old as its newest member; equal times keep the members' arrival order."""
    e = engine()
    q = e.query(
        "SELECT FIRST(A.v) AS f, LAST(A.v) AS l FROM A, B WHERE A.k = B.k WINDOW 10 SECONDS"
    )
    e.push("A", [row(0, v=1.0), row(0, v=2.0), row(4, v=3.0)])
    e.push("B", [(1, 2 * SECOND)])
    e.advance(5 * SECOND)
    assert q.answer().to_pylist() == [{"f": 1.0, "l": 3.0}]
    e.advance(10 * SECOND)
    assert q.answer().to_pylist() == [{"f": 3.0, "l": 3.0}]
    e.advance(12 * SECOND)
    assert q.answer().to_pylist() == [{"f": None, "l": None}]
