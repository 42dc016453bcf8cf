"""The steps of running plan trees: an operator, what has come to it, and who runs it.

Two steps are the same when they compute the same from the same steps, so common sub-plans are
recognized from the leaves up. Leaves are the same if their owner gives them the same key, which it
does only before a row has come: everything above is then still as at its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from muntin.operators.intake import Intake
from muntin.operators.operator import Operator
from muntin.operators.signed import BEGINNING, Changes
from muntin.plan.node import Node


@dataclass
class Step:
    """A node, its operator, and what has come from its inputs up to ``clock``.

    ``begun`` are the changes before the first row, ``found`` those of the turn ``turn``, for the
    other plan trees that have it. ``failure`` is what its operator raised: its state is then
    unusable for all of them.
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
        """Return the bytes of the operator and of what waits in front of it."""
        remembered = sum(intake.expire.nbytes() for intake in self.intakes if intake.expire)
        return remembered + (self.operator.nbytes() if self.operator else 0)


class Steps:
    """The steps of all plan trees of an engine."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Step] = {}

    def get(self, key: Hashable, make: Callable[[], Step]) -> Step:
        """Return the step of a key, for one more plan tree."""
        if key not in self._known:
            self._known[key] = make()
            self._known[key].key = key
        step = self._known[key]
        step.users += 1
        return step

    def let_go(self, step: Step) -> None:
        """Remove a plan tree from a step."""
        step.users -= 1
        if not step.users:
            del self._known[step.key]
