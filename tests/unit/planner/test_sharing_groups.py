"""Sharing groups: which queries share, what they share, what each keeps, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muntin.model.catalog import Catalog, Table
from muntin.model.settings import Settings
from muntin.model.window import TimeWindow
from muntin.plan.query import Emit, Query
from muntin.planner import shared_filters
from muntin.planner.join_planner import plan_join
from muntin.planner.sharing_groups import SharingGroup, add_query, drop_query
from muntin.planner.sharing_reasons import reasons
from muntin.sql.script import read_query
from muntin.sql.streams import make_stream
from muntin.sql.types import build_schema
from muntin.testing.sharing import share

COLUMNS = {"k": "bigint", "j": "integer", "v": "double", "ts": "timestamp"}
SECOND = 1_000_000


def catalog() -> Catalog:
    known = Catalog()
    for name in "ABC":
        known.add(make_stream(name, build_schema(COLUMNS), "ts", 0))
    known.add(Table("T", build_schema({"k": "bigint"})))
    return known


CATALOG = catalog()


def queries(*texts: str) -> list[Query]:
    """Return queries q1, q2, ... given from FROM on, or from SELECT on."""
    whole = [
        text if text.startswith("SELECT") else f"SELECT 1 AS one FROM {text}" for text in texts
    ]
    return [read_query(text, f"q{number}", CATALOG) for number, text in enumerate(whole, 1)]


def names(groups: tuple[SharingGroup, ...]) -> list[list[str]]:
    return [[member.query.name for member in group.members] for group in groups]


def filters(group: SharingGroup) -> list[list[str]]:
    return [[expression.sql for expression in mine] for mine in group.filters]


def residuals(group: SharingGroup) -> dict[str, list[str]]:
    return {
        member.query.name: [expression.sql for expression in member.residuals]
        for member in group.members
    }


def test_queries_with_one_signature_form_a_group_and_the_others_run_separately() -> None:
    groups = share(
        queries(
            "A, B WHERE A.k = B.k WINDOW 1 MINUTE",
            "A, C WHERE A.k = C.k WINDOW 1 MINUTE",
            "B, A WHERE B.k = A.k WINDOW 1 HOUR",
            "A, B WHERE A.k = B.j WINDOW 1 MINUTE",
            "A, B WHERE A.k = B.k WINDOW 1 MINUTE EVERY 5 SECONDS EMIT CHANGES",
        )
    )
    assert names(groups) == [["q1", "q3", "q5"], ["q2"], ["q4"]]
    assert [member.places for member in groups[0].members] == [(0, 1), (1, 0), (0, 1)]


def test_the_join_has_the_largest_window_of_each_source() -> None:
    (group,) = share(
        queries(
            "A [RANGE 1 SECOND], B [RANGE 9 SECONDS] WHERE A.k = B.k",
            "B [RANGE 3 SECONDS], A [RANGE 2 SECONDS] WHERE A.k = B.k",
            "A [RANGE 1 SECOND], B [RANGE 9 SECONDS] WHERE A.k = B.k",
        )
    )
    assert [str(source.window) for source in group.sources] == [
        "[RANGE 2 seconds]",
        "[RANGE 9 seconds]",
    ]
    assert [member.sizes for member in group.members] == [
        (SECOND, 9 * SECOND),
        (2 * SECOND, 3 * SECOND),
        (SECOND, 9 * SECOND),
    ]
    assert group.levels == ((2 * SECOND, 3 * SECOND), (SECOND, 9 * SECOND))


def test_selections_that_differ_stay_above_the_join_and_their_disjunction_is_below() -> None:
    (group,) = share(
        queries(
            "A, B WHERE A.k = B.k AND A.v > 1 AND B.j = 3 AND A.j <> 0 WINDOW 1 MINUTE",
            "B, A WHERE A.k = B.k AND A.v > 2 AND A.j <> 0 WINDOW 1 HOUR",
        )
    )
    assert filters(group) == [['"0.j" <> 0', '(("0.v" > 1)) OR (("0.v" > 2))'], []]
    assert residuals(group) == {"q1": ['"0.v" > 1', '"1.j" = 3'], "q2": ['"0.v" > 2']}


def test_selections_common_to_all_are_only_below() -> None:
    (group,) = share(
        queries(
            "A, B WHERE A.k = B.k AND A.v > 1 WINDOW 1 MINUTE",
            "A x, B WHERE x.v >  1 AND x.k = B.k WINDOW 2 MINUTES",
        )
    )
    assert filters(group) == [['"0.v" > 1'], []]
    assert residuals(group) == {"q1": [], "q2": []}


def test_a_single_query_keeps_all_its_conditions_below() -> None:
    (group,) = share(queries("A, B WHERE A.k = B.k AND A.v > 1 AND 1 = 2 WINDOW 1 MINUTE"))
    assert filters(group) == [['"0.v" > 1', "1 = 2"], []]
    assert residuals(group) == {"q1": []}


def test_conditions_without_columns_stay_with_their_query() -> None:
    (group,) = share(
        queries(
            "A, B WHERE A.k = B.k AND 1 = 2 WINDOW 1 MINUTE", "A, B WHERE A.k = B.k WINDOW 1 MINUTE"
        )
    )
    assert filters(group) == [[], []]
    assert residuals(group) == {"q1": ["1 = 2"], "q2": []}


def test_equal_selections_are_one_alternative_and_too_many_are_not_pushed_below(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = [f"A, B WHERE A.k = B.k AND A.v > {number} WINDOW 1 MINUTE" for number in (1, 2, 3, 2)]
    (group,) = share(queries(*texts))
    assert filters(group)[0] == ['(("0.v" > 1)) OR (("0.v" > 2)) OR (("0.v" > 3))']
    monkeypatch.setattr(shared_filters, "MOST_ALTERNATIVES", 2)
    (group,) = share(queries(*texts))
    assert filters(group)[0] == []


def test_the_join_is_a_query_that_can_be_planned_and_selects_what_members_need() -> None:
    (group,) = share(
        queries(
            "SELECT A.v FROM A, B WHERE A.k = B.k AND B.j = 1 WINDOW 1 MINUTE "
            "WITH (join = 'nested_loop', sink = 'x')",
            "SELECT x.v + y.k AS sum FROM B x, A y WHERE x.k = y.k AND x.j = 2 "
            "WINDOW 5 MINUTES WITH (join = 'nested_loop')",
        )
    )
    assert [column.name for column in group.join.select] == ["0.k", "0.v", "1.j", "1.v"]
    assert [column.expression.sql for column in group.members[1].select] == ['"1.v" + "0.k"']
    assert group.join.emit is Emit.INSERTS
    assert group.join.options == (("join", "nested_loop"),)
    assert plan_join(group.join, Settings()).query is group.join


def test_a_join_of_which_no_column_is_needed_selects_one() -> None:
    (group,) = share(queries("A, B WHERE A.k = B.k WINDOW 1 MINUTE"))
    assert [column.name for column in group.join.select] == ["0.k"]


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ("A, B WINDOW 5 ROWS", "B, A WINDOW 5 ROWS", True),
        ("A, T WINDOW 5 ROWS", "T, A WINDOW 5 ROWS", True),
        ("A x, A y WHERE x.k < y.k WINDOW 5 ROWS", "A x, A y WHERE y.k < x.k WINDOW 5 ROWS", False),
        ("A, B, C WINDOW 5 ROWS", "A, B, C WINDOW 6 ROWS", True),
        ("A, B, C WINDOW 5 ROWS", "A, C, B WINDOW 6 ROWS", False),
        ("A, B, T WINDOW 5 ROWS", "B, A, T WINDOW 6 ROWS", True),
        ("A, B, T WINDOW 5 ROWS", "A, T, B WINDOW 6 ROWS", False),
    ],
)
def test_which_orders_of_from_keep_the_order_of_results(
    first: str, second: str, *, kept: bool
) -> None:
    (group,) = share(queries(first, second))
    assert [member.keeps_order for member in group.members] == [True, kept]


def test_a_group_follows_added_and_dropped_queries() -> None:
    first, second, third = queries(
        "A, B WHERE A.k = B.k AND A.v > 1 WINDOW 1 MINUTE",
        "B, A WHERE A.k = B.k AND A.v > 2 WINDOW 1 HOUR",
        "A, C WHERE A.k = C.k WINDOW 1 HOUR",
    )
    groups = share([first, second, third])
    left = drop_query(groups, "q1")
    assert names(left) == [["q2"], ["q3"]]
    assert [source.relation for source in left[0].sources] == [
        "A",
        "B",
    ]  # its stores are there already
    assert left[0].members[0].places == (1, 0)
    assert residuals(left[0]) == {"q2": []}
    assert filters(left[0]) == [['"0.v" > 2'], []]
    assert names(add_query(left, first)) == [["q2", "q1"], ["q3"]]
    assert names(drop_query(left, "q3")) == [["q2"]]
    assert drop_query(left, "nobody") == left


def test_a_thousand_queries_share_one_join() -> None:
    kinds = queries(
        *(f"A, B WHERE A.k = B.k AND A.v > {number} WINDOW 1 SECOND" for number in range(7))
    )
    many = []
    for number in range(1, 1001):
        query = kinds[number % 7]
        sources = [replace(source, window=TimeWindow(number * SECOND)) for source in query.sources]
        many.append(
            replace(query, name=f"q{number}", root=replace(query.join, sources=tuple(sources)))
        )
    (group,) = share(many)
    assert len(group.members) == len(group.levels) == 1000
    assert str(group.sources[0].window) == "[RANGE 1000 seconds]"
    assert len(group.join.text) < 100
    assert (
        reasons([group])["q7"] == "joins A and B on the same conditions as q1, q2, q3 and 996 more"
    )


def test_reasons_state_why_a_query_shares_or_not() -> None:
    reported = reasons(
        share(
            queries(
                "A, B WHERE A.k = B.k WINDOW 1 MINUTE",
                "B, A WHERE A.k = B.k WINDOW 2 MINUTES",
                "A WINDOW 1 MINUTE",
                "A, C WHERE A.k = C.k WINDOW 1 MINUTE",
                "A a, B b WHERE a.k = b.j AND a.v > 7 WINDOW 1 MINUTE",
                "A, B WHERE A.k = B.k WINDOW 10 ROWS",
                "A, B WHERE A.k = B.k WINDOW 1 MINUTE WITH (join = 'nested_loop')",
            )
        )
    )
    assert reported == {
        "q1": "joins A and B on the same conditions as q2",
        "q2": "joins B and A on the same conditions as q1",
        "q3": "reads one source, so there is no join to share",
        "q4": "no other query joins A and C",
        "q5": "q1 joins the same streams on other conditions: A.k = B.k instead of a.k = b.j",
        "q6": "q1 joins the same streams under windows of other kinds: "
        "A [RANGE 2 minutes], B [RANGE 2 minutes] instead of A [ROWS 10], B [ROWS 10]",
        "q7": (
            "q1 joins the same, but is to be run with other options: none instead of join = "
            "nested_loop"
        ),
    }
