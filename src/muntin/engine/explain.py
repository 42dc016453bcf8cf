"""The plan of a running query as text for people."""

from __future__ import annotations

from collections.abc import Sequence

from muntin.engine.running_query import RunningQuery
from muntin.model.clock import format_interval
from muntin.plan.join import Algorithm, CodeKind, JoinPlan, Step
from muntin.plan.query import Expression, Query


def explain_query(running: RunningQuery) -> str:
    """How the query is run, and the rows it holds."""
    return "\n".join([*explain_plan(running.plan), *_state_lines(running)])


def explain_plan(plan: JoinPlan) -> list[str]:
    """The plan as an indented tree, one line a fact."""
    query = plan.query
    timing = f"every {format_interval(query.every)}" if query.every else "at every change"
    lines = [f"query {query.name}: emits {query.emit} {timing}"]
    if len(query.sources) > 1:
        lines.append(f"  join: {_method(plan)}, algorithm {plan.algorithm}, expiry {plan.expiry}")
    if plan.prediction:
        order = _order(query, plan.prediction.order) if plan.prediction.order else "of its own for each origin"
        lines.append(f"  order {order}: {plan.prediction.cost:,.0f} comparisons a second predicted")
        lines += [f"    instead of {_order(query, order)}: {cost:,.0f}" for cost, order in plan.prediction.others]
    for place, (source, planned) in enumerate(zip(query.sources, plan.sources, strict=True)):
        relation = source.relation if source.alias == source.relation else f"{source.relation} {source.alias}"
        lines.append(f"  source {relation} {source.window}")
        lines += [f"    filter {_readable(query, expression)}" for expression in planned.filters]
        for index in planned.indexes:
            keys = ", ".join(_readable(query, planned.codes[code].expression) for code in index.codes) or "all rows in one bucket"
            buckets = f"{index.buckets} buckets" if index.buckets else "about two buckets a row"
            lines.append(f"    index on {keys} ({buckets})")
        if len(query.sources) > 1 and not source.stored:
            lines.append(f"    a new row looks into {_steps(plan, place)}")
    hashed = {code.expression.sql for planned in plan.sources for code in planned.codes if code.kind is CodeKind.HASH}
    again = {p.expression.sql for p in query.predicates if p.comparison and {p.comparison.left.sql, p.comparison.right.sql} <= hashed}
    for residual in plan.residuals:
        lines.append(f"  then keep {_readable(query, residual)}{', hashed keys checked again' if residual.sql in again else ''}")
    lines.append(f"  select {', '.join(column.name for column in query.select)}")
    return lines


def _order(query: Query, order: Sequence[int]) -> str:
    return ", ".join(query.sources[place].alias for place in order)


def _method(plan: JoinPlan) -> str:
    steps = [step for origin, order in enumerate(plan.orders) for step in order if step.source != origin]
    indexed = sum(step.index is not None for step in steps)
    if not indexed:
        return "nested loops"
    return "hash" if indexed == len(steps) else "hybrid of hash and nested loops"


def _steps(plan: JoinPlan, origin: int) -> str:
    query = plan.query
    steps: Sequence[Step] = plan.orders[origin]
    if plan.algorithm is not Algorithm.EAGER:
        return " > ".join(f"({query.sources[step.source].alias} new)" if step.source == origin else _step(query, step) for step in steps)
    return " > ".join(_step(query, step) for step in steps)


def _step(query: Query, step: Step) -> str:
    return f"{query.sources[step.source].alias} ({'scan' if step.index is None else 'index'})"


def _readable(query: Query, expression: Expression) -> str:
    """The expression with columns as users write them."""
    text = expression.sql
    for reference in sorted(expression.references, reverse=True):
        text = text.replace(f'"{reference.flat}"', f"{query.sources[reference.source].alias}.{reference.column}")
    return text


def _state_lines(running: RunningQuery) -> list[str]:
    rows = ", ".join(f"{alias} {count:,}" for alias, count in running.state_rows().items())
    return [f"  holds rows: {rows}"]
