"""All settings by topic: one dataclass per topic, one declaration per setting.

A field holds the parsed value. Its declaration has the name under which users set it, which differs
where the topic already contains a part of it (``expiry_interval`` is ``expiry.interval``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from muntin.model.settings.aliases import (
    BucketCounts,
    GivenOrder,
    GivenTree,
    TreeChoice,
    parse_aliases,
    parse_buckets,
    parse_orders,
    parse_tree,
)
from muntin.model.settings.declaration import setting
from muntin.model.settings.values import (
    SWITCH,
    auto_or,
    choice,
    number,
    optional,
    parse_bytes,
    parse_length,
    parse_long_interval,
    positive_number,
)

_FACTOR = number(1.0, "a factor of at least 1, for example 1.5")


@dataclass(frozen=True)
class EngineSettings:
    """Settings of the engine, which single queries cannot have."""

    max_advance: int | None = setting(
        "max_advance",
        parse_long_interval,
        "1 year",
        "how far a row may move the time of its stream ahead, e.g. '1 hour'; rows further ahead "
        "are set aside like late ones; off: any distance. A setting of the engine, not of single "
        "queries",
        per_query=False,
    )
    """Microseconds; None: any distance."""
    memory_limit: int | None = setting(
        "memory_limit",
        optional(parse_bytes),
        "",
        "most bytes that waiting rows, windows and operators may take in process, e.g. '2 GB': "
        "rows that would exceed it are refused when they are pushed; empty: no limit. A setting "
        "of the engine, not of single queries; without effect on Spark",
        per_query=False,
    )


class Algorithm(StrEnum):
    """The join algorithms of [Golab03]."""

    EAGER = "eager"
    NAIVE = "naive"
    LAZY = "lazy"
    GENERAL_LAZY = "general_lazy"


class JoinMethod(StrEnum):
    """Which windows get an index."""

    HASH = "hash"
    NESTED_LOOP = "nested_loop"
    HYBRID = "hybrid"


@dataclass(frozen=True)
class JoinSettings:
    """How a join is run; None stands for the planner's choice."""

    algorithm: Algorithm | None = setting(
        "algorithm",
        auto_or(Algorithm),
        "auto",
        "the join algorithm, after [Golab03]; auto is the one predicted to cost least, else eager",
    )
    method: JoinMethod | None = setting(
        "join",
        auto_or(JoinMethod),
        "auto",
        "hash: an index on every window (an error where no equality allows it); "
        "nested_loop: none; hybrid and auto: an index wherever an equality allows it",
    )
    order: tuple[GivenOrder, ...] = setting(
        "order",
        parse_orders,
        "",
        "join order: 'A, B, C' for all origins, or 'A: B, C; B: C, A; ...' for each origin; under "
        "naive and general_lazy the list of an origin may place the origin anywhere",
    )
    index: frozenset[str] = setting(
        "index",
        parse_aliases,
        "",
        "aliases whose windows may have an index, e.g. 'A, C'; empty: all",
    )
    buckets: BucketCounts | None = setting(
        "buckets",
        parse_buckets,
        "",
        "buckets of the hash indexes: a number, or 'A = 5, B = 100'; empty: about two per row",
    )
    index_memory: int | None = setting(
        "index_memory",
        optional(parse_bytes),
        "",
        "most bytes of buckets of a query's indexes, e.g. '64 kB': buckets go where they are "
        "predicted to save most; empty: no limit",
    )
    window_memory: int | None = setting(
        "window_memory",
        optional(parse_bytes),
        "",
        "most bytes that the windows of a query may take, e.g. '8 GB': a query whose windows "
        "surely take more is refused; empty: the memory of this machine",
    )
    tree: TreeChoice | GivenTree = setting(
        "tree",
        parse_tree,
        "auto",
        "whether a join of three or more sources keeps intermediate results in a binary tree: "
        "auto (where it is predicted to pay; never under nested_loop or index_memory), off, or a "
        "tree such as '((A, B), C)'",
    )
    reevaluation: int | None = setting(
        "reevaluation",
        optional(parse_length),
        "",
        "interval at which lazy and general_lazy join the rows that have arrived; empty: EVERY of "
        "the query, else each batch",
    )


class Expiry(StrEnum):
    """When rows outside their windows are released.

    ``eager`` and ``lazy`` are those of [Golab03]; ``probe`` and those after it of [Kostowski06].
    """

    OWN = "own"
    EAGER = "eager"
    LAZY = "lazy"
    PROBE = "probe"
    PROBE_INSERT = "probe_insert"
    PROBE_ALL = "probe_all"
    ALL = "all"

    @property
    def cleans_buckets(self) -> bool:
        """Return whether rows are released bucket by bucket."""
        return self in {Expiry.PROBE, Expiry.PROBE_INSERT, Expiry.PROBE_ALL, Expiry.ALL}


@dataclass(frozen=True)
class ExpirySettings:
    """When a join releases rows outside their windows."""

    policy: Expiry | None = setting(
        "expiry",
        auto_or(Expiry),
        "auto",
        "when rows outside their windows are released: auto (the policy predicted to cost least), "
        "own (as rows arrive), eager (all windows at each arrival), lazy (at multiples of "
        "expiry_interval), or probe, probe_insert, probe_all, all of [Kostowski06]",
    )
    interval: int | None = setting(
        "expiry_interval",
        optional(parse_length),
        "",
        "interval of lazy expiry, e.g. '5 seconds'; empty: the one predicted to cost least if "
        "statistics are known, otherwise that of EVERY or reevaluation, or one second",
    )


class Scheduler(StrEnum):
    """The schedulers of [Hammad03]."""

    LWO = "lwo"
    SWF = "swf"
    MQT = "mqt"


@dataclass(frozen=True)
class SharingSettings:
    """How queries share a join."""

    enabled: bool = setting(
        "sharing",
        SWITCH,
        "on",
        "whether queries over the same streams with the same join conditions use one join with "
        "the largest windows",
    )
    scheduler: Scheduler = setting(
        "scheduler",
        choice(Scheduler),
        "mqt",
        "order of work among queries of different windows that share a join [Hammad03]: lwo, the "
        "largest window only; swf, the smallest window first; mqt, the step that serves most "
        "queries in the least time",
    )
    weight: Fraction = setting(
        "weight",
        positive_number,
        "1",
        "how much a query counts under mqt, e.g. '3' for as much as three queries of weight 1; "
        "queries of different weights share their join",
        compared=False,
    )


class Strategy(StrEnum):
    """How the end of a result reaches the operators above a join [HammadTR, section 3]."""

    INPUT = "input"
    PROBING = "probing"
    NEGATIVE = "negative"
    HYBRID = "hybrid"


@dataclass(frozen=True)
class ChangesSettings:
    """How results that end are retracted."""

    strategy: Strategy | None = setting(
        "pipeline",
        auto_or(Strategy),
        "auto",
        "how results that leave time windows are retracted under EMIT CHANGES [HammadTR]: "
        "negative, the join probes again with each row that leaves; hybrid, results are kept above "
        "the join until they end; probing, every operator expires its rows by its clock; input, "
        "the same but only when rows arrive, so results are late; auto, the fastest: hybrid for "
        "joins by equalities, else negative",
    )


@dataclass(frozen=True)
class ReplanSettings:
    """When a running join changes its order."""

    enabled: bool = setting(
        "replan",
        SWITCH,
        "on",
        "whether join orders follow measured rates and numbers of keys while a query runs (three "
        "streams or more)",
    )
    change: float = setting(
        "replan_change",
        _FACTOR,
        "1.5",
        "search for a better order when a measured statistic has changed by this factor since the "
        "last search",
    )
    gain: float = setting(
        "replan_gain",
        _FACTOR,
        "1.2",
        "switch when the order in use is predicted to cost this many times the best one",
    )
