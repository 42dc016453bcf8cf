"""GH-WMSCP: which paths refresh the states, at little cost (paper 5, section 4.2, Problem 2; Yang and Leung 2005).

Again and again the path that covers most for its cost, counting only states that lack something, is used as often as it takes
until one of them has enough. So there are no more rounds than states and leaves together. Rows that later choices have made
superfluous are taken back, the least productive path first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muntin.adapt.model import PlanModel

_ENOUGH = 1e-12


def cover_states(model: PlanModel, refresh: Mapping[int, float]) -> tuple[float, ...] | None:
    """Rows per second of each leaf that go all the way up, so that so many come in each state; None when too few arrive."""
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
    """What comes in each state that can grow stale when so many rows of each leaf go all the way up."""
    feeds = _feeds(model)
    return {
        h: sum(rows * feed.get(h, 0.0) for rows, feed in zip(sent, feeds, strict=True))
        for h in model.shape.susceptible
        if model.own[h] > 0
    }


def _feeds(model: PlanModel) -> list[dict[int, float]]:
    """For each leaf, what one row that goes all the way up brings to each state."""
    return [
        dict(zip(path[1:], model.cardinalities[leaf], strict=False))
        for leaf, path in enumerate(model.shape.paths)
    ]


def take_back(
    model: PlanModel, refresh: Mapping[int, float], sent: Sequence[float], most: Sequence[float]
) -> tuple[float, ...]:
    """The rows of each leaf without what no state needs, at most so many of each; the least productive paths, then the dearest, first."""
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
