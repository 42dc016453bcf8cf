"""How operators above joins learn that rows have left their windows ([HammadTR, section 3]).

Under Negative Tuple and Hybrid the leaves send signed rows, and operators know signs only. Under
Time Probing and Input Triggered the leaves may send rows with ends, and rows that end leave every
operator by its clock: the least of the clocks of its inputs, asked one level down. Under Input
Triggered nobody is asked: the clock of an operator is the least, over its inputs, of the time of
the last row that came from it. Leaves then send what they have up to the last row that has come,
and retract nothing after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from muntin.model.settings import Strategy
from muntin.operators.intake import Intake
from muntin.operators.operator import Operator
from muntin.operators.signed import NEVER, Changes
from muntin.operators.steps import Step
from muntin.plan.node import Node


class SignedRows:
    """Negative Tuple and Hybrid: every row that leaves comes as a negative row."""

    sends_ends = False
    """Whether rows may have ends, so that operators go by clocks."""
    probes = False
    """Whether operators run when time passes although no row comes."""
    is_triggered = False
    """Whether results come only when rows reach the operators."""

    def __init__(self, schema: pa.Schema) -> None:
        self._shown = Intake(schema, expires=True)

    def intakes(self, node: Node, operator: Operator | None) -> list[Intake]:  # noqa: ARG002
        """Return the intakes in front of a step: none."""
        return []

    def of_leaf(self, step: Step, changes: Changes, now: int) -> Changes:  # noqa: ARG002
        """Return the output of a leaf whose clock is ``now``."""
        return changes

    def of_inputs(self, step: Step, inputs: Sequence[Step]) -> list[Changes]:  # noqa: ARG002
        """Return the input of a step."""
        return [each.found for each in inputs]

    def show(self, root: Step) -> Changes:
        """Return the result as signed rows."""
        return root.found

    def clock(self, root: Step) -> int:
        """Return the instant up to which all results are out, where operators go by clocks."""
        return root.clock

    def is_due(self, now: int) -> bool:
        """Return whether results end up to an instant."""
        return self._shown.is_due(now)

    def move(self, steps: Iterable[Step], now: int) -> None:
        """Move the clocks of steps to an instant, where only rows move them otherwise."""

    def nbytes(self) -> int:
        """Return the bytes of results that are kept until they end."""
        return self._shown.expire.nbytes() if self._shown.expire else 0


class TimeProbing(SignedRows):
    """Rows with ends; operators ask how far time has come."""

    sends_ends = True
    probes = True

    def intakes(self, node: Node, operator: Operator | None) -> list[Intake]:
        """Return an intake per input; those of operators that keep rows retract what ends."""
        expires = operator is not None and operator.keeps_rows
        return [Intake(child.schema, expires=expires) for child in node.inputs or (node,)]

    def of_leaf(self, step: Step, changes: Changes, now: int) -> Changes:
        """Return the output of a leaf; its clock is that of the engine."""
        step.clock = NEVER if step.node.is_table else now
        return changes

    def of_inputs(self, step: Step, inputs: Sequence[Step]) -> list[Changes]:
        """Return the input of a step: everything up to its clock."""
        for intake, below in zip(step.intakes, inputs, strict=True):
            intake.put(below.found)
        clocks = map(self._clock_of, step.intakes, inputs)
        step.clock = max(step.clock, min(clocks))
        return [intake.take(step.clock) for intake in step.intakes]

    def _clock_of(self, intake: Intake, below: Step) -> int:  # noqa: ARG002
        return below.clock

    def show(self, root: Step) -> Changes:
        """Return the result as signed rows: its readers know no ends."""
        self._shown.put(root.found)
        return replace(self._shown.take(self.clock(root)), ends=None, numbers=None)


class InputTriggered(TimeProbing):
    """Rows with ends; time is that of the last row that came."""

    probes = False
    is_triggered = True

    def of_leaf(self, step: Step, changes: Changes, now: int) -> Changes:
        """Return the output of a leaf; its clock is the time of the newest row."""
        if step.node.is_table:
            return super().of_leaf(step, changes, now)
        (intake,) = step.intakes
        intake.put(changes)
        coming = np.flatnonzero(changes.signs > 0)
        if len(coming):
            step.clock = int(changes.times[coming[-1]])
        return intake.take(step.clock)

    def _clock_of(self, intake: Intake, below: Step) -> int:
        return below.clock if below.node.is_table else intake.newest

    def move(self, steps: Iterable[Step], now: int) -> None:
        """Move the clocks of steps to an instant, as if a row had reached each of them."""
        for step in steps:
            step.clock = max(step.clock, now)
            for intake in step.intakes:
                intake.newest = max(intake.newest, now)
        self._shown.newest = max(self._shown.newest, now)

    def clock(self, root: Step) -> int:  # noqa: ARG002
        """Return the instant up to which all results are out."""
        return self._shown.newest


STRATEGIES: Mapping[Strategy, type[SignedRows]] = {
    Strategy.NEGATIVE: SignedRows,
    Strategy.HYBRID: SignedRows,
    Strategy.PROBING: TimeProbing,
    Strategy.INPUT: InputTriggered,
}
