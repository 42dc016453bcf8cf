"""The operators of a pipeline as one: changes of the leaves in, changes of the result out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.operators.combine import CombineOperator, ProjectOperator
from muntin.operators.group_by import GroupByOperator
from muntin.operators.set_operation import CountingOperator, UnionAllOperator
from muntin.operators.signed import BEGINNING, Changes
from muntin.plan.pipeline import Combine, Distinct, GroupBy, Leaf, Node, Pipeline, SetOperation, SetOperator, Stored


class Operator(Protocol):
    """An operator on signed rows."""

    @property
    def tidy(self) -> bool:
        """Whether, at one instant, no equal row both comes and goes."""

    def begin(self, inputs: Sequence[Changes]) -> Changes:
        """The changes before any row has come, given those of the inputs; called once, first."""

    def run(self, inputs: Sequence[Changes]) -> Changes:
        """The changes of the result, given those of the inputs."""

    def groups(self) -> int:
        """Entries of its state."""

    def nbytes(self) -> int:
        """Bytes of its state."""


@dataclass(frozen=True)
class _Step:
    """A node, its operator, and where among the steps its inputs are."""

    node: Node
    operator: Operator | None
    inputs: tuple[int, ...]


class PipelineOperator:
    """All operators of a pipeline, run one after the other, inputs first."""

    def __init__(self, pipeline: Pipeline, tables: Mapping[str, pa.Table], evaluator: Evaluator, duck: Duck) -> None:
        self._tables = tables
        self._steps: list[_Step] = []
        self._build(pipeline.root, evaluator, duck)

    def _build(self, node: Node, evaluator: Evaluator, duck: Duck) -> int:
        inputs = tuple(self._build(child, evaluator, duck) for child in node.inputs)
        self._steps.append(_Step(node, _operator(node, evaluator, duck), inputs))
        return len(self._steps) - 1

    @property
    def tidy(self) -> bool:
        """Whether the result needs no consolidation."""
        operator = self._steps[-1].operator
        return operator is not None and operator.tidy

    def begin(self) -> Changes:
        """The changes before any row has come: rows of stored tables, and aggregates over nothing."""
        found: list[Changes] = []
        for step in self._steps:
            if step.operator is not None:
                found.append(step.operator.begin([found[place] for place in step.inputs]))
            elif isinstance(step.node, Stored):
                found.append(Changes.coming(self._tables[step.node.source.relation].select(step.node.schema.names), BEGINNING))
            else:
                found.append(Changes.none(step.node.schema))
        return found[-1]

    def run(self, leaves: Sequence[Changes]) -> Changes:
        """The changes that those of the leaves make; leaves in the order of the query."""
        following = iter(leaves)
        found: list[Changes] = []
        for step in self._steps:
            if step.operator is not None:
                found.append(step.operator.run([found[place] for place in step.inputs]))
            else:
                found.append(next(following) if isinstance(step.node, Leaf) else Changes.none(step.node.schema))
        return found[-1]

    def state(self) -> list[tuple[Node, int, int]]:
        """For each node that keeps something: how many entries, and how many bytes."""
        return [(step.node, step.operator.groups(), step.operator.nbytes()) for step in self._steps if step.operator is not None]


def _operator(node: Node, evaluator: Evaluator, duck: Duck) -> Operator | None:
    match node:
        case GroupBy():
            return GroupByOperator(node, evaluator)
        case Distinct():
            return CountingOperator(node, evaluator)
        case SetOperation():
            return UnionAllOperator(node) if node.operator is SetOperator.UNION_ALL else CountingOperator(node, evaluator)
        case Combine():
            return ProjectOperator(node, evaluator) if len(node.inputs) == 1 else CombineOperator(node, evaluator, duck)
        case _:
            return None
