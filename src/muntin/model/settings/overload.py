"""The settings of joins under overload [Mukherji11]."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from muntin.model.settings.declaration import setting
from muntin.model.settings.values import (
    choice,
    number,
    optional,
    or_auto,
    parse_length,
    whole_number,
)

_SHARE = number(0.0, "a share of at least 0, for example 0.05")
_PROBE_RATE = number(1e-9, "rows per second, more than 0, for example 300")
_MOST_SEED = 2**62
_MOST_ROWS = 2**31 - 1
_CYCLE = 1_000_000
"""Microseconds of a cycle of overload control if it is not given."""


class OverloadMode(StrEnum):
    """What happens when streams outrun the machine."""

    QUEUE = "queue"
    ADAPT = "adapt"


class AllocationPolicy(StrEnum):
    """The ways to divide probes among half joins [Mukherji11]."""

    JAQPOT = "jaqpot"
    GREPP = "grepp"
    GREEDY = "greedy"
    KNAPSACK = "knapsack"
    EQUAL_HJ = "equal_hj"
    GLOBAL_HJPR = "global_hjpr"
    EBEST_HJP = "ebest_hjp"
    SBEST_HJP = "sbest_hjp"
    BEST_HJP = "best_hjp"


class ProbeChoice(StrEnum):
    """Which rows that reach a half join in a cycle may probe, when not all may."""

    OLDEST = "oldest"
    NEWEST = "newest"
    RANDOM = "random"
    KEY = "key"


class ProbeCost(StrEnum):
    """What the resources of a limited join count."""

    UNIT = "unit"
    MEASURED = "measured"


class Freshness(StrEnum):
    """What happens to results with a row older than FRESHNESS."""

    ENFORCE = "enforce"
    MEASURE = "measure"


@dataclass(frozen=True)
class OverloadSettings:
    """What a join does when streams outrun the machine."""

    mode: OverloadMode = setting(
        "overload",
        choice(OverloadMode),
        "queue",
        "what happens when streams outrun the machine [Mukherji11]: queue, nothing is left out and "
        "results are late; adapt, every row is stored, but only as many probe as there are "
        "resources for, so some results are missing",
    )
    resources: float | None = setting(
        "resources",
        optional(_PROBE_RATE),
        "",
        "under adapt, how many rows and intermediate results may probe per second of event time, "
        "e.g. '300'; empty: no limit, or in an engine that runs in the background as many as this "
        "machine is measured to manage",
    )
    monitoring: int | None = setting(
        "monitoring",
        or_auto(parse_length),
        "1 second",
        "under adapt, the length of a cycle of event time: budgets hold for a cycle, and the "
        "statistics of a cycle may change them; auto: a second, and statistics of up to eight "
        "cycles together while nothing changes",
    )
    """Microseconds; None: those of ``period``, and the controller decides when to look at them."""
    policy: AllocationPolicy = setting(
        "policy",
        choice(AllocationPolicy),
        "jaqpot",
        "under adapt, which rows may probe: jaqpot, first those that keep results fresh, then the "
        "most productive paths; grepp, the most productive paths only; greedy and knapsack, "
        "complete paths; equal_hj, global_hjpr, ebest_hjp, sbest_hjp, best_hjp, by half joins",
    )
    change: float | None = setting(
        "adapt_change",
        or_auto(_SHARE),
        "0.05",
        "under adapt, compute probe budgets again when a statistic has changed by this share "
        "(epsilon in [Mukherji11]); auto: the share follows from what such changes have gained",
    )
    gain: float | None = setting(
        "adapt_gain",
        or_auto(_SHARE),
        "0.05",
        "under adapt, use new probe budgets when they are predicted to give this share of results "
        "more (p in [Mukherji11]); auto: the share follows from which predictions came true",
    )
    probe_cost: ProbeCost = setting(
        "probe_cost",
        choice(ProbeCost),
        "unit",
        "under adapt, what resources count: unit, each probe as one; measured, probes and matches "
        "by their measured times, in probes of an index that find nothing",
    )
    probe_choice: ProbeChoice = setting(
        "probe_choice",
        choice(ProbeChoice),
        "oldest",
        "under adapt, which rows of a cycle probe when not all may: the oldest, the newest, or "
        "random ones; key, those of some keys where policy jaqpot predicts more results for them "
        "and one key joins all streams, else the oldest",
    )
    probe_seed: int = setting(
        "probe_seed",
        whole_number(0, _MOST_SEED),
        "0",
        "under adapt, the seed of probe_choice = 'random': the same seed and rows give the same "
        "results",
    )
    state_rows: int | None = setting(
        "state_rows",
        optional(whole_number(1, _MOST_ROWS)),
        "",
        "under adapt, how many partial matches each intermediate state keeps, the latest however "
        "old, as in [Mukherji11]; results may then hold rows that have left their windows, though "
        "none older than FRESHNESS; empty: as long as all their rows are inside",
    )
    freshness: Freshness = setting(
        "freshness",
        choice(Freshness),
        "enforce",
        "under adapt, what happens to results with a row older than FRESHNESS: enforce, they are "
        "left out; measure, they are emitted and counted",
    )

    @property
    def period(self) -> int:
        """The length of a cycle of event time, in microseconds."""
        return _CYCLE if self.monitoring is None else self.monitoring
