"""Python functions in queries: where they may stand, who fails with them, and after a restart."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import muntin
from muntin.runtime.frames import CheckpointError

COLUMNS = {"k": "bigint", "x": "double", "ts": "timestamp"}


def twice(x: pa.Array) -> pa.Array:
    return pc.multiply(x, 2.0)


def broken(_: pa.Array) -> pa.Array:
    raise ValueError("broken")


def started() -> muntin.Engine:
    engine = muntin.Engine(clock=None)
    for name in ("A", "B"):
        engine.stream(name, COLUMNS)
    engine.function("twice", twice, {"x": "double"}, "double")
    engine.function("broken", broken, {"x": "double"}, "double")
    return engine


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT twice(A.x) AS y FROM A, B WHERE twice(A.k) = twice(B.k)", [2, 6, 10]),
        ("SELECT A.x.twice() AS y FROM A JOIN B ON A.k = B.k AND Twice(B.x) > 4", [6]),
        ("SELECT SUM(twice(x)) AS y FROM A GROUP BY twice(k) HAVING twice(COUNT(*)) > 2", [12]),
        ("SELECT twice(SUM(x)) AS y FROM A GROUP BY k ORDER BY twice(k) LIMIT 1", [12]),
        ("SELECT y FROM (SELECT twice(x) AS y FROM A) AS t WHERE twice(y) > 4", [6, 10]),
        ("SELECT twice(x) AS y FROM A QUALIFY ROW_NUMBER() OVER (ORDER BY twice(x)) = 1", [2]),
    ],
)
def test_a_function_may_stand_in_every_expression(sql: str, expected: list[float]) -> None:
    engine = started()
    query = engine.query(f"{sql} WINDOW 1 MINUTE")
    engine.push("A", [(1, 1.0, 0), (2, 3.0, 1), (1, 5.0, 2), (3, None, 2)])
    engine.push("B", [(1, 2.0, 0), (2, 4.0, 1)])
    engine.advance(2)
    assert sorted(query.answer().column("y").to_pylist()) == expected
    assert "twice#" not in engine.explain()


def test_only_queries_that_call_a_failing_function_are_suspended() -> None:
    engine = started()
    join = "FROM A, B WHERE A.k = B.k"
    calls = [
        engine.query(f"SELECT A.k {join} AND broken(A.x) > 1 WINDOW 1 MINUTE"),
        engine.query(f"SELECT broken(A.x) AS y {join} WINDOW 2 MINUTES"),
        engine.query("SELECT k, SUM(broken(x)) AS y FROM A GROUP BY k WINDOW 1 MINUTE"),
    ]
    others = [
        engine.query(f"SELECT A.k {join} WINDOW 1 MINUTE"),
        engine.query(f"SELECT A.k {join} AND twice(A.x) > 1 WINDOW 1 MINUTE"),
        engine.query("SELECT k, SUM(x) AS y FROM A GROUP BY k WINDOW 1 MINUTE"),
    ]
    engine.push("A", [(1, 1.0, 0)])
    engine.push("B", [(1, 1.0, 0)])
    engine.advance(0)
    for query in calls:
        reason = str(query.stats()["suspended"])
        assert reason.startswith("the function broken failed in test_python_functions.py, line ")
        assert reason.endswith("ValueError: broken")
    assert [query.poll().column("k").to_pylist() for query in others] == [[1], [1], [1]]


@pytest.mark.parametrize(
    ("name", "code", "parameters", "result", "message"),
    [
        ("abs", twice, {"x": "double"}, "double", "abs is a function or a word of SQL"),
        ("SUM", twice, {"x": "double"}, "double", "SUM is a function or a word of SQL"),
        ("cast", twice, {"x": "double"}, "double", "cast is a function or a word of SQL"),
        ("rank", twice, {"x": "double"}, "double", "rank is a function or a word of SQL"),
        ("left", twice, {"x": "double"}, "double", "left is a function or a word of SQL"),
        ("a b", twice, {"x": "double"}, "double", "a function cannot be called 'a b'"),
        ("f", 3, {"x": "double"}, "double", "the function f must be callable, not int"),
        ("f", twice, {}, "double", "the function f has no parameters"),
        ("f", twice, {"x": "dubble"}, "double", "'dubble' is not a type"),
        ("f", twice, {"x": "double"}, "dubble", "'dubble' is not a type"),
        ("f", twice, "x", "double", "columns must be a mapping"),
    ],
)
def test_wrong_declarations_are_refused(
    name: str, code: object, parameters: object, result: str, message: str
) -> None:
    engine = started()
    with pytest.raises(muntin.MuntinError, match=message):
        engine.function(name, code, parameters, result)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT twice('a') FROM A", "line 1, column 8: could not convert string 'a' to DOUBLE"),
        ("SELECT twice(ts) FROM A", r"argument types 'twice\(TIMESTAMP\)'"),
        ("SELECT twice(x, x) FROM A", r"argument types 'twice\(DOUBLE, DOUBLE\)'"),
        ("SELECT broken(1) FROM A", "column 8: the function broken failed in .*ValueError"),
        ("SELECT other(x) FROM A", "there is no function other"),
    ],
)
def test_wrong_calls_have_a_place(sql: str, message: str) -> None:
    with pytest.raises(muntin.SqlError, match=message):
        started().query(f"{sql} WINDOW 1 MINUTE")


def test_a_function_in_use_can_be_neither_replaced_nor_dropped() -> None:
    engine = started()
    engine.query("SELECT TWICE(x) AS y FROM A WINDOW 1 MINUTE", name="q")
    engine.execute("CREATE VIEW v AS SELECT broken(x) AS y FROM A")
    with pytest.raises(muntin.CatalogError, match="the function twice is called by query q"):
        engine.function("Twice", twice, {"x": "double"}, "double")
    with pytest.raises(muntin.SqlError, match="the function broken is called by view v"):
        engine.execute("DROP FUNCTION broken")
    engine.drop("q")
    engine.function("twice", lambda x: pc.multiply(x, 4.0), {"x": "double"}, "double")
    query = engine.query("SELECT twice(x) AS y FROM A WINDOW 1 MINUTE", name="q")
    engine.push("A", [(1, 1.0, 0)])
    assert query.poll().column("y").to_pylist() == [4.0]
    engine.drop("q")
    engine.execute("DROP FUNCTION twice; DROP FUNCTION IF EXISTS twice")
    with pytest.raises(muntin.SqlError, match="there is no function twice"):
        engine.execute("DROP FUNCTION twice")
    with pytest.raises(muntin.SqlError, match="functions are not written in SQL"):
        engine.execute("CREATE FUNCTION twice(x) AS x * 2")


def test_two_engines_have_different_functions_of_one_name() -> None:
    values = []
    for factor in (2.0, 3.0):
        engine = muntin.Engine(clock=None)
        engine.stream("A", COLUMNS)
        engine.function("f", lambda x, by=factor: pc.multiply(x, by), {"x": "double"}, "double")
        query = engine.query("SELECT f(x) AS y FROM A WINDOW 1 MINUTE")
        engine.push("A", [(1, 1.0, 0)])
        values += query.poll().column("y").to_pylist()
    assert values == [2.0, 3.0]


def test_a_restored_engine_needs_the_same_functions(tmp_path: Path) -> None:
    engine = started()
    engine.query("SELECT k, SUM(twice(x)) AS y FROM A GROUP BY k WINDOW 10 SECONDS", name="q")
    engine.push("A", [(1, 1.0, 0), (1, 2.0, 1)])
    engine.checkpoint(tmp_path)
    both = {"twice": twice, "broken": broken}
    with pytest.raises(CheckpointError, match=r"needs the code of broken\(x DOUBLE\) -> DOUBLE"):
        muntin.Engine.restore(tmp_path, clock=None, functions={"TWICE": twice})
    with pytest.raises(CheckpointError, match="the function twice has other code"):
        muntin.Engine.restore(tmp_path, clock=None, functions={**both, "twice": broken})
    with pytest.raises(muntin.InputError, match="the checkpoint has no function third"):
        muntin.Engine.restore(tmp_path, clock=None, functions={**both, "third": twice})
    again = muntin.Engine.restore(tmp_path, clock=None, functions=both)
    again.push("A", [(1, 4.0, 2)])
    again.advance(2)
    assert again.handle("q").answer().to_pylist() == [{"k": 1, "y": 14.0}]
