"""A thousand queries over one join, and invalid operations on them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import muntin
from muntin.errors import CatalogError
from muntin.model.catalog import Stream
from muntin.operators.join.schedule import TurnPace
from muntin.runtime.dataflow import Frontier
from muntin.testing.compare import assert_same_sequence
from muntin.testing.dataflows import batches_of, dataflow_of

ROWS = [(number % 5, number, number * 500_000) for number in range(60)]
WINDOWS = 20


def made(count: int, **settings: object) -> muntin.Engine:
    engine = muntin.Engine(**settings)
    for name in "AB":
        engine.stream(name, {"k": "bigint", "v": "bigint", "ts": "timestamp"}, time="ts")
    for number in range(count):
        engine.query(sql(number), name=f"q{number}")
    return engine


def sql(number: int) -> str:
    window = number % WINDOWS + 1
    return f"SELECT A.v AS x, B.v AS y FROM A, B WHERE A.k = B.k WINDOW {window} SECONDS"


def test_a_thousand_queries_share_one_join_and_each_gets_its_results() -> None:
    few = made(WINDOWS, sharing="off")
    streams = [Stream(name, schema(), "ts") for name in "AB"]
    many = dataflow_of(streams, {f"q{number}": sql(number) for number in range(1_000)})
    got: dict[str, list[pa.Table]] = {}
    table = pa.table(list(map(list, zip(*ROWS, strict=True))), ["k", "v", "ts"]).cast(schema())
    for name in "AB":
        assert not list(many.step(batches_of(many, {name: table}), Frontier(final=(-1, -1))))
        few.push(name, table)
    for query, piece in many.step(frontier=Frontier(advanced=10**9), pace=TurnPace()):
        got.setdefault(query, []).append(piece)
    few.advance(10**9)
    assert len(many.joins()) == 1
    stats = many.queries["q999"].stats()
    assert isinstance(stats["shares_with"], list)
    assert len(stats["shares_with"]) == 999
    assert stats["scheduler"] == "mqt"
    wanted = [few.handle(f"q{number}").poll() for number in range(WINDOWS)]
    assert len({len(table) for table in wanted}) > 5
    for number in range(1_000):
        assert_same_sequence(wanted[number % WINDOWS], pa.concat_tables(got[f"q{number}"]))


def schema() -> pa.Schema:
    return pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))])


def test_a_second_query_of_the_same_name_is_refused_and_the_first_continues() -> None:
    engine = made(2)
    with pytest.raises(CatalogError, match="the name Q1 is taken"):
        engine.query("SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 9 SECONDS", name="Q1")
    assert len(engine.queries()) == 2
    assert engine.handle("q1").stats()["shares_with"] == ["q0"]


def test_dropping_an_unknown_query_lists_the_known_ones() -> None:
    engine = made(2)
    with pytest.raises(CatalogError, match="there is no query 'q7'") as refused:
        engine.drop("q7")
    assert refused.value.hint == "There are q0, q1"
