"""The counts of the joins below a pipeline, added up under the keys that a single join has.

So all queries have the same keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from muntin.model.clock import BEFORE_ALL, format_instant
from muntin.runtime.running_query import RunningQuery

_SUMS = (
    "rows_in",
    "stale_rows_held",
    "state_bytes",
    "expression_failures",
    "intermediate_rows",
    "order_searches",
)
_COUNTS = ("state_rows", "work")
_LISTS = ("order_switches", "hints_overruled", "levels")


def join_totals(query: str, leaves: Sequence[RunningQuery]) -> dict[str, Any]:
    """Return the sums over the joins of the leaves; a join that several leaves share counts once.

    ``processed_until`` is the position of the slowest join, ``lag_seconds`` is its lag. The keys of
    ``state_rows``, ``measured`` and ``scan_rates`` are aliases of sources; for equal aliases of
    different joins, ``state_rows`` is added up and the others are those of the last one.
    """
    joins = list({id(leaf.join): leaf.join for leaf in leaves}.values())
    stats: list[dict[str, Any]] = [join.metrics.stats() for join in joins]
    reached = min((join.now for join in joins), default=BEFORE_ALL)
    rows = sum(sum(one["state_rows"].values()) for one in stats)
    totals: dict[str, Any] = {key: sum(one[key] for one in stats) for key in _SUMS}
    totals |= {key: dict(_added([one[key] for one in stats])) for key in _COUNTS}
    totals |= {key: [entry for one in stats for entry in one[key]] for key in _LISTS}
    return totals | {
        "processed_until": None if reached <= BEFORE_ALL else format_instant(reached),
        "state_bytes_per_row": totals["state_bytes"] / max(rows, 1),
        "last_expression_failure": next(
            filter(None, (one["last_expression_failure"] for one in stats)), ""
        ),
        "measured": {alias: found for one in stats for alias, found in one["measured"].items()},
        "scan_rates": {alias: rate for one in stats for alias, rate in one["scan_rates"].items()},
        "scheduler": scheduler_of(leaves),
        "without_effect": without_effect(leaves),
        "overload": {
            "mode": "adapt"
            if any(one["overload"]["mode"] == "adapt" for one in stats)
            else "queue",
            "lag_seconds": max((one["overload"]["lag_seconds"] for one in stats), default=0.0),
        },
        "shares_with": _others(query, leaves),
        "results_remembered": sum(len(leaf.expiry) for leaf in leaves if leaf.expiry is not None),
    }


def scheduler_of(leaves: Sequence[RunningQuery]) -> str:
    """Return the scheduler of the joins of a query: of those that differ, not LWO."""
    found = [leaf.join.metrics.scheduler for leaf in leaves]
    return next((name for name in found if name != "lwo"), "lwo")


def without_effect(leaves: Sequence[RunningQuery]) -> dict[str, str]:
    """Return the settings without effect on any join of a query, each with the reasons."""
    found = [leaf.without_effect for leaf in leaves]
    names = set.intersection(*map(set, found)) if found else set()
    return {name: ", ".join(dict.fromkeys(one[name] for one in found)) for name in sorted(names)}


def levels_of_joins(leaves: Sequence[RunningQuery]) -> list[dict[str, object]]:
    """Return the levels of windows of the joins of a query, each join once."""
    joins = {id(leaf.join): leaf.join for leaf in leaves}.values()
    return [level for join in joins for level in join.metrics.levels()]


def _added(counts: Sequence[dict[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return total


def _others(query: str, leaves: Sequence[RunningQuery]) -> list[str]:
    """Return the other queries over the joins of the leaves, each once."""
    names = [member.owner for leaf in leaves for member in leaf.join.members]
    return [name for name in dict.fromkeys(names) if name != query]
