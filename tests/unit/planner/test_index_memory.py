"""Under ``index_memory`` a query's indexes have as many buckets as fit, where they save most."""

from __future__ import annotations

import re

import pytest

import muntin

QUERY = (
    "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 60 SECONDS "
    "WITH (index_memory = '{}')"
)


def buckets_of(limit: str) -> dict[str, int]:
    """Return the buckets of each index of a query over a slow and two fast streams."""
    e = muntin.Engine()
    for name, rate in (("A", 1), ("B", 50), ("C", 50)):
        e.execute(
            f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP) WITH (rate = {rate}, distinct = 500)"
        )
    e.query(QUERY.format(limit), name="q")
    found = re.findall(r"index on (\w)\.k \((\d+) buckets\)", e.explain("q"))
    return {name: int(count) for name, count in found}


@pytest.mark.parametrize("limit", [40, 400, 4_000])
def test_buckets_stay_within_the_limit_and_go_where_they_save_most(limit: int) -> None:
    found = buckets_of(str(limit))
    assert 0 < 4 * sum(found.values()) <= limit
    assert min(found["B"], found["C"]) > found.get("A", 1)


def test_windows_without_a_bucket_are_scanned() -> None:
    assert buckets_of("4") == {}
