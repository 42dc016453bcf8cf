"""An operator above joins: changes of its inputs in, changes of its result out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from muntin.operators.signed import Changes


class Operator(ABC):
    """An operator on signed rows; one that keeps nothing needs only :meth:`run`."""

    tidy = False
    """Whether, at one instant, no equal row both comes and goes."""
    keeps_rows = False
    """Whether it keeps rows of its inputs, whose ends then have to reach it as retractions."""

    def begin(self, inputs: Sequence[Changes]) -> Changes:
        """Return the changes before the first row, given those of the inputs; called first."""
        return self.run(inputs)

    @abstractmethod
    def run(self, inputs: Sequence[Changes]) -> Changes:
        """Return the changes of the result, given those of the inputs."""

    def groups(self) -> int:
        """Return the number of entries of its state."""
        return 0

    def nbytes(self) -> int:
        """Return the bytes of its state."""
        return 0
