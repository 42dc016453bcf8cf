"""The physical plan of a select-project-join query.

Predicates are sorted into their places, the choices that cost decides are made where statistics are known, and then every
origin gets its steps and every source the indexes that some step uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from muntin.errors import SettingError
from muntin.model.settings import (
    Algorithm,
    Expiry,
    GivenTree,
    JoinMethod,
    Settings,
    TreeChoice,
)
from muntin.model.statistics import JoinStatistics, SourceStatistics, StreamStatistics
from muntin.model.window import PartitionedWindow, RowsWindow, TimeWindow
from muntin.plan.join import Index, JoinPlan, SourcePlan, Step
from muntin.plan.probe_limits import Limiting
from muntin.plan.query import Emit, Query
from muntin.planner.choices import Choice, Limits, choose, choose_expiry, least_work
from muntin.planner.classes import Node, equality_classes
from muntin.planner.join_graph import JoinGraph
from muntin.planner.local_orders import join_cost
from muntin.planner.multi_join_cost import WindowStatistics
from muntin.planner.order_search import local_orders
from muntin.planner.orders import Connected, Wishes, along_graph, choose_orders
from muntin.planner.overload_plan import choose_shape, is_adapting, not_limited, plan_limiting
from muntin.planner.predicates import SortedPredicates, sort_predicates
from muntin.planner.steps import chain_step, make_step
from muntin.planner.strategies import choose_strategy, retracts
from muntin.planner.tree_choice import tree_cost
from muntin.planner.tree_planner import TreePlanner, parse_shape
from muntin.planner.unit_costs import DEFAULT_COSTS, UnitCosts

SECOND = 1_000_000
_UNKNOWN_TABLE = 1_000.0
"""Rows of a stored table, as far as a plan before any data knows."""
_NEVER_SCAN = 1e6
"""Cost of a scanned row under join = 'hash': orders that scan are taken only when there is no other."""

Classes = Mapping[Node, frozenset[Node]]


@dataclass(frozen=True)
class Knowledge:
    """What planning may rely on: declared statistics by stream, statistics measured by a running query, costs of steps."""

    declared: Mapping[str, StreamStatistics] | None = None
    measured: JoinStatistics | None = None
    costs: UnitCosts = DEFAULT_COSTS


def plan_join(query: Query, settings: Settings, known: Knowledge | None = None) -> JoinPlan:
    """The plan of a query under the given settings; what is known of its streams chooses where the settings do not."""
    known = known or Knowledge()
    parts = sort_predicates(query)
    classes = equality_classes(parts.equalities)
    algorithm = _choose_algorithm(query, settings)
    graph = _graph(query, settings, parts, classes, known)
    expiry, interval, expiry_reason = _choose_expiry(query, settings, algorithm, graph, known.costs)
    indexed = _indexed_sources(query, settings)
    limits = _limits(query, settings, algorithm, expiry)
    aliases = [source.alias for source in query.sources]

    def connected(bound: int, source: int) -> bool:
        return any(
            node[0] == source and any(other[0] == bound for other in members)
            for node, members in classes.items()
        )

    limiting: Limiting | None = None
    told: tuple[str, ...] = ()
    if is_adapting(settings):
        limiting, told = _limited(query, settings, algorithm)
    if limiting is not None and limits.tree is None:
        best, why = choose_shape(along_graph(len(aliases), 0, connected), graph, known.costs)
        limits, told = replace(limits, tree=best), (f"{told[0]}; this one: {why}",)
    choice = (
        choose(graph, limits, _weighed(settings, known.costs), aliases)
        if graph and len(query.sources) > 1
        else None
    )
    if choice:
        indexed = {source for source in indexed if choice.buckets[source] != 1}

    cheapest = choice.orders if choice else None
    if algorithm is Algorithm.GENERAL_LAZY and graph:
        cheapest = _general_orders(graph, query.every or settings.join.reevaluation) or cheapest
    orders = choose_orders(query, Wishes(settings.join.order, cheapest, connected), algorithm)
    indexes: list[list[tuple[int, ...]]] = [[] for _ in query.sources]
    shape = choice.shape if choice else limits.tree
    tree = None
    if shape is not None:
        tree = TreePlanner(parts, classes, indexes, indexed).plan(shape, aliases)
    steps = _steps(
        parts,
        classes,
        orders,
        algorithm,
        [None if s not in indexed or tree else indexes[s] for s in range(len(query.sources))],
    )
    _check_hash(query, settings, steps if tree is None else ())
    if expiry.cleans_buckets:
        steps = [tuple(chain_step(step, indexes) for step in order) for order in steps]
    snapshot = _plan_snapshot(query, parts, classes, connected, indexes)
    buckets = _buckets(query, settings, choice)
    sources = tuple(
        SourcePlan(
            tuple(parts.filters[place]),
            tuple(parts.codes.codes[place]),
            tuple(Index(codes, buckets[place] if codes else 1) for codes in indexes[place]),
        )
        for place in range(len(query.sources))
    )
    return JoinPlan(
        query, sources, tuple(steps), tuple(parts.residuals), snapshot, algorithm, expiry,
        expiry_interval=interval, reevaluation=query.every or settings.join.reevaluation,
        prediction=choice.prediction if choice else None, tree=tree,
        equal=tuple(sorted(set(classes.values()), key=sorted)), reasons=((*choice.reasons, expiry_reason) if choice else ()) + told,
        retracting=retracts(query, settings), strategy=choose_strategy(query, settings)[1] if query.emit is Emit.CHANGES else "",
        limiting=limiting,
    )  # fmt: skip


def _limited(
    query: Query, settings: Settings, algorithm: Algorithm
) -> tuple[Limiting | None, tuple[str, ...]]:
    """How the join is limited under overload, and what there is to say about it."""
    obstacle = not_limited(query, settings, algorithm)
    if obstacle:
        return None, (f"not limited under overload: {obstacle}",)
    return plan_limiting(query, settings), (
        "overload adapt: a tree, whose half joins may be told how many rows may probe",
    )


def compare_work(plan: JoinPlan, settings: Settings, known: Knowledge) -> tuple[float, float]:
    """Seconds of work a second that a plan is predicted to cost as it is, and that the best one would; no plan is made."""
    query = plan.query
    parts = sort_predicates(query)
    graph = _graph(query, settings, parts, equality_classes(parts.equalities), known)
    assert graph is not None, "a running query's statistics are whole"
    return _work(plan, graph, known.costs), least_work(
        graph,
        _limits(query, settings, plan.algorithm, plan.expiry),
        _weighed(settings, known.costs),
    )


def _work(plan: JoinPlan, graph: JoinGraph, costs: UnitCosts) -> float:
    graph = graph.having([_buckets_of(source) for source in plan.sources])
    if plan.tree is not None:
        time = tree_cost(graph, parse_shape(plan.tree.text, plan.query), costs).time
    else:
        orders = [
            (origin, *(step.source for step in steps if step.source != origin))
            for origin, steps in enumerate(plan.orders)
        ]
        time = join_cost(graph, orders, costs).time
    return time * 1e-9


def _buckets_of(source: SourcePlan) -> int:
    keyed = [index for index in source.indexes if index.codes]
    return (keyed[0].buckets or 0) if keyed else 1


# -- what is known -----------------------------------------------------------------------------------


def _graph(
    query: Query, settings: Settings, parts: SortedPredicates, classes: Classes, known: Knowledge
) -> JoinGraph | None:
    """The join graph; None unless something is known of every stream."""
    statistics = known.measured or _declared(query, parts, known.declared or {})
    if statistics is None:
        return None
    indexed = _indexed_sources(query, settings)
    buckets = tuple(
        (number or 0) if place in indexed else 1
        for place, number in enumerate(_given_buckets(query, settings))
    )
    return JoinGraph(
        statistics,
        tuple(sorted(set(classes.values()), key=sorted)),
        tuple(parts.comparisons),
        buckets,
    )


def _declared(
    query: Query, parts: SortedPredicates, declared: Mapping[str, StreamStatistics]
) -> JoinStatistics | None:
    sources = []
    for place, source in enumerate(query.sources):
        codes = len(parts.codes.codes[place])
        stream = declared.get(source.relation)
        if source.stored:
            sources.append(SourceStatistics(0.0, _UNKNOWN_TABLE, (_UNKNOWN_TABLE,) * codes))
            continue
        if stream is None:
            return None
        if isinstance(source.window, TimeWindow):
            rows = stream.rate * source.window.micros / SECOND
        elif isinstance(source.window, PartitionedWindow):
            rows = source.window.rows * stream.distinct
        else:
            assert isinstance(source.window, RowsWindow), "a stream has one of three windows"
            rows = float(source.window.rows)
        sources.append(SourceStatistics(stream.rate, rows, (stream.distinct,) * codes))
    return JoinStatistics(tuple(sources))


# -- choices -----------------------------------------------------------------------------------------


def _choose_algorithm(query: Query, settings: Settings) -> Algorithm:
    """The algorithm to use: changes need every row in its turn."""
    if query.emit is Emit.CHANGES or settings.join.algorithm is None:
        return Algorithm.EAGER
    return settings.join.algorithm


def _choose_expiry(
    query: Query,
    settings: Settings,
    algorithm: Algorithm,
    graph: JoinGraph | None,
    costs: UnitCosts,
) -> tuple[Expiry, int | None, str]:
    """The expiry to use, its interval, and why: retractions need every expiry in its turn."""
    interval = settings.expiry.interval
    if retracts(query, settings):
        return Expiry.EAGER, interval, "expiry eager: every retraction comes in its turn"
    expiry = settings.expiry.policy or Expiry.OWN
    if is_adapting(settings) and not not_limited(query, settings, algorithm):
        return expiry, interval, "expiry own: a tree lets rows go as others come"
    if algorithm in {Algorithm.LAZY, Algorithm.GENERAL_LAZY} and expiry not in {
        Expiry.OWN,
        Expiry.LAZY,
    }:
        raise SettingError(
            f"algorithm {algorithm} cannot expire rows by {expiry}",
            hint="It needs old rows until it joins; use expiry 'own' or 'lazy', or algorithm 'eager'",
        )
    if graph is None or algorithm is not Algorithm.EAGER:
        return expiry, interval, ""
    lengths = [
        source.window.micros if isinstance(source.window, TimeWindow) else None
        for source in query.sources
    ]
    return choose_expiry(graph, settings, lengths, costs)


def _limits(query: Query, settings: Settings, algorithm: Algorithm, expiry: Expiry) -> Limits:
    """What the settings leave to choose."""
    possible = (
        len(query.sources) > (1 if is_adapting(settings) else 2)
        and not retracts(query, settings)
        and algorithm is Algorithm.EAGER
        and expiry is Expiry.OWN
        and not any(isinstance(source.window, PartitionedWindow) for source in query.sources)
    )
    tree, shape = settings.join.tree, None
    if isinstance(tree, GivenTree):
        shape = parse_shape(tree.text, query) if len(query.sources) > 1 else None
        if not possible:
            raise SettingError(
                f"query {query.name} cannot run as a tree",
                hint="Trees are for three or more sources without PARTITION BY windows, joins that take nothing back, "
                "algorithm and expiry 'auto'",
            )
    return Limits(
        orders=tuple(
            choose_orders(
                query, Wishes(settings.join.order, None, lambda _a, _b: True), Algorithm.EAGER
            )
        )
        if settings.join.order
        else None,
        memory=settings.join.index_memory,
        scan_allowed=settings.join.method is None
        and not settings.join.index
        and settings.join.buckets is None,
        tree=shape,
        tree_allowed=possible
        and tree is TreeChoice.AUTO
        and settings.join.method is not JoinMethod.NESTED_LOOP
        and settings.join.index_memory is None,
    )


def _weighed(settings: Settings, costs: UnitCosts) -> UnitCosts:
    """The costs by which to choose."""
    return replace(costs, scanned=_NEVER_SCAN) if settings.join.method is JoinMethod.HASH else costs


def _general_orders(graph: JoinGraph, interval: int | None) -> tuple[tuple[int, ...], ...] | None:
    """The orders of GENERAL LAZY, new rows at any place; None unless one attribute is common to all and the interval is known."""
    whole = next(
        (
            members
            for members in graph.classes
            if len({node[0] for node in members}) == graph.count == len(members)
        ),
        None,
    )
    if (
        whole is None
        or interval is None
        or any(not graph.rate(source) for source in range(graph.count))
    ):
        return None
    windows = [
        WindowStatistics(
            graph.rate(node[0]),
            graph.rows(node[0]),
            graph.distinct(node),
            graph.buckets[node[0]] or round(graph.distinct(node)),
        )
        for node in sorted(whole)
    ]
    return local_orders(windows, interval / SECOND).orders


def _given_buckets(query: Query, settings: Settings) -> list[int | None]:
    """Return the buckets of each source's indexes that the settings give, else None."""
    given = settings.join.buckets
    if given is None:
        return [None] * len(query.sources)
    _check_aliases(query, "buckets", {alias for alias, _ in given.by_alias})
    return [given.of(source.alias) for source in query.sources]


def _buckets(query: Query, settings: Settings, choice: Choice | None) -> list[int | None]:
    """Buckets of each source's indexes; None: about two a row."""
    given = _given_buckets(query, settings)
    if choice and settings.join.index_memory:
        return [
            number or (choice.buckets[place] if choice.buckets[place] > 1 else None)
            for place, number in enumerate(given)
        ]
    return given


def _indexed_sources(query: Query, settings: Settings) -> set[int]:
    """The sources whose windows may have an index."""
    if settings.join.method is JoinMethod.NESTED_LOOP:
        return set()
    named = settings.join.index
    _check_aliases(query, "index", named)
    return {
        place
        for place, source in enumerate(query.sources)
        if not named or source.alias.casefold() in named
    }


def _check_aliases(query: Query, setting: str, named: AbstractSet[str]) -> None:
    unknown = named - {source.alias.casefold() for source in query.sources}
    if unknown:
        aliases = ", ".join(source.alias for source in query.sources)
        raise SettingError(
            f"setting {setting} names {', '.join(sorted(unknown))}, not in FROM of query {query.name}",
            hint=f"Use {aliases}",
        )


# -- steps -------------------------------------------------------------------------------------------


def _steps(
    parts: SortedPredicates,
    classes: Classes,
    orders: Sequence[tuple[int, ...]],
    algorithm: Algorithm,
    indexes: Sequence[list[tuple[int, ...]] | None],
) -> list[tuple[Step, ...]]:
    """The steps of every origin; under EAGER the origin is bound before them."""
    bound_first = algorithm is Algorithm.EAGER
    return [
        tuple(
            make_step(parts, classes, order[:place], source, indexes[source])
            for place, source in enumerate(order)
            if not (bound_first and source == origin)
        )
        for origin, order in enumerate(orders)
    ]


def _plan_snapshot(
    query: Query,
    parts: SortedPredicates,
    classes: Classes,
    connected: Connected,
    indexes: list[list[tuple[int, ...]]],
) -> tuple[int, tuple[Step, ...]]:
    """Steps from the first stream to all other sources, with the indexes there are."""
    origin = next(place for place, source in enumerate(query.sources) if not source.stored)
    order = along_graph(len(query.sources), origin, connected)
    steps = []
    for place, source in enumerate(order[1:], 1):
        there = list(indexes[source])
        step = make_step(parts, classes, order[:place], source, there)
        steps.append(step if there == indexes[source] else Step(source, None, (), step.checks))
    return origin, tuple(steps)


def _check_hash(query: Query, settings: Settings, orders: Sequence[Sequence[Step]]) -> None:
    if settings.join.method is not JoinMethod.HASH:
        return
    for steps in orders:
        for step in steps[-(len(query.sources) - 1) :]:
            if step.index is None and len(query.sources) > 1:
                raise SettingError(
                    f"query {query.name} cannot be a pure hash join: no equality leads to {query.sources[step.source].alias}",
                    hint="Use join = 'hybrid'",
                )
