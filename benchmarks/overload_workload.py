"""Streams for ``python -m benchmarks overload``: four Poisson streams, and the Intel lab's sensors.

The selectivities of the Poisson streams change at given seconds.

The four streams are joined along a chain: A and B by one column, B and C by another, C and D by a
third. A value is drawn from 1/s values, so a join lets a share s of all pairs through, and each
join has its own. Both trees have one of these joins at each node.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SECOND = 1_000_000
TREES = {"linear": "(((A, B), C), D)", "bushy": "((A, B), (C, D))"}
LAB_TREE = "(((A, B), (C, D)), E)"
LAB_FOLDER = Path(os.environ.get("MUNTIN_INTEL_LAB", "../shared/data/intel_lab"))
"""Where the readings are, if they are; see the README of the benchmarks."""
LAB_GROUPS = {"A": (1, 33), "B": (34, 23), "C": (4, 6), "D": (19, 22), "E": (45,)}
"""Motes that are near to each other."""
_STEPS = {"humidity": 0.05, "voltage": 1e-5}
"""Steps to which readings are rounded before they are compared.

Neighbors rarely agree on humidity to the last digit; voltage has a dozen values.
"""

Phases = Sequence[tuple[int, tuple[float, float, float]]]


@dataclass(frozen=True)
class Chain:
    """Four Poisson streams: rates, window sizes, and selectivities of the three joins over time."""

    seconds: int
    phases: Phases
    rates: tuple[float, float, float, float] = (100.0, 100.0, 100.0, 100.0)
    windows: tuple[int, int, int, int] = (100, 100, 100, 100)
    seed: int = 1

    @cached_property
    def streams(self) -> Mapping[str, pa.Table]:
        """Columns ``p`` and ``n`` join a stream with the one before and the one after it."""
        random = np.random.default_rng(self.seed)
        found = {}
        for place, (name, rate) in enumerate(zip("ABCD", self.rates, strict=True)):
            count = random.poisson(rate * self.seconds)
            times = np.sort(random.integers(0, self.seconds * SECOND, count))
            found[name] = pa.table(
                {
                    "p": self._keys(random, times, place - 1),
                    "n": self._keys(random, times, place),
                    "ts": pa.array(times).cast(pa.timestamp("us")),
                }
            )
        return found

    def _keys(self, random: np.random.Generator, times: np.ndarray, join: int) -> np.ndarray:
        values = np.ones(len(times), np.int64)
        if 0 <= join < 3:
            for start, selectivities in self.phases:
                values[times >= start * SECOND] = round(1 / selectivities[join])
        return random.integers(0, values)

    def query(self, freshness: float) -> str:
        """Return the join, with windows and freshness in rows."""
        sources = ", ".join(
            f"{name} [ROWS {window}]" for name, window in zip("ABCD", self.windows, strict=True)
        )
        fresh = ", ".join(
            f"{name} {round(freshness * window)} ROWS"
            for name, window in zip("ABCD", self.windows, strict=True)
        )
        return (
            f"SELECT A.ts AS a FROM {sources} WHERE A.n = B.p AND B.n = C.p AND C.n = D.p "
            f"FRESHNESS {fresh}"
        )


@dataclass(frozen=True)
class Lab:
    """Readings of five groups of sensors: some rows of one week, sped up to a given rate.

    They are joined by equal humidity, in steps of 0.05 %, or by epoch. By epoch a reading matches
    those of the same 31 s only, so what a probe finds depends on what has come just now, and not on
    how many rows a state holds, as the models assume.
    """

    rows: int
    by: str = "humidity"
    rate: float = 400.0
    window: int = 1_000

    @property
    def windows(self) -> tuple[int, ...]:
        """The rows of each window."""
        return (self.window,) * len(LAB_GROUPS)

    @property
    def real(self) -> bool:
        """Whether the readings are there."""
        return (LAB_FOLDER / "readings_clean.parquet").exists()

    @cached_property
    def streams(self) -> Mapping[str, pa.Table]:
        """The column of the join and ``ts``."""
        readings = _read_lab(self.rows) if self.real else _made_up_lab(self.rows)
        times = readings.column("ts").cast(pa.int64()).to_numpy()
        span = max(int(times[-1] - times[0]), 1)
        moved = ((times - times[0]) * (len(times) / self.rate * SECOND / span)).astype(np.int64)
        readings = readings.set_column(
            readings.schema.get_field_index("ts"), "ts", pa.array(moved).cast(pa.timestamp("us"))
        )
        kind = readings.schema.field("moteid").type
        chosen = {
            name: pc.is_in(readings.column("moteid"), pa.array(motes, kind))
            for name, motes in LAB_GROUPS.items()
        }
        return {
            name: readings.filter(mask).select([self.by, "ts"]) for name, mask in chosen.items()
        }

    def query(self, freshness: float) -> str:
        """Return the join of all groups."""
        sources = ", ".join(f"{name} [ROWS {self.window}]" for name in LAB_GROUPS)
        fresh = ", ".join(f"{name} {round(freshness * self.window)} ROWS" for name in LAB_GROUPS)
        equal = " AND ".join(f"A.{self.by} = {name}.{self.by}" for name in "BCDE")
        return f"SELECT A.ts AS a FROM {sources} WHERE {equal} FRESHNESS {fresh}"


def _read_lab(rows: int) -> pa.Table:
    """Return the first rows of a week in which all motes worked, with what is plausible only."""
    table = pq.read_table(
        LAB_FOLDER / "readings_clean.parquet",
        columns=["ts", "epoch", "humidity", "voltage", "moteid", "plausible"],
    )
    begin = pa.scalar(np.datetime64("2004-03-01T00:00:00", "us").astype(np.int64), pa.int64()).cast(
        pa.timestamp("us")
    )
    table = table.filter(
        pc.and_(table.column("plausible"), pc.greater_equal(table.column("ts"), begin))
    )
    table = table.slice(0, rows).combine_chunks()
    for name, step in _STEPS.items():
        values = np.round(table.column(name).to_numpy() / step).astype(np.int64)
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(values))
    return table


def _made_up_lab(rows: int) -> pa.Table:
    """Return synthetic readings: random motes, each with a slowly moving humidity."""
    random = np.random.default_rng(1)
    motes = np.array([mote for group in LAB_GROUPS.values() for mote in group], np.int16)
    place = random.integers(0, len(motes), rows)
    times = np.cumsum(random.exponential(6 * SECOND, rows)).astype(np.int64)
    humidity = (
        38
        + 0.8 * place
        + 4 * np.sin(2 * np.pi * times / (86_400 * SECOND))
        + random.normal(0, 1.0, rows)
    )
    epoch = (times // (31 * SECOND)).astype(np.int32)
    voltage = 2.6 + 0.012 * (place % 3) + 0.012 * random.integers(0, 8, rows)
    steps = {"humidity": humidity, "voltage": voltage}
    columns = {
        "ts": pa.array(times).cast(pa.timestamp("us")),
        "moteid": motes[place],
        "epoch": epoch,
    }
    return pa.table(
        columns
        | {name: np.round(values / _STEPS[name]).astype(np.int64) for name, values in steps.items()}
    )
