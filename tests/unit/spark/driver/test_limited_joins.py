"""Which joins of a query are limited on Spark, and that partitions plan the same ones."""

from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.adapt import TreeShape
from muntin.engine.declarations import Declarations
from muntin.plan.query_plan import QueryPlan
from muntin.spark.driver.limited_joins import QueryLimits, limits_of
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.spark.exchange.messages import PartitionBatch
from muntin.spark.partition.partition import Partition
from muntin.sql.streams import make_stream

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))])
JOIN = "FROM A, B, C WHERE A.k = B.k AND B.k = C.k"
PAIR = "SELECT A.k AS k FROM A, B WHERE A.k = B.k"
WINDOW = "WINDOW 2 SECONDS"
QUERIES = {
    "group": (f"SELECT A.k AS k, COUNT(*) AS n {JOIN} GROUP BY A.k {WINDOW}", 1),
    "all": (f"SELECT COUNT(*) AS n, SUM(B.v) AS s {JOIN} {WINDOW}", 1),
    "union": (f"{PAIR} UNION SELECT C.k AS k {JOIN} {WINDOW}", 2),
    "changes": (f"SELECT A.k AS k {JOIN} {WINDOW} EMIT CHANGES", 1),
    "mixed": (f"SELECT k FROM ({PAIR}) x EXCEPT SELECT k FROM C {WINDOW}", 1),
}


def declared(**settings: str) -> Declarations:
    found = Declarations()
    for name in "ABC":
        found.add_stream(make_stream(name, SCHEMA, "ts", 0))
    for name, value in {"overload": "adapt", **settings}.items():
        found.set(name, value)
    return found


def limited(sql: str, **settings: str) -> QueryLimits:
    declarations = declared(**settings)
    query = declarations.read(sql, "q")
    own, plan = declarations.planned(query)
    return limits_of(query, own, plan, declarations.knowledge())


@pytest.mark.parametrize("name", QUERIES)
def test_the_driver_has_the_limited_joins_of_partitions_with_the_same_half_joins(name: str) -> None:
    sql, count = QUERIES[name]
    limits = limited(sql)
    assert limits.obstacle == ""
    assert len(limits.joins) == count
    deployed = DeployedQuery("q", sql, limits.settings.changed())
    streams = tuple(declared().catalog.streams())
    partition = Partition(Deployment(streams, {}, (deployed,), (), 2), 0)
    partition.apply(PartitionBatch(0, 0, {}, ()))
    quotas = partition.dataflows.quotas()
    assert {join.query.name for join in limits.joins} == quotas.keys()
    for join in limits.joins:
        own = quotas[join.query.name].plan
        assert own.tree is not None
        assert join.tree is not None
        assert TreeShape.of(own.tree) == TreeShape.of(join.tree)


@pytest.mark.parametrize(
    ("sql", "settings", "why"),
    [
        (f"SELECT k, COUNT(*) AS n FROM A GROUP BY k {WINDOW}", {}, "one source"),
        (f"SELECT DISTINCT A.k AS k {JOIN} WINDOW 3 ROWS", {}, "retracts what leaves"),
        (QUERIES["group"][0], {"pipeline": "probing"}, "probing"),
        (QUERIES["changes"][0], {"pipeline": "probing"}, "probing"),
    ],
)
def test_a_query_without_limited_joins_runs_as_under_queue_and_says_why(
    sql: str, settings: dict[str, str], why: str
) -> None:
    limits = limited(sql, **settings)
    assert limits.joins == ()
    assert why in limits.obstacle
    assert limits.settings.changed().get("overload", "queue") == "queue"
    plan = limits.plan
    joins = plan.joins if isinstance(plan, QueryPlan) else (plan,)
    assert all(join.limiting is None for join in joins)


def test_without_adapt_nothing_changes() -> None:
    limits = limited(QUERIES["group"][0], overload="queue", sharing="on")
    assert limits.joins == ()
    assert limits.obstacle == ""
    assert "sharing" not in limits.settings.changed()
