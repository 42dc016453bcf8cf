"""Results expire by time, or only when a row arrives; with EVERY at its multiples.

::

    time      1    4    10   12        (a match of time t ends at t + 10)
    matches   a    b         c
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from muntin.model.catalog import Catalog, Stream
from muntin.model.settings import Strategy
from muntin.operators.join import Matches
from muntin.operators.signed import Changes
from muntin.plan.query import Query
from muntin.runtime.result_expiry import EXPIRIES, ResultExpiry
from muntin.sql.script import read_query

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
Row = tuple[int, int, int]


def query(every: str = "") -> Query:
    catalog = Catalog()
    for name in "AB":
        catalog.add(Stream(name, SCHEMA, "ts"))
    sql = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 10 MICROSECONDS EMIT CHANGES"
    found = read_query(sql + every, "q", catalog)
    assert isinstance(found, Query)
    return found


def select(matches: Matches) -> pa.Table:
    return pa.table({"k": matches.positions[0]})


def take(expiry: ResultExpiry, time: int) -> None:
    times = np.array([time])
    expiry.take(Matches(times, None, np.array([[time], [time]]), 0.0), times + 10, select)


def shown(changes: Changes) -> list[Row]:
    values = changes.columns.column(0).to_pylist()
    return list(zip(changes.times.tolist(), changes.signs.tolist(), values, strict=True))


def run(expiry: ResultExpiry) -> list[list[Row]]:
    found = []
    for times, now in (((1, 4), 5), ((), 11), ((12,), 12)):
        for time in times:
            take(expiry, time)
        found.append(shown(expiry.changes(now, select)))
    return found


@pytest.mark.parametrize("strategy", [Strategy.NEGATIVE, Strategy.PROBING])
def test_results_expire_when_time_reaches_their_ends(strategy: Strategy) -> None:
    expiry = EXPIRIES[strategy](query())
    assert run(expiry) == [[(1, 1, 1), (4, 1, 4)], [(11, -1, 1)], [(12, 1, 12)]]
    assert len(expiry) == 2


def test_results_expire_only_when_a_row_arrives() -> None:
    expiry = EXPIRIES[Strategy.INPUT](query())
    assert run(expiry) == [[(1, 1, 1), (4, 1, 4)], [], [(11, -1, 1), (12, 1, 12)]]
    assert len(expiry) == 2


@pytest.mark.parametrize("strategy", [Strategy.NEGATIVE, Strategy.PROBING])
def test_with_every_changes_are_shown_at_its_multiples(strategy: Strategy) -> None:
    expiry = EXPIRIES[strategy](query(" EVERY 6 MICROSECONDS"))
    assert run(expiry) == [[(6, 1, 1), (6, 1, 4)], [], [(12, -1, 1), (12, 1, 12)]]
    assert len(expiry) == 2


def test_operators_that_expire_rows_get_them_with_their_ends() -> None:
    expiry = EXPIRIES[Strategy.PROBING](query())
    take(expiry, 1)
    found = expiry.rows(5, select)
    assert shown(found) == [(1, 1, 1)]
    assert found.explicit_ends().tolist() == [11]
    assert len(expiry) == 0
