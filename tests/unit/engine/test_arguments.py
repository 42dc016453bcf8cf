"""Any argument of a public method leads to success or a MuntinError, never to another exception."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from muntin import Engine
from muntin.errors import InputError, MuntinError, SqlError

SQL = "SELECT k FROM A WINDOW 1 MINUTE"
COLUMNS = {"k": "BIGINT", "ts": "TIMESTAMP"}
NONSENSE: list[Any] = [
    None, 1, 1.5, True, b"x", object(), [], ["a"], {}, {"a": 1}, (), len, "", "  ", "\x00",
    "\ud800", pa.table({"a": [1]}), float("nan"),
    -1, 10**30, {1: 2}, {"a": None}, [None], [[1]], set(), type, pa.schema([("a", pa.int64())]),
    pa.int64(),
]  # fmt: skip


def _folder(value: Any) -> Any:
    """Return a value, or a file instead of a name under which a folder could be created."""
    return __file__ if isinstance(value, str) and value.strip() and value.isprintable() else value


CALLS: dict[str, Callable[[Engine, Any], object]] = {
    "query": lambda engine, value: engine.query(value),
    "query, name": lambda engine, value: engine.query(SQL, value),
    "execute": lambda engine, value: engine.execute(value),
    "drop": lambda engine, value: engine.drop(value),
    "handle": lambda engine, value: engine.handle(value),
    "late": lambda engine, value: engine.late(value),
    "explain": lambda engine, value: engine.explain(value),
    "advance": lambda engine, value: engine.advance(value),
    "push, stream": lambda engine, value: engine.push(value, [(1, "2026-01-01")]),
    "push, rows": lambda engine, value: engine.push("A", value),
    "stream, name": lambda engine, value: engine.stream(value, COLUMNS),
    "stream, columns": lambda engine, value: engine.stream("B", value),
    "stream, type": lambda engine, value: engine.stream("B", {"k": value, "ts": "TIMESTAMP"}),
    "stream, time": lambda engine, value: engine.stream("B", COLUMNS, time=value),
    "stream, slack": lambda engine, value: engine.stream("B", COLUMNS, slack=value),
    "table, name": lambda engine, value: engine.table(value, [{"x": 1}]),
    "table, rows": lambda engine, value: engine.table("T", value),
    "table, columns": lambda engine, value: engine.table("T", [{"x": 1}], value),
    "subscribe": lambda engine, value: engine.handle("q").subscribe(value),
    "subscribe, buffer": lambda engine, value: engine.handle("q").subscribe(
        lambda _: None, buffer=value
    ),
    "checkpoint": lambda engine, value: engine.checkpoint(_folder(value)),
    "restore": lambda _, value: Engine.restore(value),
    "settle": lambda engine, value: engine.settle(value),
    "stop": lambda engine, value: engine.stop(value),
}


def make_engine() -> Engine:
    engine = Engine()
    engine.execute("CREATE STREAM A (k BIGINT, ts TIMESTAMP)")
    engine.query(SQL, name="q")
    return engine


@pytest.mark.parametrize("name", CALLS)
def test_nonsense_raises_no_raw_exception(name: str) -> None:
    raw = []
    engine = make_engine()
    for value in NONSENSE:
        try:
            CALLS[name](engine, value)
        except MuntinError:
            continue
        except Exception as error:  # noqa: BLE001 (that is what we look for)
            raw.append((value, error))
    assert raw == []


@pytest.mark.parametrize(
    ("call", "fact"),
    [
        ("query", "SQL must be text, not NoneType"),
        ("execute", "SQL must be text, not NoneType"),
        ("drop", "the name of a query must be text, not NoneType"),
        ("handle", "the name of a query must be text, not NoneType"),
        ("late", "the name of a stream must be text, not NoneType"),
        ("push, stream", "the name of a stream must be text, not NoneType"),
        ("stream, name", "the name of a stream must be text, not NoneType"),
        ("stream, columns", "columns must be a mapping from names to types, not NoneType"),
        ("stream, type", "a type must be text, not NoneType"),
        ("table, name", "the name of a table must be text, not NoneType"),
    ],
)
def test_none_is_named_as_the_mistake(call: str, fact: str) -> None:
    engine = make_engine()
    with pytest.raises(InputError, match=f"^{fact}") as caught:
        CALLS[call](engine, None)
    assert caught.value.hint
    assert [query.name for query in engine.queries()] == ["q"]


UNIONS = ["UNION(a INT, b VARCHAR)", "UNION(a INT)[]", "STRUCT(x UNION(a INT))", "BIGNUM"]


@pytest.mark.parametrize("kind", UNIONS)
def test_columns_whose_values_cannot_be_kept_are_refused(kind: str) -> None:
    with pytest.raises(
        SqlError,
        match=r"line 1, column 20: columns of type (UNION|BIGNUM) are not supported\. Use a STRUCT",
    ):
        Engine().execute(f"CREATE STREAM A (u {kind}, ts TIMESTAMP)")
    with pytest.raises(InputError, match="are not supported"):
        Engine().stream("A", {"u": kind, "ts": "TIMESTAMP"})


def test_arrow_schemas_with_unions_are_refused() -> None:
    union = pa.sparse_union([pa.field("a", pa.int64())])
    with pytest.raises(InputError, match="the column u has type UNION, which is not supported"):
        Engine().stream("A", pa.schema([("u", union), ("ts", pa.timestamp("us"))]))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT union_value(a := k) AS u FROM A WINDOW 1 MINUTE",
        "SELECT DISTINCT union_value(a := k) AS u FROM A WINDOW 1 MINUTE",
        "SELECT first(union_value(a := k)) AS u FROM A WINDOW 1 MINUTE",
        "SELECT count(*) AS n FROM A GROUP BY union_value(a := k) WINDOW 1 MINUTE",
        "SELECT k FROM A UNION ALL SELECT union_value(a := k) AS u FROM A WINDOW 1 MINUTE",
        "SELECT min(k::BIGNUM) AS m FROM A WINDOW 1 MINUTE",
    ],
)
def test_expressions_whose_values_cannot_be_kept_are_refused(sql: str) -> None:
    with pytest.raises(
        SqlError,
        match=(
            r"line 1, column \d+: the expression .* has type (UNION|BIGNUM), which is not "
            r"supported"
        ),
    ):
        make_engine().query(sql)


def test_unions_inside_an_expression_are_fine() -> None:
    engine = make_engine()
    query = engine.query("SELECT union_tag(union_value(a := k)) AS tag FROM A WINDOW 1 MINUTE")
    engine.push("A", [(1, "2026-01-01")])
    engine.advance("2026-01-02")
    assert query.poll().column("tag").to_pylist() == ["a"]
