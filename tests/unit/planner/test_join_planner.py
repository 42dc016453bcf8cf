"""Steps, checks and indexes of plans that are easy to get wrong."""

from __future__ import annotations

import pytest

from muntin.errors import SettingError
from muntin.model.catalog import Catalog, Stream, Table
from muntin.model.settings import Settings
from muntin.model.statistics import StreamStatistics
from muntin.plan.join import JoinPlan
from muntin.planner.draft import Knowledge
from muntin.planner.join_planner import plan_join
from muntin.sql.script import read_query
from muntin.sql.types import build_schema

COLUMNS = build_schema(
    {"k": "bigint", "j": "bigint", "d": "double", "s": "varchar", "ts": "timestamp"}
)


def plan(
    sql: str, statistics: dict[str, StreamStatistics] | None = None, **settings: str
) -> JoinPlan:
    catalog = Catalog()
    for name in "ABC":
        catalog.add(Stream(name, COLUMNS, "ts"))
    catalog.add(Table("T", COLUMNS))
    return plan_join(
        read_query(sql, "q", catalog), Settings.of(**settings), Knowledge(declared=statistics)
    )


def lines(found: JoinPlan) -> list[str]:
    """Return every origin's steps as text: source, index codes, keys, checks."""
    texts = []
    for origin, steps in enumerate(found.orders):
        parts = []
        for step in steps:
            index = (
                "scan"
                if step.index is None
                else f"index{found.sources[step.source].indexes[step.index].codes}"
            )
            keys = " ".join(f"{source}.{code}" for source, code in step.keys)
            checks = " ".join(
                f"{check.code}{check.operator}{check.source}.{check.source_code}"
                for check in step.checks
            )
            parts.append(f"{step.source} {index} [{keys}] {checks}".strip())
        texts.append(f"{origin}: " + "; ".join(parts))
    return texts


def test_a_comparison_is_turned_around_for_the_other_side() -> None:
    assert lines(plan("SELECT A.k FROM A, B WHERE A.k < B.j WINDOW 1 SECOND")) == [
        "0: 1 scan [] 0>0.0",
        "1: 0 scan [] 0<1.0",
    ]


def test_a_source_equal_to_two_columns_of_another_checks_both() -> None:
    """In A.k = B.k AND A.k = B.j, B has two codes in one class; a match on one decides only it."""
    found = plan("SELECT A.k FROM A, B WHERE A.k = B.k AND A.k = B.j WINDOW 1 SECOND")
    assert lines(found) == [
        "0: 1 index(0, 1) [0.0 0.0] 0=0.0 1=0.0",
        "1: 0 index(0,) [1.0] 0=1.0 0=1.1",
    ]


def test_whole_and_real_codes_of_one_column_are_not_one_class() -> None:
    found = plan("SELECT A.k FROM A, B, C WHERE A.k = B.k AND A.k = C.d WINDOW 1 SECOND")
    assert [len(source.codes) for source in found.sources] == [2, 1, 1]
    assert lines(found)[1] == "1: 0 index(0,) [1.0] 0=1.0; 2 index(0,) [0.1] 0=0.1"


def test_constants_are_filters_of_their_source_and_of_the_first_without_one() -> None:
    found = plan("SELECT A.k FROM A, B WHERE 1 = 1 AND B.k = 5 AND A.k = B.k WINDOW 1 SECOND")
    assert [[str(expression) for expression in source.filters] for source in found.sources] == [
        ["1 = 1"],
        ['"1.k" = 5'],
    ]


def test_the_snapshot_begins_at_the_first_stream() -> None:
    origin, steps = plan(
        "SELECT A.k FROM T, A, B WHERE T.k = A.k AND A.j = B.j WINDOW 1 SECOND"
    ).snapshot
    assert (origin, [step.source for step in steps]) == (1, [0, 2])
    assert all(step.index is not None for step in steps)


@pytest.mark.parametrize("expiry", ["probe", "probe_insert", "probe_all", "all"])
def test_expiry_of_kostowski06_makes_a_chain_of_every_window_without_an_index(expiry: str) -> None:
    found = plan("SELECT A.k FROM A, B WHERE A.k < B.k WINDOW 1 SECOND", expiry=expiry)
    assert [
        [(index.codes, index.buckets) for index in source.indexes] for source in found.sources
    ] == [[((), 1)], [((), 1)]]
    assert all(step.index == 0 and step.keys == () for steps in found.orders for step in steps)


def test_a_hash_join_needs_an_equality_everywhere() -> None:
    assert all(
        step.index is not None
        for steps in plan(
            "SELECT A.k FROM A, B WHERE A.s = B.s WINDOW 1 SECOND", join="hash"
        ).orders
        for step in steps
    )
    with pytest.raises(
        SettingError,
        match=r"query q cannot be a pure hash join: no equality leads to B\. Use join = 'hybrid'",
    ):
        plan("SELECT A.k FROM A, B WHERE A.s < B.s WINDOW 1 SECOND", join="hash")
    assert plan("SELECT A.k FROM A WINDOW 1 SECOND", join="hash").orders == ((),)


def test_intervals_come_from_every_before_the_setting() -> None:
    sql = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND"
    assert (
        plan(
            sql, algorithm="lazy", reevaluation="3 seconds", expiry_interval="2 seconds"
        ).reevaluation
        == 3_000_000
    )
    assert (
        plan(sql + " EVERY 5 SECONDS", algorithm="lazy", reevaluation="3 seconds").reevaluation
        == 5_000_000
    )
    assert plan(sql, expiry="lazy", expiry_interval="2 seconds").expiry_interval == 2_000_000


def test_statistics_of_all_streams_choose_the_orders() -> None:
    known = {
        "A": StreamStatistics(100, 10),
        "B": StreamStatistics(1, 1000),
        "C": StreamStatistics(10, 10),
    }
    sparse = {name: StreamStatistics(stream.rate, 1e6) for name, stream in known.items()}
    common = plan("SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 10 SECONDS", sparse)
    assert common.prediction is not None
    assert common.prediction.cost <= min(cost for cost, _ in common.prediction.others)
    chain = plan("SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.j = C.j WINDOW 10 SECONDS", known)
    assert [[step.source for step in steps] for steps in chain.orders] == [[1, 2], [2, 0], [1, 0]]
    assert (
        plan(
            "SELECT A.k FROM A, B, T WHERE A.k = B.k AND B.k = T.k WINDOW 10 SECONDS", known
        ).prediction
        is not None
    )
    assert (
        plan(
            "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 10 SECONDS",
            {"A": known["A"]},
        ).prediction
        is None
    )
    given = plan(
        "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 10 SECONDS",
        known,
        order="A, B, C",
    )
    assert given.prediction is not None, "a given order has a cost too"
    assert [[step.source for step in steps] for steps in given.orders] == [[1, 2], [0, 2], [0, 1]]
