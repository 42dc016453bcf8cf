from __future__ import annotations

import numpy as np
import pyarrow as pa

from muntin.testing.generators import (
    TEMPERATURE,
    Sensors,
    exponential_arrivals,
    multi_join_streams,
    sensor_stream,
    uniform_stream,
)

SECOND = 1_000_000


def times(table: pa.Table) -> list[int]:
    values: list[int] = table.column("ts").cast(pa.int64()).to_pylist()
    return values


def test_uniform_keys_at_a_rate() -> None:
    stream = uniform_stream(1000, rate=10, keys=4, seed=1, start=5 * SECOND)
    assert stream.schema == pa.schema(
        [("k", pa.int64()), ("v", pa.float64()), ("ts", pa.timestamp("us"))]
    )
    assert times(stream)[:3] == [5_000_000, 5_100_000, 5_200_000]
    assert times(stream)[-1] == 104_900_000
    assert set(stream.column("k").to_pylist()) == {0, 1, 2, 3}


def test_exponential_gaps_keep_the_rate_on_average() -> None:
    gaps = np.diff(
        times(exponential_arrivals(uniform_stream(10_000, 1, keys=4, seed=1), rate=10, seed=2))
    )
    assert gaps.min() >= 0
    assert 95_000 < gaps.mean() < 105_000
    assert 90_000 < gaps.std() < 110_000


def test_a_seed_is_a_stream() -> None:
    assert uniform_stream(10, rate=1, keys=99, seed=1) == uniform_stream(
        10, rate=1, keys=99, seed=1
    )
    assert uniform_stream(10, rate=1, keys=99, seed=1) != uniform_stream(
        10, rate=1, keys=99, seed=2
    )


def test_sensors() -> None:
    stream = sensor_stream(1000, rate=100, sensors=Sensors(5, mean=25, spread=8), seed=1)
    assert stream.schema == pa.schema(
        [("LocationId", pa.int32()), ("Value", pa.float64()), ("ts", pa.timestamp("us"))]
    )
    assert set(stream.column("LocationId").to_pylist()) == {1, 2, 3, 4, 5}
    assert 15 < np.mean(stream.column("Value").to_numpy()) < 35


def test_the_streams_of_golab03() -> None:
    streams = multi_join_streams(6000, rates=[1, 1, 4], distinct=[2, 3, 50], seed=1)
    assert sorted(time for stream in streams for time in times(stream)) == [
        tick * SECOND for tick in range(6000)
    ]
    assert [round(stream.num_rows / 1000) for stream in streams] == [1, 1, 4]
    assert [set(stream.column("attr").to_pylist()) for stream in streams] == [
        set(range(1, count + 1)) for count in (2, 3, 50)
    ]


def test_no_rows() -> None:
    assert uniform_stream(0, rate=1, keys=1, seed=1).num_rows == 0
    assert sensor_stream(0, rate=1, sensors=TEMPERATURE, seed=1).num_rows == 0
