"""A connection that DuckDB gives up on is replaced, and Ctrl-C stays Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator

ROWS = pa.table({"k": [1, 2, 3]})
FATAL = duckdb.FatalException(
    "FATAL Error: database has been invalidated because of a previous fatal error"
)


class Invalidated:
    """A stand-in for a connection after a fatal error: no query succeeds."""

    def __init__(self, error: duckdb.Error) -> None:
        self.error = error

    def run(self, *_: Any) -> Any:
        raise self.error


@pytest.mark.parametrize(
    "error", [FATAL, duckdb.InternalException("INTERNAL Error: assertion failure")]
)
def test_a_dead_connection_is_replaced(error: duckdb.Error) -> None:
    duck = Duck()
    duck.__dict__["_fast"] = Invalidated(error)
    with pytest.raises(type(error)):
        duck.run("SELECT k FROM batch", batch=ROWS)
    assert duck.run("SELECT k + 1 AS c FROM batch", batch=ROWS).column(0).to_pylist() == [2, 3, 4]


@pytest.mark.parametrize(
    "error", [FATAL, duckdb.InternalException("INTERNAL Error: assertion failure")]
)
def test_expressions_get_their_values_although_connections_die(error: duckdb.Error) -> None:
    duck = Duck()
    duck.__dict__["_fast"] = Invalidated(error)
    duck.__dict__["_strict"] = Invalidated(error)
    evaluator = Evaluator(duck)
    for _ in range(2):
        assert evaluator.raw(["k + 1", "k"], ROWS)[0].to_pylist() == [2, 3, 4]
    assert evaluator.failures == 0


def test_a_row_on_which_duckdb_breaks_every_time_is_null(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate an internal error in DuckDB: every connection that evaluates the row is lost."""
    broken = _breaking_on(2)
    monkeypatch.setattr("muntin.expressions.duck._run", broken)
    evaluator = Evaluator(Duck())
    assert evaluator.raw(["k * 10"], ROWS)[0].to_pylist() == [10, None, 30]
    assert evaluator.failures == 1
    assert "assertion" in evaluator.last_failure


def _breaking_on(value: int) -> Callable[..., pa.Table]:
    from muntin.expressions.duck import _run  # noqa: PLC0415 (before it is patched)

    dead: set[int] = set()

    def run(
        connection: duckdb.DuckDBPyConnection, sql: str, tables: dict[str, pa.Table]
    ) -> pa.Table:
        assert id(connection) not in dead, "a connection was used after an internal error"
        if value in tables["batch"].column("k").to_pylist():
            dead.add(id(connection))
            keep.append(connection)
            raise duckdb.InternalException("INTERNAL Error: assertion failure")
        return _run(connection, sql, tables)

    keep: list[duckdb.DuckDBPyConnection] = []
    return run


def test_interrupting_a_query_is_a_keyboard_interrupt() -> None:
    """DuckDB takes the signal for itself and raises a RuntimeError."""
    duck = Duck()
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # pytest-xdist has its workers ignore it
    try:
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            duck.run("SELECT count(*) FROM range(2_000_000_000) t(x) WHERE x % 7 = sqrt(x)")
    finally:
        signal.signal(signal.SIGINT, before)
    assert duck.run("SELECT k FROM batch", batch=ROWS).column(0).to_pylist() == [1, 2, 3]
