from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muntin.expressions.duck import Duck
from muntin.sql.conjuncts import Conjunct, split_conjuncts
from muntin.sql.lexer import tokenize

DUCK = Duck()


def show(conjunct: Conjunct) -> str:
    if conjunct.sides is None:
        return conjunct.tokens.original
    left, right = conjunct.sides
    return f"{left.original} | {conjunct.operator} | {right.original}"


@pytest.mark.parametrize(
    ("condition", "conjuncts"),
    [
        ("a = b", ["a | = | b"]),
        ("a == b AND a != b and a <> b", ["a | = | b", "a | <> | b", "a | <> | b"]),
        (
            "a < b AND a <= b AND a > b AND a >= b",
            ["a | < | b", "a | <= | b", "a | > | b", "a | >= | b"],
        ),
        ("((a = b) AND ((c)))", ["a | = | b", "c"]),
        ("a = b OR c = d", ["a = b OR c = d"]),
        ("(a OR b) AND c", ["a OR b", "c"]),
        ("a AND (b OR c AND d)", ["a", "b OR c AND d"]),
        ("NOT a = b AND c", ["NOT a = b", "c"]),
        ("a BETWEEN 1 AND 2", ["a | >= | 1", "a | <= | 2"]),
        (
            "a + 1 BETWEEN b * 2 AND f(c, d) AND e",
            ["a + 1 | >= | b * 2", "a + 1 | <= | f(c, d)", "e"],
        ),
        ("a NOT BETWEEN 1 AND 2 AND b", ["a NOT BETWEEN 1 AND 2", "b"]),
        ("a BETWEEN 1 AND 2 = b AND c", ["a BETWEEN 1 AND 2 = b", "c"]),
        ("CASE WHEN a AND b THEN c END = d AND e", ["CASE WHEN a AND b THEN c END | = | d", "e"]),
        ("a IS NOT NULL AND b IS DISTINCT FROM c", ["a IS NOT NULL", "b IS DISTINCT FROM c"]),
        ("a LIKE 'x' AND b IN (1, 2) AND c ISNULL", ["a LIKE 'x'", "b IN (1, 2)", "c ISNULL"]),
        ("j ->> 'k' = 'v' AND b", ["j ->> 'k' | = | 'v'", "b"]),
        ("j -> 'k' = 'v' AND b", ["j -> 'k' = 'v' AND b"]),
        ("(j -> 'k') = 'v' AND b", ["(j -> 'k') | = | 'v'", "b"]),
        ("a = ANY([1, 2]) AND b = ALL (c)", ["a = ANY([1, 2])", "b = ALL (c)"]),
        ("a = b = c", ["a = b = c"]),
        ("(a, b) = (c, d)", ["(a, b) | = | (c, d)"]),
        (
            "a COLLATE nocase = b AND (c COLLATE nocase) = d",
            ["a COLLATE nocase = b", "(c COLLATE nocase) = d"],
        ),
        ("a.end = b.and AND c", ["a.end | = | b.and", "c"]),
        (
            "ts > TIMESTAMP '2026-01-01' - INTERVAL 1 DAY",
            ["ts | > | TIMESTAMP '2026-01-01' - INTERVAL 1 DAY"],
        ),
        (
            "list_filter(l, lambda x: x = 1 AND x > 2) = m",
            ["list_filter(l, lambda x: x = 1 AND x > 2) | = | m"],
        ),
    ],
)
def test_conditions_are_split_where_it_is_safe(condition: str, conjuncts: list[str]) -> None:
    assert [show(conjunct) for conjunct in split_conjuncts(tokenize(condition))] == conjuncts


def parsed(conditions: Sequence[str]) -> list[Any]:
    """Return DuckDB's parse tree of conditions without places; None for invalid ones."""
    texts = pa.table({"text": [f"SELECT {condition}" for condition in conditions]})
    trees = [
        json.loads(tree)
        for tree in DUCK.run("SELECT json_serialize_sql(text) AS tree FROM texts", texts=texts)
        .column("tree")
        .to_pylist()
    ]
    return [
        None if tree["error"] else plain(tree["statements"][0]["node"]["select_list"][0])
        for tree in trees
    ]


def plain(node: Any) -> Any:
    """Return the tree with nested ANDs in one list, and BETWEEN as two comparisons."""
    if isinstance(node, list):
        return [plain(child) for child in node]
    if not isinstance(node, dict):
        return node
    node = {
        key: plain(value) for key, value in node.items() if not key.startswith("query_location")
    }
    if node.get("type") == "COMPARE_BETWEEN":
        low, high = (
            {
                "class": "COMPARISON",
                "type": kind,
                "alias": "",
                "left": node["input"],
                "right": node[bound],
            }
            for kind, bound in (
                ("COMPARE_GREATERTHANOREQUALTO", "lower"),
                ("COMPARE_LESSTHANOREQUALTO", "upper"),
            )
        )
        return {
            "class": "CONJUNCTION",
            "type": "CONJUNCTION_AND",
            "alias": "",
            "children": [low, high],
        }
    if node.get("type") == "CONJUNCTION_AND":
        nested = [
            child["children"] if child.get("type") == "CONJUNCTION_AND" else [child]
            for child in node["children"]
        ]
        node["children"] = [child for children in nested for child in children]
    return node


def put_together(conjunct: Conjunct) -> str:
    if conjunct.sides is None:
        return f"({conjunct.tokens.original})"
    left, right = conjunct.sides
    return f"(({left.original}) {conjunct.operator} ({right.original}))"


def assert_same_to_duckdb(conditions: Sequence[str]) -> None:
    again = [
        " AND ".join(put_together(conjunct) for conjunct in split_conjuncts(tokenize(condition)))
        for condition in conditions
    ]
    for condition, meant, made in zip(conditions, parsed(conditions), parsed(again), strict=True):
        assert meant is None or made == meant, condition


SYMBOLS = (
    "+ - * / // % ^ ** || & | << >> -> ->> && @> <@ ^@ <-> ~ !~ ~~ ~~~ = == <> != < <= > >= ::"
)
WORDS = (
    "AND OR LIKE NOT_ILIKE GLOB SIMILAR_TO IN NOT_IN IS IS_NOT IS_DISTINCT_FROM COLLATE "
    "BETWEEN_1_AND"
)
OPERATORS = SYMBOLS.split() + WORDS.replace(" ", "\n").replace("_", " ").splitlines()


@pytest.mark.parametrize("first", OPERATORS)
def test_no_pair_of_operators_is_read_otherwise_than_by_duckdb(first: str) -> None:
    shapes = ("a {} b {} c", "a {} - b {} NOT c", "NOT a {} b {} c")
    assert_same_to_duckdb([shape.format(first, second) for second in OPERATORS for shape in shapes])


operands = st.sampled_from(
    [
        "a",
        "b.c",
        "1",
        "'x'",
        "f(a, b)",
        "l[1]",
        "-a",
        "NOT a",
        "(a, b)",
        "NULL",
        "CASE WHEN a = b AND c THEN d END",
        "DATE '2020-01-01'",
    ]
)
conditions = st.recursive(
    operands,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(OPERATORS), inner).map(" ".join),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"{text} IS NOT NULL"),
        inner.map(lambda text: f"NOT {text}"),
    ),
    max_leaves=8,
)


@given(conditions)
@settings(deadline=None)
def test_conditions_put_together_again_are_what_duckdb_read(condition: str) -> None:
    assert_same_to_duckdb([condition])
