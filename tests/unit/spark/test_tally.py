"""Counts of buckets add up to those of the run; every row counts once, whichever ways it goes."""

from __future__ import annotations

import json

import pyarrow as pa

from muntin.model.catalog import Stream
from muntin.spark.messages import Part, Share
from muntin.spark.packing import Packer
from muntin.spark.program import Program, Registered
from muntin.spark.rebuilding import KeptBucket
from muntin.spark.tally import Stats, Tally

SCHEMA = pa.schema([("k", pa.int64()), ("j", pa.int64()), ("ts", pa.timestamp("us"))])


def test_rows_count_once_under_several_schemes() -> None:
    """By k, by j, and everywhere because of a window that counts rows: three ways for stream A."""
    queries = (
        "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND",
        "SELECT A.k FROM A, B WHERE A.j = B.j WINDOW 1 SECOND",
        "SELECT A.k FROM A [ROWS 3], B [ROWS 3] WHERE A.k = B.k",
    )
    streams = (Stream("A", SCHEMA, "ts", 0), Stream("B", SCHEMA, "ts", 0))
    program = Program(streams, {}, tuple(Registered(f"q{n}", sql, {}) for n, sql in enumerate(queries)), (), 3)
    rows = {
        "A": pa.table({"k": [1, 2, 3, None, 5], "j": [9, 9, None, 9, 9], "ts": [1, 2, 3, 4, 5]}).cast(SCHEMA),
        "B": pa.table({"k": [1, 2], "j": [9, 9], "ts": [1, 7]}).cast(SCHEMA),
    }
    parts: list[list[Part]] = [[], [], []]
    for stream, table in rows.items():
        for bucket, part in Packer(program, stream).pack(table, 0):
            parts[bucket].append(part)
    share = [Share(0, 0, {"A": 5, "B": 7}, tuple(own)) for own in parts]
    buckets = [KeptBucket(program, number) for number in range(3)]
    told = [bucket.apply(share[number]).stats for number, bucket in enumerate(buckets)]
    tally = Tally()
    tally.add(0, [json.loads(stats.to_blob()) for stats in told], {}, {})
    assert tally.rows_in == {"A": 5, "B": 2}
    assert {stats.final for stats in told} == {5}
    assert tally.rows_held == sum(bucket.rows() for bucket in buckets)
    assert tally.told(["A", "B"], {"q0": "Q0"})["watermark"] == "1970-01-01 00:00:00.000005"
    assert buckets[0].apply(Share(1, 0, {}, (), 9)).stats == Stats({}, buckets[0].rows(), 9), "time moves on without rows"


def test_counts_go_on_and_what_is_held_is_the_latest_and_a_batch_that_comes_again_counts_once() -> None:
    tally = Tally()
    assert tally.told(["A"], {}) == {"streams": {"A": {"rows": 0, "late": 0}}, "results": {}, "rows_held": 0, "watermark": None}
    for batch, rows, held, final in ((5, 3, 30, 1_000_000), (6, 4, 20, 2_500_000), (6, 4, 20, 2_500_000)):
        tally.add(batch, [json.loads(Stats({"A": rows}, held, final).to_blob())] * 2, {"q": rows}, {"A": 1})
    tally.add(7, [], {}, {})
    assert tally.told(["A"], {"q": "Q"}) == {
        "streams": {"A": {"rows": 14, "late": 2}},
        "results": {"Q": 7},
        "rows_held": 40,
        "watermark": "1970-01-01 00:00:02.500000",
    }


def test_times_before_1970_are_told() -> None:
    tally = Tally()
    tally.add(0, [{"rows_in": {}, "rows_held": 0, "final": -1}], {}, {})
    assert tally.told([], {})["watermark"] == "1969-12-31 23:59:59.999999"
