"""Isolate the failure of one query from all others.

An exception of a query while its rows are processed ends up here instead of in ``push``. A failure
in the expressions of a query concerns that query, a failure of a join all queries that share it.
The driver drops them once the step is over. KeyboardInterrupt and SystemExit pass through.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from muntin.errors import MuntinError
from muntin.expressions.salvage import first_line
from muntin.runtime.join_registry import JoinRegistry
from muntin.runtime.running_join import RunningJoin
from muntin.runtime.running_pipeline import RunningPipeline
from muntin.runtime.running_query import RunningQuery

Result = TypeVar("Result")


class Guard:
    """Runs the steps of a group's joins and pipelines, and keeps those that fail in ``failed``."""

    def __init__(self, joins: JoinRegistry) -> None:
        self._joins = joins
        self.failed: list[RunningQuery | RunningPipeline] = []

    def join(self, join: RunningJoin, step: Iterator[Result]) -> Iterator[Result]:
        """Yield the results of a join's step up to its end or its failure."""
        try:
            yield from step
        except Exception as error:  # noqa: BLE001 (whatever it is, other joins continue)
            self.broken(join, error)
        if join.failing:
            self.failed += join.failing
            join.failing.clear()

    def broken(self, join: RunningJoin, error: Exception) -> None:
        """Remove a join whose state is no longer sound; its queries fail with it."""
        self._joins.remove(join)
        for member in join.members:
            if member.failure is None:
                member.failure = error
                self.failed.append(member)

    def pipeline(self, pipeline: RunningPipeline, step: Iterator[Result]) -> Iterator[Result]:
        """Yield the results of a pipeline's step up to its end or its failure."""
        below = (leaf.failure for leaf in pipeline.leaves if leaf.failure)
        failure = pipeline.failure or next(below, None)
        if failure is None:
            try:
                yield from step
            except Exception as error:  # noqa: BLE001 (whatever it is, other pipelines continue)
                failure = error
        if failure is not None and pipeline.failure is None:
            pipeline.failure = failure
            self.failed.append(pipeline)

    def take(self) -> list[RunningQuery | RunningPipeline]:
        """Return the queries that have failed since the last call."""
        failed, self.failed = self.failed, []
        return failed


def reason_of(failure: BaseException) -> str:
    """Return a failure in one line; the type of an unexpected one is part of it."""
    if isinstance(failure, MuntinError):
        return failure.fact
    return f"{type(failure).__name__}: {first_line(failure)}"
