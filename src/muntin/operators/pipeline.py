"""The operators of a pipeline as one: changes of the leaves in, changes of the result out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from muntin.expressions.evaluator import Evaluator
from muntin.model.settings import Strategy
from muntin.operators.combine import CombineOperator, ProjectOperator
from muntin.operators.group_by import GroupByOperator
from muntin.operators.intake import Intake
from muntin.operators.set_operation import CountingOperator, UnionAllOperator
from muntin.operators.signed import BEGINNING, NEVER, Changes
from muntin.operators.steps import Operator, Step, Steps, what_it_does
from muntin.operators.windowed import OnceOperator, has_ends
from muntin.plan.pipeline import (
    Combine,
    Distinct,
    GroupBy,
    Leaf,
    Node,
    Pipeline,
    SetOperation,
    SetOperator,
    Stored,
)


@dataclass(frozen=True)
class Drive:
    """How a pipeline is driven, and with which others: the ``steps`` that it may have in common with them, and names of its leaves."""

    strategy: Strategy = Strategy.NEGATIVE
    steps: Steps | None = None
    leaves: Sequence[Hashable] = ()


@dataclass(frozen=True)
class _Place:
    """A step, and where among the steps of the pipeline its inputs are."""

    step: Step
    inputs: tuple[int, ...]


class PipelineOperator:
    """All operators of a pipeline, run one after the other, inputs first.

    By ``strategy`` NEGATIVE and HYBRID leaves send signed rows. By PROBING and INPUT they may send rows with ends, and every operator that
    keeps rows lets go of them by its own clock (paper 2, section 3.1). That is the least of the clocks of its inputs, asked one level
    down. By INPUT nobody is asked: the clock of an operator is the least, over its inputs, of the time of the last row that came
    from it; leaves send on what they have up to the last row that has come, and take nothing back after it.

    Steps that pipelines have in common are run once in a round.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        tables: Mapping[str, pa.Table],
        evaluator: Evaluator,
        drive: Drive | None = None,
    ) -> None:
        drive = drive or Drive()
        strategy, self._pool = drive.strategy, drive.steps or Steps()
        leaves = iter(drive.leaves or range(len(pipeline.leaves)))
        self._tables = tables
        self._windowed = strategy in {Strategy.PROBING, Strategy.INPUT}
        self.is_triggered = strategy is Strategy.INPUT
        """Whether results come only when rows reach the operators."""
        self._places: list[_Place] = []
        self._build(
            pipeline.root, leaves, partial(_operator, evaluator=evaluator, windowed=self._windowed)
        )
        self._shown = Intake(pipeline.root.schema, expires=True)

    def _build(
        self, node: Node, leaves: Iterator[Hashable], make: Callable[[Node], Operator | None]
    ) -> int:
        inputs = tuple(self._build(child, leaves, make) for child in node.inputs)
        below = tuple(id(self._places[place].step) for place in inputs)
        key = what_it_does(node), below, next(leaves) if isinstance(node, Leaf) else None
        self._places.append(
            _Place(self._pool.get(key, lambda: self._make(node, make(node))), inputs)
        )
        return len(self._places) - 1

    def _make(self, node: Node, operator: Operator | None) -> Step:
        expires = isinstance(operator, GroupByOperator | CountingOperator | OnceOperator)
        children = node.inputs or (node,)
        return Step(
            node,
            operator,
            [Intake(child.schema, expires=expires) for child in children] if self._windowed else [],
        )

    def let_go(self) -> None:
        """Be no more: steps that no other pipeline has go too."""
        for place in reversed(self._places):
            self._pool.let_go(place.step)

    @property
    def _root(self) -> Step:
        return self._places[-1].step

    @property
    def tidy(self) -> bool:
        """Whether the result needs no consolidation."""
        return self._root.operator is not None and self._root.operator.tidy

    @property
    def clock(self) -> int:
        """The instant up to which all results are out; only where operators go by clocks."""
        return self._shown.newest if self.is_triggered else self._root.clock

    @property
    def is_probing(self) -> bool:
        """Whether it is to be run when time passes although nothing comes."""
        return self._windowed and not self.is_triggered

    def begin(self) -> Changes:
        """The changes before any row has come: rows of stored tables, and aggregates over nothing."""
        for place in self._places:
            step = place.step
            if step.begun is not None:
                continue
            if step.operator is not None:
                step.begun = step.operator.begin([self._begun(below) for below in place.inputs])
            elif isinstance(step.node, Stored):
                step.begun = Changes.coming(
                    self._tables[step.node.source.relation].select(step.node.schema.names),
                    BEGINNING,
                )
            else:
                step.begun = Changes.none(step.node.schema)
        return self._begun(-1)

    def _begun(self, place: int) -> Changes:
        begun = self._places[place].step.begun
        assert begun is not None, "inputs begin first"
        return begun

    def run(self, leaves: Sequence[Changes], now: int = NEVER, turn: int = -1) -> Changes:
        """The changes that those of the leaves make; leaves in the order of the query, which have all come to ``now``.

        In one ``turn`` a step is run for the first pipeline that has it.
        """
        following = iter(leaves)
        for place in self._places:
            step = place.step
            own = next(following) if isinstance(step.node, Leaf) else None
            if step.failure is not None:
                raise step.failure
            if step.turn == turn >= 0:
                continue
            step.turn = turn
            try:
                step.found = self._found(place, own, now)
            except Exception as error:
                step.failure = error
                raise
        found = self._show(self._root.found) if self._windowed else self._root.found
        for place in self._places:
            if place.step.users == 1:
                place.step.found = place.step.nothing
        return found

    def _found(self, place: _Place, own: Changes | None, now: int) -> Changes:
        """Return the changes that a step makes in a turn; ``own`` are those of a leaf."""
        step = place.step
        if step.operator is None:
            own = own or step.nothing
            return self._of_leaf(step, own, now) if self._windowed else own
        if self._windowed:
            return step.operator.run(self._of_inputs(place))
        return step.operator.run([self._places[below].step.found for below in place.inputs])

    def _of_leaf(self, step: Step, changes: Changes, now: int) -> Changes:
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

    def _of_inputs(self, place: _Place) -> list[Changes]:
        """What an operator takes from its inputs now: all up to its clock."""
        step, clocks = place.step, []
        for intake, below in zip(step.intakes, place.inputs, strict=True):
            child = self._places[below].step
            intake.put(child.found)
            clocks.append(
                intake.newest
                if self.is_triggered and not isinstance(child.node, Stored)
                else child.clock
            )
        step.clock = max(step.clock, min(clocks))
        return [intake.take(step.clock) for intake in step.intakes]

    def _show(self, changes: Changes) -> Changes:
        """The result as signed rows: what ends is said to whoever reads it."""
        self._shown.put(changes)
        return replace(self._shown.take(self.clock), ends=None, numbers=None)

    def state(self) -> list[tuple[Node, int, int]]:
        """For each node that keeps something: how many entries, and how many bytes."""
        steps = [place.step for place in self._places]
        return [
            (step.node, step.operator.groups(), step.nbytes())
            for step in steps
            if step.operator is not None
        ]

    def shared(self) -> list[bool]:
        """For each node that keeps something whether other pipelines have it too."""
        return [place.step.users > 1 for place in self._places if place.step.operator is not None]

    def nbytes(self) -> int:
        """Bytes of all steps, of those that others have too a part."""
        shown = self._shown.expire.nbytes() if self._shown.expire else 0
        return shown + sum(place.step.nbytes() // place.step.users for place in self._places)


def _operator(node: Node, *, evaluator: Evaluator, windowed: bool) -> Operator | None:
    match node:
        case GroupBy():
            return GroupByOperator(node, evaluator)
        case SetOperation(SetOperator.UNION_ALL):
            return UnionAllOperator(node)
        case Distinct() | SetOperation():
            return (
                OnceOperator(node, evaluator)
                if windowed and has_ends(node)
                else CountingOperator(node, evaluator)
            )
        case Combine():
            return (
                ProjectOperator(node, evaluator)
                if len(node.inputs) == 1
                else CombineOperator(node, evaluator, ending=windowed)
            )
        case _:
            return None
