"""The examples give the answers that plain SQL over all rows gives, on generated and on real data.

``MUNTIN_DATA=DIR pytest tests/unit/test_examples_answers.py`` reads real data from
``DIR/sensorscope_gsb`` and ``DIR/flights_2001``.
"""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_DOUBTFUL = """
WITH pairs AS (
  SELECT x.station, y.station AS other, x.ambient_temp - y.ambient_temp AS difference,
    unnest(generate_series(
      time_bucket(
        INTERVAL 10 MINUTES, greatest(x.ts, y.ts) + INTERVAL '9 minutes 59.999999 seconds'),
      least(x.ts, y.ts) + INTERVAL '9 minutes 59.999999 seconds', INTERVAL 10 MINUTES)) AS t
  FROM rows x, rows y
  WHERE x.station <> y.station AND abs(x.ambient_temp - y.ambient_temp) > 10
    AND x.ts < y.ts + INTERVAL 10 MINUTES AND y.ts < x.ts + INTERVAL 10 MINUTES)
SELECT t, station, count(DISTINCT other) AS others, round(avg(difference), 6) AS off
FROM pairs GROUP BY ALL HAVING count(DISTINCT other) >= 5 ORDER BY ALL
"""
_HUBS = """
WITH planned AS (
  SELECT a.destination AS via, a.ts + to_minutes(30 + a.distance // 8) AS arrival,
    a.delay, b.ts AS next
  FROM rows a, rows b
  WHERE a.destination = b.origin AND a.origin <> b.destination
    AND b.ts >= a.ts AND b.ts < a.ts + INTERVAL 10 HOURS)
SELECT time_bucket(INTERVAL 3 HOURS, next + INTERVAL '2 hours 59 minutes 59.999999 seconds') AS t,
  via, count(*) AS planned,
  count(*) FILTER (next < arrival + INTERVAL 30 MINUTES) AS missed
FROM planned
WHERE next BETWEEN arrival - to_minutes(delay) + INTERVAL 30 MINUTES
  AND arrival - to_minutes(delay) + INTERVAL 90 MINUTES
GROUP BY ALL ORDER BY ALL
"""


REAL = os.environ.get("MUNTIN_DATA")
STATIONS = ("disagreeing_stations", "alarms", _DOUBTFUL, ("station", "others", "off"))
FLIGHTS = ("connecting_flights", "board", _HUBS, ("via", "planned", "missed"))
CASES: list[tuple[str, str, str, tuple[str, ...], Path | None]] = [
    (*STATIONS, None),
    (*FLIGHTS, None),
]
if REAL:
    CASES += [(*STATIONS, Path(REAL) / "sensorscope_gsb"), (*FLIGHTS, Path(REAL) / "flights_2001")]


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / name / f"{name}.py"))


def by_duckdb(sql: str, rows: pa.Table) -> list[tuple[Any, ...]]:
    connection = duckdb.connect(config={"threads": 1})
    connection.register("rows", rows)
    return connection.execute(sql).fetchall()


@pytest.mark.parametrize(("name", "ask", "sql", "columns", "folder"), CASES)
def test_an_answer_is_that_of_plain_sql(
    name: str, ask: str, sql: str, columns: tuple[str, ...], folder: Path | None
) -> None:
    functions = example(name)
    rows = functions["read"](folder) if folder else functions["generate"]()
    assert len(rows) > 10_000
    found = functions[ask](rows).to_pylist()
    ours = sorted(
        (
            row["_ts"],
            *(round(row[column], 6) if column == "off" else row[column] for column in columns),
        )
        for row in found
    )
    assert ours == by_duckdb(sql, rows)
    assert len(ours) > 20


def test_generated_rows_are_the_same_every_time() -> None:
    for name in ("disagreeing_stations", "connecting_flights"):
        assert example(name)["generate"]().equals(example(name)["generate"]())
