"""Find the last three clicks of a user before each order, however long ago they were."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta

import muntin

PAGES = ("home", "search", "lamp", "desk", "chair", "reviews")
START = datetime.fromisoformat("2026-01-01 08:00:00")


def main() -> None:
    """Generate clicks and occasional orders, and count the pages before an order."""
    engine = muntin.Engine()
    engine.stream("Clicks", {"user_id": "int", "page": "varchar", "ts": "timestamp"})
    engine.stream("Orders", {"id": "int", "user_id": "int", "ts": "timestamp"})
    paths = engine.query("""
        SELECT O.id, O.user_id, C.page, date_diff('second', C.ts, O.ts) AS ago
        FROM Clicks C [PARTITION BY user_id ROWS 3], Orders O [ROWS 1]
        WHERE C.user_id = O.user_id AND C.ts <= O.ts
    """)
    chance = random.Random(7)  # noqa: S311 (generated clicks guard nothing)
    orders = 0
    for step in range(2_000):
        now = START + timedelta(seconds=step)
        user = int(chance.random() * 50)
        engine.push("Clicks", [(user, PAGES[int(chance.random() * len(PAGES))], now)])
        if chance.random() < 0.02:
            orders += 1
            engine.push("Orders", [(orders, user, now)])
    engine.advance(START + timedelta(seconds=2_000))
    rows = paths.poll().to_pylist()
    for row in rows[:3]:
        print(f"order {row['id']} of user {row['user_id']}: {row['page']}, {row['ago']} s before")
    print(f"{orders} orders, {len(rows)} clicks before them")
    print("most often:", Counter(row["page"] for row in rows).most_common(1)[0][0])
    print("rows held:", paths.stats()["state_rows"])


if __name__ == "__main__":
    main()
