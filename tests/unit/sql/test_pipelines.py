"""Binding of views: the plan trees of queries, and the errors in wrong ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muntin.errors import SqlError
from muntin.model.catalog import Catalog
from muntin.plan.nodes import Distinct, GroupBy, Join, Project, Scan, SetOperation, SetOperator
from muntin.plan.query import Emit, Query
from muntin.sql.script import read_query
from muntin.sql.streams import make_stream, make_table
from muntin.sql.types import build_schema


@pytest.fixture
def known() -> Catalog:
    catalog = Catalog()
    for name in "AB":
        catalog.add(
            make_stream(
                name, build_schema({"k": "int", "v": "double", "s": "varchar", "ts": "timestamp"})
            )
        )
    catalog.add(make_table("T", build_schema({"k": "int", "w": "bigint"})))
    return catalog


def read(text: str, catalog: Catalog) -> Query:
    query = read_query(f"{text} WINDOW 1 MINUTE", "q", catalog)
    assert not query.is_join
    return query


def test_a_plain_select_is_a_join_alone(known: Catalog) -> None:
    assert read_query("SELECT k FROM A WINDOW 1 MINUTE", "q", known).is_join


def test_rows_below_a_group_carry_keys_and_arguments(known: Catalog) -> None:
    query = read(
        "SELECT A.k, SUM(A.v) / COUNT(*) AS mean FROM A, B WHERE A.k = B.k GROUP BY A.k "
        "HAVING MAX(A.v) > 1",
        known,
    )
    group = query.root
    assert isinstance(group, GroupBy)
    assert isinstance(group.input, Join)
    assert [column.expression.sql for column in group.input.select] == ['"0.k"', '"0.v"']
    assert [(aggregate.function, aggregate.argument) for aggregate in group.aggregates] == [
        ("sum", 1),
        ("count", None),
        ("max", 1),
    ]
    assert [column.expression.sql for column in group.select] == ['"0.c0"', '"0.a0" / "0.a1"']
    assert group.having is not None
    assert group.having.sql == '"0.a2" > 1'
    assert query.emit is Emit.CHANGES
    assert str(query.output_schema.field("mean").type) == "double"


def test_rollup_is_a_union_of_groupings_over_copies_of_the_same_rows(known: Catalog) -> None:
    query = read(
        "SELECT k, s, GROUPING(k, s) AS g, MAX(k) AS m FROM A GROUP BY ROLLUP (k, s)", known
    )
    groups = [node for node in query.root.walk() if isinstance(node, GroupBy)]
    assert [group.keys for group in groups] == [2, 1, 0]
    assert [[column.expression.sql for column in group.select] for group in groups] == [
        ['"0.c0"', '"0.c1"', "CAST(0 AS BIGINT)", '"0.a0"'],
        ['"0.c0"', "CAST(NULL AS VARCHAR)", "CAST(1 AS BIGINT)", '"0.a0"'],
        ["CAST(NULL AS INTEGER)", "CAST(NULL AS VARCHAR)", "CAST(3 AS BIGINT)", '"0.a0"'],
    ]
    joins = [group.input for group in groups if isinstance(group.input, Join)]
    assert [join.name for join in joins] == ["q/1", "q/2", "q/3"]
    assert all(replace(join, name="q/1") == joins[0] for join in joins)


@pytest.mark.parametrize(
    ("clause", "sets"),
    [
        ("k, ROLLUP (s)", ["ks", "k"]),
        ("(k, s)", ["ks"]),
        ("CUBE (k, s)", ["ks", "k", "s", ""]),
        ("ROLLUP ((k, s), v)", ["ksv", "ks", ""]),
        ("GROUPING SETS (ROLLUP (k), (s, k), (), s)", ["k", "", "ks", "", "s"]),
        ("ROLLUP (k), ROLLUP (s)", ["ks", "k", "s", ""]),
        ("ROLLUP (k, k)", ["k", "k", ""]),
        ("()", [""]),
    ],
)
def test_sets_of_keys(known: Catalog, clause: str, sets: list[str]) -> None:
    query = read(f"SELECT COUNT(*) AS n FROM A GROUP BY {clause}", known)
    groups = [node for node in query.root.walk() if isinstance(node, GroupBy)]
    order = {name: place for place, name in enumerate(dict.fromkeys("".join(sets)))}
    found = []
    for group in groups:
        names = group.input.schema.names[: group.keys]
        found.append("".join(list(order)[int(name[1:])] for name in names))
    assert found == sets


def test_a_name_of_the_select_list_can_be_the_argument_of_grouping(known: Catalog) -> None:
    text = "SELECT k + 1 AS x, GROUPING(x) FROM A GROUP BY ROLLUP (x) HAVING GROUPING(x) = 0"
    query = read(text, known)
    assert query.root.schema.names == ["x", "GROUPING(x)"]
    groups = [node for node in query.root.walk() if isinstance(node, GroupBy)]
    found = [group.having.sql for group in groups if group.having is not None]
    assert found == ["CAST(0 AS BIGINT) = 0", "CAST(1 AS BIGINT) = 0"]


def test_an_aggregate_that_is_written_twice_is_kept_once(known: Catalog) -> None:
    group = read("SELECT SUM(v), sum( v ) + 1 FROM A HAVING SUM(v) > 0", known).root
    assert isinstance(group, GroupBy)
    assert len(group.aggregates) == 1


def test_rows_below_first_and_last_carry_their_order(known: Catalog) -> None:
    alone = read("SELECT FIRST(v), LAST(v), MAX(v) FROM A GROUP BY k", known).root
    assert isinstance(alone, GroupBy)
    assert [(aggregate.function, aggregate.order) for aggregate in alone.aggregates] == [
        ("first", (2, 3)),
        ("last", (2, 3)),
        ("max", ()),
    ]
    joined = read("SELECT FIRST(B.v) FROM A, B, T WHERE A.k = B.k AND T.k = B.k", known).root
    assert isinstance(joined, GroupBy)
    assert isinstance(joined.input, Join)
    order = ['greatest(epoch_us("0.ts"), epoch_us("1.ts"))', '"0.#row"', '"1.#row"', '"2.#row"']
    assert [column.expression.sql for column in joined.input.select][1:] == order


def test_distinct_is_kept_where_it_makes_a_difference(known: Catalog) -> None:
    group = read(
        "SELECT SUM(DISTINCT v), SUM(v), MIN(DISTINCT v), MEDIAN(DISTINCT v) FROM A", known
    ).root
    assert isinstance(group, GroupBy)
    assert [aggregate.distinct for aggregate in group.aggregates] == [True, False, False, True]


def test_percentiles_of_the_standard_are_quantiles(known: Catalog) -> None:
    text = (
        "SELECT percentile_cont(0.2) WITHIN GROUP (ORDER BY v), percentile_disc(0.2) WITHIN "
        "GROUP (ORDER BY v DESC) FROM A"
    )
    group = read(text, known).root
    assert isinstance(group, GroupBy)
    assert [(one.function, one.fraction) for one in group.aggregates] == [
        ("quantile_cont", "0.2"),
        ("quantile_disc", "0.8"),
    ]


@pytest.mark.parametrize("keys", ["A.k + 1", "1", "x", "ALL"])
def test_keys_by_expression_place_name_and_all(known: Catalog, keys: str) -> None:
    group = read(f"SELECT k + 1 AS x, COUNT(*) AS n FROM A GROUP BY {keys}", known).root
    assert isinstance(group, GroupBy)
    assert [group.keys, group.select[0].expression.sql] == [1, '"0.c0"']


def test_keys_are_found_inside_expressions(known: Catalog) -> None:
    group = read("SELECT k + 1 > 2 AND abs(k + 1) < 9 AS y FROM A GROUP BY k + 1", known).root
    assert isinstance(group, GroupBy)
    assert group.select[0].expression.sql == '"0.c0" > 2 AND abs("0.c0") < 9'


def test_intersect_binds_more_tightly(known: Catalog) -> None:
    root = read("SELECT k FROM A UNION SELECT k FROM B INTERSECT ALL SELECT k FROM A", known).root
    assert isinstance(root, SetOperation)
    assert isinstance(root.right, SetOperation)
    assert (root.operator, root.right.operator) == (SetOperator.UNION, SetOperator.INTERSECT_ALL)


def test_the_others_go_from_left_to_right_and_parentheses_count(known: Catalog) -> None:
    left = read("SELECT k FROM A EXCEPT SELECT k FROM B UNION ALL SELECT k FROM A", known).root
    right = read("SELECT k FROM A EXCEPT (SELECT k FROM B UNION ALL SELECT k FROM A)", known).root
    assert isinstance(left, SetOperation)
    assert isinstance(right, SetOperation)
    assert (left.operator, right.operator) == (SetOperator.UNION_ALL, SetOperator.EXCEPT)


def test_numbers_of_different_types_are_made_alike(known: Catalog) -> None:
    root = read("SELECT k FROM A UNION SELECT v FROM B", known).root
    assert [str(kind) for kind in root.schema.types] == ["double"]
    assert isinstance(root, SetOperation)
    assert isinstance(root.left, Project)
    assert root.left.select[0].expression.sql == 'CAST("0.k" AS DOUBLE)'


def test_a_sub_select_beside_a_table_and_a_stream(known: Catalog) -> None:
    query = read(
        "SELECT DISTINCT x.n, w FROM (SELECT k, COUNT(*) AS n FROM A GROUP BY k) x, T, B "
        "WHERE x.k = T.k AND B.k = x.k",
        known,
    )
    assert isinstance(query.root, Distinct)
    combine = query.root.input
    assert isinstance(combine, Join)
    assert [type(node) for node in combine.inputs] == [GroupBy, Scan, Join]
    assert sorted(source.relation for source in query.sources) == ["A", "B", "T"]
    assert combine.inputs[2].schema.names == ["k"]


def test_streams_beside_a_sub_select_are_joined_first(known: Catalog) -> None:
    """T.k = A.k joins A and T, but not B; a condition on one leaf is checked in that leaf."""
    text = (
        "SELECT x.n, A.v, T.w, B.s FROM B, A, (SELECT k, COUNT(*) AS n FROM A GROUP BY k) x, T"
        " WHERE x.k = A.k AND T.k = A.k AND A.v > 1 AND B.k = x.k AND A.s || B.s <> "
        "'\"1.s\"' AND B.v > 2"
    )
    combine = read(text, known).root
    assert isinstance(combine, Join)
    first, second, third = combine.inputs
    assert isinstance(first, Join)
    assert isinstance(second, Join)
    assert isinstance(third, GroupBy)
    assert [source.alias for source in second.scans] == ["A", "T"]
    assert [predicate.expression.sql for predicate in first.predicates] == ['"0.v" > 2']
    assert [predicate.expression.sql for predicate in second.predicates] == [
        '"1.k" = "0.k"',
        '"0.v" > 1',
    ]
    assert (first.schema.names, second.schema.names) == (["k", "s"], ["A.k", "A.s", "A.v", "T.w"])
    conditions = [predicate.expression.sql for predicate in combine.predicates]
    assert conditions == [
        '"2.k" = "1.A.k"',
        '"0.k" = "2.k"',
        """ "1.A.s" || "0.s" <> '"1.s"' """.strip(),
    ]
    assert [column.expression.sql for column in combine.select] == [
        '"2.n"',
        '"1.A.v"',
        '"1.T.w"',
        '"0.s"',
    ]
    comparison = combine.predicates[0].comparison
    assert comparison is not None
    assert (set(comparison.left.sources), set(comparison.right.sources)) == ({2}, {1})


def test_tables_that_are_tied_to_sub_selects_only_stay_tables(known: Catalog) -> None:
    combine = read(
        "SELECT T.w FROM T, T U, (SELECT DISTINCT k FROM A) x WHERE T.k = x.k AND U.w = T.w", known
    ).root
    assert isinstance(combine, Join)
    assert [type(node) for node in combine.inputs] == [Scan, Scan, Distinct]


WRONG = [
    (
        "SELECT k, v FROM A GROUP BY k",
        "column 11: the column v is neither a key of the groups nor inside an aggregate.",
    ),
    ("SELECT * FROM A GROUP BY k", "column 8: * cannot stand beside aggregates or GROUP BY."),
    (
        "SELECT SUM(MIN(v)) FROM A",
        "column 12: an aggregate cannot stand inside another one. Aggregate in a sub-select",
    ),
    (
        "SELECT k FROM A WHERE MIN(v) > 1",
        "column 23: an aggregate cannot stand in WHERE. Conditions on groups stand in HAVING",
    ),
    ("SELECT A.k FROM A JOIN B ON MIN(A.v) > 1", "column 29: an aggregate cannot stand in ON."),
    ("SELECT k FROM A GROUP BY MIN(v)", "column 26: an aggregate cannot stand in GROUP BY."),
    ("SELECT MIN(v) AS m FROM A GROUP BY m", "column 8: an aggregate cannot stand in GROUP BY."),
    ("SELECT k FROM A GROUP BY 2", "column 26: the select list has no item 2."),
    ("SELECT k FROM A GROUP BY ROLLUP ()", "column 26: ROLLUP needs a list of keys. Write ROLLUP"),
    ("SELECT k FROM A GROUP BY CUBE (k,, v)", "column 34: an expression is missing here."),
    (
        "SELECT k FROM A GROUP BY CUBE (1, 1, 1, 1, 1, 1, 1)",
        "column 26: CUBE has 7 keys, which make more than 64 sets. List those that you need in",
    ),
    (
        "SELECT k FROM A GROUP BY CUBE (1, 1, 1, 1), CUBE (1, 1, 1, 1)",
        "column 26: GROUP BY has 256 sets of keys, and at most 64 are supported. List those that",
    ),
    ("SELECT v FROM A GROUP BY ROLLUP (k)", "column 8: the column v is neither a key"),
    (
        "SELECT GROUPING(v) FROM A GROUP BY ROLLUP (k)",
        "column 17: v is no key of GROUP BY. GROUPING is over keys of GROUP BY",
    ),
    ("SELECT GROUPING(k) FROM A", "column 17: k is no key of GROUP BY."),
    ("SELECT GROUPING() FROM A GROUP BY k", "column 17: something is missing before ')'."),
    (
        "SELECT k FROM A WHERE GROUPING(k) = 1 GROUP BY ROLLUP (k)",
        "column 23: GROUPING cannot stand in WHERE. It is over the keys of GROUP BY, in the select",
    ),
    (
        "SELECT SUM(grouping_id(k)) FROM A GROUP BY k",
        "column 12: grouping_id cannot stand inside another one.",
    ),
    ("SELECT k FROM A GROUP BY ROLLUP (SUM(v))", "column 34: an aggregate cannot stand in GROUP"),
    ("SELECT v.sum() FROM A", "column 10: the aggregate sum cannot be called with a dot."),
    (
        "SELECT kurtosis(v) FROM A",
        "column 8: the aggregate kurtosis is not supported. There are",
    ),
    (
        "SELECT LAST(DISTINCT v) FROM A",
        "column 8: LAST with DISTINCT is not supported. It is one value already",
    ),
    (
        "SELECT ARG_MAX(DISTINCT v, k) FROM A",
        (
            "column 8: ARG_MAX with DISTINCT is not supported. It is one value already: "
            "write ARG_MAX(expression, key)"
        ),
    ),
    ("SELECT SUM(DISTINCT) FROM A", "column"),
    ("SELECT COUNT(DISTINCT *) FROM A", "column"),
    (
        "SELECT FIRST(v ORDER BY k) FROM A",
        "column 16: ORDER BY inside FIRST is not supported. FIRST goes by time; leave it out",
    ),
    (
        "SELECT ARG_MIN(v, k ORDER BY k) FROM A",
        (
            "column 21: ORDER BY inside ARG_MIN is not supported. ARG_MIN goes by its key, "
            "then by time; leave it out"
        ),
    ),
    (
        "SELECT FIRST(x.k) FROM (SELECT k FROM A) x",
        "column 8: FIRST over a sub-select or an outer join is not supported. Take it inside",
    ),
    (
        "SELECT percentile_cont(0.5) FROM A",
        "column 8: percentile_cont takes one fraction, and WITHIN GROUP what it is over.",
    ),
    (
        "SELECT percentile_cont(2) WITHIN GROUP (ORDER BY v) FROM A",
        "column 24: the fraction of percentile_cont must be a number",
    ),
    (
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v, k) FROM A",
        "column 42: percentile_cont needs one expression to go by.",
    ),
    ("SELECT percentile_cont(0.5) WITHIN GROUP (v) FROM A", "column 43: a ) is missing at 'v'."),
    (
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY SUM(v)) FROM A",
        "column 52: an aggregate cannot stand inside another one.",
    ),
    ("SELECT quantile_cont(v) FROM A", "column 22: quantile_cont takes two arguments."),
    ("SELECT SUM(*) FROM A", "column 12: SUM needs an expression, not *."),
    ("SELECT MIN(v ORDER BY k) FROM A", "column 14: ORDER BY inside MIN is not supported."),
    (
        "SELECT quantile_cont(v, 2) FROM A",
        "column 25: the fraction of quantile_cont must be a number from 0 to 1.",
    ),
    (
        "SELECT quantile_cont(v, k) FROM A",
        "column 25: the fraction of quantile_cont must be a number from 0 to 1.",
    ),
    (
        "SELECT MEDIAN(s) FROM A",
        "column 8: MEDIAN(s) is over the type string, which is not supported. Cast it to a number",
    ),
    ("SELECT COUNT(*) FILTER (v > 1) FROM A", "column 17: FILTER needs a condition."),
    ("SELECT COUNT(*) AS _ts FROM A", "column 8: a column of the result cannot be called '_ts'."),
    (
        "SELECT k FROM A UNION SELECT k, v FROM B",
        "column 17: the selects around UNION have 1 and 2 columns.",
    ),
    (
        "SELECT k FROM A UNION SELECT s FROM B",
        (
            "column 17: column 1 of the selects around UNION is int32 on the left and string on "
            "the right."
        ),
    ),
    ("SELECT k FROM A UNION", "column 23: something is missing before 'WINDOW'."),
    ("SELECT k FROM A MINUS ALL SELECT k FROM B", "column 17: MINUS ALL is not supported."),
    ("SELECT k FROM A UNION BY NAME SELECT k FROM B", "column 17: UNION BY NAME is not supported."),
    ("SELECT k FROM (SELECT k FROM A)", "column 15: a sub-select needs a name"),
    (
        "SELECT k FROM (SELECT k FROM A) x [ROWS 1]",
        "column 35: the sub-select x cannot have a window.",
    ),
    (
        "SELECT k FROM (SELECT k FROM A EVERY 1 SECOND) x",
        "column 32: EVERY cannot stand inside a query.",
    ),
    (
        "SELECT k FROM A, (SELECT k FROM B) b",
        "column 8: the column 'k' is ambiguous. Write A.k or b.k",
    ),
    ("SELECT x.z FROM (SELECT k FROM A) x", "column 10: table x has no column 'z'."),
    ("SELECT k FROM (SELECT k FROM A ORDER BY k) x", "column 41: ORDER BY without LIMIT"),
    ("SELECT k FROM A QUALIFY k > 1", "column 25: QUALIFY needs a window function."),
    ("SELECT ROW_NUMBER() OVER () FROM A", "column 27: the numbers of rows need an order."),
    (
        "SELECT k, COUNT(*), RANK() OVER (ORDER BY k) FROM A GROUP BY k",
        "column 62: GROUP BY beside a window function is not supported.",
    ),
    ("SELECT DISTINCT k FROM A ORDER BY v LIMIT 1", "column 35: ORDER BY v names no column"),
    ("SELECT k FROM A ORDER BY 2 LIMIT 1", "column 26: the select list has no item 2."),
    ("SELECT k FROM A ORDER BY k LIMIT k", "column 34: LIMIT needs a whole number."),
    ("SELECT COUNT(*) FROM T", "column 1: a select reads no stream."),
    ("SELECT (SELECT 1), COUNT(*) FROM A", "column 9: the query has no FROM."),
    ("SELECT k FROM A HAVING k > 1", "column"),
    ("SELECT k FROM A GROUP BY k WHERE k > 1", "column"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_errors_are_reported_at_their_place(known: Catalog, text: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        read(text, known)
    assert str(caught.value).startswith(f"query q, line 1, {message}")
    assert caught.value.hint


def test_freshness_is_that_of_the_window_joins_below(known: Catalog) -> None:
    query = read_query(
        "SELECT k FROM (SELECT DISTINCT A.k FROM A, B WHERE A.k = B.k) x UNION ALL "
        "SELECT B.k FROM B JOIN A ON A.k = B.k WINDOW 1 MINUTE FRESHNESS B 2 MINUTES",
        "q",
        known,
    )
    assert not query.freshness
    ages = [[(place, str(window)) for place, window in join.freshness] for join in query.joins]
    assert ages == [[(1, "[RANGE 2 minutes]")], [(0, "[RANGE 2 minutes]")]]
    every = read_query("SELECT DISTINCT k FROM A WINDOW 1 MINUTE FRESHNESS 2 MINUTES", "q", known)
    assert [len(join.freshness) for join in every.joins] == [1]
    with pytest.raises(SqlError, match="there is no 'C' in FROM"):
        read_query("SELECT DISTINCT k FROM A WINDOW 1 MINUTE FRESHNESS C 2 MINUTES", "q", known)


def test_a_snapshot_needs_every(known: Catalog) -> None:
    with pytest.raises(SqlError, match="EMIT SNAPSHOT needs EVERY"):
        read_query("SELECT k FROM A WINDOW 1 MINUTE EMIT SNAPSHOT", "q", known)
    snapshot = read_query(
        "SELECT k FROM A WINDOW 1 MINUTE EVERY 1 SECOND EMIT SNAPSHOT", "q", known
    )
    assert not snapshot.is_join
    assert snapshot.root.is_leaf
