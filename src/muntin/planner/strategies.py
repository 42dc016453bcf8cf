"""The strategies of [HammadTR, section 3] for expired rows above a join, and their choice.

A join that *retracts* looks a row up once more when it leaves, and sends what it finds as negative
rows (Negative Tuple). The other strategies know in advance when a result ends, namely when the
first of its rows leaves. So they need windows in time: a window in rows ends when other rows come.
The join then makes inserts only, and what ends is retracted above it: by one W-Expire (Hybrid), or
by every operator for itself (Time Probing, Input Triggered).
"""

from __future__ import annotations

from muntin.model.settings import OverloadMode, Settings, Strategy
from muntin.model.window import TimeWindow, has_own_ends
from muntin.plan.query import Emit, Query

_WORDS = {
    Strategy.INPUT: "input triggered",
    Strategy.PROBING: "time probing",
    Strategy.NEGATIVE: "negative tuple",
    Strategy.HYBRID: "hybrid",
}


def choose_strategy(query: Query, settings: Settings) -> tuple[Strategy, str]:
    """Return the strategy for a join with changes, and in words which one it is and why.

    Under ``auto`` it is the one that is measured to be fastest: Hybrid where a join can say when
    results end. Where nothing says which rows belong together, there are too many results to
    remember them all.
    """
    streams = [source for source in query.sources if not source.stored]
    if not all(isinstance(source.window, TimeWindow) for source in streams):
        return _explained(
            Strategy.NEGATIVE, "a window in rows does not determine in advance when a row leaves it"
        )
    if any(has_own_ends(source.window) for source in streams) and (
        drive_strategy(settings) is Strategy.NEGATIVE
    ):
        return _explained(
            Strategy.HYBRID, "rows have their own ends, so results are kept until they end"
        )
    if settings.changes.strategy in {None, Strategy.HYBRID}:
        if len(query.sources) < 2:
            return _explained(
                Strategy.NEGATIVE, "one source has no join in which a look-up could be saved"
            )
        limited = (
            settings.overload.mode is OverloadMode.ADAPT
        )  # a join that retracts what it found must have found everything
        if (
            settings.changes.strategy is None
            and not limited
            and _equalities(query) < len(query.sources) - 1
        ):
            return _explained(
                Strategy.NEGATIVE,
                "a join without equalities has more results than one would remember",
            )
        return _explained(
            Strategy.HYBRID,
            "results are kept until they end, and rows that leave are not looked up again",
        )
    return _explained(settings.changes.strategy, "")


def retracts(query: Query, settings: Settings) -> bool:
    """Return whether the join of a query itself retracts what ends."""
    changes = query.emit is Emit.CHANGES and query.retracts
    return changes and choose_strategy(query, settings)[0] is Strategy.NEGATIVE


def _explained(strategy: Strategy, why: str) -> tuple[Strategy, str]:
    return strategy, f"{_WORDS[strategy]}: {why}" if why else _WORDS[strategy]


def _equalities(query: Query) -> int:
    """Return the number of equalities between sources."""
    comparisons = [
        predicate.comparison
        for predicate in query.predicates
        if len(predicate.expression.sources) > 1
    ]
    return sum(comparison is not None and comparison.operator == "=" for comparison in comparisons)


def drive_strategy(settings: Settings) -> Strategy:
    """Return the strategy by which the operators above joins are run.

    Where joins are Hybrid or retract what ends themselves, the operators see signed rows.
    """
    return (
        settings.changes.strategy
        if settings.changes.strategy in {Strategy.PROBING, Strategy.INPUT}
        else Strategy.NEGATIVE
    )
