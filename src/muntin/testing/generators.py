"""Synthetic streams for benchmarks, examples and tests, reproducible from a seed.

Times start at ``start`` (microseconds since 1970, default 0) and never go backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from muntin.model.clock import SECOND

Micros: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"


@dataclass(frozen=True)
class Sensors:
    """Sensors at ``locations`` places, with values around ``mean``, within about ``spread``."""

    locations: int
    mean: float
    spread: float


TEMPERATURE = Sensors(20, 24.0, 9.0)
HUMIDITY = Sensors(20, 65.0, 25.0)


def uniform_stream(rows: int, rate: float, keys: int, seed: int, *, start: int = 0) -> pa.Table:
    """Return a stream with uniform keys.

    The columns are ``k`` BIGINT from 0 to ``keys - 1``, ``v`` DOUBLE from 0 to 1, and ``ts``.

    Parameters
    ----------
    rows : int
        How many rows.
    rate : float
        Rows per second, evenly spaced.
    keys : int
        How many distinct keys.
    seed : int
        Another seed, another stream.
    start : int
        Time of the first row, in microseconds.

    Examples
    --------
    >>> uniform_stream(3, rate=2, keys=1, seed=1).column("ts").cast("int64").to_pylist()
    [0, 500000, 1000000]
    """
    random = np.random.default_rng(seed)
    times = start + (np.arange(rows, dtype=np.float64) * (SECOND / rate)).astype(np.int64)
    return pa.table(
        {"k": random.integers(0, keys, rows), "v": random.random(rows), "ts": _timestamps(times)}
    )


def exponential_arrivals(stream: pa.Table, rate: float, seed: int, *, start: int = 0) -> pa.Table:
    """Return the stream with exponentially distributed gaps [Hammad03, section 5].

    It has ``rate`` rows per second on average.

    Parameters
    ----------
    stream : pa.Table
        Any table with a column ``ts``.
    rate : float
        Rows per second on average.
    seed : int
        Another seed, other times.
    start : int
        Time of the first row, in microseconds.

    Examples
    --------
    >>> exponential_arrivals(uniform_stream(100, 1, 5, 1), rate=1000, seed=2).num_rows
    100
    """
    gaps = np.random.default_rng(seed).exponential(SECOND / rate, stream.num_rows)
    gaps[:1] = 0
    place = stream.schema.get_field_index("ts")
    return stream.set_column(place, "ts", _timestamps(start + np.cumsum(gaps).astype(np.int64)))


def sensor_stream(
    rows: int, rate: float, sensors: Sensors, seed: int, *, start: int = 0
) -> pa.Table:
    """Return readings of sensors: ``LocationId`` INT from 1 on, ``Value`` DOUBLE, ``ts``.

    Every location has its own level, which swings slowly (two minutes to and fro); readings scatter
    around it.

    Parameters
    ----------
    rows : int
        How many readings, over all locations.
    rate : float
        Readings per second, evenly spaced; each comes from any location.
    sensors : Sensors
        How many there are and where their values lie, e.g. :data:`TEMPERATURE`.
    seed : int
        Another seed, another stream.
    start : int
        Time of the first reading, in microseconds.

    Examples
    --------
    >>> sensor_stream(10, rate=1, sensors=TEMPERATURE, seed=1).column_names
    ['LocationId', 'Value', 'ts']
    """
    random = np.random.default_rng(seed)
    times = start + (np.arange(rows, dtype=np.float64) * (SECOND / rate)).astype(np.int64)
    location = random.integers(1, sensors.locations + 1, rows).astype(np.int32)
    level = random.normal(0, sensors.spread / 3, sensors.locations + 1)[location]
    phase = random.uniform(0, 2 * np.pi, sensors.locations + 1)[location]
    swing = sensors.spread / 3 * np.sin((times - start) / (120 * SECOND) * 2 * np.pi + phase)
    values = np.round(sensors.mean + level + swing + random.normal(0, sensors.spread / 10, rows), 2)
    return pa.table({"LocationId": location, "Value": values, "ts": _timestamps(times)})


def multi_join_streams(
    rows: int, *, rates: Sequence[float], distinct: Sequence[int], seed: int, unit: int = SECOND
) -> list[pa.Table]:
    """Return the streams of [Golab03, section 6], with one row per tick.

    The row is of stream ``i`` with probability ``rates[i] / sum(rates)``.

    Parameters
    ----------
    rows : int
        How many rows, over all streams.
    rates : Sequence[float]
        Relative rates of the streams.
    distinct : Sequence[int]
        For each stream how many values ``attr`` takes: 1 to that number, all equally likely.
    seed : int
        Another seed, other streams.
    unit : int
        Microseconds of a tick; row number ``t`` of them all has time ``t`` ticks.

    Returns
    -------
    list[pa.Table]
        For each stream ``attr`` BIGINT and ``ts``.

    Examples
    --------
    >>> streams = multi_join_streams(100, rates=[1, 1, 10], distinct=[5, 5, 5], seed=1)
    >>> sum(stream.num_rows for stream in streams)
    100
    """
    random = np.random.default_rng(seed)
    stream = random.choice(len(rates), size=rows, p=np.asarray(rates, dtype=float) / sum(rates))
    values = random.integers(1, np.asarray(distinct)[stream] + 1)
    times = np.arange(rows, dtype=np.int64) * unit
    return [
        pa.table({"attr": values[stream == place], "ts": _timestamps(times[stream == place])})
        for place in range(len(rates))
    ]


def _timestamps(times: Micros) -> pa.Array:
    return pa.array(times.view("datetime64[us]"))
