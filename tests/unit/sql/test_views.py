"""WITH, views, and queries that read queries: what they stand for, and what is refused."""

from __future__ import annotations

import pytest

import muntin
from muntin.errors import CatalogError, SqlError
from muntin.model.catalog import Catalog
from muntin.plan.statement import CreateView
from muntin.sql.script import read_query, read_script
from muntin.sql.streams import make_stream
from muntin.sql.types import build_schema
from muntin.sql.views import readable

PAIRS = "SELECT A.k, A.v + B.v AS both FROM A, B WHERE A.k = B.k"
SUMS = "SELECT k, SUM(v) AS total FROM A [ROWS 3] GROUP BY k"


def make_catalog() -> Catalog:
    catalog = Catalog()
    for name in ("A", "B"):
        catalog.add(make_stream(name, build_schema({"k": "int", "v": "int", "ts": "timestamp"})))
    statements = read_script(
        f"CREATE VIEW pairs AS {PAIRS};"
        f"CREATE VIEW sums AS {SUMS};"
        "CREATE VIEW late AS SELECT k, v FROM A WHERE v > 5 WINDOW 3 SECONDS;"
        "CREATE VIEW above AS SELECT k, MAX(both) AS most FROM pairs GROUP BY k;",
        catalog,
    )
    for statement in statements:
        assert isinstance(statement, CreateView)
        catalog.add_view(statement.view)
    changes = "SELECT k, COUNT(*) AS n FROM A GROUP BY k WINDOW 9 SECONDS"
    catalog.add_view(readable(read_query(changes, "counts", catalog)))
    return catalog


@pytest.mark.parametrize(
    ("named", "by_hand"),
    [
        ("SELECT k FROM pairs", f"SELECT k FROM ({PAIRS}) AS pairs"),
        (
            "SELECT p.k, s.total FROM pairs p JOIN sums s ON p.k = s.k",
            f"SELECT p.k, s.total FROM ({PAIRS}) AS p JOIN ({SUMS}) AS s ON p.k = s.k",
        ),
        (
            "SELECT p.both, q.both AS other FROM pairs p, pairs q WHERE p.k = q.k",
            f"SELECT p.both, q.both AS other FROM ({PAIRS}) AS p, ({PAIRS}) AS q WHERE p.k = q.k",
        ),
        (
            "SELECT most FROM above UNION SELECT total FROM sums",
            (
                f"SELECT most FROM (SELECT k, MAX(both) AS most FROM ({PAIRS}) AS pairs GROUP BY k)"
                f" AS above UNION SELECT total FROM ({SUMS}) AS sums"
            ),
        ),
        (
            "SELECT late.v FROM late, B WHERE late.k = B.k",
            (
                "SELECT late.v FROM (SELECT k, v FROM A [RANGE 3 SECONDS] WHERE v > 5) AS late, B "
                "WHERE late.k = B.k"
            ),
        ),
        (
            "SELECT MAX(n) AS most FROM counts",
            (
                "SELECT MAX(n) AS most FROM (SELECT k, COUNT(*) AS n FROM A [RANGE 9 SECONDS] "
                "GROUP BY k) AS counts"
            ),
        ),
        (
            (
                f"WITH p AS ({PAIRS}), m AS (SELECT k, MIN(both) AS least FROM p GROUP BY k) "
                "SELECT p.both, m.least FROM p, m WHERE p.k = m.k"
            ),
            (
                f"SELECT p.both, m.least FROM ({PAIRS}) AS p, (SELECT k, MIN(both) AS least FROM "
                f"({PAIRS}) AS p GROUP BY k) AS m WHERE p.k = m.k"
            ),
        ),
        (
            "SELECT x FROM (WITH a AS (SELECT v AS x FROM A) SELECT DISTINCT x FROM a) AS d",
            "SELECT x FROM (SELECT DISTINCT x FROM (SELECT v AS x FROM A) AS a) AS d",
        ),
        (
            "WITH pairs AS (SELECT k FROM B), A AS (SELECT k FROM A) SELECT A.k FROM A, pairs",
            "SELECT A.k FROM (SELECT k FROM A) AS A, (SELECT k FROM B) AS pairs",
        ),
    ],
)
def test_a_name_stands_for_its_select(named: str, by_hand: str) -> None:
    catalog = make_catalog()
    query, expected = (
        read_query(f"{text} WINDOW 7 SECONDS", "q", catalog) for text in (named, by_hand)
    )
    assert query.root == expected.root
    assert query.emit == expected.emit
    bare = Catalog()
    for stream in catalog.streams():
        bare.add(stream)
    assert read_query(query.text, "q", bare).root == query.root, "its text needs no views"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("WITH RECURSIVE a AS (SELECT k FROM A) SELECT k FROM a", "column 6: WITH RECURSIVE"),
        ("WITH z AS (SELECT k FROM z) SELECT k FROM z", "column 26: z reads itself"),
        ("SELECT k FROM q", "column 15: q reads itself"),
        ("WITH a AS (SELECT k FROM A), a AS (SELECT k FROM A) SELECT k FROM a", "defines a twice"),
        ("WITH a (x) AS (SELECT k FROM A) SELECT x FROM a", "column 8: lists of columns"),
        (
            "WITH a AS (SELECT nope FROM A WINDOW 1 SECOND) SELECT k FROM a",
            "column 19: stream A has no column",
        ),
        ("WITH a AS (SELECT k FROM A EVERY 1 SECOND) SELECT k FROM a", "column 28: EVERY cannot"),
        ("WITH a AS (SELECT k FROM A", "the parenthesis of a is not closed"),
        ("WITH a AS (SELECT k FROM A)", "SELECT is missing here"),
        ("SELECT k FROM pairs [ROWS 5]", "column 21: pairs cannot have a window here"),
        ("SELECT k FROM pears WINDOW 1 SECOND", "Did you mean 'pairs'"),
        ("SELECT k FROM pairs", "view pairs cannot be read here: stream A has no window"),
    ],
)
def test_mistakes_have_their_place(text: str, problem: str) -> None:
    with pytest.raises(SqlError) as error:
        read_query(text, "q", make_catalog())
    assert problem in str(error.value)


def test_too_many_uses_of_names_are_refused() -> None:
    levels = ", ".join(
        f"n{level} AS (SELECT a.k FROM n{level - 1} a, n{level - 1} b WHERE a.k = b.k)"
        for level in range(1, 12)
    )
    text = f"WITH n0 AS (SELECT k FROM A), {levels} SELECT k FROM n11 WINDOW 1 SECOND"
    with pytest.raises(SqlError, match="more than 200 window joins"):
        read_query(text, "q", make_catalog())


def test_too_many_outer_joins_are_refused() -> None:
    joins = " ".join(f"LEFT JOIN A a{at} ON a0.k = a{at}.k" for at in range(1, 16))
    text = f"SELECT a0.k FROM A a0 {joins} WINDOW 1 SECOND EMIT CHANGES"
    with pytest.raises(SqlError, match=r"more than 200 window joins\. Use fewer outer joins"):
        read_query(text, "q", make_catalog())


def make_engine() -> muntin.Engine:
    engine = muntin.Engine()
    engine.stream("A", {"k": "int", "v": "int", "ts": "timestamp"})
    engine.execute("CREATE VIEW sums AS SELECT k, SUM(v) AS total FROM A GROUP BY k")
    return engine


def test_what_is_read_cannot_be_dropped() -> None:
    engine = make_engine()
    engine.execute("CREATE VIEW most AS SELECT MAX(total) AS m FROM sums")
    engine.query("SELECT m FROM most WINDOW 5 SECONDS", name="q")
    engine.query("SELECT m + 1 AS n FROM q", name="r")
    with pytest.raises(SqlError, match="view sums is read by view most"):
        engine.execute("DROP VIEW sums")
    with pytest.raises(SqlError, match="there is no view q"):
        engine.execute("DROP VIEW q")
    with pytest.raises(SqlError, match="view most is read by query q"):
        engine.execute("DROP VIEW most")
    with pytest.raises(CatalogError, match="query q is read by query r"):
        engine.drop("q")
    with pytest.raises(SqlError, match="stream A is read by query q, r"):
        engine.execute("DROP STREAM A")
    engine.drop("r")
    engine.drop("q")
    with pytest.raises(SqlError, match="stream A is read by view sums, most"):
        engine.execute("DROP STREAM A")
    engine.execute("DROP VIEW most; DROP VIEW sums; DROP VIEW IF EXISTS sums; DROP STREAM A")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW A AS SELECT k FROM A",
        "CREATE VIEW Sums AS SELECT k FROM A",
        "CREATE VIEW q AS SELECT k FROM A",
        "CREATE QUERY sums AS SELECT k FROM A WINDOW 1 SECOND",
        "CREATE STREAM sums (ts TIMESTAMP)",
        "CREATE TABLE q (k INT)",
    ],
)
def test_names_are_taken_once(statement: str) -> None:
    engine = make_engine()
    engine.query("SELECT k FROM A WINDOW 1 SECOND", name="q")
    with pytest.raises(SqlError, match=r"is taken|there is already a"):
        engine.execute(statement)


@pytest.mark.parametrize(
    ("read", "problem"),
    [
        ("SELECT k FROM A WINDOW 1 SECOND", "query q emits inserts"),
        ("SELECT COUNT(*) AS k FROM A WINDOW 1 SECOND EVERY 2 SECONDS", "every 2 seconds only"),
        ("SELECT COUNT(*) AS k FROM A WINDOW 1 SECOND FRESHNESS 3 SECONDS", "has a FRESHNESS"),
    ],
)
def test_not_every_query_can_be_read(read: str, problem: str) -> None:
    engine = make_engine()
    engine.query(read, name="q")
    with pytest.raises(SqlError, match=problem):
        engine.query("SELECT k FROM q", name="r")


def test_readers_of_a_view_share_its_operators() -> None:
    engine = make_engine()
    for number in (1, 2):
        text = f"SELECT s.total FROM sums s, sums t WHERE s.k = t.k + {number} WINDOW 5 SECONDS"
        engine.query(text, name=f"q{number}")
    leaves = {
        id(leaf)
        for group in engine.dataflow.groups
        for pipeline in group.pipelines
        for leaf in pipeline.leaves
    }
    assert len(leaves) == 1, "the stream is read once, for four uses"
    engine.push("A", [(1, 10, 0), (2, 20, 0), (3, 30, 0), (3, 5, 0)])
    engine.advance(0)
    answers = [sorted(engine.handle(q).answer().column(0).to_pylist()) for q in ("q1", "q2")]
    assert answers == [[20, 35], [35]]
