"""The deployment of an engine, with changes of queries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from muntin.model.catalog import Stream
from muntin.spark.exchange import deployment
from muntin.spark.exchange.deployment import DeployedQuery, Deployment, QueryChange
from muntin.spark.exchange.deployment_file import decode_deployment, encode_deployment
from muntin.sql import script

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))])
STREAMS = (Stream("A", SCHEMA, "ts"), Stream("B", SCHEMA, "ts"))
TEXTS = (
    "SELECT A.v FROM A, B WHERE A.k = B.k WINDOW 4 SECONDS",
    "SELECT A.v FROM A, B WHERE A.v = B.v WINDOW 4 SECONDS",
    "SELECT COUNT(*) AS n FROM A WINDOW 3 SECONDS",
)


def changed(before: Deployment, number: int) -> Deployment:
    """Return a deployment with one more query, which is dropped again."""
    query = DeployedQuery("more", TEXTS[number % 3], {}, incarnation=str(number))
    added = QueryChange(number, query, dataflow=f"d{number % 5}")
    return replace(before, changes=(*before.changes, added, QueryChange(number, dropped="more")))


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of texts that are bound from now on."""
    found: list[str] = []
    read = script.read_query

    def counted(sql: str, *rest: Any) -> Any:
        found.append(sql)
        return read(sql, *rest)

    monkeypatch.setattr(deployment, "read_query", counted)
    deployment._placed.clear()
    return found


def test_a_change_binds_only_its_own_query_however_many_there_were_before(
    bound: list[str],
) -> None:
    current = Deployment(STREAMS, {}, (DeployedQuery("first", TEXTS[0], {}),))
    for number in range(50):
        current = changed(current, number)
        current.placed()
        decode_deployment(encode_deployment("run", current)).placed()  # as other processes do
    assert len(bound) == 51
    assert len(deployment._placed) <= 4


def test_queries_are_placed_as_if_no_other_version_was_known(bound: list[str]) -> None:
    first = Deployment(STREAMS, {}, (DeployedQuery("first", TEXTS[0], {}),))
    versions = [first]
    for number in range(8):
        versions.append(changed(versions[-1], number))
    pending = replace(
        first, changes=(QueryChange(0, DeployedQuery("more", TEXTS[1], {}), dataflow="x"),)
    )
    others = [
        pending,
        replace(pending, changes=(replace(pending.changes[0], dataflow="0"),)),
        replace(first, streams=(Stream("A", SCHEMA, "ts", 5), STREAMS[1])),
        replace(first, queries=(DeployedQuery("first", TEXTS[2], {}),)),
    ]
    for version in (*versions, *others, *reversed(versions)):
        known = version.placed()
        deployment._placed.clear()
        assert known == version.placed()
    assert bound
