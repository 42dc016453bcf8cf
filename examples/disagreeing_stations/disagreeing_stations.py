"""Find weather stations that are wrong because they disagree with their neighbors."""

from __future__ import annotations

import argparse
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import muntin

SCRIPT = Path(__file__).with_name("stations.sql")
COLUMNS = ("ts", "station", "ambient_temp")
STATIONS = 12
DAYS = 3
STEP = 120
"""Seconds between two readings of a station."""
START = 1_189_641_600
"""Seconds: midnight of 13 September 2007."""
ASKED = timedelta(minutes=10)
"""The query emits results once per interval."""
PAUSE = timedelta(minutes=30)
"""Alarms of a station that are closer together than this are one case."""
BATCH = 2_000
OFTEN = 0.05
"""Stations that are doubtful for more than this fraction of the time are not trusted."""


def generate() -> pa.Table:
    """Return three days of twelve stations.

    Two of them fail for some hours, and a few readings are missing.
    """
    random = np.random.default_rng(2007)
    times = START + np.arange(0, DAYS * 86_400, STEP)
    parts = []
    for station in range(1, STATIONS + 1):
        seconds = times + random.integers(0, 30, len(times))
        hours = (seconds - START) / 3_600
        degrees = (
            4
            + 5 * np.sin((hours - 9) / 24 * 2 * np.pi)
            + random.normal(0, 1.2)
            + random.normal(0, 0.3, len(times))
        )
        if station == 7:  # its sensor breaks on the second day
            degrees = np.where(
                (hours >= 34) & (hours < 40), 60 + random.normal(0, 2, len(times)), degrees
            )
        if station == 11:  # its sensor drifts in the night after
            degrees = degrees - np.clip((hours - 50) * 4, 0, 30) * (hours < 62)
        missing = random.random(len(times)) < 0.01
        parts.append(
            pa.table(
                {
                    "ts": pa.array(seconds * 1_000_000).cast(pa.timestamp("us")),
                    "station": pa.array(np.full(len(times), station, np.int16)),
                    "ambient_temp": pa.array(np.round(degrees, 2), mask=missing),
                }
            )
        )
    return pa.concat_tables(parts).sort_by([("ts", "ascending"), ("station", "ascending")])


def read(path: Path) -> pa.Table:
    """Return the readings of a file of SensorScope, or of the folder that contains it."""
    return pq.read_table(
        path / "readings.parquet" if path.is_dir() else path, columns=list(COLUMNS)
    )


def alarms(readings: pa.Table) -> pa.Table:
    """Return the doubtful stations every ten minutes.

    Each row has the number of other stations that disagree, and the mean difference.
    """
    engine = muntin.Engine()
    (doubtful,) = engine.execute(SCRIPT.read_text(encoding="utf-8"))
    found = []
    for start in range(0, len(readings), BATCH):
        engine.push("Readings", readings.slice(start, BATCH))
        found.append(doubtful.poll())
    engine.advance(pc.max(readings.column("ts")).as_py() + timedelta(minutes=20))
    return pa.concat_tables([*found, doubtful.poll()])


def cases(found: pa.Table) -> list[dict[str, object]]:
    """Return the alarms with consecutive alarms of a station merged."""
    open_cases: dict[int, dict[str, object]] = {}
    closed = []
    for row in found.sort_by("_ts").to_pylist():
        case = open_cases.get(row["station"])
        if case is None or row["_ts"] - case["end"] > PAUSE:
            case = {"station": row["station"], "begin": row["_ts"], "others": 0, "off": 0.0}
            open_cases[row["station"]] = case
            closed.append(case)
        case["end"] = row["_ts"]
        case["others"] = max(case["others"], row["others"])
        case["off"] = max(case["off"], row["off"], key=abs)
    return closed


def hours_doubtful(found: list[dict[str, object]]) -> dict[int, float]:
    """Return how long each station was doubtful, longest first.

    An alarm counts until the next interval of the query.
    """
    hours: dict[int, float] = {}
    for case in found:
        spent = (case["end"] - case["begin"] + ASKED).total_seconds() / 3_600
        hours[case["station"]] = hours.get(case["station"], 0.0) + spent
    return dict(sorted(hours.items(), key=lambda item: -item[1]))


def main() -> None:
    """Read or generate the readings, run the query, print which stations not to trust."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "readings",
        nargs="?",
        type=Path,
        help="a parquet file like SensorScope's, or its folder; by default data is generated",
    )
    options.add_argument(
        "--write", type=Path, metavar="FOLDER", help="only write the data there, for muntin run"
    )
    chosen = options.parse_args()
    readings = read(chosen.readings) if chosen.readings else generate()
    if chosen.write:
        chosen.write.mkdir(parents=True, exist_ok=True)
        pq.write_table(readings, chosen.write / "readings.parquet")
        return
    stations = pc.count_distinct(readings.column("station")).as_py()
    print(f"{len(readings)} readings of {stations} stations")
    found = cases(alarms(readings))
    longest = sorted(found, key=lambda case: case["end"] - case["begin"], reverse=True)[:10]
    for case in longest:
        spent = (case["end"] - case["begin"]).total_seconds() / 3_600
        print(
            f"station {case['station']}: {case['begin']:%d %b %H:%M} for {spent:.1f} h, "
            f"against up to {case['others']} others, off by up to {case['off']:.0f} degrees"
        )
    hours = hours_doubtful(found)
    first, last = (bound(readings.column("ts")).as_py() for bound in (pc.min, pc.max))
    total = (last - first).total_seconds() / 3_600
    worst = [
        f"{station} ({spent:.1f} h)" for station, spent in hours.items() if spent > OFTEN * total
    ]
    print(
        f"do not trust, of {total:.0f} hours doubtful for more than {OFTEN:.0%}: "
        f"{', '.join(worst) or 'none'}"
    )
    if len(hours) > len(worst):
        print(f"doubtful at times: {len(hours) - len(worst)} others")


if __name__ == "__main__":
    main()
