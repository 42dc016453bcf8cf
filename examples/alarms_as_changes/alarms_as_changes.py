"""Maintain a panel of open alarms from changes; the same again every ten seconds."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import muntin

START = datetime.fromisoformat("2026-01-01 08:00:00")
READINGS = (
    (0, "pump 1", 92),
    (3, "pump 2", 97),
    (9, "pump 1", 95),
    (14, "pump 2", 60),
    (16, "pump 3", 91),
    (31, "pump 1", 99),
)
ALARMS = "SELECT machine FROM Readings [RANGE 12 SECONDS] WHERE load > 90"


def main() -> None:
    """Apply changes to a counter, whose elements are the panel."""
    engine = muntin.Engine()
    engine.stream("Readings", {"machine": "varchar", "load": "int", "ts": "timestamp"})
    alarms = engine.query(f"{ALARMS} EMIT CHANGES", name="alarms")
    slow = engine.query(f"{ALARMS} EVERY 10 SECONDS EMIT CHANGES", name="slow")
    panel: Counter[str] = Counter()
    for second, machine, load in READINGS:
        engine.push("Readings", [(machine, load, START + timedelta(seconds=second))])
    engine.advance(START + timedelta(seconds=40))
    for row in alarms.poll().to_pylist():
        panel[row["machine"]] += 1 if row["_op"] == "+" else -1
        lit = ", ".join(sorted(name for name, count in panel.items() if count)) or "nothing"
        print(f"{row['_ts']:%H:%M:%S} {row['_op']} {row['machine']:8} panel: {lit}")
    assert sorted(panel.elements()) == sorted(alarms.answer().column("machine").to_pylist()), (
        "the panel is the answer"
    )
    print("every ten seconds:")
    for row in sorted(slow.poll().to_pylist(), key=lambda row: (row["_ts"], row["machine"])):
        print(f"{row['_ts']:%H:%M:%S} {row['_op']} {row['machine']}")


if __name__ == "__main__":
    main()
