"""What the joins below a pipeline count, added up: the keys that a join alone has, so all queries have the same."""

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
_LISTS = ("order_switches", "hints_overruled")


def join_totals(query: str, leaves: Sequence[RunningQuery]) -> dict[str, Any]:
    """Return what the joins of the leaves of a query count together; a join that several leaves share counts once.

    ``processed_until`` is where the slowest join is, ``lag_seconds`` how far that is behind. A source's
    ``state_rows`` and ``measured`` stand under its alias; equal aliases of different joins add up or, for
    ``measured``, the last one counts.
    """
    joins = list({id(leaf.join): leaf.join for leaf in leaves}.values())
    told: list[dict[str, Any]] = [join.metrics.stats() for join in joins]
    reached = min((join.now for join in joins), default=BEFORE_ALL)
    rows = sum(sum(one["state_rows"].values()) for one in told)
    totals: dict[str, Any] = {key: sum(one[key] for one in told) for key in _SUMS}
    totals |= {key: dict(_added([one[key] for one in told])) for key in _COUNTS}
    totals |= {key: [entry for one in told for entry in one[key]] for key in _LISTS}
    return totals | {
        "processed_until": None if reached <= BEFORE_ALL else format_instant(reached),
        "state_bytes_per_row": totals["state_bytes"] / max(rows, 1),
        "last_expression_failure": next(
            filter(None, (one["last_expression_failure"] for one in told)), ""
        ),
        "measured": {alias: found for one in told for alias, found in one["measured"].items()},
        "scheduler": next((one["scheduler"] for one in told), ""),
        "overload": {
            "mode": "adapt" if any(one["overload"]["mode"] == "adapt" for one in told) else "queue",
            "lag_seconds": max((one["overload"]["lag_seconds"] for one in told), default=0.0),
        },
        "shares_with": _others(query, leaves),
        "results_remembered": sum(leaf.remembered_results() for leaf in leaves),
    }


def _added(counts: Sequence[dict[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return total


def _others(query: str, leaves: Sequence[RunningQuery]) -> list[str]:
    """Return the other queries over the joins of the leaves, each once."""
    names = [member.owner for leaf in leaves for member in leaf.join.members]
    return [name for name in dict.fromkeys(names) if name != query]
