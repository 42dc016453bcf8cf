"""An operator above joins: changes of its inputs in, changes of its result out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from muntin.model.arrays import Integers
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


class TimedOperator(Operator):
    """An operator over one leaf whose result changes with time alone, by rows that it keeps.

    They may be older than what the windows of the leaf reach, so logs keep them for it.
    """

    @property
    @abstractmethod
    def clock(self) -> int:
        """Return how far time has come."""

    @property
    @abstractmethod
    def due(self) -> int:
        """Return the instant at which its result may change although no row comes."""

    @abstractmethod
    def move(self, now: int) -> None:
        """Note how far time has come: all rows up to then are here, or come with the next run."""

    @abstractmethod
    def present(self) -> Changes:
        """Return the rows that are in its result."""

    @abstractmethod
    def positions(self) -> Integers:
        """Return the positions of the rows that it keeps in the stream of its leaf."""


class PresentRows(Operator):
    """Stands in for a timed operator where answers are made."""

    def __init__(self, running: TimedOperator) -> None:
        self._running = running

    def begin(self, inputs: Sequence[Changes]) -> Changes:  # noqa: ARG002
        """Return nothing: the rows come with the first run."""
        return Changes.none(self._running.present().columns.schema)

    def run(self, inputs: Sequence[Changes]) -> Changes:  # noqa: ARG002
        """Return the rows that are in the result."""
        return Changes.coming(self._running.present().columns, 0)
