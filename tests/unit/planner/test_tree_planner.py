"""Trees as users write them: accepted forms, and refusals with their messages."""

from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.errors import SettingError
from muntin.model.catalog import Catalog, Stream
from muntin.model.settings import Settings
from muntin.plan.join import JoinPlan
from muntin.planner.join_planner import plan_join
from muntin.planner.tree_choice import TreeShape
from muntin.planner.tree_planner import parse_shape, shape_text
from muntin.sql.script import read_query

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
THREE = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 10 SECONDS"


def catalog() -> Catalog:
    found = Catalog()
    for name in "ABC":
        found.add(Stream(name, SCHEMA, "ts"))
    return found


def plan(sql: str = THREE, **settings: str) -> JoinPlan:
    return plan_join(read_query(sql, "q", catalog()), Settings.of(**settings))


@pytest.mark.parametrize(
    ("text", "shape"),
    [("((A, B), C)", ((0, 1), 2)), (" ( c,(a ,B)) ", (2, (0, 1))), ("(B,(C,A))", (1, (2, 0)))],
)
def test_brackets_and_names_are_read_whatever_their_case_and_spaces(
    text: str, shape: TreeShape
) -> None:
    query = read_query(THREE, "q", catalog())
    assert parse_shape(text, query) == shape
    assert parse_shape(shape_text(shape, "ABC"), query) == shape


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "lacks 'a source' at its end"),
        ("(", "lacks 'a source' at its end"),
        ("(A", "lacks ',' at its end"),
        ("(A B)", "lacks ',' before 'B'"),
        ("((A, B, C)", "lacks ')' before ','"),
        ("((A, B), C", "lacks ')' at its end"),
        ("((A, B), C))", "continues with ')' after its end"),
        ("A, B, C", "continues with ',' after its end"),
        ("((A, B), X)", "names 'X', which is not in FROM"),
        ("(A, B)", "does not name every source once"),
        ("((A, B), A)", "does not name every source once"),
        ("A", "does not name every source once"),
        ("(((A, B)), C)", "lacks ',' before ')'"),
        ("((((A, B), C)))", "has too many brackets"),
        ("(" * 5_000, "has too many brackets"),
        ("((A,, B), C)", "names ',', which is not in FROM"),
    ],
)
def test_other_texts_are_refused_with_the_reason(text: str, what: str) -> None:
    with pytest.raises(SettingError) as caught:
        plan(tree=text)
    assert str(caught.value).startswith(f"the tree {text!r} of query q {what}. ")
    assert (
        caught.value.hint == "Write pairs in brackets, every source once, for example ((A, B), C)"
    )


@pytest.mark.parametrize(
    ("sql", "settings"),
    [
        ("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND", {"tree": "(A, B)"}),
        (f"{THREE} EMIT CHANGES", {"pipeline": "negative"}),
        (THREE, {"algorithm": "naive"}),
        (THREE, {"expiry": "eager"}),
        (
            (
                "SELECT A.k FROM A [PARTITION BY k ROWS 2], B [ROWS 2], C [ROWS 2] "
                "WHERE A.k = B.k AND B.k = C.k"
            ),
            {},
        ),
    ],
)
def test_queries_that_cannot_run_as_a_tree_are_refused_with_the_reason(
    sql: str, settings: dict[str, str]
) -> None:
    with pytest.raises(SettingError, match="query q cannot run as a tree"):
        plan(sql, **{"tree": "((A, B), C)", **settings})


def test_a_tree_that_is_set_is_the_plan() -> None:
    found = plan(tree="((a, C), b)").tree
    assert found is not None
    assert found.text == "((A, C), B)"
    assert [node.sources for node in found.nodes] == [(0, 2)]
    assert [[climb.source for climb in path] for path in found.climbs] == [[2, 1], [None], [0, 1]]
    assert [[climb.parent for climb in path] for path in found.climbs] == [
        [0, None],
        [None],
        [0, None],
    ]


def test_off_and_auto_without_statistics_have_no_tree() -> None:
    assert plan(tree="off").tree is None
    assert plan(tree="auto").tree is None
