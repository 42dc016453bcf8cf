"""Find where people miss their next flight: late arrivals joined with connecting departures."""

from __future__ import annotations

import argparse
from collections import Counter
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import muntin

SCRIPT = Path(__file__).with_name("connections.sql")
AIRPORTS = ("ATL", "DEN", "DFW", "EWR", "LAX", "MSP", "ORD", "PHX")
SHARES = (0.18, 0.1, 0.17, 0.08, 0.14, 0.07, 0.19, 0.07)
START = 983_750_400
"""Seconds: midnight of 5 March 2001."""
DAYS = 3
A_DAY = 4_000
ENOUGH = 500
"""Airports with fewer connections are not compared."""


def generate() -> pa.Table:
    """Return three days of departures between eight airports.

    Flights to ORD are late in the evening, flights to EWR all day.
    """
    random = np.random.default_rng(2001)
    rows = DAYS * A_DAY
    minute = np.clip(random.normal(14 * 60, 4 * 60, rows), 5 * 60, 24 * 60 - 1).astype(np.int64)
    times = np.sort((np.arange(rows) // A_DAY) * 1_440 + minute)
    origin = random.choice(len(AIRPORTS), rows, p=SHARES)
    destination = (origin + random.integers(1, len(AIRPORTS), rows)) % len(AIRPORTS)
    between = random.integers(250, 2_000, (len(AIRPORTS), len(AIRPORTS)))
    distance = np.minimum(between, between.T)[origin, destination]
    delay = random.gamma(1.5, 12, rows) - 15
    delay += np.where(
        (destination == AIRPORTS.index("ORD")) & (times % 1_440 >= 18 * 60),
        random.exponential(45, rows),
        0,
    )
    delay += np.where(destination == AIRPORTS.index("EWR"), random.exponential(20, rows), 0)
    names = np.array(AIRPORTS)
    return pa.table(
        {
            "ts": pa.array((START + times * 60) * 1_000_000).cast(pa.timestamp("us")),
            "origin": names[origin],
            "destination": names[destination],
            "delay": pa.array(delay.astype(np.int16)),
            "distance": pa.array(distance.astype(np.int16)),
        }
    )


def read(path: Path, days: int = 7) -> pa.Table:
    """Return the first days of a file of US on-time statistics, or of the one in a folder."""
    flights = pq.read_table(path / "flights.parquet" if path.is_dir() else path)
    last = pc.min(flights.column("ts")).as_py() + timedelta(days=days)
    return flights.filter(pc.less(flights.column("ts"), pa.scalar(last)))


def board(flights: pa.Table) -> pa.Table:
    """Return the planned and missed connections of each airport, every three hours."""
    engine = muntin.Engine()
    (hubs,) = engine.execute(SCRIPT.read_text(encoding="utf-8"))
    found = []
    for start in range(0, len(flights), A_DAY):
        engine.push("Flights", flights.slice(start, A_DAY))
        found.append(hubs.poll())
    engine.advance(pc.max(flights.column("ts")).as_py() + timedelta(hours=3))
    return pa.concat_tables([*found, hubs.poll()])


def main() -> None:
    """Read or generate the flights, run the query, print where to change planes."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "flights",
        nargs="?",
        type=Path,
        help="a parquet file of US departures, or its folder; by default data is generated",
    )
    options.add_argument("--days", type=int, default=7, help="how many days of the file are used")
    options.add_argument(
        "--write", type=Path, metavar="FOLDER", help="only write the data there, for muntin run"
    )
    chosen = options.parse_args()
    flights = read(chosen.flights, chosen.days) if chosen.flights else generate()
    if chosen.write:
        chosen.write.mkdir(parents=True, exist_ok=True)
        pq.write_table(flights, chosen.write / "flights.parquet")
        return
    rows = board(flights).to_pylist()
    planned, missed = Counter[str](), Counter[str]()
    for row in rows:
        planned[row["via"]] += row["planned"]
        missed[row["via"]] += int(row["missed"])
    print(f"{len(flights)} flights, {planned.total()} connections planned, {missed.total()} missed")
    share = {via: missed[via] / count for via, count in planned.items() if count >= ENOUGH}
    ranked = sorted(share, key=lambda via: share[via])
    for via in (*ranked[:3], *ranked[-3:]):
        print(f"{via}: {100 * share[via]:.1f} % of {planned[via]} connections missed")
    worst = max(
        (row for row in rows if row["planned"] >= ENOUGH),
        key=lambda row: (row["missed"] / row["planned"], row["via"]),
    )
    begin = worst["_ts"] - timedelta(hours=3)
    print(
        f"worst of all: {worst['via']}, {begin:%d %b %H:%M} to {worst['_ts']:%H:%M}, "
        f"{worst['missed']} of {worst['planned']} missed"
    )
    print(f"change planes at {ranked[0]}, not at {ranked[-1]}")


if __name__ == "__main__":
    main()
