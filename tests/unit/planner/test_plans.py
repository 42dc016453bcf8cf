"""Which predicates a join decides by codes, its steps and indexes, and what it refuses."""

from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.errors import SettingError
from muntin.model.catalog import Catalog, Stream
from muntin.model.settings import Algorithm, Expiry, Settings, Strategy
from muntin.plan.join import CodeKind, JoinPlan
from muntin.plan.query import Query
from muntin.planner.codes import code_kind
from muntin.planner.join_planner import plan_join
from muntin.planner.strategies import choose_strategy
from muntin.sql.script import read_query
from muntin.sql.types import build_schema


def bind(sql: str) -> Query:
    catalog = Catalog()
    for name in "ABCD":
        catalog.add(
            Stream(
                name,
                build_schema(
                    {"k": "bigint", "j": "int", "x": "double", "s": "varchar", "ts": "timestamp"}
                ),
                "ts",
            )
        )
    return read_query(sql, "q", catalog)


def plan(sql: str, **settings: str) -> JoinPlan:
    return plan_join(bind(sql), Settings.of(**settings))


def orders(found: JoinPlan) -> list[list[int]]:
    return [[step.source for step in steps] for steps in found.orders]


@pytest.mark.parametrize(
    ("left", "right", "operator", "kind"),
    [
        ("int64", "int32", "=", CodeKind.WHOLE),
        ("int64", "uint32", "<", CodeKind.WHOLE),
        ("uint64", "uint64", "=", CodeKind.HASH),
        ("uint64", "uint64", "<", None),
        ("double", "float", "=", CodeKind.REAL),
        ("int64", "double", ">=", CodeKind.REAL),
        ("int64", "float", "=", None),
        ("string", "string", "=", CodeKind.HASH),
        ("string", "string", "<", None),
        ("string", "int64", "=", None),
        ("bool", "bool", "=", CodeKind.WHOLE),
        ("bool", "int64", "=", None),
        ("date32", "date32", "<", CodeKind.WHOLE),
    ],
)
def test_code_kinds_are_chosen_where_they_decide_the_comparison(
    left: str, right: str, operator: str, kind: CodeKind | None
) -> None:
    assert code_kind(pa.type_for_alias(left), pa.type_for_alias(right), operator) is kind


def test_predicates_go_to_filters_codes_and_residuals() -> None:
    found = plan(
        "SELECT A.k FROM A, B "
        "WHERE A.k = B.k AND A.x < B.x AND A.j > 3 AND A.s = B.s AND A.k + B.k > 7 WINDOW 1 SECOND"
    )
    assert [len(source.filters) for source in found.sources] == [1, 0]
    assert [[code.kind for code in source.codes] for source in found.sources] == [
        [CodeKind.WHOLE, CodeKind.REAL, CodeKind.HASH]
    ] * 2
    assert [str(residual) for residual in found.residuals] == ['"0.s" = "1.s"', '"0.k" + "1.k" > 7']
    assert [index.codes for index in found.sources[0].indexes] == [(0, 2)]
    assert [check.operator for check in found.orders[0][0].checks] == ["=", "=", ">"]
    assert [check.operator for check in found.orders[1][0].checks] == ["=", "=", "<"]


def test_equalities_reach_through_a_common_attribute() -> None:
    found = plan("SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 1 SECOND")
    assert orders(found) == [[1, 2], [0, 2], [0, 1]]
    assert all(
        step.index == 0 and len(step.checks) == 1 for steps in found.orders for step in steps
    )


def test_different_attributes_are_followed_along_the_join_graph() -> None:
    found = plan("SELECT A.k FROM A, B, C WHERE A.k = C.k AND C.j = B.j WINDOW 1 SECOND")
    assert orders(found) == [[2, 1], [2, 0], [0, 1]]
    assert [index.codes for index in found.sources[2].indexes] == [(0,), (1,)]


def test_settings_choose_indexes_and_buckets() -> None:
    sql = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND"
    assert all(not source.indexes for source in plan(sql, join="nested_loop").sources)
    assert [len(source.indexes) for source in plan(sql, index="B").sources] == [0, 1]
    assert [source.indexes[0].buckets for source in plan(sql, buckets="7, B = 3").sources] == [7, 3]
    chains = plan(sql, join="nested_loop", expiry="probe").sources
    assert [(index.codes, index.buckets) for source in chains for index in source.indexes] == [
        ((), 1),
        ((), 1),
    ]


def test_joins_that_retract_run_eagerly_under_any_setting() -> None:
    sql = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND EMIT CHANGES"
    found = plan(sql, algorithm="lazy", expiry="probe", pipeline="negative")
    assert (found.algorithm, found.expiry, found.retracting) == (
        Algorithm.EAGER,
        Expiry.EAGER,
        True,
    )
    found = plan(sql, algorithm="lazy", expiry="probe")
    assert (found.algorithm, found.expiry, found.retracting) == (
        Algorithm.EAGER,
        Expiry.PROBE,
        False,
    )


@pytest.mark.parametrize(
    ("sql", "setting", "strategy", "why"),
    [
        (
            "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND",
            "auto",
            Strategy.HYBRID,
            "kept until they end",
        ),
        (
            "SELECT A.k FROM A, B WHERE A.k < B.k WINDOW 1 SECOND",
            "auto",
            Strategy.NEGATIVE,
            "without equalities",
        ),
        (
            "SELECT A.k FROM A, B WHERE A.k < B.k WINDOW 1 SECOND",
            "hybrid",
            Strategy.HYBRID,
            "kept until they end",
        ),
        ("SELECT A.k FROM A WINDOW 1 SECOND", "hybrid", Strategy.NEGATIVE, "one source"),
        ("SELECT A.k FROM A WINDOW 1 SECOND", "probing", Strategy.PROBING, "time probing"),
        (
            "SELECT A.k FROM A, B [ROWS 3] WHERE A.k = B.k WINDOW 1 SECOND",
            "probing",
            Strategy.NEGATIVE,
            "a window in rows",
        ),
        ("SELECT A.k FROM A WINDOW 1 SECOND", "input", Strategy.INPUT, "input triggered"),
    ],
)
def test_the_requested_strategy_is_used_where_windows_allow_it(
    sql: str, setting: str, strategy: Strategy, why: str
) -> None:
    found, words = choose_strategy(bind(f"{sql} EMIT CHANGES"), Settings.of(pipeline=setting))
    assert found is strategy
    assert why in words


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"join": "hash"}, "cannot be a pure hash join: no equality leads to C"),
        ({"order": "A, B"}, "must name every source once"),
        ({"order": "A, B, B, C"}, "must name every source once"),
        ({"order": "A, B, Z"}, "names 'Z', which is not in FROM"),
        ({"index": "Z"}, "setting index names z, not in FROM"),
        ({"algorithm": "lazy", "expiry": "probe"}, "algorithm lazy cannot expire rows by probe"),
    ],
)
def test_settings_that_do_not_fit_the_query_are_refused(
    settings: dict[str, str], message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        plan("SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.x < C.x WINDOW 1 SECOND", **settings)
