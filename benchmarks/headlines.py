"""The few ratios that a newcomer should see first, each picked from the claims of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.markdown import number, table


@dataclass(frozen=True)
class Headline:
    """A claim of a benchmark, found by how its text begins, and what it means in words."""

    benchmark: str
    claim: str
    text: str


_FASTEST = "rows per second over those of the fastest other streaming system"

HEADLINES = (
    Headline(
        "spark",
        "rows per second over those of Spark's own join, five files",
        "one window join on Spark: throughput relative to Spark's stream-stream join",
    ),
    Headline(
        "spark-shared",
        "rows per second of 7 queries",
        "seven windows over the same streams on Spark: throughput relative to seven of Spark's "
        "joins",
    ),
    Headline(
        "spark-aggregate",
        "rows per second over those of Spark's own window()",
        "a sliding GROUP BY on Spark: throughput relative to Spark's window()",
    ),
    Headline(
        "spark-bursts",
        "mean response time under MQT over LWO, smallest window",
        "response time of the smallest of seven windows in a burst on Spark: MQT relative to LWO "
        "(lower is better)",
    ),
    Headline(
        "peers",
        f"{_FASTEST}, one window join",
        "one window join in process: throughput relative to the best of Spark, Flink, Pathway and "
        "Bytewax",
    ),
    Headline(
        "peers", f"{_FASTEST}, seven windows", "seven windows in process: the same comparison"
    ),
    Headline(
        "join",
        "Muntin's time",
        "an incremental join in process: time relative to DuckDB, which has all rows at once "
        "(lower is better)",
    ),
    Headline(
        "window",
        "time per row",
        "time per row with a window of 600 s relative to one of 6 s (lower is better)",
    ),
    Headline(
        "pipelines",
        "average delay of Input Triggered over that of Hybrid",
        "delay of results when only rows drive expiry, relative to Hybrid; the least of five "
        "queries",
    ),
)


def headlines(documents: Mapping[str, Mapping[str, Any]], folder: str = "") -> str:
    """Return the headlines as a table with links into a folder, without those that lack figures."""
    rows = [
        [
            headline.text,
            f"**{number(claim['measured'])}**",
            f"[{headline.benchmark}]({folder}{headline.benchmark}.md)",
        ]
        for headline in HEADLINES
        for claim in documents.get(headline.benchmark, {}).get("claims", [])
        if claim["claim"].startswith(headline.claim)
    ]
    cores = {document["machine"]["cores"] for document in documents.values()}
    where = f"on {cores.pop()} cores" if len(cores) == 1 else "on one machine"
    return (
        table([f"measured, {where}", "ratio", "page"], rows, [1])
        if rows
        else "There are no figures yet."
    )
