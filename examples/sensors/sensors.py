"""Find places that are warm and humid within ten seconds: two streams, one join."""

from __future__ import annotations

import muntin
from muntin.model.clock import parse_instant
from muntin.testing.generators import HUMIDITY, TEMPERATURE, sensor_stream

SCRIPT = """
CREATE STREAM Temperature (LocationId INT, Value DOUBLE, ts TIMESTAMP);
CREATE STREAM Humidity (LocationId INT, Value DOUBLE, ts TIMESTAMP);

CREATE QUERY muggy AS
  SELECT T.LocationId, T.Value AS temperature, H.Value AS humidity
  FROM Temperature T, Humidity H
  WHERE T.LocationId = H.LocationId AND T.Value > 28 AND H.Value > 83
  WINDOW 10 SECONDS;
"""
RATE = 20
SECONDS = 60
NOON = parse_instant("2026-01-01 12:00:00")


def main() -> None:
    """Push second by second, like a program that reads sensors."""
    engine = muntin.Engine()
    (muggy,) = engine.execute(SCRIPT)
    temperature = sensor_stream(RATE * SECONDS, RATE, TEMPERATURE, seed=1, start=NOON)
    humidity = sensor_stream(RATE * SECONDS, RATE, HUMIDITY, seed=2, start=NOON)
    total = 0
    for second in range(SECONDS):
        engine.push("Temperature", temperature.slice(second * RATE, RATE))
        engine.push("Humidity", humidity.slice(second * RATE, RATE))
        engine.advance(NOON + (second + 1) * 1_000_000 - 1)
        results = muggy.poll()
        total += results.num_rows
        for row in results.slice(0, 1 if second % 5 == 0 else 0).to_pylist():
            print(
                f"{row['_ts']:%H:%M:%S}  place {row['LocationId']}: "
                f"{row['temperature']} degrees, {row['humidity']} %"
            )
    print(f"{muggy.stats()['rows_in']} readings, {total} results")


if __name__ == "__main__":
    main()
