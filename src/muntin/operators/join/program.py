"""A join plan as kernels read it: window specifications, join orders, and which kernel fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from muntin.kernels import layout
from muntin.kernels.arrays import Program
from muntin.model.settings import Algorithm, Expiry
from muntin.model.window import PartitionedWindow, RowsWindow, TimeWindow, Window
from muntin.plan.join import JoinPlan, JoinStep
from muntin.state.join_state import IndexSpec, StoreSpec

_TWO = 2

OPERATORS = {
    "=": layout.EQ,
    "<>": layout.NE,
    "<": layout.LT,
    "<=": layout.LE,
    ">": layout.GT,
    ">=": layout.GE,
}


def window_kind(window: Window) -> tuple[int, int]:
    """Return the kind and the size of a window as kernels know them."""
    if isinstance(window, TimeWindow):
        return layout.TIME, window.micros
    if isinstance(window, RowsWindow):
        return layout.COUNT, window.rows
    if isinstance(window, PartitionedWindow):
        return layout.PARTITIONED, window.rows
    return layout.STORED, 0


def store_specs(plan: JoinPlan, streams: Mapping[str, int]) -> tuple[StoreSpec, ...]:
    """Return the specifications of a join's stores; ``streams`` numbers the streams it reads."""
    specs = []
    for source, planned in zip(plan.query.sources, plan.sources, strict=True):
        kind, size = window_kind(source.window)
        indexes = tuple(IndexSpec(index.codes, index.buckets) for index in planned.indexes)
        specs.append(
            StoreSpec(
                kind,
                size,
                -1 if source.stored else streams[source.relation],
                len(planned.codes),
                indexes,
            )
        )
    return tuple(specs)


def make_program(
    plan: JoinPlan, orders: Sequence[Sequence[JoinStep]], first_index: npt.NDArray[np.int64]
) -> Program:
    """Return join orders in one flat array: ``sources`` steps of ``stride`` numbers per origin."""
    sources = plan.query.sources
    arguments = max(
        (2 * len(step.keys) + 4 * len(step.checks) for order in orders for step in order),
        default=0,
    )
    stride = layout.STEP_ARGUMENTS + arguments
    table = np.zeros((len(sources), len(sources), stride), np.int64)
    for origin, order in enumerate(orders):
        for place, step in enumerate(order):
            same = (
                sources[step.source].relation == sources[origin].relation
                and not sources[step.source].stored
            )
            index = -1 if step.index is None else int(first_index[step.source]) + step.index
            later = int(same and step.source > origin)
            numbers = [step.source, index, len(step.keys), len(step.checks), later]
            for source, code in step.keys:
                numbers += [source, layout.CODES + code]
            for check in step.checks:
                numbers += [
                    OPERATORS[check.operator],
                    layout.CODES + check.code,
                    check.source,
                    layout.CODES + check.source_code,
                ]
            table[origin, place, : len(numbers)] = numbers
    return Program(table.reshape(-1), stride)


def is_equi_join(plan: JoinPlan) -> bool:
    """Return whether the kernel for two windows and one equality can run a plan."""
    return (
        plan.algorithm is Algorithm.EAGER
        and plan.tree is None
        and plan.expiry is Expiry.OWN
        and len(plan.sources) == _TWO
        and all(
            len(source.codes) == 1
            and [(index.codes, index.buckets) for index in source.indexes] == [((0,), None)]
            for source in plan.sources
        )
        and all(
            len(step.checks) == 1 and step.checks[0].operator == "="
            for order in plan.orders
            for step in order
        )
        and not any(isinstance(source.window, PartitionedWindow) for source in plan.query.sources)
    )
