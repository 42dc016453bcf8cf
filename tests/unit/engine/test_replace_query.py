"""CREATE OR REPLACE QUERY: one query takes the place of another, or nothing changes."""

from __future__ import annotations

import pytest

import muntin
from muntin.errors import SqlError

SECOND = 1_000_000


def engine_of(script: str) -> muntin.Engine:
    engine = muntin.Engine(clock=None)
    engine.stream("A", {"k": "int", "ts": "timestamp"}, time="ts")
    engine.execute(script)
    return engine


def test_a_query_takes_the_place_of_another_while_others_continue() -> None:
    engine = engine_of(
        "CREATE QUERY q AS SELECT k FROM A WINDOW 9 s; CREATE QUERY r AS SELECT k FROM A WINDOW 9 s"
    )
    engine.push("A", [(1, 0)])
    (q,) = engine.execute("CREATE OR REPLACE QUERY Q AS SELECT k + 1 AS n FROM A WINDOW 5 s")
    engine.push("A", [(2, SECOND)])
    assert q.poll().column("n").to_pylist() == [3]
    assert engine.handle("r").poll().column("k").to_pylist() == [1, 2]


def test_a_query_that_is_not_there_is_created() -> None:
    engine = engine_of("CREATE OR REPLACE QUERY q AS SELECT k FROM A WINDOW 9 s")
    engine.push("A", [(1, 0)])
    assert engine.handle("q").poll().column("k").to_pylist() == [1]


@pytest.mark.parametrize(
    ("statement", "fact"),
    [
        ("CREATE OR REPLACE QUERY q AS SELECT u FROM A WINDOW 9 s", "stream A has no column 'u'"),
        (
            "CREATE OR REPLACE QUERY r AS SELECT k FROM A WINDOW 9 s WITH (expiry = 'never')",
            "expiry",
        ),
        ("CREATE OR REPLACE QUERY q AS SELECT n FROM r", "query q is read by query r"),
        ("CREATE OR REPLACE QUERY r AS SELECT n FROM r", "query r reads the query that it"),
        ("CREATE OR REPLACE VIEW q AS SELECT k FROM A", "only queries can be replaced"),
        ("CREATE OR REPLACE QUERY A AS SELECT k FROM A WINDOW 9 s", "the name A is taken"),
    ],
)
def test_a_mistake_changes_nothing(statement: str, fact: str) -> None:
    engine = engine_of(
        "CREATE QUERY q AS SELECT COUNT(*) AS n FROM A WINDOW 9 s;CREATE QUERY r AS SELECT n FROM q"
    )
    engine.push("A", [(1, 0)])
    with pytest.raises(SqlError, match=fact):
        engine.execute(statement)
    engine.advance(SECOND)
    for name in "qr":
        assert engine.handle(name).answer().to_pylist() == [{"n": 1}]
