"""The operators above joins as one: changes of the leaves in, changes of the result out."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from muntin.expressions.evaluator import Evaluator
from muntin.model.settings import Strategy
from muntin.operators.expiry_strategy import STRATEGIES
from muntin.operators.operator import Operator, PresentRows, TimedOperator
from muntin.operators.registry import Build, make_operator
from muntin.operators.signed import BEGINNING, NEVER, Changes
from muntin.operators.steps import Step, Steps
from muntin.plan.node import Node
from muntin.plan.nodes import Distinct, Scan, SetOperation
from muntin.plan.query import Query


@dataclass(frozen=True)
class Drive:
    """How a plan tree is driven: strategy, the pool of steps to share, keys of its leaves.

    With ``answers`` it runs once, over the rows that are there now, beside the one that runs.
    """

    strategy: Strategy = Strategy.NEGATIVE
    steps: Steps | None = None
    leaves: Sequence[Hashable] = ()
    answers: PipelineOperator | None = None


@dataclass(frozen=True)
class _Place:
    """A step, and where among the steps of the plan tree its inputs are."""

    step: Step
    inputs: tuple[int, ...]


class PipelineOperator:
    """All operators above the joins of a query, run one after the other, inputs first.

    The strategy decides how operators learn that rows have left their windows.
    Steps that plan trees have in common run once per round.
    """

    def __init__(
        self,
        query: Query,
        tables: Mapping[str, pa.Table],
        evaluator: Evaluator,
        drive: Drive | None = None,
    ) -> None:
        drive = drive or Drive()
        strategy, self._pool = drive.strategy, drive.steps or Steps()
        leaves = iter(drive.leaves or range(len(query.leaves)))
        self._tables = tables
        self._strategy = STRATEGIES[strategy](query.root.schema)
        self._places: list[_Place] = []
        self._releases = False
        self._beside = drive.answers
        self._tables_changed: Mapping[str, Changes] = {}
        build = Build(evaluator, self._strategy.sends_ends, drive.answers is not None, query.every)
        self._build(query.root, leaves, build, self._at_root(query.root, build))
        found = [(place.step, place.step.operator) for place in self._places]
        self._timed = [(step, each) for step, each in found if isinstance(each, TimedOperator)]

    def _at_root(self, root: Node, build: Build) -> Build:
        """Return how the root is made: readers know no ends, so none are sent that need not be."""
        signed = self._strategy.probes and isinstance(root, (Distinct, SetOperation))
        return build._replace(windowed=False) if signed else build

    def _build(self, node: Node, leaves: Iterator[Hashable], below: Build, build: Build) -> int:
        inputs = tuple(self._build(child, leaves, below, below) for child in node.inputs)
        steps = tuple(id(self._places[place].step) for place in inputs)
        key = (None, next(leaves)) if node.is_leaf else (node.parameters, steps, build.windowed)
        self._places.append(
            _Place(
                self._pool.get(key, lambda: self._make(node, self._operator(node, build))), inputs
            )
        )
        return len(self._places) - 1

    def _operator(self, node: Node, build: Build) -> Operator | None:
        """Return the operator of the next place; for answers, what stands in for a timed one."""
        if self._beside is not None:
            running = self._beside.operator_at(len(self._places))
            if isinstance(running, TimedOperator):
                return PresentRows(running)
        return make_operator(node, build)

    def operator_at(self, place: int) -> Operator | None:
        """Return the operator of a node by its place in the order of the dataflow."""
        return self._places[place].step.operator

    def _make(self, node: Node, operator: Operator | None) -> Step:
        return Step(node, operator, self._strategy.intakes(node, operator))

    def let_go(self) -> None:
        """Drop the steps that no other plan tree has."""
        for place in reversed(self._places):
            self._pool.let_go(place.step)

    @property
    def _root(self) -> Step:
        return self._places[-1].step

    @property
    def tidy(self) -> bool:
        """Return whether the result needs no consolidation."""
        return self._root.operator is not None and self._root.operator.tidy

    @property
    def clock(self) -> int:
        """Return the instant up to which all results are out; only where operators use clocks."""
        return self._strategy.clock(self._root)

    def release(self) -> None:
        """Let the next run go by the clock, so that no results wait for rows."""
        self._releases = self.is_triggered

    def is_due(self, now: int, turn: int) -> bool:
        """Return whether it is to be run at an instant although nothing comes.

        A step that it shares may have been run in this turn, for another plan tree.
        """
        if any(timed.due <= now for _, timed in self._timed):
            return True
        if self._timed and any(p.step.turn == turn and len(p.step.found) for p in self._places):
            return True
        if self._releases or not self._strategy.probes:
            return self._releases
        steps = [place.step for place in self._places]
        return (
            self._strategy.is_due(now)
            or any(intake.is_due(now) for step in steps for intake in step.intakes)
            or any(step.turn == turn and len(step.found) for step in steps)
        )

    def change_tables(self, changes: Mapping[str, Changes]) -> None:
        """Let the next run take changes of stored tables, by name."""
        self._tables_changed = changes

    def move(self, now: int) -> None:
        """Note how far time has come, for the operators that depend on it."""
        for _, timed in self._timed:
            timed.move(now)

    def timed(self) -> list[tuple[Node, TimedOperator]]:
        """Return the nodes whose operators keep rows that are older than windows reach."""
        return [(step.node, timed) for step, timed in self._timed]

    @property
    def is_triggered(self) -> bool:
        """Return whether results come only when rows reach the operators."""
        return self._strategy.is_triggered

    def begin(self) -> Changes:
        """Return the changes before the first row: of stored tables and aggregates over nothing."""
        for place in self._places:
            step = place.step
            if step.begun is not None:
                continue
            if step.operator is not None:
                step.begun = step.operator.begin([self._begun(below) for below in place.inputs])
            elif isinstance(step.node, Scan):
                rows = self._tables[step.node.relation].select(step.node.schema.names)
                step.begun = Changes.coming(rows, BEGINNING)
            else:
                step.begun = Changes.none(step.node.schema)
        return self._begun(-1)

    def _begun(self, place: int) -> Changes:
        begun = self._places[place].step.begun
        assert begun is not None, "inputs begin first"
        return begun

    def run(self, leaves: Sequence[Changes], now: int = NEVER, turn: int = -1) -> Changes:
        """Return the changes that those of the leaves make, which have all come to ``now``.

        In one ``turn`` a step is run for the first plan tree that has it.
        """
        following = iter(leaves)
        if self._releases:
            self._strategy.move([place.step for place in self._places], now)
            self._releases = False
        for place in self._places:
            step = place.step
            own = next(following) if step.node.is_leaf else None
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
        self._tables_changed = {}
        found = self._strategy.show(self._root)
        for place in self._places:
            if place.step.users == 1:
                place.step.found = place.step.nothing
        return found

    def _found(self, place: _Place, own: Changes | None, now: int) -> Changes:
        """Return the changes that a step makes in a turn; ``own`` are those of a leaf."""
        step = place.step
        if isinstance(step.node, Scan) and step.node.relation in self._tables_changed:
            changed = self._tables_changed[step.node.relation]
            own = changed.with_columns(changed.columns.select(step.node.schema.names))
        if step.operator is None:
            return self._strategy.of_leaf(step, own or step.nothing, now)
        inputs = [self._places[below].step for below in place.inputs]
        return step.operator.run(self._strategy.of_inputs(step, inputs))

    def state(self) -> list[tuple[Node, int, int]]:
        """Return the number of entries and the bytes of each node with an operator."""
        steps = [place.step for place in self._places]
        return [
            (step.node, step.operator.groups(), step.nbytes())
            for step in steps
            if step.operator is not None
        ]

    def shared(self) -> list[bool]:
        """Return for each node with an operator whether other plan trees have it too."""
        return [place.step.users > 1 for place in self._places if place.step.operator is not None]

    def nbytes(self) -> int:
        """Return the bytes of all steps; of shared steps a part."""
        return self._strategy.nbytes() + sum(
            place.step.nbytes() // place.step.users for place in self._places
        )
