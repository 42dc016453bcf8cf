"""The physical plan of a window join: what is stored of each source, and the order of looking.

A *code* is an integer that stands for the value of an expression over one source: equal values have
equal codes, and for kinds other than HASH equal codes mean equal values and order is kept. Codes
are all a join kernel sees of a row besides its time and position.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from muntin.model.settings import Algorithm, Expiry
from muntin.plan.expression import Expression
from muntin.plan.probe_limits import Limiting
from muntin.plan.query import Query


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
class JoinStep:
    """One source in a join order: look into its window, by an index or all of it.

    ``keys`` has, for each code of the index, the bound source that supplies it; every candidate
    then has to pass ``checks`` (the keys among them: rows of one bucket may differ).
    """

    source: int
    index: int | None
    keys: tuple[tuple[int, int], ...]
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class TreeNode:
    """An inner node below the root.

    The sources of its partial matches, and by which codes its sibling looks them up.
    """

    sources: tuple[int, ...]
    key: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class TreeCheck:
    """``code of a source of the sibling  operator  code of a source bound before``."""

    operator: str
    own: tuple[int, int]
    other: tuple[int, int]


@dataclass(frozen=True)
class TreeStep:
    """One level of the way from a leaf to the root.

    Look into the sibling, keep what is found in the parent.

    ``source`` or ``node`` is the sibling; ``parent`` is None at the root.
    """

    source: int | None
    node: int | None
    index: int | None
    keys: tuple[tuple[int, int], ...]
    checks: tuple[TreeCheck, ...]
    parent: int | None


@dataclass(frozen=True)
class TreePlan:
    """A binary tree over the sources that keeps its intermediate results.

    ``climbs`` has the way up for each source.
    """

    text: str
    nodes: tuple[TreeNode, ...]
    climbs: tuple[tuple[TreeStep, ...], ...]


@dataclass(frozen=True)
class Prediction:
    """What a plan is expected to cost.

    ``cost`` is rows looked at per second (for nested loops: [Golab03]'s comparisons) and ``work``
    seconds of work per second, under ``orders`` (by origin); ``others`` are the next best global
    orders with the rows they look at.
    """

    cost: float
    work: float
    orders: tuple[tuple[int, ...], ...]
    others: tuple[tuple[float, tuple[int, ...]], ...] = ()

    @cached_property
    def order(self) -> tuple[int, ...] | None:
        """Return the one order that all origins follow, each put first.

        None when they go their own ways.
        """
        every = self.orders[0]
        for place in range(len(every)):
            order = (*every[1 : 1 + place], every[0], *every[1 + place :])
            if all(
                tuple(s for s in order if s != origin) == own[1:]
                for origin, own in enumerate(self.orders)
            ):
                return order
        return None


@dataclass(frozen=True)
class JoinPlan:
    """How a query's join is run.

    ``orders`` has, for each source as origin of new rows, the steps to take. Under EAGER the new
    row is bound first and the steps are the other sources; under the other algorithms the origin is
    among the steps, at the place where its new rows come in. ``snapshot`` computes the whole answer
    from one origin. ``equal`` has the codes, as (source, number), that the query forces to be
    equal; ``reasons`` say why the plan was chosen. A ``retracting`` join retracts matches whose
    rows leave; if it is not, a query that emits changes retracts them above the join. ``strategy``
    describes how. A ``limiting`` tree accepts a bound on the number of rows that may probe; if that
    was asked for and is not possible, ``limiting_obstacle`` is the reason.
    """

    query: Query
    sources: tuple[SourcePlan, ...]
    orders: tuple[tuple[JoinStep, ...], ...]
    residuals: tuple[Expression, ...]
    snapshot: tuple[int, tuple[JoinStep, ...]]
    algorithm: Algorithm = Algorithm.EAGER
    expiry: Expiry = Expiry.OWN
    expiry_interval: int | None = None
    reevaluation: int | None = None
    prediction: Prediction | None = None
    tree: TreePlan | None = None
    equal: tuple[frozenset[tuple[int, int]], ...] = ()
    reasons: tuple[str, ...] = ()
    retracting: bool = False
    strategy: str = ""
    limiting: Limiting | None = None
    limiting_obstacle: str = ""

    @cached_property
    def common_key(self) -> tuple[int, ...]:
        """Return the number of the code, per source, that the query forces to be equal in all.

        Empty if there is none.
        """
        for members in self.equal:
            codes = dict(sorted(members, reverse=True))
            if len(codes) == len(self.sources):
                return tuple(codes[source] for source in range(len(codes)))
        return ()

    @cached_property
    def results_in_order(self) -> bool:
        """Return whether the steps meet partners in the ruled order: FROM order, newest first."""
        if self.algorithm is not Algorithm.EAGER or self.tree is not None:
            return False
        return all(
            [step.source for step in steps] == sorted(step.source for step in steps)
            for steps in self.orders
        )
