"""The physical plan of a select-project-join query.

Predicates are sorted into four places: filters on one source, equalities and comparisons that codes can
decide inside the join, and residuals that DuckDB decides on candidates. Then every origin gets its steps,
and every source the indexes that some step uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from muntin.errors import SettingError
from muntin.model.settings import Settings, parse_buckets
from muntin.model.statistics import StreamStatistics
from muntin.model.window import PartitionedWindow, RowsWindow, TimeWindow
from muntin.plan.join import Algorithm, Check, Code, CodeKind, Expiry, Index, JoinPlan, Prediction, SourcePlan, Step
from muntin.plan.query import Emit, Expression, Query, Source
from muntin.planner.classes import CodeTable, Node, equality_classes
from muntin.planner.codes import code_kind
from muntin.planner.multi_join_cost import WindowStatistics, eager_cost
from muntin.planner.order_search import search
from muntin.planner.orders import Connected, Order, Wishes, along_graph, choose_orders

SECOND = 1_000_000
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass
class _Sorted:
    """The predicates of a query, each in its place."""

    filters: list[list[Expression]]
    codes: CodeTable
    equalities: list[tuple[Node, Node]] = field(default_factory=list)
    comparisons: list[tuple[Node, str, Node]] = field(default_factory=list)
    residuals: list[Expression] = field(default_factory=list)


def plan_join(query: Query, settings: Settings, statistics: Mapping[str, StreamStatistics] | None = None) -> JoinPlan:
    """The plan of a query under the given settings; ``statistics`` of its streams, where known, choose the join order."""
    algorithm, expiry = _choose_algorithm(query, settings)
    parts = _sort_predicates(query)
    classes = equality_classes(parts.equalities)

    def connected(bound: int, source: int) -> bool:
        return any(node[0] == source and any(other[0] == bound for other in members) for node, members in classes.items())

    indexed = _indexed_sources(query, settings)
    prediction = _predict(query, classes, _window_statistics(query, settings, indexed, statistics or {}))
    orders = choose_orders(query, Wishes(settings.order, prediction.order if prediction else None, connected), algorithm)
    indexes: list[list[tuple[int, ...]]] = [[] for _ in query.sources]
    steps = []
    for origin, order in enumerate(orders):
        bound_first = algorithm is Algorithm.EAGER
        steps.append(tuple(
            _make_step(parts, classes, order[:place], source, indexes[source] if source in indexed else None)
            for place, source in enumerate(order) if not (bound_first and source == origin)
        ))  # fmt: skip
    _check_hash(query, settings, steps)
    if expiry.cleans_buckets:
        steps = [tuple(_chain_step(step, indexes) for step in order) for order in steps]
    snapshot = _plan_snapshot(query, parts, classes, connected, indexes)
    everywhere, single = parse_buckets(settings.buckets)
    sources = tuple(
        SourcePlan(
            tuple(parts.filters[place]),
            tuple(parts.codes.codes[place]),
            tuple(Index(codes, (single.get(source.alias.casefold(), everywhere) if codes else 1)) for codes in indexes[place]),
        )
        for place, source in enumerate(query.sources)
    )
    return JoinPlan(
        query, sources, tuple(steps), tuple(parts.residuals), snapshot, algorithm, expiry,
        expiry_interval=settings.interval("expiry_interval"), reevaluation=query.every or settings.interval("reevaluation"),
        prediction=None if settings.order else prediction,
    )  # fmt: skip


def _window_statistics(
    query: Query, settings: Settings, indexed: set[int], statistics: Mapping[str, StreamStatistics]
) -> list[WindowStatistics] | None:
    """The windows as the cost model sees them; None unless every source is a stream with known statistics."""
    everywhere, single = parse_buckets(settings.buckets)
    windows = []
    for place, source in enumerate(query.sources):
        known = statistics.get(source.relation)
        if known is None or source.stored:
            return None
        rows = known.rate * source.window.micros / SECOND if isinstance(source.window, TimeWindow) else float(_counted_rows(source, known))
        # More buckets than values bring nothing: rows of one value stay together.
        values = max(1, int(known.distinct))
        buckets = min(single.get(source.alias.casefold(), everywhere) or values, values)
        windows.append(WindowStatistics(known.rate, rows, known.distinct, buckets if place in indexed else 1))
    return windows


def _counted_rows(source: Source, known: StreamStatistics) -> float:
    if isinstance(source.window, PartitionedWindow):
        return source.window.rows * known.distinct
    assert isinstance(source.window, RowsWindow), "stored tables have no statistics"
    return source.window.rows


def _predict(query: Query, classes: Mapping[Node, frozenset[Node]], windows: list[WindowStatistics] | None) -> Prediction | None:
    """The cheapest global order, where one attribute is common to all sources: only then can they be put into any order."""
    common = any({node[0] for node in members} == set(range(len(query.sources))) for members in classes.values())
    if windows is None or not common or len(windows) < 3:
        return None
    best, *others = search(windows)
    return Prediction(best.cost, best.order, tuple((other.cost, other.order) for other in others[:3]))


def order_cost(query: Query, settings: Settings, statistics: Mapping[str, StreamStatistics], order: Order) -> float:
    """What a global order is predicted to cost, for a query all of whose sources have statistics."""
    windows = _window_statistics(query, settings, _indexed_sources(query, settings), statistics)
    assert windows is not None, "all sources have statistics"
    return eager_cost(order, windows)


def _plan_snapshot(
    query: Query, parts: _Sorted, classes: Mapping[Node, frozenset[Node]], connected: Connected, indexes: list[list[tuple[int, ...]]]
) -> tuple[int, tuple[Step, ...]]:
    """Steps from the first stream to all other sources, with the indexes there are."""
    origin = next(place for place, source in enumerate(query.sources) if not source.stored)
    order = along_graph(len(query.sources), origin, connected)
    steps = []
    for place, source in enumerate(order[1:], 1):
        there = list(indexes[source])
        step = _make_step(parts, classes, order[:place], source, there)
        steps.append(step if there == indexes[source] else Step(source, None, (), step.checks))
    return origin, tuple(steps)


def _choose_algorithm(query: Query, settings: Settings) -> tuple[Algorithm, Expiry]:
    """The algorithm and expiry to use: retractions need every row and every expiry in its turn."""
    if query.emit is Emit.CHANGES:
        return Algorithm.EAGER, Expiry.EAGER
    algorithm = Algorithm.EAGER if settings.algorithm == "auto" else Algorithm(settings.algorithm)
    expiry = Expiry(settings.expiry)
    if algorithm in {Algorithm.LAZY, Algorithm.GENERAL_LAZY} and expiry not in {Expiry.OWN, Expiry.LAZY}:
        raise SettingError(
            f"algorithm {algorithm} cannot expire rows by {expiry}",
            hint="It needs old rows until it joins; use expiry 'own' or 'lazy', or algorithm 'eager'",
        )
    return algorithm, expiry


def _sort_predicates(query: Query) -> _Sorted:
    parts = _Sorted([[] for _ in query.sources], CodeTable([[] for _ in query.sources]))
    for predicate in query.predicates:
        expression = predicate.expression
        if len(expression.sources) <= 1:
            parts.filters[min(expression.sources, default=0)].append(expression)
            continue
        comparison = predicate.comparison
        if comparison is None or not len(comparison.left.sources) == len(comparison.right.sources) == 1:
            parts.residuals.append(expression)
            continue
        kind = code_kind(comparison.left.type, comparison.right.type, comparison.operator)
        if kind is None:
            parts.residuals.append(expression)
            continue
        left, right = (parts.codes.node(min(side.sources), Code(side, kind)) for side in (comparison.left, comparison.right))
        if comparison.operator == "=":
            parts.equalities.append((left, right))
        else:
            parts.comparisons.append((left, comparison.operator, right))
        if kind is CodeKind.HASH:
            parts.residuals.append(expression)
    return parts


def _indexed_sources(query: Query, settings: Settings) -> set[int]:
    """The sources whose windows may have an index."""
    if settings.join == "nested_loop":
        return set()
    named = {alias.strip().casefold() for alias in settings.index.split(",") if alias.strip()}
    unknown = named - {source.alias.casefold() for source in query.sources}
    if unknown:
        aliases = ", ".join(source.alias for source in query.sources)
        raise SettingError(f"setting index names {', '.join(sorted(unknown))}, not in FROM of query {query.name}", hint=f"Use {aliases}")
    return {place for place, source in enumerate(query.sources) if not named or source.alias.casefold() in named}


def _make_step(
    parts: _Sorted, classes: Mapping[Node, frozenset[Node]], bound: Order, source: int, indexes: list[tuple[int, ...]] | None
) -> Step:
    """The step that finds rows of ``source`` for the sources bound before it; notes the index it wants."""
    keys: dict[int, Node] = {}
    checks = []
    for number in range(len(parts.codes.codes[source])):
        members = classes.get((source, number), frozenset())
        partners = sorted(node for node in members if node[0] in bound)
        # Bound members of a class are equal to each other already, unless one source has two of them.
        several = len({node[0] for node in members}) != len(members)
        for place, node in enumerate(partners):
            if place == 0:
                keys[number] = node
            if place == 0 or several:
                checks.append(Check("=", number, *node))
    for left, operator, right in parts.comparisons:
        if left[0] == source and right[0] in bound:
            checks.append(Check(operator, left[1], *right))
        elif right[0] == source and left[0] in bound:
            checks.append(Check(_FLIPPED[operator], right[1], *left))
    if indexes is None or not keys:
        return Step(source, None, (), tuple(checks))
    codes = tuple(keys)
    if codes not in indexes:
        indexes.append(codes)
    return Step(source, indexes.index(codes), tuple(keys.values()), tuple(checks))


def _chain_step(step: Step, indexes: list[list[tuple[int, ...]]]) -> Step:
    """A step that scans, as a step over one bucket of all rows: paper 4's nested loops are a hash join of one bucket."""
    if step.index is not None:
        return step
    if () not in indexes[step.source]:
        indexes[step.source].append(())
    return Step(step.source, indexes[step.source].index(()), (), step.checks)


def _check_hash(query: Query, settings: Settings, orders: Sequence[Sequence[Step]]) -> None:
    if settings.join != "hash":
        return
    for steps in orders:
        for step in steps[-(len(query.sources) - 1) :]:
            if step.index is None and len(query.sources) > 1:
                raise SettingError(
                    f"query {query.name} cannot be a pure hash join: no equality leads to {query.sources[step.source].alias}",
                    hint="Use join = 'hybrid'",
                )
