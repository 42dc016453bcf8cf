"""Rule: choose when rows outside their windows are removed.

Sound because no policy removes a row that is still inside a window, and joins skip the others. A
join that retracts must remove every row in its turn. LAZY and GENERAL LAZY need old rows until they
join, so only two policies suit them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

from muntin.errors import SettingError
from muntin.model.settings import Algorithm, Expiry, Settings
from muntin.model.window import TimeWindow
from muntin.planner.draft import JoinDraft
from muntin.planner.join_graph import JoinGraph
from muntin.planner.overload_plan import is_adapting, not_limited
from muntin.planner.unit_costs import UnitCosts

_NANO = 1e-9
_LAZY = {Algorithm.LAZY, Algorithm.GENERAL_LAZY}
BY_PROBES = {Expiry.PROBE, Expiry.PROBE_INSERT, Expiry.PROBE_ALL, Expiry.ALL}
"""The policies of [Kostowski06], which remove rows from the buckets that new rows look into."""


def choose_expiry(draft: JoinDraft) -> JoinDraft:
    """Choose the expiry policy and its interval."""
    expiry, interval, reason = _choose(draft)
    given = draft.settings.expiry.policy
    why_not = expiry_without_effect(given, expiry, len(draft.query.sources))
    return replace(
        draft,
        expiry=expiry,
        expiry_interval=interval,
        expiry_reason=reason,
        without_effect=f"the setting expiry = '{given}' has no effect: {why_not}"
        if why_not
        else "",
    )


def _choose(draft: JoinDraft) -> tuple[Expiry, int | None, str]:
    settings, algorithm = draft.settings, draft.algorithm
    interval = settings.expiry.interval
    if draft.retracting:
        return Expiry.EAGER, interval, "expiry eager: every retraction comes in its turn"
    expiry = settings.expiry.policy or Expiry.OWN
    if is_adapting(settings) and not not_limited(draft.query, settings, algorithm):
        return expiry, interval, "expiry own: a tree lets rows go as others come"
    if algorithm in _LAZY and expiry not in {Expiry.OWN, Expiry.LAZY}:
        hint = "It needs old rows until it joins; use expiry 'own' or 'lazy', or algorithm 'eager'"
        raise SettingError(f"algorithm {algorithm} cannot expire rows by {expiry}", hint=hint)
    if draft.graph is None or algorithm is not Algorithm.EAGER:
        return expiry, interval, ""
    lengths = [
        source.window.micros if isinstance(source.window, TimeWindow) else None
        for source in draft.query.sources
    ]
    return cheapest_expiry(draft.graph, settings, lengths, draft.known.costs)


def expiry_without_effect(given: Expiry | None, expiry: Expiry, sources: int) -> str:
    """Return why a policy that was set does nothing for a join; empty if it does something.

    ``expiry`` is the policy that the join uses.
    """
    if given is None:
        return ""
    if given is not expiry:
        return "this join retracts every row in its turn, so its windows hold no expired rows"
    if given in BY_PROBES and sources == 1:
        return "no row looks into the window of a single source"
    return ""


def cheapest_expiry(
    graph: JoinGraph, settings: Settings, lengths: Sequence[int | None], costs: UnitCosts
) -> tuple[Expiry, int | None, str]:
    """Return the expiry policy, its interval if it is lazy, and the reason.

    ``lengths`` are the time windows in microseconds. Removal with each arrival costs a look at one
    row. Eager expiry costs a look at every window. Lazy expiry costs a pass over the windows once
    per interval, and in between every chain may end at a stale row.
    """
    rate = sum(graph.rate(source) for source in range(graph.count))
    length = min((micros for micros in lengths if micros), default=1_000_000) / 1e6
    looks = rate * max(graph.count - 1, 1) * costs.chained
    interval = min(max(sqrt(graph.count * costs.probe * length / max(looks, 1e-9)), 1e-3), length)
    times = {
        Expiry.OWN: rate * costs.expire,
        Expiry.EAGER: rate * (costs.expire + graph.count * costs.scanned),
        Expiry.LAZY: rate * costs.expire
        + graph.count * costs.probe / interval
        + looks * interval / (length + interval),
    }
    if settings.expiry.policy is None:
        policy = min(times, key=lambda known: (times[known], list(times).index(known)))
    else:
        policy = settings.expiry.policy
    figures = ", ".join(f"{known} {time * _NANO:.2g}" for known, time in times.items())
    micros = settings.expiry.interval or (round(interval * 1e6) if policy is Expiry.LAZY else None)
    return policy, micros, f"expiry {policy}; seconds of work per second predicted: {figures}"
