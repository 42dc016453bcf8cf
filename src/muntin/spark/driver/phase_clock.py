"""The time that the phases of batches take, for ``muntin_batch_phase_seconds_total``."""

from __future__ import annotations

import time

PHASES = ("plan", "partitions", "sinks", "commit")
"""The phases of a batch, in their order."""


class PhaseClock:
    """Adds the time of each phase of one batch to the totals of all."""

    def __init__(self, totals: dict[str, float]) -> None:
        self._totals = totals
        self._began = time.monotonic()

    def end(self, phase: str) -> None:
        """End a phase; the next one begins."""
        assert phase in PHASES, f"{phase} is not a phase"
        now = time.monotonic()
        self._totals[phase] = self._totals.get(phase, 0.0) + now - self._began
        self._began = now
