"""[Kostowski06, section 4], stream-based joins, against ``python -m benchmarks invalidation``."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, median

from benchmarks.verdicts import (
    Document,
    Experiment,
    Outcome,
    Row,
    between,
    graded,
    in_cases,
    rows_with,
    short,
)

_PROBE, _INSERT, _ALL, _OPTIMAL = (
    "probe time",
    "probe and insert time",
    "probe all buckets",
    "optimal",
)
_RESULTS = (
    "Comparisons are a hundred times as many. What a row costs besides, and results, which the "
    "paper's model leaves out, "
    "are the same for both."
)
_ALIKE = 1.1
"""Up to which ratio two times are alike."""


def _of(document: Document, figure: str) -> list[Row]:
    """Return the rows of a figure; a LookupError if there are none."""
    rows = [row for row in document["rows"] if str(row["figure"]).startswith(figure)]
    if not rows:
        raise LookupError(f"there is no Figure {figure}")
    return rows


def _rates(document: Document) -> Outcome:
    rows = _of(document, "4:")
    loops, hashed = (rows_with(rows, join=join)[-1] for join in ("WNL", "WHJ"))
    whole, bare, counts = (
        loops[name] / hashed[name] for name in ("ms", "ms without results", "comparisons")
    )
    text = (
        f"at the largest ratio of rates {short(counts)} times the comparisons, {short(whole)} "
        f"times the time, {short(bare)} without results"
    )
    return graded(text, holds=max(whole, bare) >= 50, direction=min(whole, bare) > 1)


def _bucket_sweeps(document: Document) -> dict[int, list[Row]]:
    rows = [
        *_of(document, "5:"),
        *(row for row in document["rows"] if str(row["figure"]).startswith("6:")),
    ]
    return {
        values: [row for row in rows if row["values"] == values]
        for values in dict.fromkeys(row["values"] for row in rows)
    }


def _at(rows: Sequence[Row], buckets: int) -> Row:
    return rows_with(rows, buckets=buckets)[0]


def _buckets(document: Document) -> Outcome:
    values, rows = next(iter(_bucket_sweeps(document).items()))
    time = "ms without results"
    ten, flat = _at(rows, 1)[time] / _at(rows, 10)[time], rows[-1][time] / _at(rows, values)[time]
    text = (
        f"ten buckets: {short(ten)} times as fast as one; {rows[-1]['buckets']:,} buckets take "
        f"{short(flat)} of the time of {values}, the number "
        f"of values (no results made)"
    )
    return graded(text, holds=ten >= 8 and 0.8 <= flat <= 1.25, direction=ten >= 2 and flat >= 0.5)


def _flattening(document: Document) -> Outcome:
    counts, times = [], []
    for values, rows in _bucket_sweeps(document).items():
        enough, most = _at(rows, values), rows[-1]
        if most is not enough:
            counts.append(most["comparisons"] / enough["comparisons"])
            times.append(most["ms without results"] / enough["ms without results"])
    kept = [ratio >= 0.99 for ratio in counts]
    text = (
        f"beyond as many buckets as values: comparisons {between(counts)} of those before, time "
        f"{between(times)}"
    )
    outcome = in_cases(kept, text)
    return outcome if min(times) >= 0.8 else graded(text, holds=False, direction=all(kept))


def _strategies(document: Document) -> Outcome:
    rows = _of(document, "7:")
    insert, kept = [], []
    greedy: dict[str, list[float]] = {"ms": [], "ms without results": []}
    for time, ratios in greedy.items():
        for rates in dict.fromkeys(row["rows/s"] for row in rows):
            times = {row["invalidation"]: row[time] for row in rows if row["rows/s"] == rates}
            insert.append(times[_INSERT] / times[_PROBE])
            ratios.append(min(times[_ALL], times[_OPTIMAL]) / max(times[_PROBE], times[_INSERT]))
            kept.append(ratios[-1] > 1)
    whole, bare = (between(some) for some in greedy.values())
    text = (
        f"probe and insert time takes {between(insert)} of probe time's, median "
        f"{short(median(insert))}; the better of the two that look "
        f"at all buckets {whole} of the worse of these two, {bare} without results"
    )
    holds = all(kept) and median(insert) <= _ALIKE
    return graded(text, holds=holds, direction=in_cases(kept, text).verdict != "does not hold")


def _memory(document: Document) -> Outcome:
    rows = _of(document, "8:")
    held = {
        name: mean(float(row["rows held"]) for row in rows_with(rows, invalidation=name))
        for name in (_PROBE, _INSERT, _ALL, _OPTIMAL)
    }
    others = [held[name] / held[_OPTIMAL] for name in (_INSERT, _ALL)]
    most = held[_PROBE] / held[_OPTIMAL]
    text = (
        f"over the rows that optimal holds: probe time {short(most)}, probe and insert time "
        f"{short(others[0])}, all buckets probed {short(others[1])}"
    )
    return graded(text, holds=most > 1.1 and max(others) <= 1.05, direction=most > max(others))


EXPERIMENTS = (
    Experiment(
        4,
        "4.2, Figure 4",
        "With 100 buckets hashing is two orders of magnitude faster than nested loops",
        "invalidation",
        _rates,
        _RESULTS,
    ),
    Experiment(
        4,
        "4.2, Figure 5",
        "Time is inversely proportional to the number of buckets, until there are as many as "
        "values",
        "invalidation",
        _buckets,
        "What a row costs besides comparisons does not shrink with its bucket.",
    ),
    Experiment(
        4,
        "4.2, Figure 6",
        "At every selectivity more buckets than values gain nothing",
        "invalidation",
        _flattening,
        "Comparisons are the same; smaller tables of buckets are a matter of the cache.",
    ),
    Experiment(
        4,
        "4.2, Figure 7",
        "To clean where a row is inserted costs nothing; to look at all buckets costs much",
        "invalidation",
        _strategies,
        "Results cost more than all that, and short runs are noisy; without results it is as the "
        "paper says.",
    ),
    Experiment(
        4,
        "4.2, Figure 8",
        "Cleaning at probe time alone holds most rows; the three others hold about equally few",
        "invalidation",
        _memory,
    ),
)
