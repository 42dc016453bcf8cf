"""Find sales of favorite items: a stream joined with a stored table from a CSV file."""

from __future__ import annotations

from pathlib import Path

import muntin

FAVORITES = Path(__file__).with_name("favorites.csv")


def main() -> None:
    """Declare the table from its file, then push sales."""
    engine = muntin.Engine()
    (reduced,) = engine.execute(f"""
        CREATE STREAM Sales (item INT, price DOUBLE, ts TIMESTAMP);
        CREATE TABLE Favorites (item INT, name VARCHAR, discount DOUBLE)
          WITH (format = 'csv', path = '{FAVORITES}', header = 'true');

        CREATE QUERY reduced AS
          SELECT F.name, round(S.price * (1 - F.discount), 2) AS price
          FROM Sales S [ROWS 1], Favorites F
          WHERE S.item = F.item;
    """)
    engine.push(
        "Sales",
        [
            (1, 40.0, "2026-01-01 08:00:00"),
            (2, 15.0, "2026-01-01 08:00:05"),
            (3, 120.0, "2026-01-01 08:00:09"),
        ],
    )
    for row in reduced.poll().to_pylist():
        print(f"{row['_ts']:%H:%M:%S} {row['name']}: {row['price']}")
    print("the answer now:", reduced.answer().to_pylist())


if __name__ == "__main__":
    main()
