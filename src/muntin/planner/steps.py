"""One step of a join order: how rows of a source are found for the sources bound before it."""

from __future__ import annotations

from collections.abc import Mapping

from muntin.plan.join import Check, JoinStep
from muntin.planner.classes import CodeRef
from muntin.planner.orders import Order
from muntin.planner.predicates import SortedPredicates

FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def make_step(
    parts: SortedPredicates,
    classes: Mapping[CodeRef, frozenset[CodeRef]],
    bound: Order,
    source: int,
    indexes: list[tuple[int, ...]] | None,
) -> JoinStep:
    """Return the step that finds rows of ``source`` for the sources bound before it.

    Records the index that it needs.
    """
    keys: dict[int, CodeRef] = {}
    checks = []
    for number in range(len(parts.codes.codes[source])):
        members = classes.get((source, number), frozenset())
        partners = sorted(node for node in members if node[0] in bound)
        # Bound members of a class are equal to each other already, unless one source has two of
        # them.
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
            checks.append(Check(FLIPPED[operator], right[1], *left))
    if indexes is None or not keys:
        return JoinStep(source, None, (), tuple(checks))
    codes = tuple(keys)
    if codes not in indexes:
        indexes.append(codes)
    return JoinStep(source, indexes.index(codes), tuple(keys.values()), tuple(checks))


def chain_step(step: JoinStep, indexes: list[list[tuple[int, ...]]]) -> JoinStep:
    """Return a step that scans, as a step over one bucket of all rows.

    [Kostowski06]'s nested loops are a hash join of one bucket.
    """
    if step.index is not None:
        return step
    if () not in indexes[step.source]:
        indexes[step.source].append(())
    return JoinStep(step.source, indexes[step.source].index(()), (), step.checks)
