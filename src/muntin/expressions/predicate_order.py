"""A conjunction that is tested in stages, expensive predicates last ([Golab03, section 5.4]).

What a predicate costs per row, and which share of rows it keeps, is measured on the rows that come:
once there are enough, and again whenever twice as many have come. Predicates are ordered by their
cost over the share of rows that they remove. A stage is one evaluation; the next one sees only the
rows that the stages before it kept. Another stage is begun where the rows that it is spared are
worth the fixed cost of an evaluation.

Sound because a conjunction may be tested in any order. A row that one predicate removes is not
evaluated by later ones, so it does not count as a failure if they fail on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin.expressions.evaluator import Evaluator
from muntin.model.arrays import Mask
from muntin.plan.expression import Expression

LEAST = 512
"""Rows of a batch from which on stages are considered."""
_SAMPLE = 2_048
"""Rows on which predicates are measured."""


@dataclass(frozen=True)
class MeasuredPredicate:
    """A predicate, its nanoseconds per row, those of any evaluation, and the share it keeps."""

    predicate: Expression
    per_row: float
    fixed: float
    kept: float

    @property
    def rank(self) -> float:
        """Nanoseconds per row that it removes."""
        return self.per_row / max(1.0 - self.kept, 1e-9)


class PredicateOrder:
    """Tests a conjunction over batches; ``clock`` is processor time in nanoseconds."""

    def __init__(
        self,
        predicates: Sequence[Expression],
        evaluator: Evaluator,
        clock: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        self.predicates = list(predicates)
        self._evaluator = evaluator
        self._clock = clock
        self._seen = self._measured_at = 0
        self.measured: list[MeasuredPredicate] = []
        """The predicates in the order in which they are tested, once they were measured."""

    def holds(self, batch: pa.Table) -> Mask:
        """Return whether all predicates are true (not false, not NULL), row by row."""
        if len(self.predicates) < 2 or len(batch) < LEAST:
            return self._evaluator.holds(self.predicates, batch)
        self._seen += len(batch)
        if self._seen >= 2 * self._measured_at:
            self._measure(batch.slice(0, _SAMPLE))
        stages = self._stages(len(batch))
        if len(stages) == 1:
            return self._evaluator.holds(self.predicates, batch)
        alive = np.arange(len(batch))
        for stage in stages:
            rows = batch if len(alive) == len(batch) else batch.take(pa.array(alive))
            alive = alive[self._evaluator.holds(stage, rows)]
            if not len(alive):
                break
        mask = np.zeros(len(batch), bool)
        mask[alive] = True
        return mask

    def _measure(self, sample: pa.Table) -> None:
        """Measure each predicate alone; failures of rows are not counted here."""
        self._measured_at = self._seen
        counted = self._evaluator.failures, self._evaluator.last_failure
        found = [self._measured(predicate, sample) for predicate in self.predicates]
        self._evaluator.failures, self._evaluator.last_failure = counted
        self.measured = sorted(found, key=lambda each: each.rank)

    def _measured(self, predicate: Expression, sample: pa.Table) -> MeasuredPredicate:
        begin = self._clock()
        self._evaluator.holds([predicate], sample.slice(0, 1))
        middle = self._clock()
        kept = float(self._evaluator.holds([predicate], sample).mean())
        fixed, every = middle - begin, self._clock() - middle
        return MeasuredPredicate(predicate, max(every - fixed, 0) / len(sample), fixed, kept)

    def _stages(self, rows: int) -> list[list[Expression]]:
        """Return the predicates of each evaluation of a batch."""
        stages: list[list[Expression]] = [[]]
        reaching, kept = float(rows), 1.0
        for place, each in enumerate(self.measured):
            rest = sum(later.per_row for later in self.measured[place:])
            if stages[-1] and reaching * (1 - kept) * rest > each.fixed:
                stages.append([])
                reaching, kept = reaching * kept, 1.0
            stages[-1].append(each.predicate)
            kept *= each.kept
        return stages
