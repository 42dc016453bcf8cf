"""The physical plan of a window join: what is stored of each source, and the order of looking.

A *code* is an integer that stands for the value of an expression over one source: equal values have
equal codes, and for kinds other than HASH equal codes mean equal values and order is kept. Codes are all
a join kernel sees of a row besides its time and position.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from muntin.plan.query import Expression, Query


class CodeKind(StrEnum):
    """How a value becomes a code."""

    WHOLE = "whole"
    REAL = "real"
    HASH = "hash"


@dataclass(frozen=True)
class Code:
    """One stored code of a source."""

    expression: Expression
    kind: CodeKind


@dataclass(frozen=True)
class Index:
    """A hash index over some codes of a source; no codes: one chain of all rows."""

    codes: tuple[int, ...]
    buckets: int | None = None


@dataclass(frozen=True)
class SourcePlan:
    """What the join keeps of one source: rows that pass the filters, as codes, under indexes."""

    filters: tuple[Expression, ...]
    codes: tuple[Code, ...]
    indexes: tuple[Index, ...]


@dataclass(frozen=True)
class Check:
    """``code of this source  operator  code of a source bound before``."""

    operator: str
    code: int
    source: int
    source_code: int


@dataclass(frozen=True)
class Step:
    """One source in a join order: look into its window, by an index or all of it.

    ``keys`` tells, for each code of the index, which bound source supplies it; every candidate then has to
    pass ``checks`` (the keys among them: rows of one bucket may differ).
    """

    source: int
    index: int | None
    keys: tuple[tuple[int, int], ...]
    checks: tuple[Check, ...]


class Algorithm(StrEnum):
    """Paper 3's algorithms."""

    EAGER = "eager"
    NAIVE = "naive"
    LAZY = "lazy"
    GENERAL_LAZY = "general_lazy"


class Expiry(StrEnum):
    """When rows outside their windows are let go: our own way, paper 3's two, paper 4's four."""

    OWN = "own"
    EAGER = "eager"
    LAZY = "lazy"
    PROBE = "probe"
    PROBE_INSERT = "probe_insert"
    PROBE_ALL = "probe_all"
    ALL = "all"

    @property
    def cleans_buckets(self) -> bool:
        """Whether it lets rows go bucket by bucket."""
        return self in {Expiry.PROBE, Expiry.PROBE_INSERT, Expiry.PROBE_ALL, Expiry.ALL}


@dataclass(frozen=True)
class Prediction:
    """What a global join order is expected to cost, in comparisons a second; ``others`` are the next best orders."""

    cost: float
    order: tuple[int, ...]
    others: tuple[tuple[float, tuple[int, ...]], ...] = ()


@dataclass(frozen=True)
class JoinPlan:
    """How a query's join is run.

    ``orders`` has, for each source as origin of new rows, the steps to take. Under EAGER the new row is bound
    first and the steps are the other sources; under the other algorithms the origin is among the steps, at
    the place where its new rows come in. ``snapshot`` computes the whole answer from one origin. ``reasons`` say
    in plain words why it is run so.
    """

    query: Query
    sources: tuple[SourcePlan, ...]
    orders: tuple[tuple[Step, ...], ...]
    residuals: tuple[Expression, ...]
    snapshot: tuple[int, tuple[Step, ...]]
    algorithm: Algorithm = Algorithm.EAGER
    expiry: Expiry = Expiry.OWN
    expiry_interval: int | None = None
    reevaluation: int | None = None
    prediction: Prediction | None = None
    reasons: tuple[str, ...] = ()

    @cached_property
    def results_in_order(self) -> bool:
        """Whether the steps already meet partners in the ruled order: FROM order, newest first."""
        if self.algorithm is not Algorithm.EAGER:
            return False
        return all([step.source for step in steps] == sorted(step.source for step in steps) for steps in self.orders)
