"""Matches that limited joins have made follow their rows to other partitions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin.model.catalog import Stream
from muntin.spark.exchange.deployment import DeployedQuery, Deployment
from muntin.spark.partition.moved_matches import ELSEWHERE, RowMoves, moved_matches

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
SQL = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 2 SECONDS EMIT CHANGES"


def moves(owners: list[int], order: list[int], counts: list[int]) -> RowMoves:
    return RowMoves.to_owners(np.array(owners), np.array(order), counts, 2)


def test_a_row_has_a_place_in_its_new_partition_only() -> None:
    found = moves([0, 1, 1, 0, 1], [3, 0, 4, 1, 2], [2, 3])
    assert found.of(np.array([0, 1]), old=0, new=0).tolist() == [1, ELSEWHERE]
    assert found.of(np.array([0, 1]), old=0, new=1).tolist() == [ELSEWHERE, 1]
    assert found.of(np.array([0, 1, 2]), old=1, new=1).tolist() == [2, ELSEWHERE, 0]


def test_rows_that_are_everywhere_keep_their_places() -> None:
    assert RowMoves().of(np.array([4, 2]), old=1, new=0).tolist() == [4, 2]


def test_a_match_goes_where_all_its_rows_are() -> None:
    streams = tuple(Stream(name, SCHEMA, "ts", 0) for name in "AB")
    deployment = Deployment(streams, {}, (DeployedQuery("q", SQL, {}),), (), 2)
    own = moves([0, 1, 1], [0, 1, 2], [2, 1])
    made = [{"q": np.array([[0, 1], [5, 6]])}, {"q": np.array([[0], [5]])}]
    first, second = moved_matches(made, deployment, {("0", "A"): own, ("0", "B"): RowMoves()})
    assert first["q"].tolist() == [[0], [5]]
    assert second["q"].tolist() == [[0, 1], [6, 5]]
