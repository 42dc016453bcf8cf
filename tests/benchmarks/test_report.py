"""Reports: claims with two sides, JSON, and what the join benchmark compares."""

from __future__ import annotations

import json
from math import isnan

import pyarrow as pa
import pytest

import muntin
from benchmarks.join import checksum, run_duckdb, run_muntin
from benchmarks.report import Claim, Report, resident_bytes, spread
from muntin.testing.generators import uniform_stream


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        (Claim("time", 1.3, 1.3), True),
        (Claim("time", 1.31, 1.3), False),
        (Claim("time", float("nan"), 1.3), False),
        (Claim("rate", float("nan"), 2, "at least"), False),
        (Claim("rate", 2, 2, "at least"), True),
        (Claim("rate", 1.99, 2, "at least"), False),
    ],
)
def test_a_claim_holds_up_to_its_bound(claim: Claim, holds: bool) -> None:  # noqa: FBT001
    assert claim.holds is holds
    document = json.loads(Report("name", "Why?", [{"figure": 1}], [claim]).to_json())
    assert document["rows"] == [{"figure": 1}]
    assert document["machine"]["muntin"] == muntin.__version__
    if isnan(claim.measured):
        return
    assert document["claims"] == [
        {
            "claim": claim.text,
            "measured": claim.measured,
            "side": claim.side,
            "bound": claim.bound,
            "holds": holds,
        },
    ]


def test_spread_is_median_and_extremes() -> None:
    assert spread([3.0, 1.0, 2.0, 10.0]) == {"seconds": 2.5, "least": 1.0, "most": 10.0}


def test_memory_in_use_is_measured() -> None:
    before = resident_bytes()
    block = bytearray(b"x" * 200_000_000)
    assert resident_bytes() - before > 100_000_000
    assert len(block) == 200_000_000


@pytest.mark.parametrize("keys", [50, 5_000])
def test_the_two_systems_of_the_join_benchmark_agree(keys: int) -> None:
    a, b = (uniform_stream(3_000, 100, keys, seed) for seed in (1, 2))
    _, ours, _ = run_muntin(a, b, window=60)
    _, theirs = run_duckdb(a, b)
    assert checksum(ours) == checksum(theirs)
    assert len(ours) > 0


def test_a_missing_result_changes_the_checksum() -> None:
    table = pa.table({"k": [1, 2], "av": [0.5, 0.25], "bv": [1.0, 2.0]})
    assert checksum(table) == (2, 3, 3.75)
    assert checksum(table.slice(1)) != checksum(table)
    assert checksum(table.slice(2)) == (0, 0, 0.0)
