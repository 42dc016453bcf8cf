"""The steps of running pipelines: an operator, what has come to it, and whether several pipelines run it together.

Steps are the same when they compute the same from the same steps, so sub-plans are recognised from the leaves up. Leaves are the
same when whoever runs them says so, which they do only before a row has come: then everything above is still as at its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from muntin.operators.intake import Intake
from muntin.operators.signed import BEGINNING, Changes
from muntin.plan.node import Node


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
class Step:
    """A node, its operator, and what has come from its inputs; ``clock`` is how far it has come.

    ``begun`` is what it had before any row came, ``found`` what it made in the turn ``turn``, for the other pipelines that have it.
    ``failure`` is what its operator raised: then its state is no longer sound, for none of these pipelines.
    """

    node: Node
    operator: Operator | None
    intakes: list[Intake]
    key: Hashable = None
    clock: int = BEGINNING
    users: int = 0
    begun: Changes | None = None
    turn: int = -1
    failure: Exception | None = None
    found: Changes = field(init=False)
    nothing: Changes = field(init=False)

    def __post_init__(self) -> None:
        self.found = self.nothing = Changes.none(self.node.schema)

    def nbytes(self) -> int:
        """Bytes of the operator and of what stands in front of it."""
        remembered = sum(intake.expire.nbytes() for intake in self.intakes if intake.expire)
        return remembered + (self.operator.nbytes() if self.operator else 0)


class Steps:
    """The steps of all pipelines of an engine."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Step] = {}

    def get(self, key: Hashable, make: Callable[[], Step]) -> Step:
        """The step of a key, for one pipeline more."""
        if key not in self._known:
            self._known[key] = make()
            self._known[key].key = key
        step = self._known[key]
        step.users += 1
        return step

    def let_go(self, step: Step) -> None:
        """One pipeline less has a step."""
        step.users -= 1
        if not step.users:
            del self._known[step.key]
