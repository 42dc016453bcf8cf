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


_FASTEST = "rows a second over those of the fastest other streaming system"

HEADLINES = (
    Headline(
        "spark",
        "rows a second over those of Spark's own join, five files",
        "one window join on Spark: rows a second over those of Spark's own join",
    ),
    Headline(
        "spark-shared",
        "rows a second of 7 queries",
        "seven windows over the same streams on Spark: rows a second over those of Spark's own seven joins",
    ),
    Headline(
        "spark-aggregate",
        "rows a second over those of Spark's own window()",
        "a sliding GROUP BY on Spark: rows a second over those of Spark's own",
    ),
    Headline(
        "spark-bursts",
        "mean response time under MQT over LWO, smallest window",
        "the smallest of seven windows in a burst on Spark: response time when scheduled (MQT) over that when not (LWO)",
    ),
    Headline(
        "peers",
        f"{_FASTEST}, one window join",
        "one window join in one process: rows a second over the best of Spark, Flink, Pathway, Bytewax",
    ),
    Headline("peers", f"{_FASTEST}, seven windows", "seven windows: the same"),
    Headline("join", "Muntin's time", "an incremental join in one process: time over DuckDB's, which has all rows at once"),
    Headline("window", "time a row", "time a row with a window of 600 s over that with 6 s"),
    Headline(
        "pipelines",
        "average delay of Input Triggered over that of Hybrid",
        "results above joins: delay when rows alone drive expiry over that of Hybrid, least of five queries",
    ),
)


def headlines(documents: Mapping[str, Mapping[str, Any]], folder: str = "") -> str:
    """The headlines as a table, with links to pages in a folder; those without figures are left out."""
    rows = [
        [headline.text, f"**{number(claim['measured'])}**", f"[{headline.benchmark}]({folder}{headline.benchmark}.md)"]
        for headline in HEADLINES
        for claim in documents.get(headline.benchmark, {}).get("claims", [])
        if claim["claim"].startswith(headline.claim)
    ]
    cores = {document["machine"]["cores"] for document in documents.values()}
    where = f"on {cores.pop()} cores" if len(cores) == 1 else "on one machine"
    return table([f"measured, {where}", "ratio", "page"], rows, [1]) if rows else "There are no figures yet."
