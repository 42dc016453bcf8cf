"""Find connecting flights: a departure to an airport, and one from there within an hour."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import muntin

AIRPORTS = ("ATL", "DEN", "LAS", "MCI", "PHL", "SAV")
START = datetime.fromisoformat("2001-01-01 06:00:00")
FLIGHTS = 600
HOUR = 30
"""Departures per hour."""


def departures() -> list[tuple[str, str, int, datetime]]:
    """Return generated departures: origin, destination, flying time in minutes, departure time."""
    chance = random.Random(2001)  # noqa: S311 (generated flights guard nothing)
    rows = []
    for number in range(FLIGHTS):
        origin = int(chance.random() * len(AIRPORTS))
        destination = (origin + 1 + int(chance.random() * (len(AIRPORTS) - 1))) % len(AIRPORTS)
        minutes = 40 + int(chance.random() * 120)
        rows.append(
            (
                AIRPORTS[origin],
                AIRPORTS[destination],
                minutes,
                START + timedelta(minutes=2 * number),
            )
        )
    return rows


def main() -> None:
    """Join the stream with itself: the same rows under two names, each with its own window."""
    engine = muntin.Engine()
    engine.stream(
        "Departures",
        {"origin": "varchar", "destination": "varchar", "minutes": "int", "ts": "timestamp"},
    )
    connections = engine.query("""
        SELECT A.origin, A.destination AS via, B.destination, A.ts AS first, B.ts AS second
        FROM Departures A [RANGE 4 HOURS], Departures B [RANGE 1 SECOND]
        WHERE A.destination = B.origin
          AND A.origin <> B.destination
          AND B.ts BETWEEN A.ts + to_minutes(A.minutes + 20) AND A.ts + to_minutes(A.minutes + 80)
    """)
    rows = departures()
    for start in range(0, FLIGHTS, HOUR):
        engine.push("Departures", rows[start : start + HOUR])
    found = connections.poll().to_pylist()
    for row in found[:3]:
        print(
            f"{row['origin']} {row['first']:%H:%M} > {row['via']} {row['second']:%H:%M} > "
            f"{row['destination']}"
        )
    print(f"{FLIGHTS} departures, {len(found)} connections")
    print("rows held:", connections.stats()["state_rows"])


if __name__ == "__main__":
    main()
