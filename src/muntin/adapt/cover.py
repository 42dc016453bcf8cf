"""GH-WMSCP: the paths that refresh the states at low cost [Mukherji11, section 4.2, Problem 2].

A greedy heuristic for weighted multiple set cover (Yang and Leung, 2005). Each round picks the path
that covers most for its cost, counting only states that still lack rows, and uses it until one of
them has enough. So there are at most as many rounds as states and leaves together. Rows that later
rounds have made superfluous are removed, from the least productive path first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muntin.adapt.model import PlanModel

_ENOUGH = 1e-12


def cover_states(model: PlanModel, refresh: Mapping[int, float]) -> tuple[float, ...] | None:
    """Return the rows per second to send up from each leaf to reach the given rate in each state.

    None if too few rows arrive.
    """
    feeds = _feeds(model)
    lacking = {h: rate for h, rate in refresh.items() if rate > 0}
    sent = [0.0] * model.shape.leaves
    while lacking:
        scores = {
            leaf: sum(feeds[leaf][h] / refresh[h] for h in lacking if h in feeds[leaf])
            / model.path_costs[leaf]
            for leaf in range(len(sent))
            if sent[leaf] < model.rates[leaf] * (1 - _ENOUGH)
        }
        leaf = max(scores, key=lambda leaf: scores[leaf], default=-1)
        if leaf < 0 or scores[leaf] <= 0:
            return None
        feed = feeds[leaf]
        more = min(
            [lacking[h] / feed[h] for h in lacking if feed.get(h, 0.0) > 0]
            + [model.rates[leaf] - sent[leaf]]
        )
        sent[leaf] += more
        lacking = {h: rate - more * feed.get(h, 0.0) for h, rate in lacking.items()}
        lacking = {h: rate for h, rate in lacking.items() if rate > _ENOUGH * refresh[h]}
    return take_back(model, refresh, sent, sent)


def refresh_rates(model: PlanModel, sent: tuple[float, ...]) -> dict[int, float]:
    """Return the arrivals in each state that can grow stale when these rows are sent up."""
    feeds = _feeds(model)
    return {
        h: sum(rows * feed.get(h, 0.0) for rows, feed in zip(sent, feeds, strict=True))
        for h in model.shape.susceptible
        if model.own[h] > 0
    }


def _feeds(model: PlanModel) -> list[dict[int, float]]:
    """Return, for each leaf, the arrivals in each state per row that is sent up."""
    return [
        dict(zip(path[1:], model.cardinalities[leaf], strict=False))
        for leaf, path in enumerate(model.shape.paths)
    ]


def take_back(
    model: PlanModel, refresh: Mapping[int, float], sent: Sequence[float], most: Sequence[float]
) -> tuple[float, ...]:
    """Return the rows of each leaf without those that no state needs, removing at most ``most``.

    The least productive paths are reduced first, then the most expensive.
    """
    left = list(sent)
    have = refresh_rates(model, tuple(sent))
    feeds = _feeds(model)
    for leaf in sorted(
        range(len(left)), key=lambda leaf: (model.path_productivity[leaf], -model.path_costs[leaf])
    ):
        spare = [
            (have[h] - refresh.get(h, 0.0)) / feed
            for h, feed in feeds[leaf].items()
            if feed > 0 and h in have
        ]
        less = min([most[leaf], left[leaf], *(max(rows, 0.0) for rows in spare)])
        left[leaf] -= less
        for h, feed in feeds[leaf].items():
            if h in have:
                have[h] -= less * feed
    return tuple(left)
