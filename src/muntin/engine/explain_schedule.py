"""The description of the order of work on a shared join: its scheduler and what each window counts.

Part of the sharing group in the description of a query.
"""

from __future__ import annotations

from typing import Any

from muntin.model.settings import Scheduler, Settings
from muntin.plan.description import Description, Fact
from muntin.runtime.running_query import RunningQuery

_SHOWN = 8
"""Levels that are shown one by one."""


def scheduler_facts(running: RunningQuery) -> tuple[Fact, ...]:
    """Return which scheduler orders the work of a shared join, or why the setting does not."""
    join = running.join
    setting, reasons = join.settings.sharing.scheduler, running.without_effect
    found = []
    if len(join.members) > 1 or setting is not Settings().sharing.scheduler:
        reason, words = reasons.get("scheduler"), f"scheduler {join.metrics.scheduler}"
        if reason:
            words = f"scheduler = '{setting}' has no effect: {reason}"
        found += [
            Fact("scheduler", join.metrics.scheduler, words),
            Fact("scheduler_reason", reason),
        ]
    if running.weight != 1:
        reason, words = reasons.get("weight"), f"weight {float(running.weight):g}"
        if reason:
            words = f"{words} has no effect: {reason}"
        found += [Fact("weight", float(running.weight), words), Fact("weight_reason", reason)]
    return tuple(found)


def describe_levels(running: RunningQuery) -> tuple[Description, ...]:
    """Describe the windows among which MQT chooses: queries, weights, and rows per unit."""
    metrics = running.join.metrics
    levels = metrics.levels()
    in_effect = metrics.scheduler == Scheduler.MQT and "scheduler" not in running.without_effect
    if not in_effect:
        return ()
    found = [_level(level) for level in levels[:_SHOWN]]
    if len(levels) > _SHOWN:
        more = len(levels) - _SHOWN
        found.append(Description("more", f"and {more} more windows", (Fact("windows", more),)))
    rates = metrics.scan_rates()
    if len(set(rates.values())) > 1:
        words = ", ".join(f"{alias} {rate}" for alias, rate in rates.items())
        label = f"rows per unit of window, relative: {words}"
        facts = tuple(Fact(alias, rate) for alias, rate in rates.items())
        found.append(Description("scan_rates", label, facts))
    return tuple(found)


def _level(level: dict[str, Any]) -> Description:
    windows = [f"{alias} {window}" for alias, window in level["windows"].items()]
    queries = f"{level['queries']} {'query' if level['queries'] == 1 else 'queries'}"
    facts = (
        Fact("windows", windows),
        Fact("queries", level["queries"], queries),
        Fact("weight", level["weight"], f"weight {level['weight']:g}"),
        Fact("count", level["count"]),
    )
    return Description("levels[]", ", ".join(windows), facts)
