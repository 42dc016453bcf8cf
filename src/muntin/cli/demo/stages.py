"""The texts of the acts."""

from __future__ import annotations

from muntin.cli.demo.queries import FRESHNESS, WINDOWS
from muntin.cli.demo.screen import Stage

STARTING = Stage(
    "Muntin: standing queries over streams",
    "Sensors of temperature, humidity and smoke make readings, {rate:,} per second each. "
    "Spark is starting, which takes about ten seconds. Three acts follow: one query, "
    f"{len(WINDOWS)} queries over the same join, three times the load; two minutes in all.",
)
ONE = Stage(
    "Act 1 of 3: one query",
    "Where is it hot and humid within one second? The query joins two streams; each result "
    "appears once. Response times count from the reading that completed the result.",
    changes=True,
)
SIXTEEN = Stage(
    f"Act 2 of 3: {len(WINDOWS)} queries, one join",
    f"The same question over windows of 1 to {WINDOWS[-1]} seconds, added while the first query "
    "runs. All of them share one join, so a batch takes little longer.",
)
COMPARED = Stage(
    "Act 2 of 3: the same with Spark's own joins",
    "The sensors pause. Their latest readings go through Muntin and through Spark's own joins, "
    f"with one query and with {len(WINDOWS)}.",
)
LOADED = Stage(
    "Act 3 of 3: three times the load",
    "A join of three streams may make as many probes as it needs at the usual load. When three "
    "times as many readings come, it leaves out results instead of falling behind, and shows "
    f"none with a reading older than {FRESHNESS} seconds. Then the load falls again.",
)
