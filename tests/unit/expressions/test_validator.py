from __future__ import annotations

import pytest

from muntin.expressions.duck import Duck, DuckError
from muntin.expressions.validator import (
    NotAllowedError,
    UnparsableError,
    check_expressions,
    select_text,
)
from tests.unit.expressions.forbidden import FORBIDDEN

COLUMNS = {"k", "s", "l", "ts", "j"}

ALLOWED = [
    "k",
    "k + 1",
    "-k",
    "k ** 2 // 3 % 4",
    "~k & 1 | 2",
    "lower(s)",
    "(s).lower().upper()",
    "s || 'x'",
    "s LIKE 'a%'",
    "s NOT ILIKE 'a$%' ESCAPE '$'",
    "s SIMILAR TO 'a.*'",
    "s GLOB '*'",
    "s ~ 'a'",
    "s !~ 'a'",
    "s COLLATE NOCASE",
    "k BETWEEN 1 AND 2",
    "k NOT IN (1, 2)",
    "k IN l",
    "k = ANY(l)",
    "k <> ALL([1, 2])",
    "k IS NULL AND NOT k IS DISTINCT FROM 1",
    "k IS TRUE",
    "CASE k WHEN 1 THEN 2 ELSE 3 END",
    "CASE WHEN k > 1 THEN 2 END",
    "coalesce(k, 1)",
    "ifnull(k, 1)",
    "nullif(k, 1)",
    "if(k > 1, 1, 2)",
    "TRY(s::INT)",
    "TRY_CAST(s AS DECIMAL(10, 2))",
    "s::ENUM('a', 'b')",
    "CAST(NULL AS STRUCT(a INT, b VARCHAR[]))",
    "s::INT[3]",
    "DATE '2026-01-01'",
    "INTERVAL 5 DAY",
    "INTERVAL (k) DAY",
    "ts + INTERVAL '1' HOUR",
    "EXTRACT(year FROM ts)",
    "ts AT TIME ZONE 'UTC'",
    "age(ts, ts)",
    "date_trunc('day', ts)",
    "time_bucket(INTERVAL 1 HOUR, ts)",
    "l[1]",
    "l[1:2]",
    "l[-1:]",
    "[1, 2]",
    "ARRAY[1, 2]",
    "{'a': k}",
    "{'a': k}.a",
    "MAP {'a': k}",
    "row(k, s)",
    "(k, s)",
    "list_transform(l, lambda x: x + k)",
    "[x + 1 FOR x IN l IF x > 2]",
    "list_transform([s], lambda x: x.lower())",
    "list_transform([{'a': 1}], lambda x: x.a)",
    "list_reduce(l, lambda x, y: x + y)",
    "list_transform(l, lambda x: list_transform(l, lambda y: x + y))",
    "list_aggregate(l, 'sum')",
    "(l).list_aggr('quantile', 0.5)",
    "j -> 'a'",
    "j ->> '$.a'",
    "json_extract(j, '$.a')",
    "k!",
    "@k",
    "position('a' IN s)",
    "trim(BOTH 'x' FROM s)",
    "substring(s FROM 1 FOR 2)",
    "overlay(s PLACING 'x' FROM 1)",
    "x'00'",
    "e'\\n'",
    "$$it's$$",
    "format('{}', k)",
    "strftime(ts, '%Y')",
    "array_to_string(l, ',')",
    "typeof(k)",
    "greatest(k, 1)",
    "map_keys(MAP {'a': 1})",
    "union_tag(union_value(a := 1))",
    "l && [1]",
    "l @> [1]",
    "s ^@ 'a'",
]


@pytest.fixture(name="duck", scope="module")
def make_duck() -> Duck:
    return Duck()


@pytest.mark.parametrize("text", ALLOWED)
def test_plain_expressions_are_allowed(duck: Duck, text: str) -> None:
    assert len(check_expressions(duck, [text], COLUMNS)) == 1


def test_what_is_forbidden_is_refused_by_the_tree_alone(duck: Duck) -> None:
    types = [text for text in FORBIDDEN if text.startswith("'x'::reg")]
    assert [text for text in FORBIDDEN if _is_accepted(duck, text)] == types
    for text in types:
        with pytest.raises(DuckError, match="does not exist"):
            duck.run(f"SELECT {text}")


def _is_accepted(duck: Duck, text: str) -> bool:
    try:
        check_expressions(duck, [text], COLUMNS)
    except (NotAllowedError, UnparsableError):
        return False
    return True


@pytest.mark.parametrize(
    "text",
    ["random\ufeff()", "(\ufeffFROM\ufeffquery('SELECT 1'))", "now\u00a0()", "k + random\u2003()"],
)
def test_unicode_spaces_that_duckdb_skips_do_not_matter(duck: Duck, text: str) -> None:
    with pytest.raises(NotAllowedError):
        check_expressions(duck, [text], COLUMNS)


@pytest.mark.parametrize(
    "text",
    [
        "1, 2",
        '1 AS "0", 2',
        "1 --",
        "1 /*",
        "1; SELECT 2",
        "1 FROM (SELECT 1) --",
        "DISTINCT k",
        "k FROM batch WHERE random() > 1 --",
        "*",
        "s.*",
        "k AS x",
        "",
        ")",
        "k) + (1",
        '1 AS "0" FROM batch --',
        '1 AS "0" --',
        'k AS "0" FROM batch GROUP BY ALL --',
        "'",
        "k WHERE true",
    ],
)
def test_a_text_cannot_leave_its_item(duck: Duck, text: str) -> None:
    with pytest.raises((NotAllowedError, UnparsableError)):
        check_expressions(duck, [text], COLUMNS)


def test_the_expression_to_blame_is_named(duck: Duck) -> None:
    with pytest.raises(NotAllowedError) as caught:
        check_expressions(duck, ["k", "lower(s)", "k + RANDOM()"], COLUMNS)
    assert (caught.value.index, caught.value.function.lower(), caught.value.arguments) == (
        2,
        "random",
        0,
    )


@pytest.mark.parametrize("text", ["x", "K", "a.k", "current_user", "batch.k", '"=0"', "rowid"])
def test_only_known_columns_can_be_named(duck: Duck, text: str) -> None:
    with pytest.raises(NotAllowedError) as caught:
        check_expressions(duck, ["1", text], COLUMNS)
    assert caught.value.column == text.strip('"')


def test_a_parameter_of_a_lambda_is_not_known_outside(duck: Duck) -> None:
    with pytest.raises(NotAllowedError, match="the name x"):
        check_expressions(duck, ["list_transform(l, lambda x: x) = [x]"], COLUMNS)


def test_a_tree_of_an_unknown_form_is_refused(duck: Duck, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = duck.parse(select_text(["lower(s)"]))
    for changed in (
        tree.replace("qualified_name", "qualification"),
        tree.replace("COLUMN_REF", "NEW_KIND"),
        tree.replace('"s"', "7"),
    ):
        monkeypatch.setattr(Duck, "parse", lambda _self, _sql, changed=changed: changed)
        with pytest.raises((NotAllowedError, UnparsableError)):
            check_expressions(duck, ["lower(s)"], COLUMNS)


def test_chains_as_long_as_duckdb_takes_are_checked(duck: Duck) -> None:
    check_expressions(duck, [" + ".join(["k"] * 900)], COLUMNS)
    with pytest.raises(NotAllowedError, match="random"):
        check_expressions(duck, [" + ".join(["random()", *["k"] * 900])], COLUMNS)
