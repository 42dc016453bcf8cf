"""The interface that controls the probe budgets of a running join; the default does nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from muntin.operators.join.probe_limiter import ProbeLimiter
from muntin.plan.join import JoinPlan
from muntin.runtime.log_cursors import LogCursors


class OverloadControl:
    """The control of a join without budgets; the controls of limited joins override it."""

    mode = "queue"

    @property
    def has_resources(self) -> bool:
        """Return whether resources are given or will be derived."""
        return True

    def controls(self, plan: JoinPlan) -> bool:  # noqa: ARG002
        """Return whether it can continue with a limited plan: one with the same half joins."""
        return False

    def attach(self, limiter: ProbeLimiter) -> None:
        """Control this limiter from now on."""

    def set_live(self, *, live: bool) -> None:
        """Note whether the engine works in the background."""

    @contextmanager
    def working(self) -> Iterator[None]:
        """Measure the time of some work of the join."""
        yield

    def see(self, frontier: int, cursors: LogCursors) -> None:
        """Note how far the engine is: its frontier, and the logs that the join reads."""

    def present(self) -> Sequence[int] | None:
        """Return the instant of each source by which results may be stale; None: none can be.

        For a window in rows it is a number of rows.
        """
        return None

    def stats(self) -> dict[str, object]:
        """Return the measurements and decisions."""
        return {}


def same_half_joins(one: JoinPlan, other: JoinPlan) -> bool:
    """Return whether two limited plans have the same half joins."""
    return one.tree == other.tree and one.query == other.query
