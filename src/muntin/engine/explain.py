"""The description of a plan, and of a query that runs by it, as a tree of facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from muntin.engine.explain_overload import describe_overload
from muntin.engine.explain_predicates import by_measured_cost
from muntin.engine.explain_schedule import describe_levels, scheduler_facts
from muntin.model.clock import SECOND, format_instant, format_interval
from muntin.plan.description import Description, Fact
from muntin.plan.expression import Expression
from muntin.plan.join import Check, CodeKind, Index, JoinPlan, JoinStep, Prediction, TreePlan
from muntin.plan.query import Query
from muntin.runtime.metrics import Measured
from muntin.runtime.overload import Overload
from muntin.runtime.running_query import RunningQuery


def describe_query(running: RunningQuery, why: str) -> Description:
    """Describe the plan of a running query, its sharing group, its rows and its measurements.

    ``why`` is the reason why it shares its join or not.
    """
    node = describe_plan(running.plan, running.query)
    held = iter(running.join.state_rows().values())
    children = [
        _with_rows(child, next(held)) if child.key == "sources[]" else child
        for child in node.children
    ]
    children = by_measured_cost(children, running)
    names = list(running.shares_with())
    alone = f"this query alone: {why}" if why else "this query alone"
    shared = (
        Fact("queries", names, f"one join for {', '.join(names)}" if len(names) > 1 else alone),
        Fact("why", why or None),
        *scheduler_facts(running),
    )
    levels = describe_levels(running)
    children = [
        replace(child, facts=shared, children=levels, lists=("levels",) if levels else ())
        if child.key == "sharing_group"
        else child
        for child in children
    ]
    if isinstance(running.join.overload, Overload):
        children.append(describe_overload(running.join.overload))
    measured = running.join.metrics.measured()
    if measured is not None:
        children.append(
            _measured(measured, running.plan.prediction, tree=running.plan.tree is not None)
        )
    return replace(node, children=tuple(children))


def describe_plan(plan: JoinPlan, shown: Query | None = None) -> Description:
    """Describe the plan of a query.

    ``shown`` is the query if the plan is that of a join which it shares.
    """
    query = shown or plan.query
    timing = f"every {format_interval(query.every)}" if query.every else "at every change"
    facts = (
        Fact("query", query.name),
        Fact("emit", str(query.emit), f"emits {query.emit} {timing}"),
        Fact("every_seconds", _seconds(query.every)),
        *((Fact("pipeline", plan.strategy, plan.strategy),) if plan.strategy else ()),
    )
    children = [
        Description(
            "sharing_group", "sharing group", (Fact("queries", [query.name], "this query alone"),)
        )
    ]
    if len(plan.query.sources) > 1:
        children.append(_join(plan))
    elif plan.reasons:
        reason = "; ".join(plan.reasons)
        children.append(Description("reason", reason, (Fact("reason", reason),)))
    children += [_source(plan, place) for place in range(len(plan.query.sources))]
    children += _residuals(plan)
    columns = [column.name for column in query.select]
    children.append(
        Description("output", f"select {', '.join(columns)}", (Fact("columns", columns),))
    )
    return Description(
        "query", f"query {query.name}", facts, tuple(children), ("sources", "residuals")
    )


def _join(plan: JoinPlan) -> Description:
    method = _method(plan)
    facts = (
        Fact("method", method, method),
        Fact("algorithm", str(plan.algorithm), f"algorithm {plan.algorithm}"),
        Fact("reevaluation_seconds", _seconds(plan.reevaluation)),
        Fact("expiry", str(plan.expiry), f"expiry {plan.expiry}"),
        Fact("expiry_interval_seconds", _seconds(plan.expiry_interval)),
    )
    reasons = [
        Description("reasons[]", reason, (Fact("reason", reason),)) for reason in plan.reasons
    ]
    predictions = [_prediction(plan, plan.prediction)] if plan.prediction else []
    return Description("join", "join", facts, (*reasons, *predictions), ("reasons",))


def _prediction(plan: JoinPlan, prediction: Prediction) -> Description:
    query, order = plan.query, prediction.order
    work = Fact("work", prediction.work, f"{prediction.work:.2g} seconds of work per second")
    others = [_alternative(query, place, cost) for cost, place in prediction.others]
    comparisons = f"{_number(prediction.cost)} comparisons per second predicted"
    if plan.tree is not None:
        without = [_alternative(query, order, prediction.cost)] if order else []
        return Description(
            "prediction", "predicted", (work,), (*without, *others), ("alternatives",)
        )
    label = (
        f"order {', '.join(_aliases(query, order))}"
        if order
        else "a separate order for each origin"
    )
    facts = (*_predicted(query, order, prediction.cost, comparisons), work)
    return Description("prediction", label, facts, tuple(others), ("alternatives",))


def _alternative(query: Query, order: Sequence[int], cost: float) -> Description:
    return Description(
        "alternatives[]",
        f"instead of {', '.join(_aliases(query, order))}",
        _predicted(query, order, cost, _number(cost)),
    )


def _predicted(
    query: Query, order: Sequence[int] | None, cost: float, text: str
) -> tuple[Fact, ...]:
    return Fact("order", _aliases(query, order) if order else None), Fact(
        "comparisons_a_second", cost, text
    )


def _source(plan: JoinPlan, place: int) -> Description:
    query = plan.query
    source, planned = query.sources[place], plan.sources[place]
    relation = (
        source.relation if source.alias == source.relation else f"{source.relation} {source.alias}"
    )
    facts = (
        Fact("alias", source.alias),
        Fact("relation", source.relation),
        Fact("window", str(source.window)),
        Fact("stored", source.stored),
    )
    filters = [_readable(query, expression) for expression in planned.filters]
    children = [
        Description("filters[]", f"filter {condition}", (Fact("condition", condition),))
        for condition in filters
    ]
    children += [_index(plan, place, index) for index in planned.indexes]
    if len(query.sources) > 1 and not source.stored:
        children.append(_order(plan, place))
    return Description(
        "sources[]",
        f"source {relation} {source.window}",
        facts,
        tuple(children),
        ("filters", "indexes"),
    )


def _with_rows(source: Description, rows: int) -> Description:
    return replace(
        source,
        facts=(
            *source.facts,
            Fact("rows_held", rows, f"holds {rows:,} {'row' if rows == 1 else 'rows'}"),
        ),
    )


def _index(plan: JoinPlan, place: int, index: Index) -> Description:
    keys = _keys(plan, place, index)
    label = f"index on {', '.join(keys)} ({_buckets(index)})" if keys else "all rows in one chain"
    return Description("indexes[]", label, (Fact("keys", keys), Fact("buckets", index.buckets)))


def _buckets(index: Index) -> str:
    if index.buckets is None:
        return "about two buckets a row"
    return f"{index.buckets:,} {'bucket' if index.buckets == 1 else 'buckets'}"


def _keys(plan: JoinPlan, place: int, index: Index) -> list[str]:
    return [_code(plan, place, code) for code in index.codes]


def _order(plan: JoinPlan, origin: int) -> Description:
    """Describe where a new row of a source looks, in order, and what it checks there.

    Keys of an index are not repeated.
    """
    if plan.tree is not None:
        return _way_up(plan, plan.tree, origin)
    ways = " > ".join(_way(plan, step, origin) for step in plan.orders[origin])
    steps = tuple(_step(plan, step, origin) for step in plan.orders[origin])
    return Description("order", f"a new row looks into {ways}", (), steps, ("steps",))


def _way_up(plan: JoinPlan, tree: TreePlan, leaf: int) -> Description:
    """Return the siblings that a new row and its partial matches probe, up to the root."""
    aliases = [source.alias for source in plan.query.sources]
    steps = []
    for climb in tree.climbs[leaf]:
        members = (
            [climb.source]
            if climb.source is not None
            else list(tree.nodes[climb.node or 0].sources)
        )
        found = climb.index is not None if climb.source is not None else bool(climb.keys)
        facts = (
            Fact("sources", [aliases[s] for s in members]),
            Fact("access", "index" if found else "scan"),
        )
        steps.append(
            (
                f"{' with '.join(aliases[s] for s in members)} ({'index' if found else 'scan'})",
                Description("steps[]", "", facts),
            )
        )
    ways = " > ".join(text for text, _ in steps)
    return Description(
        "order", f"a new row looks into {ways}", (), tuple(node for _, node in steps), ("steps",)
    )


def _way(plan: JoinPlan, step: JoinStep, origin: int) -> str:
    alias = plan.query.sources[step.source].alias
    return f"({alias} new)" if step.source == origin else f"{alias} ({_access(plan, step)})"


def _access(plan: JoinPlan, step: JoinStep) -> str:
    return "index" if _step_keys(plan, step) else "scan"


def _step_keys(plan: JoinPlan, step: JoinStep) -> list[str]:
    """Return the keys by which a step looks rows up.

    None where it looks at all rows of a window.
    """
    return (
        []
        if step.index is None
        else _keys(plan, step.source, plan.sources[step.source].indexes[step.index])
    )


def _step(plan: JoinPlan, step: JoinStep, origin: int) -> Description:
    alias = plan.query.sources[step.source].alias
    checks = [_check(plan, step, check) for check in _further_checks(plan, step)]
    facts = (
        Fact("source", alias),
        Fact("access", "new row" if step.source == origin else _access(plan, step)),
        Fact("keys", _step_keys(plan, step)),
        Fact("checks", checks),
    )
    return Description(
        "steps[]", f"in {alias} checks {' and '.join(checks)}" if checks else "", facts
    )


def _further_checks(plan: JoinPlan, step: JoinStep) -> list[Check]:
    """Return the checks of a step without those that repeat the keys of its index."""
    if step.index is None:
        return list(step.checks)
    codes = plan.sources[step.source].indexes[step.index].codes
    looked_up = {("=", code, *supplier) for code, supplier in zip(codes, step.keys, strict=True)}
    return [
        check
        for check in step.checks
        if (check.operator, check.code, check.source, check.source_code) not in looked_up
    ]


def _check(plan: JoinPlan, step: JoinStep, check: Check) -> str:
    own = _code(plan, step.source, check.code)
    other = _code(plan, check.source, check.source_code)
    return f"{own} {check.operator} {other}"


def _code(plan: JoinPlan, source: int, code: int) -> str:
    return _readable(plan.query, plan.sources[source].codes[code].expression)


def _residuals(plan: JoinPlan) -> list[Description]:
    """Return the conditions that candidates still have to meet.

    Keys that were compared by their hashes are among them.
    """
    query = plan.query
    hashed = {
        code.expression.sql
        for planned in plan.sources
        for code in planned.codes
        if code.kind is CodeKind.HASH
    }
    again = {
        p.expression.sql
        for p in query.predicates
        if p.comparison and {p.comparison.left.sql, p.comparison.right.sql} <= hashed
    }
    nodes = []
    for residual in plan.residuals:
        repeated = residual.sql in again
        fact = Fact("hashed_keys", repeated)
        rechecked = ", hashed keys checked again" if repeated else ""
        label = f"then keep {_readable(query, residual)}{rechecked}"
        nodes.append(
            Description("residuals[]", label, (Fact("condition", _readable(query, residual)), fact))
        )
    return nodes


def _measured(measured: Measured, prediction: Prediction | None, *, tree: bool) -> Description:
    """Describe the measurements under this plan, beside the prediction."""
    rate = measured.per_second("comparisons")
    facts = [
        Fact("since", format_instant(measured.since)),
        Fact("seconds", measured.seconds),
        Fact("comparisons_a_second", rate, f"{_number(rate)} comparisons per second"),
    ]
    if prediction and not tree:
        facts.append(
            Fact(
                "predicted_comparisons_a_second",
                prediction.cost,
                f"{_number(prediction.cost)} predicted",
            )
        )
    counts = tuple(
        Fact(name, count, f"{count:,} {name.replace('_', ' ')}")
        for name, count in measured.counts.items()
    )
    label = f"measured since {format_instant(measured.since)}, {_number(measured.seconds)} seconds"
    return Description("measured", label, tuple(facts), (Description("counts", "in all", counts),))


def _method(plan: JoinPlan) -> str:
    if plan.tree is not None:
        return (
            f"tree {plan.tree.text} that keeps intermediate results"
            if plan.tree.nodes
            else f"tree {plan.tree.text}"
        )
    steps = [
        step for origin, order in enumerate(plan.orders) for step in order if step.source != origin
    ]
    indexed = sum(bool(_step_keys(plan, step)) for step in steps)
    if not indexed:
        return "nested loops"
    return "hash" if indexed == len(steps) else "hybrid of hash and nested loops"


def _aliases(query: Query, order: Sequence[int]) -> list[str]:
    return [query.sources[place].alias for place in order]


def _readable(query: Query, expression: Expression) -> str:
    """Return the expression with columns as users write them."""
    text = expression.sql
    for reference in sorted(expression.references, reverse=True):
        text = text.replace(
            f'"{reference.flat}"', f"{query.sources[reference.source].alias}.{reference.column}"
        )
    return text


def _seconds(micros: int | None) -> float | None:
    return None if micros is None else micros / SECOND


def _number(value: float) -> str:
    """Return a number with three significant digits, or all before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
