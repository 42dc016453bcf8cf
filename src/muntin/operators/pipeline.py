"""The operators of a pipeline as one: changes of the leaves in, changes of the result out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from muntin.expressions.evaluator import Evaluator
from muntin.operators.combine import CombineOperator, ProjectOperator
from muntin.operators.group_by import GroupByOperator
from muntin.operators.intake import Intake
from muntin.operators.set_operation import CountingOperator, UnionAllOperator
from muntin.operators.signed import BEGINNING, NEVER, Changes
from muntin.operators.windowed import OnceOperator, has_ends
from muntin.plan.pipeline import Combine, Distinct, GroupBy, Leaf, Node, Pipeline, SetOperation, SetOperator, Stored
from muntin.plan.strategy import Strategy


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


@dataclass
class _Step:
    """A node, its operator, where among the steps its inputs are, and what has come from them; ``clock`` is how far it has come."""

    node: Node
    operator: Operator | None
    inputs: tuple[int, ...]
    intakes: list[Intake]
    clock: int = BEGINNING


class PipelineOperator:
    """All operators of a pipeline, run one after the other, inputs first.

    By ``strategy`` NEGATIVE and HYBRID leaves send signed rows. By PROBING and INPUT they may send rows with ends, and every operator that
    keeps rows lets go of them by its own clock (paper 2, section 3.1). That is the least of the clocks of its inputs, asked one level
    down. By INPUT nobody is asked: the clock of an operator is the least, over its inputs, of the time of the last row that came
    from it; leaves send on what they have up to the last row that has come, and take nothing back after it.
    """

    def __init__(
        self, pipeline: Pipeline, tables: Mapping[str, pa.Table], evaluator: Evaluator, strategy: Strategy = Strategy.NEGATIVE
    ) -> None:
        self._tables = tables
        self._windowed = strategy in {Strategy.PROBING, Strategy.INPUT}
        self.is_triggered = strategy is Strategy.INPUT
        """Whether results come only when rows reach the operators."""
        self._steps: list[_Step] = []
        self._build(pipeline.root, evaluator)
        self._shown = Intake(pipeline.root.schema, expires=True)

    def _build(self, node: Node, evaluator: Evaluator) -> int:
        inputs = tuple(self._build(child, evaluator) for child in node.inputs)
        operator = _operator(node, evaluator, windowed=self._windowed)
        expires = isinstance(operator, GroupByOperator | CountingOperator | OnceOperator)
        children = node.inputs or (node,)
        intakes = [Intake(child.schema, expires=expires) for child in children] if self._windowed else []
        self._steps.append(_Step(node, operator, inputs, intakes))
        return len(self._steps) - 1

    @property
    def tidy(self) -> bool:
        """Whether the result needs no consolidation."""
        operator = self._steps[-1].operator
        return operator is not None and operator.tidy and not self._windowed

    @property
    def clock(self) -> int:
        """The instant up to which all results are out; only where operators go by clocks."""
        return self._shown.newest if self.is_triggered else self._steps[-1].clock

    @property
    def is_probing(self) -> bool:
        """Whether it is to be run when time passes although nothing comes."""
        return self._windowed and not self.is_triggered

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

    def run(self, leaves: Sequence[Changes], now: int = NEVER) -> Changes:
        """The changes that those of the leaves make; leaves in the order of the query, which have all come to ``now``."""
        following = iter(leaves)
        found: list[Changes] = []
        for step in self._steps:
            if step.operator is None:
                own = next(following) if isinstance(step.node, Leaf) else Changes.none(step.node.schema)
                found.append(self._of_leaf(step, own, now) if self._windowed else own)
            elif self._windowed:
                found.append(step.operator.run(self._of_inputs(step, found)))
            else:
                found.append(step.operator.run([found[place] for place in step.inputs]))
        return self._show(found[-1]) if self._windowed else found[-1]

    def _of_leaf(self, step: _Step, changes: Changes, now: int) -> Changes:
        """What a leaf sends on, and its clock: that of the engine, or with INPUT the time of the last row that came."""
        (intake,) = step.intakes
        if isinstance(step.node, Stored) or not self.is_triggered:
            step.clock = NEVER if isinstance(step.node, Stored) else now
            return changes
        intake.put(changes)
        coming = np.flatnonzero(changes.signs > 0)
        if len(coming):
            step.clock = int(changes.times[coming[-1]])
        return intake.take(step.clock)

    def _of_inputs(self, step: _Step, found: Sequence[Changes]) -> list[Changes]:
        """What an operator takes from its inputs now: all up to its clock."""
        clocks = []
        for intake, place in zip(step.intakes, step.inputs, strict=True):
            intake.put(found[place])
            unchanging = isinstance(self._steps[place].node, Stored)
            clocks.append(intake.newest if self.is_triggered and not unchanging else self._steps[place].clock)
        step.clock = max(step.clock, min(clocks))
        return [intake.take(step.clock) for intake in step.intakes]

    def _show(self, changes: Changes) -> Changes:
        """The result as signed rows: what ends is said to whoever reads it."""
        self._shown.put(changes)
        return replace(self._shown.take(self.clock), ends=None)

    def state(self) -> list[tuple[Node, int, int]]:
        """For each node that keeps something: how many entries, and how many bytes."""
        return [(step.node, step.operator.groups(), self._nbytes(step)) for step in self._steps if step.operator is not None]

    def _nbytes(self, step: _Step) -> int:
        """Bytes of an operator and of what it remembers; the last one's are those of the result too."""
        assert step.operator is not None, "only operators keep something"
        remembered = [intake.expire for intake in (*step.intakes, *([self._shown] if step is self._steps[-1] else [])) if intake.expire]
        return step.operator.nbytes() + sum(expire.nbytes() for expire in remembered)


def _operator(node: Node, evaluator: Evaluator, *, windowed: bool) -> Operator | None:
    match node:
        case GroupBy():
            return GroupByOperator(node, evaluator)
        case SetOperation(SetOperator.UNION_ALL):
            return UnionAllOperator(node)
        case Distinct() | SetOperation():
            return OnceOperator(node, evaluator) if windowed and has_ends(node) else CountingOperator(node, evaluator)
        case Combine():
            return ProjectOperator(node, evaluator) if len(node.inputs) == 1 else CombineOperator(node, evaluator, ending=windowed)
        case _:
            return None
